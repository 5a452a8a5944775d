package proxy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// lookFor is how long a write waits for what it is a near-duplicate of.
	lookFor = time.Second
	// lookKeys is how many band keys one look-up asks for, lookLimit how many documents it answers with at most.
	lookKeys, lookLimit = 60000, 5000
	// maxCompared is with how many candidates a document is compared.
	maxCompared = 256
	// pausedFor is how long no look-up is made where the last one failed: a client that may not search is not made to wait for
	// each write.
	pausedFor = 5 * time.Second
)

// group is the newcomers of one write that go to one index.
type group struct {
	name      string // as the write has it
	index     string // as the engine has it
	ruled     string // the name that rules are matched against
	rule      *rule.Rule
	newcomers []*newcomer
	store     adapters.Store
	stored    []*candidate
	own       map[string]rule.Ours // of the documents that are updated
	whole     bool                 // all look-ups answered
	routed    bool                 // the name routes documents: by their ids alone they are not found
}

// judge gives every newcomer its cluster, and finds the operations that are to be left out.
func (f *findings) judge(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	for _, g := range f.groups() {
		err := f.lookUp(ctx, g)
		if err != nil {
			f.fail(g, err)
		}
		g.whole = err == nil
		f.settle(g)
		if err := f.verify(ctx, g); err != nil {
			f.fail(g, err)
		}
	}
}

// groups returns the newcomers by index and rule, in their order.
func (f *findings) groups() (list []*group) {
	for _, n := range f.seen {
		i := slices.IndexFunc(list, func(g *group) bool { return g.name == n.op.Index && g.rule == n.rule })
		if i < 0 {
			i = len(list)
			list = append(list, &group{name: n.op.Index, rule: n.rule, own: map[string]rule.Ours{}})
		}
		list[i].newcomers = append(list[i].newcomers, n)
	}
	return list
}

// fail counts a look-up that failed, and makes no other for a while.
func (f *findings) fail(g *group, err error) {
	reason := "failed"
	switch {
	case errors.Is(err, errPaused):
		reason = "paused"
	case errors.Is(err, errUnresolved):
		reason = "unresolved"
	case errors.Is(err, context.DeadlineExceeded):
		reason = "late"
	}
	f.h.Metrics.duplicates.WithLabelValues(reason).Add(float64(len(g.newcomers)))
	if reason == "failed" || reason == "late" {
		f.h.Log.Warn("no look at what is stored", "index", g.name, "error", unquoted(err))
		f.h.paused.add(entryKey(f.u.sender.client(), g.name))
	}
}

var (
	errPaused     = errors.New("the last look-up failed a moment ago")
	errUnresolved = errors.New("the name leads to several indices, or to one that could not be found out")
)

// concrete returns the index that documents written to a name go to; none where it is not there yet.
func (c *catalog) concrete(ctx context.Context, who client, name string) (found adapters.Index, err error) {
	e := c.lookup(ctx, who, name)
	if e.err != nil {
		return found, errUnresolved
	}
	for _, i := range e.indices {
		if !written(i) || i.Absent {
			continue
		}
		if found.Name != "" {
			return adapters.Index{}, errUnresolved
		}
		found = i
	}
	return found, nil
}

// lookUp reads what is stored of the documents that are updated, and what the others may be near-duplicates of.
func (f *findings) lookUp(ctx context.Context, g *group) (err error) {
	index, err := f.h.catalog.concrete(ctx, f.u.sender.client(), g.name)
	if g.index, g.ruled, g.routed = index.Name, index.RuleName(), index.Routed; err != nil || g.index == "" {
		return err
	}
	var ids []string
	keys := map[int64]bool{}
	for _, n := range g.newcomers {
		if n.partial && g.rule.Clusters && n.id != "" {
			ids = append(ids, n.id)
		}
		for _, key := range n.keys {
			if g.rule.OnDuplicate != rule.IndexDuplicates {
				keys[key] = true
			}
		}
	}
	if len(ids) == 0 && len(keys) == 0 {
		return nil
	}
	if f.h.paused.has(entryKey(f.u.sender.client(), g.name)) {
		return errPaused
	}
	g.store = f.h.Open(f.u.sender.client().header, f.u.sender.client().query)
	if len(ids) > 0 {
		err = f.scan(ctx, g, adapters.Selection{IDs: ids, Brief: true}, func(d adapters.Stored) {
			g.own[d.ID] = rule.OursOf(d.Source)
		})
	}
	seen := map[string]bool{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(keys)), lookKeys) {
		if err != nil {
			return err
		}
		err = f.scan(ctx, g, adapters.Selection{Bands: some, Brief: true, Limit: lookLimit}, func(d adapters.Stored) {
			if c := g.candidate(d); c != nil && !seen[c.id] {
				seen[c.id] = true
				g.stored = append(g.stored, c)
			}
		})
	}
	if len(seen) >= lookLimit {
		f.h.Metrics.duplicates.WithLabelValues("cut").Inc()
	}
	return err
}

