package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// Ask sends requests to the engine, side by side, and returns their replies in order. Where one of them is no success it returns that
// reply alone: the others are of no use then. It returns [adapters.ErrLate] when the time for collapsing is over.
type Ask func(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error)

// Refused is the error of searches that the engine refuses for a reason that is not ours: credentials, load, its own failure. Its reply is the
// answer. It is an [adapters.ErrRefused].
type Refused struct{ Reply *adapters.Reply }

// Error implements error.
func (r *Refused) Error() string { return adapters.ErrRefused.Error() }

// Unwrap is for errors.Is.
func (r *Refused) Unwrap() error { return adapters.ErrRefused }

// Answer answers the searches of a request. Where it returns an error the client's request is to be sent as the client wrote it, unless
// it is a [Refused].
func Answer(ctx context.Context, searches *adapters.Searches, ask Ask) (*adapters.Answer, error) {
	if searches.Plan.Struck() {
		return nil, adapters.ErrLate
	}
	c := &conversation{Searches: searches, send: ask}
	results, outcomes, err := c.run(ctx)
	if declined, ok := errors.AsType[*adapters.Declined](err); ok {
		if !declined.Final {
			return nil, adapters.ErrWidened
		}
		outcomes = []adapters.Outcome{{Target: searches.List[0].Asked().Target, Reason: "refused"}}
		return &adapters.Answer{Reply: *searches.Wire.Declined(c.reply, declined), Outcomes: outcomes}, nil
	}
	if err != nil {
		return nil, err
	}
	reply, err := searches.Wire.Reply(c.reply, results)
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return &adapters.Answer{Reply: *reply, Outcomes: outcomes}, nil
}

// run runs the searches and returns what the client gets of each.
func (c *conversation) run(ctx context.Context) (results [][]byte, outcomes []adapters.Outcome, err error) {
	if !c.Single {
		return c.together(ctx)
	}
	result, outcome, err := newSearch(c.Searches, 0, c).run(ctx)
	return [][]byte{result}, []adapters.Outcome{outcome}, err
}

// conversation is the exchange of requests and replies for one client's request.
type conversation struct {
	*adapters.Searches
	send Ask
	// reply is the one whose header the client gets, and in which the results are put: the first to a request that was not bare, which is
	// compressed as the client wants it.
	reply *adapters.Reply
	bare  bool
}

// ask asks queries, in as few rounds as they fit in, and returns their results. When the time is over it asks for nothing but the client's own
// searches.
func (c *conversation) ask(ctx context.Context, queries []adapters.Query) ([]adapters.QueryResult, error) {
	results := make([]adapters.QueryResult, 0, len(queries))
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
		for i, reply := range replies {
			part, err := c.split(joined[i], rest, reply)
			if err != nil {
				return nil, err
			}
			results, rest = append(results, part...), rest[joined[i].Queries:]
		}
		if len(replies) != len(joined) {
			return nil, adapters.NotUnderstood(errors.New("not as many replies as requests"))
		}
	}
	return results, nil
}

// split returns the results in the reply to a joined request, which holds the first of the queries.
func (c *conversation) split(j adapters.Joined, queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	results, err := c.Wire.Split(queries[:j.Queries], reply)
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
