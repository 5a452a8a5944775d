package collapse

import (
	"context"
	"errors"
	"iter"

	"github.com/neardup/sidecar/adapters"
)

// member is one search of several. Each runs as if it were alone, in a coroutine, which pauses where it asks. When all that still run have
// asked, their requests go out together, and each goes on with its replies. Only one of them runs at a time, in the order of the
// request, so that the same replies always lead to the same requests.
type member struct {
	*search
	requests []*adapters.Request // what it waits for
	given    []*adapters.Reply
	failed   error // in place of replies
	stopped  bool

	yield   func([]*adapters.Request) bool
	result  adapters.Pieces
	outcome adapters.Outcome
	err     error
}

// errStopped: the request was given up while a search of it waited.
var errStopped = errors.New("the request was given up")

// ask implements asker: it pauses until all members have asked, and returns the replies to this one's requests.
func (m *member) ask(_ context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
	if m.stopped || !m.yield(requests) {
		m.stopped = true
		return nil, errStopped
	}
	return m.given, m.failed
}

// together runs several searches.
func (c *conversation) together(ctx context.Context) ([]adapters.Pieces, []adapters.Outcome, error) {
	members, next := make([]*member, len(c.List)), make([]func() ([]*adapters.Request, bool), len(c.List))
	for i, query := range c.List {
		m := &member{search: c.newSearch(query)}
		m.asker = m
		resume, stop := iter.Pull(func(yield func([]*adapters.Request) bool) {
			m.yield = yield
			m.result, m.outcome, m.err = m.answerOne(ctx)
		})
		defer stop()
		members[i], next[i] = m, resume
	}
	for {
		for i, m := range members {
			m.requests, _ = next[i]()
		}
		if c.Plan.Late() { // what is asked now is the last: none is to ask for what it can't take
			for i, m := range members {
				if len(m.requests) > 0 && !allOwn(m.requests) {
					m.given, m.failed = nil, adapters.ErrLate
					m.requests, _ = next[i]()
				}
			}
		}
		var all []*adapters.Request
		for _, m := range members {
			if m.err != nil {
				return nil, nil, m.err
			}
			all = append(all, m.requests...)
		}
		if len(all) == 0 {
			break
		}
		replies, err := c.ask(ctx, all...)
		if err != nil && !adapters.IsLate(err) {
			return nil, nil, err
		}
		for _, m := range members {
			if m.given, m.failed = nil, err; err == nil {
				m.given, replies = replies[:len(m.requests):len(m.requests)], replies[len(m.requests):]
			}
		}
	}
	results, outcomes := make([]adapters.Pieces, len(members)), make([]adapters.Outcome, len(members))
	for i, m := range members {
		results[i], outcomes[i] = m.result, m.outcome
	}
	return results, outcomes, nil
}
