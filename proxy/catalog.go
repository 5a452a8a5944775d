package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/sync/singleflight"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

const (
	// knownFor is how long the indices of a name are remembered. It weighs one small request to the engine every two seconds, for each name in use,
	// against the time in which an index that was re-created past us goes unnoticed: documents enriched for the old mapping may be refused.
	knownFor = 2 * time.Second
	// doubtedFor is how long a failed look-up is remembered, or a missing index, or that the engine could not collapse a search itself.
	doubtedFor = time.Second
	// triedFor is how long an index that could not be prepared is left alone.
	triedFor = 10 * time.Second
	// unfitFor is how long a target is searched at query time alone after the engine could not collapse by the clusters that are stored, or count them.
	// It weighs a request in vain against the time until one sees that they are all there again. Other failures count for doubtedFor.
	unfitFor = 30 * time.Second
	// maxNames bounds how many names are remembered over all credentials, and maxKnown about how many bytes that takes.
	maxNames, maxKnown = 4096, 4 << 20
	// lookingUp is the timeout of a look-up.
	lookingUp = 5 * time.Second
)

// entry is what is known of one name under one set of credentials.
type entry struct {
	indices  []adapters.Index
	err      error     // they could not be looked up
	turn     int       // the turn at which the engine was asked
	until    time.Time // when this is to be found out anew
	prepared int       // the turn at which preparing ended
	tried    time.Time // when our fields were last to be declared; zero if never since the indices changed
	awaited  time.Time // when a write was last taken to create it
	widening rerank.Widening
	lacking  bool // hits without a sketch were seen last
	seen     bool // widening and lacking were learned
	purse    purse

	fell   adapters.Reason // why the engine could not collapse by its clusters
	native time.Time       // when it is to be asked to again; zero if it never failed
	costly time.Time       // when it is to be asked again to count groups too; zero if it never refused
}

// catalog is a cache of the indices that names lead to, apart for each set of credentials.
type catalog struct {
	Engine
	flight singleflight.Group
	// changers are clients whose changes of indices the engine has accepted.
	changers set
	mu       sync.Mutex
	names    *ttlcache.Cache[string, *entry] // by the client and the name
	failed   *ttlcache.Cache[string, *entry] // names whose look-up failed: apart, so that an unknown client can't push out the others
	changes  *ttlcache.Cache[string, int]    // by the client's key: the turn of a change of indices that concerns this client alone
	turn     int                             // counts what happens, to tell what was asked before a change from what was asked after
	change   int                             // the turn of the last change of indices that concerns all
	share    float64                         // of a second sending, which each search earns for its target
	saved    float64                         // what is in the common store of second sendings
}

func newCatalog(e Engine) *catalog {
	cost := func(c ttlcache.CostItem[string, *entry]) uint64 {
		bytes := maxKnown / maxNames
		for _, i := range c.Value.indices {
			bytes += maxKnown/maxNames + len(i.Name) + len(i.As) + len(i.Why)
		}
		if err := c.Value.err; err != nil {
			bytes += 4 * len(err.Error()) // it wraps others, which say the same
		}
		return uint64(min(bytes, maxKnown/8))
	}
	return &catalog{
		Engine: e, changers: newSet(0), share: e.Limits.FallbackShare, saved: maxSaved,
		names: ttlcache.New(ttlcache.WithMaxCost(maxKnown, cost)), failed: ttlcache.New(ttlcache.WithMaxCost(maxKnown/4, cost)),
		// What was asked before a change is not known any more when the change is forgotten.
		changes: ttlcache.New(ttlcache.WithTTL[string, int](knownFor+2*lookingUp), ttlcache.WithCapacity[string, int](maxNames)),
	}
}

// ruleOfDocument returns the rule of an index that a document is written to, nil if none matches, and which of our fields the index takes. Fields
// that the index lacks are declared first. creates says that the document creates the index if it is missing. steady says that the next document to
// the same index will find the same.
func (c *catalog) ruleOfDocument(u *underway, index string, creates bool) (r *rule.Rule, takes rule.Takes, steady bool) {
	who := u.sender.client()
	e := c.lookup(u, who, index)
	if passing(e.err) && len(e.indices) == 0 {
		e = c.insist(u, who, index, e)
	}
	r, takes = c.ruleOfWrites(index, e.indices), takesOf(e.indices)
	absent := !there(e.indices)
	switch {
	case e.err != nil: // the index may be another one by now
		return r, min(takes, rule.TakesNulls), false
	case r == nil, absent && !creates:
		return r, rule.TakesNothing, false
	case !absent && takes == rule.TakesAll: // as it mostly is
		return r, takes, true
	}
	how := preparing
	if creates {
		how = creating
	}
	e = c.find(u, who, index, how)
	if !there(e.indices) && c.awaited(who, index) { // the document creates it: what is known of the names that lead to it ends with the reply
		u.newIndex.Store(true)
	}
	return c.ruleOfWrites(index, e.indices), takesOf(e.indices), false
}

