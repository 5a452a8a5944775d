package elastic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/neardup/sidecar/adapters"
)

var errEnough = errors.New("enough documents")

// sample reads n documents of an index chosen at random, and all where there are no more.
func (s *Store) sample(ctx context.Context, index string, _ *adapters.Rule, n int, yield func(adapters.Page) error) error {
	merge, err := s.rewritable(ctx, index)
	if err != nil {
		return fmt.Errorf("scan %s: %w", index, err)
	}
	order := fmt.Sprintf(`"query":{"function_score":{"random_score":{"seed":%d,"field":"_seq_no"}}}`, rand.Uint32())
	left := n
	err = s.scroll(ctx, index, order, merge, func(p adapters.Page) error {
		p.Total, p.Documents = min(p.Total, n), p.Documents[:min(len(p.Documents), left)]
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
