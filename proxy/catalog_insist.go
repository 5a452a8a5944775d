package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// askedAgain is after which times a write asks again what is behind a name of which nothing is known, where the engine failed to tell.
var askedAgain = []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// insist asks again what is behind a name of which nothing is known and of which the engine failed to tell: a partial document that passes
// unread would keep the sketch of the text that it changes. It takes its time once for a request.
func (c *catalog) insist(ctx context.Context, who client, name string, e entry) entry {
	u := underwayOf(ctx)
	if u != nil && u.insisted.Load() {
		return e
	}
	for _, pause := range askedAgain {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return e
		}
		e = c.find(ctx, who, name, again, func(ctx context.Context, s adapters.Store) ([]adapters.Index, error) { return s.Resolve(ctx, name) })
		if !e.passing || len(e.indices) > 0 {
			return e
		}
	}
	if u != nil {
		u.insisted.Store(true)
	}
	return e
}

// passing reports whether what kept the engine from telling may be over in a moment. An engine that does not answer has been waited for
// long enough.
func passing(err error) bool {
	status := adapters.StatusOf(err)
	return !errors.Is(err, context.DeadlineExceeded) && (status < 400 || status == http.StatusTooManyRequests || status >= 500)
}
