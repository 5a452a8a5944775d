package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
)

// Written counts what became of the documents of a corpus when their clusters were stored.
type Written struct {
	// Written got their cluster, Right had it already.
	Written int `json:"written"`
	Right   int `json:"right"`
	// Changed and Gone were changed or deleted since they were read and were left alone; Refused the engine would not take.
	Changed int `json:"changed"`
	Gone    int `json:"gone"`
	Refused int `json:"refused"`
}

// Add returns the sum of two counts.
func (w Written) Add(v Written) Written {
	return Written{w.Written + v.Written, w.Right + v.Right, w.Changed + v.Changed, w.Gone + v.Gone, w.Refused + v.Refused}
}

const (
	// inBatch is how many documents are written in one request, atOnce how many such are under way.
	inBatch = 500
	atOnce  = 4
	// tries is how often a busy engine is asked, waiting twice as long each time.
	tries     = 9
	firstWait = 100 * time.Millisecond
)

// writer stores clusters.
type writer struct {
	store   adapters.Store
	index   string
	rule    *adapters.Rule
	mu      sync.Mutex
	written Written
}

// Write stores the clusters of the documents of one concrete index, whose ids the corpus' documents have: of those alone whose
// Document.Cluster is another one. A document whose text changed since it was added is left to a later run; one without a right
// sketch gets it too. The count is right on an error too. report, if not nil, is called now and then.
func (c *Corpus) Write(
	ctx context.Context, store adapters.Store, index string, rule *adapters.Rule, report func(Written),
) (Written, error) {
	w := &writer{store: store, index: index, rule: rule}
	defer store.Release(ctx, index)
	batches, ctx := errgroup.WithContext(ctx)
	batches.SetLimit(atOnce)
	var batch []Member
	flush := func() {
		members := batch
		batch = nil
		batches.Go(func() error { return w.batch(ctx, members) })
		if report != nil {
			report(w.add(Written{}))
		}
	}
	err := c.Each(ctx, func(m *Member) error {
		if m.Stored == m.Cluster {
			w.add(Written{Right: 1})
			return nil
		}
		if batch = append(batch, *m); len(batch) == inBatch {
			flush()
		}
		return nil
	})
	if err == nil && len(batch) > 0 {
		flush()
	}
	if failed := batches.Wait(); failed != nil {
		err = failed
	}
	written := w.add(Written{})
	if report != nil {
		report(written)
	}
	if err != nil {
		err = fmt.Errorf("write clusters to %s: %w", index, err)
	}
	return written, err
}

// add counts, and returns the count so far.
func (w *writer) add(n Written) Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = w.written.Add(n)
	return w.written
}

// batch stores the clusters of some documents.
func (w *writer) batch(ctx context.Context, members []Member) error {
	var n Written
	var patches []adapters.Patch
	err := busily(ctx, func() error {
		n, patches = Written{Gone: len(members)}, nil
		of := make(map[string]*Member, len(members))
		ids := make([]string, 0, len(members))
		for i := range members {
			of[members[i].ID] = &members[i]
			ids = append(ids, members[i].ID)
		}
		return w.store.Scan(ctx, w.index, w.rule, adapters.Selection{IDs: ids}, func(p adapters.Page) error {
			for _, d := range p.Documents {
				m := of[d.ID]
				if m == nil {
					continue
				}
				delete(of, d.ID) // the same again would count twice
				n.Gone--
				w.look(d, m, &n, &patches)
			}
			return nil
		})
	})
	if err == nil {
		err = w.patch(ctx, patches, &n)
	} else {
		n.Gone = 0 // what did not come may have been still to come
	}
	w.add(n)
	return err
}

// look counts a document, or adds its patch.
func (w *writer) look(d adapters.Stored, m *Member, n *Written, patches *[]adapters.Patch) {
	want, _ := w.rule.Wanted(d.Source, xxhash.Sum64String(d.ID))
	s := w.rule.Decode(want.Sketch)
	if m.Textless != (s == nil) || s != nil && s.Fingerprint != m.Fingerprint {
		n.Changed++
		return
	}
	want.Cluster = m.Cluster
	if adapters.OursOf(d.Source).Equal(want) {
		n.Right++
		return
	}
	*patches = append(*patches, adapters.Patch{Stored: d, Ours: want})
}

// patch sends patches until the engine had room for all.
func (w *writer) patch(ctx context.Context, patches []adapters.Patch, n *Written) error {
	return busily(ctx, func() error {
		if len(patches) == 0 {
			return nil
		}
		results, err := w.store.Patch(ctx, w.index, w.rule, patches)
		if err != nil {
			return err
		}
		if len(results) != len(patches) {
			return fmt.Errorf("%d results for %d documents", len(results), len(patches))
		}
		var again []adapters.Patch
		for i, result := range results {
			switch result {
			case adapters.Patched:
				n.Written++
			case adapters.Changed:
				n.Changed++
			case adapters.Gone:
				n.Gone++
			case adapters.Busy:
				again = append(again, patches[i])
			default:
				n.Refused++
			}
		}
		if patches = again; len(again) > 0 {
			return adapters.ErrBusy
		}
		return nil
	})
}

// busily does something again, later and later, while the engine is busy.
func busily(ctx context.Context, do func() error) error {
	wait := firstWait
	for range tries - 1 {
		if err := do(); !errors.Is(err, adapters.ErrBusy) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait *= 2
	}
	return do()
}
