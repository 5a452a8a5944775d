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

// A mender says what is wrong with documents, and is told what became of them.
type mender interface {
	// judge returns what is to be written of a document, and whether anything is; again says that it was judged before, and changed since.
	judge(d adapters.Stored, again bool) (adapters.Patch, bool)
	// mended is told what became of a document that was to be written.
	mended(id string, result adapters.Result)
}

// mend writes those of the selected documents that are not as they should be. One that changes meanwhile is not overwritten but looked at
// again; it returns the ids of those that changed again and again. report is told after each page how many documents there are as far
// as the engine says.
func mend(
	ctx context.Context, job Job, s adapters.Selection, perSecond float64, m mender, report func(total int),
) (changed []string, err error) {
	defer job.Store.Release(ctx, job.Index)
	pace := NewPace(perSecond)
	page := func(p adapters.Page, again bool) error {
		var list []adapters.Patch
		for _, document := range p.Documents {
			if patch, wrong := m.judge(document, again); wrong {
				list = append(list, patch)
			}
		}
		err := pace.Patch(ctx, job, list, nil, func(patches []adapters.Patch, results []adapters.Result) {
			for i, result := range results {
				if result == adapters.Changed {
					changed = append(changed, patches[i].ID)
				}
				if result != adapters.Busy {
					m.mended(patches[i].ID, result)
				}
			}
		})
		report(p.Total)
		return cmp.Or(err, ctx.Err())
	}
	err = pace.scan(ctx, job, s, func(p adapters.Page) error { return page(p, false) })
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
		for id := range gone {
			if err == nil {
				m.mended(id, adapters.Gone)
			}
		}
		if err != nil {
			changed = slices.AppendSeq(changed, maps.Keys(gone))
		}
	}
	return changed, err
}
