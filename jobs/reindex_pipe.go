package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
)

const (
	// batchBytes is how many bytes of documents wait to be written together; the last of them may cross it.
	batchBytes = 4 << 20
	// batchScanned is after how many documents that are right already the progress is told.
	batchScanned = 5000
)

// batch is what goes to the engine together, and the counts of what was found right before it and between.
type batch struct {
	patches []adapters.Patch
	bytes   int
	// counts are of the documents that need no patch.
	counts Progress
	// after is where a scan goes on behind it.
	after string
}

func (b *batch) full() bool {
	return len(b.patches) >= maxBatch || b.bytes >= batchBytes || b.counts.Scanned >= batchScanned
}

// look counts a document, or makes its patch part of the batch.
func (b *batch) look(rule *adapters.Rule, document adapters.Stored) {
	wanted, right := rule.Wanted(document.Source, xxhash.Sum64String(document.ID))
	if !right {
		b.patches = append(b.patches, adapters.Patch{Stored: document, Ours: wanted})
		b.bytes += len(document.Source)
		return
	}
	b.counts.Scanned++
	if wanted.Sketch == "" {
		b.counts.Textless++
	} else {
		b.counts.Skipped++
	}
}

// pipe works through a selection in three steps at once: a page is read while one is sketched and one is written. So at most
// two pages and two batches are in memory.
func (r *run) pipe(ctx context.Context, h *holding, s adapters.Selection) error {
	steps, ctx := errgroup.WithContext(ctx)
	pages, batches := make(chan adapters.Page), make(chan *batch)
	var busy error // what was read before is written all the same
	steps.Go(func() error {
		defer close(pages)
		err := r.Store.Scan(ctx, r.Index, r.Rule, s, func(p adapters.Page) error {
			r.pace.served()
			r.begun.open()
			select {
			case pages <- p:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if errors.Is(err, adapters.ErrBusy) {
			busy, err = err, nil
		}
		return err
	})
	steps.Go(func() error {
		defer close(batches)
		return r.sketch(ctx, pages, batches)
	})
	steps.Go(func() error {
		for b := range batches {
			if err := r.write(ctx, h, b); err != nil {
				return err
			}
		}
		return nil
	})
	if err := steps.Wait(); err != nil {
		return err
	}
	return busy
}

// sketch makes batches of pages. One is handed on as soon as the writer is ready for it, be it small.
func (r *run) sketch(ctx context.Context, pages <-chan adapters.Page, batches chan<- *batch) error {
	b := &batch{}
	for p := range pages {
		for _, document := range p.Documents {
			b.look(r.Rule, document)
		}
		b.after = p.After
		if !b.full() {
			select {
			case batches <- b:
				b = &batch{}
			default:
			}
			continue
		}
		if err := hand(ctx, batches, b); err != nil {
			return err
		}
		b = &batch{}
	}
	return hand(ctx, batches, b)
}

func hand(ctx context.Context, batches chan<- *batch, b *batch) error {
	select {
	case batches <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write writes a batch, as fast as the pace allows, and remembers that it is done.
func (r *run) write(ctx context.Context, h *holding, b *batch) error {
	scanned := b.counts.Scanned
	r.tally.add(b.counts)
	for patches := b.patches; len(patches) > 0; {
		counts, again, err := r.send(ctx, h, patches)
		scanned += counts.Scanned
		r.tally.add(counts)
		if err != nil {
			h.note("", scanned)
			return err
		}
		patches = again
	}
	h.note(b.after, scanned)
	return context.Cause(ctx)
}

// send writes some of the patches, and returns those that are left, first those that the engine had no room for.
func (r *run) send(
	ctx context.Context, h *holding, patches []adapters.Patch,
) (counts Progress, left []adapters.Patch, err error) {
	if r.options.DryRun {
		n := r.left.take(len(patches))
		counts = Progress{Scanned: n, Written: n, Cut: n < len(patches)}
		if counts.Cut {
			return counts, nil, errEnough
		}
		return counts, nil, context.Cause(ctx)
	}
	ticket, err := r.pace.take(ctx, len(patches))
	if err != nil {
		return counts, nil, err
	}
	n := 0
	if err = h.held(ctx); err == nil { // what is taken is sent, though others find nothing left and end the run
		if n = r.left.take(ticket.documents); n == 0 {
			counts.Cut, err = true, errEnough
		}
	}
	if err != nil {
		r.pace.leave(ticket.documents)
		return counts, nil, err
	}
	counts, busy, err := r.patch(ctx, patches[:n])
	if tired := r.pace.settle(ticket, len(busy)); err == nil {
		err = tired
	}
	r.left.back(len(busy))
	return counts, append(busy, patches[n:]...), err
}

// patch sends patches in one request.
func (r *run) patch(ctx context.Context, patches []adapters.Patch) (counts Progress, busy []adapters.Patch, err error) {
	patching, stop := afterwards(ctx)
	defer stop()
	results, err := r.Store.Patch(patching, r.Index, r.Rule, patches)
	switch {
	case errors.Is(err, adapters.ErrBusy) && len(results) == 0:
		return counts, append(busy, patches...), nil
	case err != nil:
		return counts, nil, orElse(ctx, fmt.Errorf("write sketches: %w", err))
	case len(results) != len(patches):
		return counts, nil, fmt.Errorf("write sketches: %d results for %d documents", len(results), len(patches))
	}
	for i, result := range results {
		if result == adapters.Busy {
			busy = append(busy, patches[i])
			continue
		}
		counts.Scanned++
		counts.counted(result)
	}
	return counts, busy, nil
}

// afterwards returns a context that outlives ctx by the grace, unless the part was lost: then nothing more is to be written.
func afterwards(ctx context.Context) (patching context.Context, stop func()) {
	patching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errLost) {
			cancel()
			return
		}
		select {
		case <-time.After(grace):
			cancel()
		case <-patching.Done():
		}
	})
	return patching, func() { unhook(); cancel() }
}
