package cluster

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
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
	// inRequest is how many documents are written in one request, atOnce how many such are under way.
	inRequest = 500
	atOnce    = 4
)

// writer stores clusters.
type writer struct {
	jobs.Job
	pace    *jobs.Pace
	mu      sync.Mutex
	written Written
}

// Write stores the clusters of the documents of one concrete index, whose ids the corpus' documents have: of those alone whose
// Document.Cluster is another one. A document whose text changed since it was added is left to a later run; one without a right
// sketch gets it too. The count is right on an error too. report, if not nil, is called now and then.
func (c *Corpus) Write(ctx context.Context, job jobs.Job, report func(Written)) (Written, error) {
	w := &writer{Job: job, pace: jobs.NewPace(0)}
	defer job.Store.Release(ctx, job.Index)
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
	err := c.Each(ctx, func(members []Member) error {
		for _, m := range members {
			if m.Stored == m.Cluster {
				w.add(Written{Right: 1})
			} else if batch = append(batch, m); len(batch) == inRequest {
				flush()
			}
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
		err = fmt.Errorf("write clusters to %s: %w", job.Index, err)
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
	var patches []adapters.Stored
	err := w.pace.Retry(ctx, func() error {
		n, patches = Written{Gone: len(members)}, nil
		of := make(map[string]*Member, len(members))
		ids := make([]string, 0, len(members))
		for i := range members {
			of[members[i].ID] = &members[i]
			ids = append(ids, members[i].ID)
		}
		return w.Store.Scan(ctx, w.Index, w.Rule, adapters.Selection{IDs: ids}, func(p adapters.Page) error {
			for _, d := range p.Documents {
				m := of[d.ID]
				if m == nil {
					continue
				}
				delete(of, d.ID) // the same again would count twice
				n.Gone--
				want, _ := w.Rule.OursFor(d.Source, d.ID)
				s := w.Rule.Decode(want.Sketch)
				want.Cluster = m.Cluster
				switch {
				case (m.Text == none) != (s == nil) || s != nil && s.Fingerprint != m.Fingerprint:
					n.Changed++
				case rule.OursOf(d.Source).Equal(want):
					n.Right++
				default:
					patches = append(patches, d.With(want))
				}
			}
			return nil
		})
	})
	if err != nil {
		n.Gone = 0 // what did not come may have been still to come
	}
	w.add(n)
	if err != nil {
		return err
	}
	return w.pace.Patch(ctx, w.Job, patches, nil, func(_ []adapters.Stored, results []adapters.Result) {
		p := jobs.Count(results)
		w.add(Written{Written: p.Written, Changed: p.Changed, Gone: p.Gone, Refused: p.Refused})
	})
}
