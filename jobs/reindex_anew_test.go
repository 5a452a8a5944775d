package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// rebuilt is a job of an index that is made again under its name, with as many documents, all without a sketch, and their numbers
// from the start.
type rebuilt struct {
	*memory
	times atomic.Int32
}

func (r *rebuilt) again(n int) {
	r.mu.Lock()
	clear(r.sources)
	clear(r.versions)
	r.clock = 0
	r.mu.Unlock()
	r.times.Add(1)
	for id, source := range documents(n) {
		r.put(id, source)
	}
}

func (r *rebuilt) job(rule *adapters.Rule, journal adapters.Journal) Job {
	return Job{Store: r, Index: "news", Rule: rule, Split: r.ranges, Journal: journal, Identity: func(context.Context) (string, error) {
		return strconv.Itoa(int(r.times.Load())), nil
	}}
}

// TestIndexMadeAnew must not go by the checkpoint of an index that is gone: the numbers of its successor begin anew.
func TestIndexMadeAnew(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken off %t", broken), func(t *testing.T) {
			m, rule, journal := &rebuilt{memory: newMemory(10, documents(100))}, testRule(t), &ledger{}
			if broken {
				m.onPatch = func(int) (int, error) { return 5, errors.New("the line went dead") }
			}
			if _, err := Reindex(t.Context(), m.job(rule, journal), Options{Slices: 2}, nil); (err != nil) != broken {
				t.Fatal(err)
			}
			m.onPatch = nil
			m.again(100)
			got, err := Reindex(t.Context(), m.job(rule, journal), Options{Slices: 2, Resume: true}, nil)
			if err != nil || got.Written != 100 || got.Resumed || !got.Anew || len(m.wrong(rule)) > 0 {
				t.Errorf("%v %+v", err, got)
			}
			if got, err = Reindex(t.Context(), m.job(rule, journal), Options{Resume: true}, nil); err != nil || got.Scanned > 0 || !got.Resumed || got.Anew {
				t.Errorf("the run that is done was begun again: %v %+v", err, got)
			}
		})
	}
}
