package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

const (
	// known is how long the indices behind a name are taken to be what they were. It weighs one small request to the engine every two
	// seconds, for each name in use, against the time in which we can miss an index made anew behind our back: documents enriched for
	// a mapping that is no longer there may be refused.
	known = 2 * time.Second
	// doubted is how long a failure to find them out is remembered, that there is nothing behind a name, or that a search could not go
	// the engine's own way.
	doubted = time.Second
	// triedFor is how long an index that could not be prepared is left alone.
	triedFor = 10 * time.Second
	// unfitFor is how long a target is searched at query time alone after the engine could not collapse by the clusters that are stored.
	// It weighs a request in vain against the time until one sees that they are all there again. Other failures count for doubted.
	unfitFor = 30 * time.Second
	// maxNames bounds how many names are remembered over all credentials, an index behind a name being as good as one.
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

// bodyHeaders describe one request's body or the reply to it.
var bodyHeaders = []string{
	"Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type", "Expect", adapters.ControlHeader,
}

// own reports whether a header is of one request's body or connection, and no one's credentials: a follow-up request of ours does not carry
// it.
func own(key string) bool { return hop(key) || slices.Contains(bodyHeaders, key) }

// tracingHeaders differ from request to request without changing what the client may do.
var tracingHeaders = []string{
	"B3", "Baggage", "Elastic-Apm-Traceparent", "Traceparent", "Tracestate", "User-Agent", "X-Amzn-Trace-Id", "X-B3-Parentspanid",
	"X-B3-Sampled", "X-B3-Spanid", "X-B3-Traceid", "X-Cloud-Trace-Context", "X-Elastic-Client-Meta", "X-Opaque-Id", "X-Request-Id",
}

// clientOf returns what a request is sent with. Which headers carry rights can't be known (a gateway may have added any), so all but
// those that are known not to go into the key.
func clientOf(header adapters.Header, rawQuery string) client {
	c := client{header: make(adapters.Header, len(header))}
	for key, values := range header {
		if !own(key) {
			c.header[key] = values
		}
	}
	c.query = adapters.RawQuery(adapters.Params(rawQuery), func(name string) bool {
		name = strings.ToLower(name)
		return strings.Contains(name, "key") && !strings.HasSuffix(name, "keys") // several are no one's: an engine may refuse them elsewhere
	})
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

// sender is who sent a request, which is found out when it is first asked for.
type sender struct {
	request *http.Request // as it came
	once    sync.Once
	who     client
}

func (s *sender) client() client {
	s.once.Do(func() { s.who = clientOf(adapters.Header(s.request.Header), s.request.URL.RawQuery) })
	return s.who
}

// senderOf returns who sent the request on whose behalf something is done.
func senderOf(r *http.Request) client {
	if u := underwayOf(r.Context()); u != nil {
		return u.sender.client()
	}
	return clientOf(adapters.Header(r.Header), r.URL.RawQuery)
}

func part(sum hash.Hash, s string) { fmt.Fprintf(sum, "%d:%s", len(s), s) }

// entryKey is what a name is remembered under for a client. Names can be as long as a request; the key is not.
func entryKey(who client, name string) string {
	sum := sha256.New()
	part(sum, who.key)
	part(sum, name)
	return string(sum.Sum(nil))
}

// entry is what is known of one name under one set of credentials.
type entry struct {
	indices  []adapters.Index
	failed   bool      // they could not be found out
	passing  bool      // nor is it for the client's rights, so that it may be otherwise in a moment
	asked    int       // the turn at which the engine was asked
	until    time.Time // when this is to be found out anew
	prepared int       // the turn at which preparing ended
	tried    time.Time // when our fields were last to be declared; zero if never since the indices changed
	awaited  time.Time // when a write was last watched that may make it
	widening rerank.Widening
	lacking  bool  // hits without a sketch were seen last
	seen     bool  // widening and lacking were learned
	purse    purse // what its searches may cost in second sendings

	fell   adapters.Reason // why the engine could not collapse by the clusters behind it
	native time.Time       // when it is to be asked to again; zero if it never failed
}

// catalog remembers what is behind the names that clients use, apart for each set of credentials.
type catalog struct {
	open   func(adapters.Header, string) adapters.Store
	rules  adapters.Rules
	log    *slog.Logger
	flight singleflight.Group
	// changers are clients of which the engine has accepted a change of indices.
	changers set
	mu       sync.Mutex
	views    map[string]*view // by the client's key
	held     int              // names and the indices behind them
	turn     int              // counts what happens, to tell what was asked before a change from what was asked after
	change   int              // the turn of the last change of indices
	budget   budget
}

// view is what is known to one client.
type view struct {
	names  map[string]*entry
	change int // the turn of the last change of indices that may have happened, as far as this client is concerned
}

func newCatalog(e Engine) *catalog {
	return &catalog{
		open: e.Open, rules: e.Rules, log: e.Log, views: map[string]*view{}, changers: newSet(0),
		budget: budget{share: e.Limits.FallbackShare, saved: maxSaved},
	}
}

// forget makes every name be looked up again, also where the answer is on its way.
func (c *catalog) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	c.change = c.turn
}

// forgetFor is forget for one client alone.
func (c *catalog) forgetFor(who client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.views[who.key]; v != nil {
		c.turn++
		v.change = c.turn
	}
}

// altered takes what the engine answered to a request that may make, change or drop an index; 0 if the answer is not known.
//
// After a success every client looks anew. Where it is not known what happened (no answer, an error that can come after a part of the
// change), so it is only if the engine has accepted a change of this client before: such a client could make all look anew at any time by
// another change. What anyone can send, a request that the engine refuses or one that is broken off, concerns who sent it alone. If that
// changed something all the same, other clients see it as they see a change that did not come through us: when what they know expires.
func (c *catalog) altered(who client, status int) {
	switch {
	case status/100 == 2:
		c.changers.add(who.key)
		c.forget()
	case status == http.StatusUnauthorized, status == http.StatusForbidden, !c.changers.has(who.key):
		c.forgetFor(who)
	default:
		c.forget()
	}
}

// changed returns a number that is another one after a change of indices that concerns the client: what was asked before answers nothing
// that comes after.
func (c *catalog) changed(who client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastChange(c.views[who.key])
}

// lastChange returns the turn of the last change that concerns a client, whose view may be nil.
func (c *catalog) lastChange(v *view) int {
	if v == nil {
		return c.change
	}
	return max(c.change, v.change)
}

// fit says what may be added to the documents that are written to a name.
type fit int

const (
	// unfit: nothing; our field may be unknown there.
	unfit fit = iota
	// clears: no sketch, but what stands in our field can be cleared.
	clears
	// fits: their sketches.
	fits
)

// rule returns the rule for a document written to a name, and what may be added to it. whole says that the document would create the
// index if there is none; absent, that it is so and that we have not made the index before.
func (c *catalog) rule(ctx context.Context, who client, name string, whole bool) (rule *adapters.Rule, fit fit, absent bool) {
	e := c.lookup(ctx, who, name)
	if e.passing && len(e.indices) == 0 {
		e = c.insist(ctx, who, name, e)
	}
	if e.failed {
		if fit = fitOf(e.indices); fit == fits {
			fit = clears // the index may be another one by now
		}
		return c.single(name, e.indices), fit, false
	}
	absent = !there(e.indices)
	if absent {
		if rule := c.single(name, e.indices); rule == nil || !whole {
			return rule, unfit, false
		}
	}
	if rule = c.single(name, e.indices); rule == nil {
		return nil, unfit, false
	}
	if fit = fitOf(e.indices); fit != fits || absent {
		e = c.prepare(ctx, who, name, whole)
	}
	return c.single(name, e.indices), fitOf(e.indices), !there(e.indices) && c.awaited(who, name)
}

// awaited reports whether it is to be watched for that a write makes the index: once in a while, for the watching ends what is known of all
// names, and a client may go on writing to an index that never comes to be.
func (c *catalog) awaited(who client, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.remembered(who, name)
	if e == nil || time.Since(e.awaited) < doubted {
		return e == nil
	}
	e.awaited = time.Now()
	return true
}

// there reports whether any of the indices is there.
func there(indices []adapters.Index) bool {
	return slices.ContainsFunc(indices, func(i adapters.Index) bool { return !i.Absent })
}

// written reports whether documents written to the name can go to the index.
func written(i adapters.Index) bool { return !i.NoWrite }

// single returns the one rule that all indices share which a document written to the name can go to, or nil if they do not. Where
// there is none it is the rule of the name.
func (c *catalog) single(name string, indices []adapters.Index) *adapters.Rule {
	first := slices.IndexFunc(indices, written)
	if first < 0 {
		return c.rules.For(name)
	}
	rule := c.rules.Of(indices[first])
	if slices.ContainsFunc(indices, func(i adapters.Index) bool { return written(i) && c.rules.Of(i) != rule }) {
		return nil
	}
	return rule
}

// fitOf returns what may be added to a document whichever of the indices it goes to.
func fitOf(indices []adapters.Index) fit {
	least, some := fits, false
	for _, i := range indices {
		switch {
		case !written(i):
			continue
		case !i.Mapped && !i.Ready:
			least = unfit
		case !i.Ready || i.Moves:
			least = min(least, clears)
		}
		some = true
	}
	if !some {
		return unfit
	}
	return least
}

// scope returns what is known of a search's target.
func (c *catalog) scope(ctx context.Context, who client, target string) adapters.Scope {
	e := c.lookup(ctx, who, target)
	s := adapters.Scope{Widening: rerank.Widening{Rate: rerank.DefaultRate}, Lacking: e.lacking}
	s.Piped = slices.ContainsFunc(e.indices, func(i adapters.Index) bool {
		return i.Piped && (target != "" || c.rules.Of(i) != nil) // a point in time names no index, and may be of any
	})
	if e.seen {
		s.Widening = e.widening
	}
	for _, rule := range c.rules {
		if c.touches(rule, target, e) {
			s.Add(rule)
		}
	}
	if s.Native = c.native(e); s.Native != nil && time.Now().Before(e.native) {
		s.Fell = e.fell
	}
	return s
}

// native returns the rule that all indices behind a name share, if it is known and lets the engine collapse by clusters; or nil.
func (c *catalog) native(e entry) *adapters.Rule {
	if e.failed {
		return nil
	}
	var shared *adapters.Rule
	for _, i := range e.indices {
		rule := c.rules.Of(i)
		switch {
		case i.Absent:
			continue
		case rule == nil || !rule.GoesNative() || shared != nil && rule != shared:
			return nil
		}
		shared = rule
	}
	return shared
}

// mayName reports whether a rule matches an index that a target may stand for by its name, whatever is behind it: a closed index, or one
// of another cluster, is not found there.
func (c *catalog) mayName(target string) bool {
	return slices.ContainsFunc(c.rules, func(rule *adapters.Rule) bool { return c.touches(rule, target, entry{failed: true}) })
}

// touches reports whether the rule matches an index behind the target; where these can't be found out, whether it may.
func (c *catalog) touches(rule *adapters.Rule, target string, e entry) bool {
	if !e.failed {
		return slices.ContainsFunc(e.indices, func(i adapters.Index) bool { return !i.Absent && c.rules.Of(i) == rule })
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
	if !o.Tried && (o.Reason != "" || o.Read == 0) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.remembered(who, o.Target)
	if e == nil {
		return
	}
	if o.Tried {
		e.fell, e.native = o.Fell, time.Now().Add(doubted)
		if o.Unfit {
			e.native = time.Now().Add(unfitFor)
		}
	}
	if o.Reason != "" || o.Read == 0 {
		return
	}
	e.widening = e.widening.Learn(o.Stats)
	e.lacking, e.seen = o.Without > 0, true
}

// lookup returns what is behind the name, asking the engine if it is not known.
func (c *catalog) lookup(ctx context.Context, who client, name string) entry {
	return c.find(ctx, who, name, resolving, func(ctx context.Context, s adapters.Store) ([]adapters.Index, error) {
		return s.Resolve(ctx, name)
	})
}

// prepare has our fields declared in the indices behind the name that lack them and that a write to it can reach, unless that was tried
// a moment ago.
func (c *catalog) prepare(ctx context.Context, who client, name string, create bool) entry {
	return c.find(ctx, who, name, preparing, func(ctx context.Context, s adapters.Store) ([]adapters.Index, error) {
		indices, err := s.Resolve(ctx, name)
		if err != nil || !there(indices) && create {
			return s.Prepare(ctx, name, create)
		}
		for i, index := range indices {
			if index.Ready || index.Absent || index.Moves || !written(index) || c.rules.Of(index) == nil {
				continue
			}
			if made, err := s.Prepare(ctx, index.Name, false); err == nil && len(made) == 1 {
				indices[i].Ready, indices[i].Mapped, indices[i].Why = made[0].Ready, made[0].Mapped, made[0].Why
			}
		}
		return indices, nil
	})
}

// How a name is looked up.
const (
	resolving = "resolve "
	preparing = "prepare "
	again     = "again "
)

// find returns what is known of the name, asking the engine unless it was asked in the same way a moment ago. Clients with the same
// credentials that want the same at once wait for one answer.
func (c *catalog) find(ctx context.Context, who client, name, how string, ask func(context.Context, adapters.Store) ([]adapters.Index, error)) entry {
	if e, _, ok := c.fresh(who, name, how); ok {
		return e
	}
	found, _, _ := c.flight.Do(fmt.Sprint(how, c.changed(who), " ", entryKey(who, name)), func() (any, error) {
		e, turn, ok := c.fresh(who, name, how)
		if ok { // another asked meanwhile
			return e, nil
		}
		// One client's breaking off must not fail the others that wait for the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookingUp)
		defer cancel()
		indices, err := ask(ctx, c.open(who.header, who.query))
		if how == preparing {
			c.report(who, name, indices, err)
		}
		return c.keep(who, name, how, turn, indices, err), nil
	})
	return found.(entry)
}

// unknown reports whether what is behind a target could not be found out.
func (c *catalog) unknown(ctx context.Context, who client, target string) bool {
	return target != "" && c.lookup(ctx, who, target).failed
}

// fresh returns what is remembered and whether it may be used, or else the turn at which the engine is asked.
func (c *catalog) fresh(who client, name, how string) (e entry, turn int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.view(who)
	if held := v.names[entryKey(who, name)]; held != nil {
		e = *held
		ok = e.asked > c.lastChange(v) && time.Now().Before(e.until)
		switch how {
		case preparing:
			ok = time.Since(e.tried) < triedFor
		case again:
			ok = ok && !e.failed
		}
	}
	c.turn++
	return e, c.turn, ok
}

// keep remembers an answer: a good one for long, a failure or that there is nothing for a moment.
func (c *catalog) keep(who client, name, how string, turn int, indices []adapters.Index, err error) entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(who, name)
	if turn < e.prepared {
		return *e // asked before the indices were prepared, which has been told since
	}
	if err == nil && !alike(e.indices, indices) {
		e.tried = time.Time{}
	}
	if err != nil { // what was known of them still tells what there may be to clear
		indices = e.indices
	}
	made := !there(e.indices) && there(indices)
	c.held += len(indices) - len(e.indices)
	e.indices, e.failed, e.asked, e.until = indices, err != nil, turn, time.Now().Add(known)
	e.passing = err != nil && passing(err)
	if err != nil || !there(indices) {
		e.until = time.Now().Add(doubted)
	}
	if how == preparing {
		if made && turn > c.lastChange(c.view(who)) { // other names may lead to the new index as well; what was found of this one stands
			c.turn++
			c.change = c.turn
			e.asked = c.turn + 1
		}
		c.turn++
		e.tried, e.prepared = time.Now(), c.turn
	}
	return *e
}

// remembered returns what is known of a name, nil for nothing.
func (c *catalog) remembered(who client, name string) *entry {
	v := c.views[who.key]
	if v == nil {
		return nil
	}
	return v.names[entryKey(who, name)]
}

// view returns what is known to a client. A new one holds for nothing what was asked before it was there: it may have been there before,
// with a change since.
func (c *catalog) view(who client) *view {
	v := c.views[who.key]
	if v == nil {
		v = &view{names: map[string]*entry{}, change: c.turn}
		c.views[who.key] = v
	}
	return v
}

// entry returns what is remembered of a name, which is made where there is nothing.
func (c *catalog) entry(who client, name string) *entry {
	e := c.remembered(who, name)
	if e == nil {
		c.makeRoom()
		e = &entry{}
		c.view(who).names[entryKey(who, name)] = e
		c.held++
	}
	return e
}

// alike reports whether two lists hold the same indices in the same state.
func alike(a, b []adapters.Index) bool {
	return slices.EqualFunc(a, b, func(a, b adapters.Index) bool {
		a.Why, b.Why = "", ""
		return a == b
	})
}

// makeRoom forgets names when there are too many: the outdated, those that could not be looked up, and others until an eighth is free, so
// that it is seldom called for. A client that the engine does not know leaves failures behind, and nothing else.
func (c *catalog) makeRoom() {
	if c.held < maxNames {
		return
	}
	now := time.Now()
	c.drop(func(e *entry) bool { return now.After(e.until) || e.failed })
	c.drop(func(*entry) bool { return c.held > maxNames-maxNames/8 })
}

// drop forgets the names of which gone says so, and the clients of whom no name is left.
func (c *catalog) drop(gone func(*entry) bool) {
	for who, v := range c.views {
		for key, e := range v.names {
			if gone(e) {
				c.held -= 1 + len(e.indices)
				delete(v.names, key)
			}
		}
		if len(v.names) == 0 {
			delete(c.views, who)
		}
	}
}
