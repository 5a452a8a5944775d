package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Rule implements rule.Writing. Documents of one write that follow each other to the same name take the same rule for a moment.
func (w *writing) Rule(index string, creates bool) (*rule.Rule, rule.Takes) {
	if l := &w.last; l.rule != nil && l.index == index && l.creates == creates && time.Now().Before(l.until) {
		return l.rule, rule.TakesAll
	}
	r, takes, newIndex := w.h.catalog.ruleFor(w.u, index, creates)
	if newIndex { // what is known of the names that lead to the new index ends with the reply
		w.u.newIndex.Store(true)
	}
	w.last.rule = nil
	if takes == rule.TakesAll && !newIndex {
		w.last.rule, w.last.index, w.last.creates, w.last.until = r, index, creates, time.Now().Add(sameRuleFor)
	}
	return r, takes
}

// sameRuleFor is how long documents take the rule of the one before. It is little beside [known].
const sameRuleFor = 10 * time.Millisecond

// ruleFor returns the rule by which documents that are written to a name are enriched, nil if none matches, and what the index takes of our
// fields. creates says that the document would create the index if there is none; newIndex that it does, as we have not created it before.
func (c *catalog) ruleFor(u *underway, name string, creates bool) (r *rule.Rule, takes rule.Takes, newIndex bool) {
	who := u.sender.client()
	e := c.lookup(u, who, name)
	if passing(e.err) && len(e.indices) == 0 {
		e = c.insist(u, who, name, e)
	}
	r, takes = c.ruleOfWrites(name, e.indices), takesOf(e.indices)
	absent := !there(e.indices)
	switch {
	case e.err != nil: // the index may be another one by now
		return r, min(takes, rule.TakesNulls), false
	case r == nil, absent && !creates:
		return r, rule.TakesNothing, false
	case !absent && takes == rule.TakesAll: // as it mostly is
		return r, takes, false
	}
	how := preparing
	if creates {
		how = creating
	}
	e = c.find(u, who, name, how)
	return c.ruleOfWrites(name, e.indices), takesOf(e.indices), !there(e.indices) && c.awaited(who, name)
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

// ruleOfWrites returns the rule that all indices share to which a document written to the name can go, nil if they share none. Without such an index it is
// the rule of the name.
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
	if time.Since(e.awaited) < doubted {
		return false
	}
	e.awaited = time.Now()
	return true
}

// insist retries a failed look-up of a name of which nothing is known: a partial document that passes unread would keep the sketch of the text that it
// changes. It does so once for a request.
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

// askedAgain are the pauses before a write retries a failed look-up of a name of which nothing is known.
var askedAgain = []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond}

// passing reports whether an error of a look-up may be over in a moment. An engine that does not answer has had its time.
func passing(err error) bool {
	status := adapters.StatusOf(err)
	return err != nil && !errors.Is(err, context.DeadlineExceeded) && (status < 400 || status == http.StatusTooManyRequests || status >= 500)
}