// lookup returns what is known of a name, and asks the engine if it is not known.
func (c *catalog) lookup(ctx context.Context, who client, name string) entry {
	return c.find(ctx, who, name, resolving)
}

// How a name is looked up.
type how string

const (
	resolving how = "resolve"
	again     how = "again"   // also where that failed a moment ago
	preparing how = "prepare" // our fields are declared where they lack, unless that was tried a moment ago
	creating  how = "create"  // and a missing index is created
)

// find returns what is known of the name, and asks the engine unless it was asked in the same way a moment ago. Requests with the same credentials
// that want the same at once share one answer.
func (c *catalog) find(ctx context.Context, who client, name string, how how) entry {
	if e, _, ok := c.fresh(who, name, how); ok {
		return e
	}
	c.mu.Lock()
	change := c.lastChange(who)
	c.mu.Unlock()
	found, _, _ := c.flight.Do(fmt.Sprint(how, change, " ", entryKey(who, name)), func() (any, error) {
		e, turn, ok := c.fresh(who, name, how)
		if ok { // another asked meanwhile
			return e, nil
		}
		// One client's breaking off must not fail the others that wait for the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookingUp)
		defer cancel()
		store := c.Open(who.header, who.query)
		indices, err := store.Resolve(ctx, name)
		if how == preparing || how == creating {
			indices, err = c.prepare(ctx, store, name, how == creating, indices, err)
			c.report(who, name, indices, err)
		}
		return c.keep(who, name, how, turn, indices, err), nil
	})
	return found.(entry)
}

// fresh returns what is remembered and whether it may be used; if not, turn is that of the request to the engine.
func (c *catalog) fresh(who client, name string, how how) (e entry, turn int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e = *c.entry(who, name)
	ok = e.turn > c.lastChange(who) && time.Now().Before(e.until)
	switch how {
	case preparing, creating:
		ok = time.Since(e.tried) < triedFor
	case again:
		ok = ok && e.err == nil
	}
	c.turn++
	return e, c.turn, ok
}

// prepare has our fields declared in those indices of the name that lack them and that a write to it can reach.
func (c *catalog) prepare(ctx context.Context, s adapters.Store, name string, create bool, indices []adapters.Index, err error) ([]adapters.Index, error) {
	if err != nil || !there(indices) && create {
		return s.Prepare(ctx, name, create)
	}
	for i, index := range indices {
		if index.Ready || index.Absent || index.Moves || !written(index) || index.Rule(c.Rules) == nil {
			continue
		}
		if made, err := s.Prepare(ctx, index.Name, false); err == nil && len(made) == 1 {
			indices[i].Ready, indices[i].Mapped, indices[i].Why = made[0].Ready, made[0].Mapped, made[0].Why
		}
	}
	return indices, nil
}

// keep remembers an answer: a good one for long, a failure or a missing index for a moment.
func (c *catalog) keep(who client, name string, how how, turn int, indices []adapters.Index, err error) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(who, name)
	if turn < e.prepared {
		return *e // asked before the indices were prepared
	}
	if err == nil && !alike(e.indices, indices) {
		e.tried = time.Time{}
	}
	if err != nil { // what was known of them still tells what there may be to clear
		indices = e.indices
	}
	made := !there(e.indices) && there(indices)
	e.indices, e.err, e.turn, e.until = indices, err, turn, time.Now().Add(knownFor)
	if err != nil || !there(indices) {
		e.until = time.Now().Add(doubtedFor)
	}
	if how == preparing || how == creating {
		if made && turn > c.lastChange(who) { // other names may lead to the new index as well; what was found of this one stays
			c.turn++
			c.change = c.turn
			e.turn = c.turn + 1
		}
		c.turn++
		e.tried, e.prepared = time.Now(), c.turn
	}
	key := entryKey(who, name)
	if err != nil && !c.names.Has(key) {
		c.failed.Set(key, e, ttlcache.NoTTL)
		return *e
	}
	c.failed.Delete(key)
	c.names.Set(key, e, ttlcache.NoTTL) // with what it costs now
	return *e
}

// entry returns what is remembered of a name, which is made where there is nothing.
func (c *catalog) entry(who client, name string) *entry {
	key := entryKey(who, name)
	for _, held := range []*ttlcache.Item[string, *entry]{c.names.Get(key), c.failed.Get(key)} {
		if held != nil {
			return held.Value()
		}
	}
	e := &entry{}
	c.failed.Set(key, e, ttlcache.NoTTL)
	return e
}

// alike reports whether two lists hold the same indices in the same state.
func alike(a, b []adapters.Index) bool {
	return slices.EqualFunc(a, b, func(a, b adapters.Index) bool {
		a.Why, b.Why = "", ""
		return a == b
	})
}

