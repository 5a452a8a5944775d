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

// sample reads n documents of a collection in short runs chosen at random, fewer where the last run is short, and all where there are
// no more. A page far down a list took the engine a tenth of a second for each 300,000 documents.
func (s *store) sample(ctx context.Context, index string, rule *adapters.Rule, n int, yield func(adapters.Page) error) error {
	c, err := s.collection(ctx, index)
	if err != nil {
		return err
	}
	if n >= c.NumDocuments {
		return s.Scan(ctx, index, rule, adapters.Selection{}, yield)
	}
	run := min(batch, max(sampleRun, n/sampleRequests))
	all, wanted := (c.NumDocuments+run-1)/run, (n+run-1)/run // pages
	for i, left := 0, n; i < wanted && left > 0; i++ {
		first, next := i*all/wanted, (i+1)*all/wanted // a stretch of pages, of which one is read
		documents, err := s.list(ctx, index, rule, "", 1+first+rand.IntN(next-first), run)
		if err != nil {
			return err
		}
		documents = documents[:min(len(documents), left)]
		left -= len(documents)
		if err := yield(adapters.Page{Total: n, Documents: documents}); err != nil {
			return err
		}
	}
	return nil
}
