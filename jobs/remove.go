package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
)

const (
	// removeLooks is how often documents that changed between being read and being written are looked at again.
	removeLooks = 6
	// removePause is how long the first of these looks waits; each further one waits twice as long.
	removePause = 100 * time.Millisecond
)

// RemoveOptions say how a removal goes about it.
type RemoveOptions struct {
	// RequestsPerSecond bounds the documents written in a second; 0 is no bound.
	RequestsPerSecond float64
	// DryRun writes nothing. Found then counts what would have been written.
	DryRun bool
}

// Removal counts documents.
type Removal struct {
	// Total is how many there are as far as the engine says, else 0; Scanned were read.
	Total, Scanned int
	// Found hold something in a field of ours, be it null. Of these Cleaned hold nothing any more, Gone were deleted meanwhile,
	// Refused the engine would not take, and Left changed again and again whenever they were to be written.
	Found, Cleaned, Gone, Refused, Left int
}

// Remove takes our fields out of the documents of one concrete index, so that every one is again what it was without us, byte
// for byte where the engine keeps bytes. No rule need match the index. A document that changes meanwhile is not overwritten but
// looked at again. Whoever goes on writing these fields goes on: what is enriched behind the scan stays. The removal returned
// is right on an error too. report, if not nil, is called from the same goroutine after every page and every batch.
func Remove(
	ctx context.Context, store adapters.Store, index string, o RemoveOptions, report func(Removal),
) (Removal, error) {
	r := removal{store: store, index: index, options: o, report: report, pace: paceOf(o.RequestsPerSecond)}
	if r.report == nil {
		r.report = func(Removal) {}
	}
	defer adapters.Release(ctx, store, index)
	// All are read, not those alone that are marked: of a field that a partial update cleared the engine knows nothing, and yet
	// there stands a null.
	err := scanOn(ctx, store, index, nil, adapters.Selection{}, r.pace, func(p adapters.Page) error {
		r.counts.Total = max(r.counts.Total, p.Total)
		return r.page(ctx, p, true)
	})
	for look := 0; err == nil && len(r.changed) > 0 && look < removeLooks; look++ {
		if err = sleep(ctx, removePause<<look); err != nil {
			break
		}
		ids := r.changed
		r.changed, r.counts.Left = nil, 0
		gone := len(ids)
		err = store.Scan(ctx, index, nil, adapters.Selection{IDs: ids}, func(p adapters.Page) error {
			gone -= len(p.Documents)
			return r.page(ctx, p, false)
		})
		if err == nil {
			r.counts.Gone += max(0, gone)
		} else {
			r.counts.Left = len(ids)
		}
	}
	r.report(r.counts)
	if err != nil {
		return r.counts, fmt.Errorf("remove from %s: %w", index, err)
	}
	return r.counts, nil
}

type removal struct {
	store   adapters.Store
	index   string
	options RemoveOptions
	report  func(Removal)
	pace    *Pace
	counts  Removal
	// changed are the ids of the documents to be looked at again.
	changed []string
}

// page handles one page of a scan; first says that its documents were not counted before.
func (r *removal) page(ctx context.Context, p adapters.Page, first bool) error {
	var list []adapters.Patch
	for _, document := range p.Documents {
		if first {
			r.counts.Scanned++
		}
		switch ours := marked(document.Source); {
		case ours:
			list = append(list, adapters.Patch{Stored: document})
		case !first:
			r.counts.Cleaned++ // by whoever changed it
		}
	}
	if first {
		r.counts.Found += len(list)
	}
	if !r.options.DryRun {
		if err := patchAll(ctx, r.store, r.index, nil, list, r.pace, r.count); err != nil {
			return err
		}
	}
	r.report(r.counts)
	return ctx.Err()
}

// count counts what became of one document.
func (r *removal) count(id string, result adapters.Result) {
	switch result {
	case adapters.Patched:
		r.counts.Cleaned++
	case adapters.Changed:
		r.changed = append(r.changed, id)
		r.counts.Left++
	case adapters.Gone:
		r.counts.Gone++
	default:
		r.counts.Refused++
	}
}

// marked reports whether a document's JSON has a member of ours, be it null.
func marked(document []byte) bool {
	members, err := adapters.Members(document)
	return err == nil && slices.ContainsFunc(members, func(m adapters.Member) bool { return adapters.Our(m.Key) })
}

// paceOf returns the pace of a job with one request under way at a time.
func paceOf(perSecond float64) *Pace {
	p := NewPace(perSecond)
	p.serve(1)
	return p
}

// scanOn is a scan that waits while the engine has no room, and goes on behind the last page, where the engine can.
func scanOn(
	ctx context.Context, store adapters.Store, index string, rule *adapters.Rule, s adapters.Selection, pace *Pace,
	yield func(adapters.Page) error,
) error {
	for begun := false; ; {
		err := store.Scan(ctx, index, rule, s, func(p adapters.Page) error {
			begun, s.After = true, p.After
			pace.served()
			return yield(p)
		})
		if !errors.Is(err, adapters.ErrBusy) || begun && (s.After == "" || s.Limit > 0) {
			return err
		}
		if tired := pace.refused(); tired != nil {
			return fmt.Errorf("%w: %w", tired, err)
		}
		if err := pace.rest(ctx); err != nil {
			return err
		}
	}
}

// patchAll writes documents as the pace allows, and sends again what the engine had no room for. A request that is under way
// when ctx ends is waited for, so that it is counted: the results go as far as the documents that were dealt with, on an error
// too.
func patchAll(
	ctx context.Context, store adapters.Store, index string, rule *adapters.Rule, list []adapters.Patch, pace *Pace,
	done func(id string, result adapters.Result),
) error {
	patching, stop := afterwards(ctx)
	defer stop()
	for waiting := list; len(waiting) > 0; {
		t, err := pace.take(ctx, len(waiting))
		if err != nil {
			return err
		}
		batch := waiting[:t.documents]
		results, err := store.Patch(patching, index, rule, batch)
		if err == nil && len(results) != len(batch) {
			err = fmt.Errorf("%d results for %d documents", len(results), len(batch))
		}
		if errors.Is(err, adapters.ErrBusy) {
			if err := pace.settle(t, len(batch)); err != nil {
				return err
			}
			continue
		}
		var busy []adapters.Patch
		for i, result := range results[:min(len(results), len(batch))] {
			if result == adapters.Busy {
				busy = append(busy, batch[i])
			} else if err == nil {
				done(batch[i].ID, result)
			}
		}
		if failed := pace.settle(t, len(busy)); err == nil {
			err = failed
		}
		if err != nil {
			return fmt.Errorf("write documents: %w", err)
		}
		waiting = append(busy, waiting[t.documents:]...)
	}
	return nil
}
