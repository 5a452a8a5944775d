package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// What a client can meet with in place of an answer; a status of a refusal is such a word too, "429" say.
const (
	Broken  = "broken"  // the connection ended before the answer was whole, or could not be made
	TimeOut = "timeout" // no answer for as long as the client waits
	Garbage = "garbage" // an answer that is not of the form it should have
)

// Trouble is one operation that ended in an error.
type Trouble struct {
	Way        string // which way the client came: [Fault.Ways]
	What, Text string
	Begin, End time.Time
}

// Fault is one thing that was done to sidecar, engine or the connections between.
type Fault struct {
	Name string
	// Allows is what a client of an engine of its own would meet with if that were done to the engine, or to the connection to it:
	// empty for what no client may notice.
	Allows []string
	// Ways are the ways of clients that it is in: empty for all.
	Ways []string
	// Begin and End are when it was done. An operation of which a part lies between may be hit.
	Begin, End time.Time
	// Later says that it spares what was under way when it began.
	Later bool
	// Bit says that it was seen to have done harm, or to have come while there was something to harm.
	Bit bool
}

// Diary holds the faults of a run and the troubles of its clients. It is safe for concurrent use.
type Diary struct {
	mu       sync.Mutex
	faults   []Fault
	troubles []Trouble
}

// Did enters a fault that is over.
func (d *Diary) Did(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, f)
}

// Met enters a trouble.
func (d *Diary) Met(t Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.troubles = append(d.troubles, t)
}

// Bites returns how often each fault bit, and how often not.
func (d *Diary) Bites() (bit, missed map[string]int) {
	bit, missed = map[string]int{}, map[string]int{}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.faults {
		if f.Bit {
			bit[f.Name]++
		} else {
			missed[f.Name]++
		}
	}
	return bit, missed
}

// Troubles returns how many there were, and those for which no fault can be named.
func (d *Diary) Troubles() (all int, unexplained []Trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.troubles {
		if !slices.ContainsFunc(d.faults, func(f Fault) bool { return f.explains(t) }) {
			unexplained = append(unexplained, t)
		}
	}
	return len(d.troubles), unexplained
}

func (f Fault) explains(t Trouble) bool {
	return slices.Contains(f.Allows, t.What) && (len(f.Ways) == 0 || slices.Contains(f.Ways, t.Way)) &&
		!t.End.Before(f.Begin) && !t.Begin.After(f.End) && (!f.Later || !t.Begin.Before(f.Begin))
}

// String returns the trouble in one line.
func (t Trouble) String() string {
	const clock = "15:04:05.000"
	return fmt.Sprintf("%s by %s from %s to %s: %.400s", t.What, t.Way, t.Begin.Format(clock), t.End.Format(clock), t.Text)
}
