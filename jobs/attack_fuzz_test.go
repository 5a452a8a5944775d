package jobs

import (
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// FuzzJournal has anything for entries of a journal, as who may write the engine can put there: a worker reads them without harm, and
// takes part in nothing that is no plan.
func FuzzJournal(f *testing.F) {
	f.Add(0, 1, []byte(`{"id":"a","parts":["x","y"]}`), 1025, 3, []byte(`{"worker":"w","for":1000000000,"part":"x","after":"9"}`))
	f.Add(0, -1, []byte(`{"parts":null}`), -5, 0, []byte(`{"done":true}`))
	f.Add(0, 1<<40, []byte(`[]`), 1<<62, 1, []byte(`{"until":"9999-12-31T00:00:00Z","scanned":-1}`))
	f.Fuzz(func(t *testing.T, part, number int, data []byte, part2, number2 int, data2 []byte) {
		l := &Ledger{}
		for _, e := range []adapters.Entry{{Job: "j", Slot: part, Number: number, Data: data}, {Job: "j", Slot: part2,
			Number: number2, Data: data2}} {
			expect.Value(l.Append(t.Context(), "j", e))(t)
		}
		b := newBoard(l, NewPace(0), "j", "me")
		p, _, err := b.newest(t.Context())
		expect.OK(t, err)
		_ = p.live()
		_, _ = p.watched()
		ours := plan{Parts: []string{"one"}}
		expect.Value(b.joinPlan(t.Context(), "", false, func() ([]string, int, error) { return ours.Parts, 0, nil }))(t)
	})
}