// scan reads some documents of the group's index.
func (f *findings) scan(ctx context.Context, g *group, s adapters.Selection, each func(adapters.Stored)) error {
	err := g.store.Scan(ctx, g.index, g.rule, s, func(p adapters.Page) error {
		for _, d := range p.Documents {
			each(d)
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

// candidate returns a stored document as a candidate; nil where it has no sketch that could be compared.
func (g *group) candidate(d adapters.Stored) *candidate {
	have := rule.OursOf(d.Source)
	s := g.rule.Decode(have.Sketch)
	if s == nil {
		return nil
	}
	c := &candidate{id: d.ID, index: g.index, sketch: s, cluster: have.Cluster, stored: &d}
	if !strings.HasPrefix(c.cluster, g.rule.ClusterMark()) { // it is alone, as far as is known
		c.cluster = g.rule.ClusterID(s.Fingerprint)
	}
	return c
}

// settle goes over a group's newcomers in their order.
func (f *findings) settle(g *group) {
	var near shelf
	place := entryKey(f.u.sender.client(), g.name)
	for _, c := range g.stored {
		near.add(place, g.rule, c, g.rule.BandKeys(c.sketch))
	}
	for _, n := range g.newcomers {
		n.index = g.index
		list := append(near.find(place, n), f.h.recent.find(place, n)...)
		f.tag(g, n, list)
		if f.mayBeLeftOut(g, n) {
			n.standing = f.best(g, n, list, func(c *candidate) bool { return f.replaces(n, c) })
		}
		if n.standing == nil {
			near.add(place, g.rule, &n.candidate, n.keys)
		}
	}
}

// tag gives a newcomer its cluster: the one that it has already, if its text is what is stored, or that of what it is most alike.
func (f *findings) tag(g *group, n *newcomer, list []*candidate) {
	if !g.rule.Clusters {
		return
	}
	text := n.sketch.String()
	own := g.own[n.id]
	for _, c := range list {
		if n.id != "" && c.id == n.id && c.stored != nil && own.Sketch == "" {
			own = rule.Ours{Sketch: c.sketch.String(), Cluster: c.cluster}
		}
	}
	if own.Sketch == text && strings.HasPrefix(own.Cluster, g.rule.ClusterMark()) {
		n.cluster = own.Cluster
		return
	}
	apart := map[string]bool{} // the clusters of candidates that are different from it by decision
	for _, c := range list {
		if same, decided := f.decided.Pair(g.ruled, n.id, n.sketch.Fingerprint, c.id, c.sketch.Fingerprint); decided && !same {
			apart[c.cluster] = true
		}
	}
	n.cluster = g.rule.ClusterID(n.sketch.Fingerprint)
	if apart[n.cluster] {
		n.cluster = g.rule.ClusterID(n.sketch.Fingerprint ^ g.rule.NumberOf(n.id))
	}
	if g.rule.OnDuplicate == rule.IndexDuplicates {
		return
	}
	if c := f.best(g, n, list, func(c *candidate) bool { return (n.id == "" || c.id != n.id) && !apart[c.cluster] }); c != nil {
		n.cluster = c.cluster
		f.h.Metrics.duplicates.WithLabelValues("tagged").Inc()
	}
}

// best returns the candidate that the newcomer is most alike, of those that fit, or nil if it is a near-duplicate of none. Of
// those that are as much alike it is the one of the least cluster, and of these a stored one, the one with the least id.
func (f *findings) best(g *group, n *newcomer, list []*candidate, fits func(*candidate) bool) (found *candidate) {
	alike := 0.0
	for _, c := range list {
		near, agreement := n.rule.Profile.NearDuplicates(n.sketch, c.sketch)
		if same, decided := f.decided.Pair(g.ruled, n.id, n.sketch.Fingerprint, c.id, c.sketch.Fingerprint); decided {
			near = same
		}
		if !near || !fits(c) {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(agreement, alike), strings.Compare(found.cluster, c.cluster), found.late()-c.late(), strings.Compare(found.id, c.id)) > 0 {
			found, alike = c, agreement
		}
	}
	return found
}

// late is 1 for a document of the same write.
func (c *candidate) late() int {
	if c.newcomer != nil {
		return 1
	}
	return 0
}

// mayBeLeftOut reports whether the operation of a newcomer may be left out, if another document takes its place.
func (f *findings) mayBeLeftOut(g *group, n *newcomer) bool {
	t := g.rule.Together
	return g.rule.OnDuplicate == rule.SkipDuplicates && g.whole && !g.routed && f.replies != nil && n.op.Plain && !n.partial &&
		t.Within == 0 && len(t.Same) == 0 && len(t.Different) == 0 && (n.id == "" || f.mentions[n.id] == 1)
}

// replaces reports whether a document can take a newcomer's place: it is another one, and the write leaves it as it is or stores it whole.
func (f *findings) replaces(n *newcomer, c *candidate) bool {
	switch {
	case c.id != "" && c.id == n.id:
		return false
	case c.id == "" && c.stored != nil: // it was written without an id
		return false
	case c.newcomer != nil:
		return c.newcomer.op.Plain && !c.newcomer.partial && (c.id == "" || f.mentions[c.id] == 1)
	}
	return f.mentions[c.id] == 0
}

// verify looks again at the operations that are to be left out: there must be no such document yet, and the one in its place must be as it was
// found. The others stay in the write.
func (f *findings) verify(ctx context.Context, g *group) error {
	ids := map[string]bool{}
	var going []*newcomer
	for _, n := range g.newcomers {
		if n.standing == nil {
			continue
		}
		going = append(going, n)
		for _, id := range []string{n.id, n.standing.id} {
			if id != "" && (id == n.id || n.standing.stored != nil) {
				ids[id] = true
			}
		}
	}
	there := map[string]*adapters.Stored{}
	if len(ids) > 0 && g.index != "" {
		sel := adapters.Selection{IDs: slices.Sorted(maps.Keys(ids)), Brief: true}
		err := f.scan(ctx, g, sel, func(d adapters.Stored) { there[d.ID] = &d })
		if err != nil {
			return err
		}
	}
	for _, n := range going {
		if n.id != "" && there[n.id] != nil {
			continue
		}
		if n.standing.stored != nil {
			now := there[n.standing.id]
			if now == nil || rule.OursOf(now.Source).Sketch != n.standing.sketch.String() {
				continue
			}
			c := *n.standing // which other requests may hold as well
			c.stored = now
			n.standing = &c
		}
		f.left[n.op.Number] = n
	}
	return nil
}
