package proxy

import "time"

// watch measures the time for collapsing one search: all that passes but for what it is stopped for. It is for one goroutine.
type watch struct {
	until   time.Time
	stopped time.Time
	over    bool
	looked  bool // a name was looked up
	asked   bool // the engine was, for the search
}

func newWatch(most time.Duration) *watch { return &watch{until: time.Now().Add(most)} }

// late reports whether the time is over. Once it is, it stays so.
func (w *watch) late() bool {
	w.over = w.over || time.Now().After(w.until)
	return w.over
}

// stop stops the watch until it goes on.
func (w *watch) stop() { w.stopped = time.Now() }

func (w *watch) goOn() {
	if !w.stopped.IsZero() {
		w.until, w.stopped = w.until.Add(time.Since(w.stopped)), time.Time{}
	}
}

// lookUp stops the watch for the first name that is looked up, until what it returns is called. The engine answers to that as to the
// search itself, and it is remembered.
func (w *watch) lookUp() (done func()) {
	if w.looked {
		return func() {}
	}
	w.looked = true
	w.stop()
	return w.goOn
}
