package elastic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/neardup/sidecar/adapters"
)

// Sampled returns a store, made from one of this package, whose scans read n documents of an index chosen at random, and all
// where there are no more.
func Sampled(store adapters.Store, n int) adapters.Store {
	if s, ok := store.(*Store); ok {
		return sampled{s, n}
	}
	return store
}

type sampled struct {
	*Store
	n int
}

var errEnough = errors.New("enough documents")

// Scan implements adapters.Store.
func (s sampled) Scan(ctx context.Context, index string, _ *adapters.Rule, yield func(adapters.Page) error) error {
	merge, err := s.rewritable(ctx, index)
	if err != nil {
		return fmt.Errorf("scan %s: %w", index, err)
	}
	order := fmt.Sprintf(`"query":{"function_score":{"random_score":{"seed":%d,"field":"_seq_no"}}}`, rand.Uint32())
	left := s.n
	err = s.scroll(ctx, index, order, merge, func(p adapters.Page) error {
		p.Total, p.Documents = min(p.Total, s.n), p.Documents[:min(len(p.Documents), left)]
		left -= len(p.Documents)
		if err := yield(p); err != nil || left > 0 {
			return err
		}
		return errEnough
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
