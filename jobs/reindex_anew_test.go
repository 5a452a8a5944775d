package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
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

func (r *rebuilt) Identity(context.Context, string) (string, error) {
	return strconv.Itoa(int(r.times.Load())), nil
}

func (r *rebuilt) job(rule *rule.Rule, journal adapters.Journal) Job {
	r.split, r.journal = r.ranges, journal
	return Job{Store: r, Index: "news", Rule: rule}
}

// TestIndexMadeAnew must not go by the checkpoint of an index that is gone: the numbers of its successor begin anew.
func TestIndexMadeAnew(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken off %t", broken), func(t *testing.T) {
			m, rule, journal := &rebuilt{memory: newMemory(10, documents(100))}, testRule(t), &Ledger{}
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

// refuses is the store of an index that is created again while a batch is on its way: the batch is refused.
type refuses struct {
	*rebuilt
	batches  int // until then
	released atomic.Int32
}

func (r *refuses) Patch(ctx context.Context, index string, rule *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	if r.batches--; r.batches == 0 {
		r.again(60)
		return nil, fmt.Errorf("patch %s: %w", index, adapters.ErrRecreated)
	}
	return r.rebuilt.Patch(ctx, index, rule, patches)
}

func (r *refuses) Release(context.Context, string) { r.released.Add(1) }

// TestIndexCreatedAgainMeanwhile: a reindex begins anew on the new index; the other jobs end and say why. What the store left in the index is
// released each time.
func TestIndexCreatedAgainMeanwhile(t *testing.T) {
	rule := testRule(t)
	store := func() *refuses {
		return &refuses{rebuilt: &rebuilt{memory: newMemory(10, documents(60))}, batches: 2}
	}
	m := store()
	job := m.job(rule, &Ledger{})
	job.Store = m
	got, err := Reindex(t.Context(), job, Options{}, nil)
	if wrong := m.wrong(rule); err != nil || !got.Anew || len(wrong) > 0 || m.released.Load() != 1 {
		t.Errorf("%v, %+v, wrong: %v, released %d times", err, got, wrong, m.released.Load())
	}
	m = store()
	if _, err := Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{Repair: true}, nil); !errors.Is(err, adapters.ErrRecreated) || m.released.Load() != 1 {
		t.Errorf("verify: %v, released %d times", err, m.released.Load())
	}
	m = store()
	for id, source := range documents(60) {
		m.put(id, source[:len(source)-1]+`,"neardup_sketch":null}`)
	}
	if _, err := Remove(t.Context(), Job{Store: m, Index: "news"}, RemoveOptions{}, nil); !errors.Is(err, adapters.ErrRecreated) || m.released.Load() != 1 {
		t.Errorf("remove: %v, released %d times", err, m.released.Load())
	}
}
