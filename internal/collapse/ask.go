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

// conversation is what is asked and replied for one client's request.
type conversation struct {
	*adapters.Searches
	send Ask
	// reply is the one whose header the client gets, and in which the results are put: the first to a request that was not bare, which is
	// compressed as the client wants it.
	reply *adapters.Reply
	bare  bool
	// giveBack, if not nil, is the last request, for which the client does not wait.
	giveBack *adapters.Request
}

// ahead asks for what the searches follow from.
func ahead(ctx context.Context, first adapters.Ahead, ask Ask) (*adapters.Searches, error) {
	replies, err := ask(ctx, first.Request())
	if err != nil {
		return nil, err
	}
	searches, err := first.Searches(replies[0])
	if errors.Is(err, adapters.ErrRefused) {
		return nil, &Refused{replies[0]}
	}
	if err != nil {
		return nil, portError(err)
	}
	return searches, nil
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
		if len(replies) == 1 && len(joined) > 1 { // one of them is refused
			joined = []adapters.Joined{{Request: joined[0].Request, Queries: len(rest)}}
		}
		if len(joined) == 0 || len(replies) != len(joined) {
			return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
		}
		for i, j := range joined {
			part, err := c.split(j, rest, replies[i])
			if err != nil {
				return nil, err
			}
			results, rest = append(results, part...), rest[j.Queries:]
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
	if errors.Is(err, adapters.ErrRefused) {
		return nil, &Refused{reply}
	}
	if err != nil {
		return nil, portError(err)
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

// portError returns an error of the dialect as one of the port's.
func portError(err error) error {
	_, alone := errors.AsType[adapters.Alone](err)
	_, declined := errors.AsType[*adapters.Declined](err)
	if alone || declined || errors.Is(err, adapters.ErrWidened) || errors.Is(err, adapters.ErrNotUnderstood) {
		return err
	}
	return adapters.NotUnderstood(err)
}
