package collapse

import (
	"context"
	"errors"
	"iter"

	"github.com/neardup/sidecar/adapters"
)

// member is one search of several. Each runs as if it were alone, in a coroutine, which pauses where it asks. When all that still run have
// asked, their queries go out together, and each goes on with its results. Only one of them runs at a time, in the order of the
// request, so that the same replies always lead to the same requests.
type member struct {
	*search
	queries []adapters.Query // what it waits for
	given   []adapters.QueryResult
	failed  error // in place of results
	stopped bool

	yield   func([]adapters.Query) bool
	result  adapters.Pieces
	outcome adapters.Outcome
	err     error
}

// errStopped: the request was given up while a search of it waited.
var errStopped = errors.New("the request was given up")

// results implements asker.
func (m *member) results(_ context.Context, queries []adapters.Query) ([]adapters.QueryResult, error) {
	if m.stopped || !m.yield(queries) {
		m.stopped = true
		return nil, errStopped
	}
	return m.given, m.failed
}

// together runs several searches.
func (c *conversation) together(ctx context.Context) ([]adapters.Pieces, []adapters.Outcome, error) {
	members, next := make([]*member, len(c.List)), make([]func() ([]adapters.Query, bool), len(c.List))
	for i := range c.List {
		m := &member{}
		m.search = newSearch(c.Searches, i, m)
		resume, stop := iter.Pull(func(yield func([]adapters.Query) bool) {
			m.yield = yield
			m.result, m.outcome, m.err = m.run(ctx)
		})
		defer stop()
		members[i], next[i] = m, resume
	}
	for {
		for i, m := range members {
			m.queries, _ = next[i]()
		}
		if c.Plan.Late() { // what is asked now is the last: none is to ask for what it can't take
			for i, m := range members {
				if len(m.queries) > 0 && !allOwn(m.queries) {
					m.given, m.failed = nil, adapters.ErrLate
					m.queries, _ = next[i]()
				}
			}
		}
		var all []adapters.Query
		for _, m := range members {
			if m.err != nil {
				return nil, nil, m.err
			}
			all = append(all, m.queries...)
		}
		if len(all) == 0 {
			break
		}
		results, err := c.results(ctx, all)
		if err != nil && !adapters.IsLate(err) {
			return nil, nil, err
		}
		for _, m := range members {
			if m.given, m.failed = nil, err; err == nil {
				m.given, results = results[:len(m.queries):len(m.queries)], results[len(m.queries):]
			}
		}
	}
	results, outcomes := make([]adapters.Pieces, len(members)), make([]adapters.Outcome, len(members))
	for i, m := range members {
		results[i], outcomes[i] = m.result, m.outcome
	}
	return results, outcomes, nil
}
