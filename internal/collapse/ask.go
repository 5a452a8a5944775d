package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// asker asks the engine on behalf of one search.
type asker interface {
	ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error)
}

// ask asks queries, in as few rounds as they fit in, and returns their results. When the time is over it asks for nothing but the client's own
// searches.
func (c *conversation) ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error) {
	var results []adapters.QueryResult
	for len(results) < len(queries) {
		rest := queries[len(results):]
		if c.Plan.Struck() && !own(rest) {
			return nil, adapters.ErrLate
		}
		joined, err := c.Wire.Join(rest)
		if err != nil {
			return nil, adapters.NotUnderstood(err)
		}
		requests := make([]*adapters.Request, len(joined))
		for i, j := range joined {
			requests[i] = j.Request
		}
		replies, err := c.send(ctx, requests...)
		if err != nil {
			return nil, err
		}
		for i, j := range joined[:min(len(replies), len(joined))] {
			part, err := c.split(j, rest, replies[i])
			if err != nil {
				return nil, err
			}
			results, rest = append(results, part...), rest[j.Queries:]
		}
		if len(joined) == 0 || len(replies) != len(joined) {
			return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
		}
	}
	return results, nil
}

// split returns the results in the reply to a joined request, which holds the first of the queries.
func (c *conversation) split(j adapters.Joined, queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	results, err := c.Wire.Split(queries[:j.Queries], reply)
	if err == nil && len(results) != j.Queries {
		err = errors.New("not as many results as queries")
	}
	switch {
	case errors.Is(err, adapters.ErrRefused):
		return nil, &Refused{reply}
	case errors.Is(err, adapters.ErrWidened):
		return nil, err
	case err != nil:
		return nil, adapters.NotUnderstood(err)
	}
	if c.reply == nil || c.bare && !j.Bare {
		c.reply, c.bare = reply, j.Bare
	}
	return results, nil
}

// own reports whether all queries are the client's own searches.
func own(queries []adapters.Query) bool {
	for i := range queries {
		if !queries[i].Own {
			return false
		}
	}
	return true
}
