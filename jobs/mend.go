package jobs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
)

const (
	// looksAgain is how often documents that changed between being read and being written are looked at again.
	looksAgain = 6
	// firstLook is how long the first of these looks waits; each further one waits twice as long.
	firstLook = 100 * time.Millisecond
)

// mend writes those of the selected documents that are not as they should be: judge returns what is to be written of one, if anything; again
// says that it was judged before, and changed since. Such a document is not overwritten but read again, a few times. report is called
// after each page with how many documents there are as far as the engine says, and what became of those that were to be written.
func mend(
	ctx context.Context, job Job, s adapters.Selection, perSecond float64,
	judge func(d adapters.Stored, again bool) (adapters.Stored, bool), report func(total int, done Progress),
) error {
	defer job.Store.Release(ctx, job.Index)
	pace := NewPace(perSecond)
	job.Store = patientStore{job.Store, pace}
	var done Progress
	var changed []string // the ids of those that changed since they were read
	page := func(p adapters.Page, again bool) error {
		var list []adapters.Stored
		for _, document := range p.Documents {
			if patch, wrong := judge(document, again); wrong {
				list = append(list, patch)
			}
		}
		err := pace.Patch(ctx, job, list, nil, func(patches []adapters.Stored, results []adapters.Result) {
			for i, result := range results {
				if result == adapters.Changed {
					changed = append(changed, patches[i].ID)
				} else {
					done.count(result)
				}
			}
		})
		report(p.Total, done)
		return cmp.Or(err, ctx.Err())
	}
	err := job.Store.Scan(ctx, job.Index, job.Rule, s, func(p adapters.Page) error { return page(p, false) })
	for look := 0; err == nil && len(changed) > 0 && look < looksAgain; look++ {
		if err = sleep(ctx, firstLook<<look); err != nil {
			break
		}
		gone := map[string]bool{}
		for _, id := range changed {
			gone[id] = true
		}
		ids := changed
		changed = nil
		err = job.Store.Scan(ctx, job.Index, job.Rule, adapters.Selection{IDs: ids}, func(p adapters.Page) error {
			for _, document := range p.Documents {
				delete(gone, document.ID)
			}
			return page(adapters.Page{Documents: p.Documents}, true)
		})
		if err == nil {
			done.Gone += len(gone)
		} else {
			changed = slices.AppendSeq(changed, maps.Keys(gone))
		}
	}
	done.Changed = len(changed)
	report(0, done)
	return err
}