// takesOf returns what may be added to a document whichever of the indices it goes to.
func takesOf(indices []adapters.Index) rule.Takes {
	least, some := rule.TakesAll, false
	for _, i := range indices {
		if !written(i) {
			continue
		}
		some = true
		switch {
		case !i.Mapped && !i.Ready:
			least = rule.TakesNothing
		case !i.Known && !i.Ready:
			least = min(least, rule.TakesNullSketch)
		case !i.Ready || i.Moves:
			least = min(least, rule.TakesNulls)
		}
	}
	if !some {
		return rule.TakesNothing
	}
	return least
}

// ruleOfWrites returns the one rule of all indices that a write to the name can reach, nil if their rules differ. Without such an index it is the
// rule of the name.
func (c *catalog) ruleOfWrites(name string, indices []adapters.Index) *rule.Rule {
	if !slices.ContainsFunc(indices, written) {
		return c.Rules.For(name)
	}
	return c.commonRule(indices, written)
}

// commonRule returns the rule of all those indices that count, nil if they have none or several.
func (c *catalog) commonRule(indices []adapters.Index, counts func(adapters.Index) bool) *rule.Rule {
	first := slices.IndexFunc(indices, counts)
	if first < 0 {
		return nil
	}
	rule := indices[first].Rule(c.Rules)
	if slices.ContainsFunc(indices, func(i adapters.Index) bool { return counts(i) && i.Rule(c.Rules) != rule }) {
		return nil
	}
	return rule
}

// written reports whether documents written to the name can go to the index.
func written(i adapters.Index) bool { return !i.NoWrite }

// there reports whether any of the indices is there.
func there(indices []adapters.Index) bool {
	return slices.ContainsFunc(indices, func(i adapters.Index) bool { return !i.Absent })
}

// awaited reports whether a write to a missing index is taken to create it, which ends what is known of all names. It does once in a while only: a
// client may go on writing to an index that is never created.
func (c *catalog) awaited(who client, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(who, name)
	if time.Since(e.awaited) < doubtedFor {
		return false
	}
	e.awaited = time.Now()
	return true
}

// insist retries a failed look-up of a name that the catalog does not know, once for a request. Otherwise a partial document could pass unread
// and keep the sketch of the text that it changes.
func (c *catalog) insist(u *underway, who client, name string, e entry) entry {
	if u.insisted.Load() {
		return e
	}
	for _, pause := range askedAgain {
		select {
		case <-time.After(pause):
		case <-u.Done():
			return e
		}
		if e = c.find(u, who, name, again); !passing(e.err) || len(e.indices) > 0 {
			return e
		}
	}
	u.insisted.Store(true)
	return e
}

// askedAgain are the pauses before a write retries a failed look-up of an unknown name.
var askedAgain = []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// passing reports whether an error of a look-up may be over in a moment. An engine that does not answer has had its time.
func passing(err error) bool {
	status := adapters.StatusOf(err)
	return err != nil && !errors.Is(err, context.DeadlineExceeded) && (status < 400 || status == http.StatusTooManyRequests || status >= 500)
}

// report tells the operator why documents written to a name go on without sketches, once for each time that preparing was tried.
func (c *catalog) report(who client, name string, indices []adapters.Index, err error) {
	warn := func(index, reason string) {
		c.Log.Warn("index not prepared: documents pass without sketches", "index", shortened(index), "reason", shortened(who.hide(reason)))
	}
	switch {
	case err != nil:
		warn(name, err.Error())
	case !there(indices) && takesOf(indices) != rule.TakesAll:
		warn(name, "it is not there, and to make it before the engine does was refused or in doubt")
	}
	for _, i := range indices {
		if (!i.Ready || i.Moves) && written(i) && !i.Absent && i.Rule(c.Rules) != nil {
			warn(i.Name, i.Why)
		}
	}
}

// forgetFor makes every name be looked up again for one client, also where the answer is on its way.
func (c *catalog) forgetFor(who client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	c.changes.Set(who.key, c.turn, ttlcache.DefaultTTL)
}

// altered takes what the engine answered to a request that may make, change or drop an index; 0 if the answer is not known.
//
// After a success every client looks anew. Where it is not known what happened (no answer, an error that can come after a part of the
// change), so it is only if the engine has accepted a change of this client before: such a client could make all look anew at any time by
// another change. What anyone can send, a request that the engine refuses or one that is broken off, concerns who sent it alone. If that
// changed something all the same, other clients see it as they see a change that did not come through us: when what they know expires.
func (c *catalog) altered(who client, status int) {
	if status/100 == 2 {
		c.changers.add(who.key)
	} else if status == http.StatusUnauthorized || status == http.StatusForbidden || !c.changers.has(who.key) {
		c.forgetFor(who)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	c.change = c.turn
}

// lastChange returns the turn of the last change of indices that concerns the client: an answer from before it is not used any more. The lock is held.
func (c *catalog) lastChange(who client) int {
	if own := c.changes.Get(who.key); own != nil {
		return max(c.change, own.Value())
	}
	return c.change
}
