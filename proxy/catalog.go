package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

const (
	// known is how long the indices behind a name are taken to be what they were. A shorter time costs the engine one small request
	// more; a longer one lets us miss an index made anew behind our back.
	known = 10 * time.Second
	// doubted is how long a failure to find them out is remembered.
	doubted = 2 * time.Second
	// maxNames bounds how many names are remembered over all credentials.
	maxNames = 4096
	// lookingUp bounds how long a request waits for what is behind a name.
	lookingUp = 5 * time.Second
)

// client is what a request is sent with: its headers, the part of its query that can hold credentials, and a key that differs
// wherever these may differ in rights.
type client struct {
	header adapters.Header
	query  string
	key    string
}

// bodyHeaders describe one request's body or connection and are no one's credentials; a follow-up request of ours does not
// carry them.
var bodyHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Keep-Alive",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", adapters.ControlHeader,
}

// tracingHeaders differ from request to request without changing what the client may do.
var tracingHeaders = []string{"Traceparent", "Tracestate", "User-Agent", "X-Elastic-Client-Meta", "X-Opaque-Id", "X-Request-Id"}

// clientOf returns what a request is sent with. Which headers carry rights can't be known (a gateway may have added any), so all but
// those that are known not to go into the key.
func clientOf(header adapters.Header, rawQuery string) client {
	c := client{header: make(adapters.Header, len(header))}
	for key, values := range header {
		if !slices.Contains(bodyHeaders, key) {
			c.header[key] = values
		}
	}
	c.query = adapters.Query(adapters.Params(rawQuery), func(name string) bool { return strings.Contains(strings.ToLower(name), "key") })
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(c.header)) {
		if !slices.Contains(tracingHeaders, key) {
			part(sum, key)
			part(sum, strings.Join(c.header[key], "\x00"))
		}
	}
	part(sum, c.query)
	c.key = string(sum.Sum(nil))
	return c
}

func part(sum hash.Hash, s string) { fmt.Fprintf(sum, "%d:%s", len(s), s) }

// entry is what is known of one name under one set of credentials.
type entry struct {
	indices []adapters.Index
	failed  bool      // they could not be found out
	until   time.Time // when this is to be found out anew
	tried   time.Time // when our fields were last to be declared
	rate    float64   // share of hits folded of late
	lacking bool      // hits without a sketch were seen last
	seen    bool      // rate and lacking were learned
}

// catalog remembers what is behind the names that clients use, apart for each set of credentials.
type catalog struct {
	open   func(adapters.Header, string) adapters.Store
	rules  adapters.Rules
	flight singleflight.Group
	mu     sync.Mutex
	names  map[string]*entry
}

func newCatalog(open func(adapters.Header, string) adapters.Store, rules adapters.Rules) *catalog {
	return &catalog{open: open, rules: rules, names: map[string]*entry{}}
}

// forget makes every name be looked up again.
func (c *catalog) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.names {
		e.until = time.Time{}
	}
}

// rule returns the rule for a document written to a name, and whether every index behind it is prepared. whole says that the
// document would create the index.
func (c *catalog) rule(ctx context.Context, who client, name string, whole bool) (*adapters.Rule, bool) {
	e := c.lookup(ctx, who, name)
	if e.failed {
		return c.rules.For(name), false
	}
	if len(e.indices) == 0 {
		rule := c.rules.For(name)
		if rule == nil || !whole {
			return rule, false
		}
	}
	if !c.concerns(name, e.indices) {
		return nil, false
	}
	if !ready(e.indices) {
		e = c.prepare(ctx, who, name, whole)
	}
	return c.single(e.indices), ready(e.indices)
}

// concerns reports whether a rule matches an index behind the name, or the name itself where nothing is behind it yet.
func (c *catalog) concerns(name string, indices []adapters.Index) bool {
	if len(indices) == 0 {
		return c.rules.For(name) != nil
	}
	return slices.ContainsFunc(indices, func(i adapters.Index) bool { return c.rules.For(i.Name) != nil })
}

// single returns the one rule that all indices share, or nil if they do not.
func (c *catalog) single(indices []adapters.Index) *adapters.Rule {
	if len(indices) == 0 {
		return nil
	}
	rule := c.rules.For(indices[0].Name)
	for _, i := range indices[1:] {
		if c.rules.For(i.Name) != rule {
			return nil
		}
	}
	return rule
}

func ready(indices []adapters.Index) bool {
	return len(indices) > 0 && !slices.ContainsFunc(indices, func(i adapters.Index) bool { return !i.Ready })
}

