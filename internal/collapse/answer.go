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

// Answer answers the searches of a request. Where it returns an error the client's request is to be sent as the client wrote it, unless
// it is a [Refused].
func Answer(ctx context.Context, searches *adapters.Searches, ask Ask) (*adapters.Answer, error) {
	if searches.Plan.Struck() {
		return nil, adapters.ErrLate
	}
	if searches.Ahead != nil {
		var err error
		if searches, err = ahead(ctx, searches.Ahead, ask); err != nil {
			return nil, err
		}
	}
	c := &conversation{Searches: searches, send: ask}
	results, outcomes, err := make([]adapters.Pieces, 1), make([]adapters.Outcome, 1), error(nil)
	if searches.Single {
		results[0], outcomes[0], err = newSearch(searches, 0, c, c).run(ctx)
	} else {
		results, outcomes, err = c.together(ctx)
	}
	reply, body := c.reply, adapters.Pieces(nil)
	declined, isDeclined := errors.AsType[*adapters.Declined](err)
	switch {
	case isDeclined && !declined.Final:
		return nil, adapters.ErrWidened
	case isDeclined:
		outcomes = []adapters.Outcome{{Target: searches.List[0].Asked().Target, Reason: adapters.ReasonRefused}}
		reply = searches.Wire.Declined(c.reply, declined)
		body = adapters.Pieces{reply.Body}
	case err != nil:
		return nil, err
	default:
		if body, err = searches.Wire.Body(c.reply, results); err != nil {
			return nil, portError(err)
		}
	}
	answer := &adapters.Answer{Reply: *reply, Pieces: body, Outcomes: outcomes, After: c.giveBack}
	answer.Body = nil
	return answer, nil
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
			part, err := c.Wire.Split(rest[:j.Queries], replies[i])
			if err == nil && len(part) != j.Queries {
				err = errors.New("not as many results as queries")
			}
			if errors.Is(err, adapters.ErrRefused) {
				return nil, &Refused{replies[i]}
			}
			if err != nil {
				return nil, portError(err)
			}
			if c.reply == nil || c.bare && !j.Bare {
				c.reply, c.bare = replies[i], j.Bare
			}
			results, rest = append(results, part...), rest[j.Queries:]
		}
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
