package cleanup

import (
	"context"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/jobs"
)

// worker carries a plan out, or undoes it, in one index.
type worker struct {
	jobs.Job
	store          adapters.EngineStore
	pace           *jobs.Pace
	hide, identity string
	// finder judges documents; nil to compare only their digests.
	finder *finder
}

func newWorker(job jobs.Job, store adapters.EngineStore) worker {
	job.Store = store
	return worker{Job: job, store: store, pace: jobs.NewPace(0)}
}

// sameIndex fails if the index was re-created since the plan.
func (w *worker) sameIndex(ctx context.Context) error {
	now := ""
	err := w.pace.Retry(ctx, func() (err error) {
		now, err = w.store.Identity(ctx, w.Index)
		return err
	})
	if err == nil && now != w.identity {
		err = fmt.Errorf("index %s was deleted and created again", w.Index)
	}
	return err
}

// read reads documents as they are now. It judges them if the worker has a finder.
func (w *worker) read(ctx context.Context, ids []string) (found map[string]*candidate, err error) {
	err = w.pace.Retry(ctx, func() (err error) {
		found, err = readCandidates(ctx, w.Job, ids, func(d adapters.Stored) (c *candidate, err error) {
			if w.finder != nil {
				if c, err = w.finder.candidate(d); err != nil {
					return nil, err
				}
			} else {
				c = &candidate{}
				members, _ := jsonedit.Members(d.Source) // Digest says what is wrong with it
				c.hidden, _ = hiddenBy(members, w.hide)  // another value hides nothing
				c.Digest, err = Digest(d.Source)
			}
			c.stored = d
			return c, err
		})
		return err
	})
	return found, err
}

func storedIDs(documents []adapters.Stored) (ids []string) {
	for _, d := range documents {
		ids = append(ids, d.ID)
	}
	return ids
}

// write sends documents, and sends those again that the engine is too busy for. On an error the results are valid too: Busy means that it is not known
// whether the document was written.
func (w *worker) write(
	ctx context.Context, documents []adapters.Stored, send func([]adapters.Stored) ([]adapters.Result, error),
) ([]adapters.Result, error) {
	results := slices.Repeat([]adapters.Result{adapters.Busy}, len(documents))
	left := make([]int, len(documents))
	for i := range left {
		left[i] = i
	}
	err := w.pace.Retry(ctx, func() error {
		list := make([]adapters.Stored, len(left))
		for n, i := range left {
			list[n] = documents[i]
		}
		some, err := send(list)
		if err != nil {
			return err
		}
		var busy []int
		for n, i := range left {
			if results[i] = some[n]; some[n] == adapters.Busy {
				busy = append(busy, i)
			}
		}
		if left = busy; len(left) > 0 {
			return adapters.ErrBusy
		}
		return nil
	})
	return results, err
}