// scope returns what is known of a search's target.
func (c *catalog) scope(ctx context.Context, who client, target string) adapters.Scope {
	e := c.lookup(ctx, who, target)
	s := adapters.Scope{Rate: rerank.DefaultRate, Lacking: e.lacking}
	if e.seen {
		s.Rate = e.rate
	}
	for _, rule := range c.rules {
		if c.touches(rule, target, e) {
			s.Configured, s.Window = true, max(s.Window, rule.Window)
		}
	}
	return s
}

// touches reports whether the rule matches an index behind the target; where these can't be found out, whether it may.
func (c *catalog) touches(rule *adapters.Rule, target string, e entry) bool {
	if !e.failed {
		return slices.ContainsFunc(e.indices, func(i adapters.Index) bool { return c.rules.For(i.Name) == rule })
	}
	for name := range strings.SplitSeq(target, ",") {
		if name == "" || adapters.Matches(rule.Match, name) || strings.Contains(name, "*") && adapters.Matches(name, rule.Match) {
			return true
		}
	}
	return false
}

// learn takes what a search showed of its target.
func (c *catalog) learn(who client, o adapters.Outcome) {
	if o.Reason != "" || o.Read == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.names[who.key+o.Target]
	if e == nil {
		return
	}
	rate := float64(o.Folded) / float64(o.Read)
	if e.seen {
		rate = 0.8*e.rate + 0.2*rate
	}
	e.rate, e.lacking, e.seen = rate, o.Without > 0, true
}

// lookup returns what is behind the name, asking the engine if it is not known.
func (c *catalog) lookup(ctx context.Context, who client, name string) entry {
	return c.find(ctx, who, name, resolving, func(ctx context.Context, s adapters.Store) ([]adapters.Index, error) {
		return s.Resolve(ctx, name)
	})
}

// prepare has our fields declared in the indices behind the name that lack them, unless that was tried a moment ago.
func (c *catalog) prepare(ctx context.Context, who client, name string, create bool) entry {
	c.mu.Lock()
	if e := c.names[who.key+name]; e != nil {
		if time.Since(e.tried) < doubted {
			defer c.mu.Unlock()
			return *e
		}
		e.until = time.Time{}
	}
	c.mu.Unlock()
	return c.find(ctx, who, name, preparing, func(ctx context.Context, s adapters.Store) ([]adapters.Index, error) {
		indices, err := s.Resolve(ctx, name)
		if err != nil || len(indices) == 0 && create {
			return s.Prepare(ctx, name, create)
		}
		for i, index := range indices {
			if index.Ready || c.rules.For(index.Name) == nil {
				continue
			}
			if made, err := s.Prepare(ctx, index.Name, false); err == nil && len(made) == 1 {
				indices[i] = made[0]
			}
		}
		return indices, nil
	})
}

// How a name is looked up.
const (
	resolving = "resolve "
	preparing = "prepare "
)

func (c *catalog) find(ctx context.Context, who client, name, how string, ask func(context.Context, adapters.Store) ([]adapters.Index, error)) entry {
	key := who.key + name
	c.mu.Lock()
	if e := c.names[key]; e != nil && time.Now().Before(e.until) {
		defer c.mu.Unlock()
		return *e
	}
	c.mu.Unlock()
	found, _, _ := c.flight.Do(how+key, func() (any, error) {
		// One client's breaking off must not fail the others that wait for the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookingUp)
		defer cancel()
		indices, err := ask(ctx, c.open(who.header, who.query))
		return c.keep(key, how, indices, err), nil
	})
	return found.(entry)
}

// keep remembers an answer: a good one for long, a failure or an index that is not ready for a moment.
func (c *catalog) keep(key, how string, indices []adapters.Index, err error) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.names[key]
	if e == nil {
		c.makeRoom()
		e = &entry{}
		c.names[key] = e
	}
	e.indices, e.failed, e.until = indices, err != nil, time.Now().Add(known)
	if err != nil || len(indices) == 0 {
		e.until = time.Now().Add(doubted)
	}
	if how == preparing {
		e.tried = time.Now()
	}
	return *e
}

// makeRoom forgets names, the outdated first, until there is room for one more.
func (c *catalog) makeRoom() {
	if len(c.names) < maxNames {
		return
	}
	now := time.Now()
	maps.DeleteFunc(c.names, func(_ string, e *entry) bool { return now.After(e.until) })
	for key := range c.names {
		if len(c.names) < maxNames {
			return
		}
		delete(c.names, key)
	}
}
