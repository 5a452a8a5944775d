package adaptertest

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/rerank"
)

// Cursors remembers for ever what it is given. It implements adapters.Cursors.
type Cursors map[string]*rerank.Walk

// Get implements adapters.Cursors.
func (c Cursors) Get(key string) (*rerank.Walk, bool) { walk, ok := c[key]; return walk, ok }

// Put implements adapters.Cursors.
func (c Cursors) Put(key string, walk *rerank.Walk) { c[key] = walk }

// Clock is the time for one search, which is over when a test wants it to be.
type Clock struct {
	// Call is at which look at the time it is over, Round from 1 on the request whose reply does not come in time; 0 for never.
	Call, Round int
	// Calls and Rounds are how many there were.
	Calls, Rounds int
	over          bool
}

// Late is for [adapters.Plan].
func (c *Clock) Late() bool {
	c.Calls++
	c.over = c.over || c.Calls == c.Call
	return c.over
}

// Over reports whether the time was over.
func (c *Clock) Over() bool { return c.over }

// Run answers a search, as [Run] does, while there is time. What is asked after that is answered too.
func (c *Clock) Run(parsed *adapters.Searches, engine func(*adapters.Request) *adapters.Reply) (*Answer, error) {
	after := 0
	return Whole(collapse.Answer(context.Background(), parsed, func(_ context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
		switch {
		case requests[0].Unanswered:
			return nil, nil
		case c.over:
			after++
		}
		if after > 1 {
			return nil, errors.New("the engine is asked more than once after the time was over")
		}
		if c.Rounds++; c.Rounds == c.Round {
			c.over = true
			return nil, adapters.ErrLate
		}
		if c.Rounds > maxAsks {
			return nil, errors.New("the search does not end")
		}
		return askAll(requests, engine)
	}))
}
