package typesense

import (
	"context"
	"math/rand/v2"

	"github.com/neardup/sidecar/adapters"
)

const (
	// sampleRequests is how many pages a sample is taken from at most, as long as a page can hold so many: its documents come in
	// runs, and many short ones tell more.
	sampleRequests = 50
	// sampleRun is the shortest run: a page far down a large collection takes seconds.
	sampleRun = 25
)

// sample reads so many documents in short runs chosen at random, fewer where the last run is short, and all where there are no more.
// A page far down a list took the engine a tenth of a second for each 300,000 documents.
func (r *reading) sample(ctx context.Context) error {
	n := r.left
	documents, err := r.count(ctx)
	if err != nil {
		return err
	}
	if n >= documents {
		return r.read(ctx)
	}
	r.total = n
	run := min(batch, max(sampleRun, n/sampleRequests))
	all, wanted := (documents+run-1)/run, (n+run-1)/run // pages
	for i := range wanted {
		first, next := i*all/wanted, (i+1)*all/wanted // a stretch of pages, of which one is read
		got, err := r.store.list(ctx, r.index, listing{
			filter: r.sel.Query, include: readFields(r.rule, r.sel), page: 1 + first + rand.IntN(next-first), perPage: run,
		})
		if err != nil {
			return err
		}
		if err := r.hand(got.documents); err != nil {
			return err
		}
	}
	return nil
}

// draw reads all that is selected and yields so many of these at random, each set of that size as likely as any other.
func (r *reading) draw(ctx context.Context) error {
	var drawn []adapters.Stored
	n, passed := r.left, 0
	all := *r
	all.left = -1
	all.yield = func(p adapters.Page) error {
		for _, d := range p.Documents {
			if passed++; len(drawn) < n {
				drawn = append(drawn, d)
			} else if i := rand.IntN(passed); i < n {
				drawn[i] = d
			}
		}
		return nil
	}
	if err := all.read(ctx); err != nil {
		return err
	}
	r.total = len(drawn)
	for len(drawn) > 0 {
		page := drawn[:min(batch, len(drawn))]
		if err := r.hand(page); err != nil {
			return err
		}
		drawn = drawn[len(page):]
	}
	return nil
}
