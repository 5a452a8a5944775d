package proxy

import (
	"context"
	"time"

	"github.com/neardup/sidecar/adapters"
)

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

// asking asks the engine for one client's request, while there is time. It is for one goroutine.
type asking struct {
	h     *Handler
	watch *watch
	begun bool // the search itself was asked for
	last  bool // so were the client's own searches, after the time was over
}

// ask implements [collapse.Ask]. The engine may take all the time for what it is asked first, and for the client's own search.
func (a *asking) ask(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	w := a.watch
	switch {
	case !a.begun:
		a.begun, w.asked = !requests[0].Ahead, true
		w.stop()
		defer w.goOn()
		return a.h.askAll(ctx, requests)
	case w.over && a.last:
		return nil, adapters.ErrLate
	case w.over: // what is asked is the client's own, where no reply at hand holds it
		a.last = true
		return a.h.askAll(ctx, requests)
	}
	within, cancel := context.WithDeadline(ctx, w.until)
	defer cancel()
	replies, err := a.h.askAll(within, requests)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		w.over = true
		return nil, adapters.ErrLate
	}
	return replies, err
}
