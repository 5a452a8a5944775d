package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
)

// patchy returns writers: most papers by the first listener; of the others some past the sidecar and some by the second listener,
// as they come or, as after a backfill that stopped halfway, those at the end.
func (c *contract) patchy(n int) func(i int) int {
	half := c.r.IntN(3) == 0
	return func(i int) int {
		switch {
		case half && i > n/2:
			return past
		case half && i > n/4:
			return 1
		case half:
			return 0
		}
		return pick(c.r, 0, 0, 0, 0, 0, past, 1)
	}
}

// randomContract makes a contract with rules and papers at random.
func randomContract(t *testing.T, e *engines.Engine, listeners, papers int) *contract {
	t.Helper()
	seed := seeded(t)
	r := rand.New(rand.NewPCG(seed, 12))
	shelves := 1 + r.IntN(3)
	var rules [][]*terms
	for i := range listeners {
		var own []*terms
		transitive := r.IntN(6) == 0
		for range shelves {
			if own = append(own, randomTerms(r, transitive)); i == 0 {
				own[len(own)-1] = plainTerms()
			}
		}
		rules = append(rules, own)
	}
	c := newContract(t, e, seed, shelves, rules)
	for _, s := range c.shelves {
		n := 1 + r.IntN(papers/shelves)
		if c.fill(s, n, 0.45, c.patchy(n)); c.typesense() && n > 20 {
			c.pin(s)
		}
	}
	return c
}

// pin has the operator pin two papers of a shelf, of searches for the word owls.
func (c *contract) pin(s *shelf) {
	c.t.Helper()
	ids := sortedKeys(s.papers)
	body := fmt.Sprintf(`{"rule":{"query":"owls","match":"exact"},"includes":[{"id":%q,"position":1},{"id":%q,"position":%d}]}`,
		ids[c.r.IntN(10)], ids[10+c.r.IntN(10)], 2+c.r.IntN(6))
	call(c.t, c.e, "PUT", c.e.URL+"/collections/"+s.index+"/overrides/pinned", body).want(c.t, 200)
}

// scale returns one number for the short form of a test, another for the long.
func scale(short, long int) int {
	if soaking() {
		return long
	}
	return short
}

// TestContractPages asks for pages at random, under rules at random, and holds each answer, byte for byte, against the
// definition.
func TestContractPages(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		for i := range scale(2, 10) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				c := randomContract(t, e, scale(6, 10), scale(500, 1500))
				for range effort.Rounds(scale(50, 200)) {
					a := c.randomAsk()
					if wrong := c.judge(a); wrong != "" {
						c.fail(a, wrong)
					}
				}
			})
		}
	})
}

// walk walks a search's pages to the end, each held against the definition as the list is then.
func (c *contract) walk(a ask, between func()) {
	c.t.Helper()
	for a.from = 0; c.typesense() || a.from+a.size <= 10000; a.from += a.size {
		if wrong := c.judge(a); wrong != "" {
			c.fail(a, wrong)
		}
		if a.from > len(c.whole(a)) {
			return
		}
		between()
	}
}

// walkable is a search at random that finds much.
func (c *contract) walkable() ask {
	a := c.randomAsk()
	for a.near > 0 {
		a = c.randomAsk()
	}
	delete(a.controls, "neardup")
	switch {
	case c.typesense():
		a.members["q"] = pick(c.r, "*", "the")
	case a.form == "get":
		a.members["q"] = pick(c.r, "*:*", "the")
	default:
		a.members["query"] = pick(c.r, `{"match_all":{}}`, `{"match":{"body":"the"}}`)
	}
	return a
}

// TestContractWalksOverAChangingList walks lists while papers go and others come: each page is that of the list as it is then.
func TestContractWalksOverAChangingList(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		c := randomContract(t, e, scale(4, 10), scale(300, 1500))
		for range effort.Rounds(scale(3, 40)) {
			a := c.walkable()
			if a.size = max(a.size, len(c.whole(a))/scale(6, 30)+1); c.typesense() {
				a.size = min(a.size, 250)
			}
			c.walk(a, func() {
				s := pick(c.r, a.shelves...)
				if ids := sortedKeys(s.papers); len(ids) > 8 {
					c.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
					c.remove(s, c.r.IntN(len(c.listeners)), ids[:1+c.r.IntN(4)]...)
				}
				if c.r.IntN(2) == 0 {
					n := 1 + c.r.IntN(3)
					c.fill(s, n, 0.6, c.patchy(n))
				}
			})
		}
	})
}
