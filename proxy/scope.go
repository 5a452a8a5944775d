package proxy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// scope returns what is known of a search's target. The first look-up does not count against the deadline: an engine that is slow with it is slow with
// the search too, and the answer is remembered.
func (s *search) scope(target string) adapters.Scope {
	if !s.lookedUp {
		s.lookedUp = true
		defer s.extend(time.Now())
	}
	c := s.h.catalog
	e := c.lookup(s.r.Context(), s.who(), target) // its indices, or why they are not known, and what recent searches of it have shown
	known := adapters.Scope{Widening: rerank.Widening{Rate: rerank.DefaultRate}, Lacking: e.lacking}
	known.Piped = slices.ContainsFunc(e.indices, func(i adapters.Index) bool {
		return i.Piped && (target != "" || i.Rule(c.Rules) != nil) // a point in time names no index, and may be of any
	})
	known.Fuses = target != "" && fuses(e.indices)
	if set := s.h.decidedPairs(); set != nil && (target == "" || e.err != nil || slices.ContainsFunc(e.indices, func(i adapters.Index) bool {
		return set.Has(i.RuleName())
	})) {
		known.Decided = set
	}
	if e.seen {
		known.Widening = e.widening
	}
	for _, rule := range c.Rules {
		if c.touches(rule, target, e) {
			known.Add(rule)
		}
	}
	known.Native, known.Costly = c.native(e), time.Now().Before(e.costly)
	if known.Native != nil && time.Now().Before(e.native) {
		known.Fell = e.fell
	}
	return known
}

// fuses reports whether the engine makes one list of several that it finds in the indices. Where they do not agree how, it does not.
func fuses(indices []adapters.Index) bool {
	how := ""
	for _, i := range indices {
		if i.Fuses != "" && how != "" && i.Fuses != how {
			return false
		}
		how = cmp.Or(i.Fuses, how)
	}
	return how != ""
}

// decidedPairs returns what people have decided, nil for nothing.
func (h *Handler) decidedPairs() *decided.Set {
	if h.Decided == nil {
		return nil
	}
	if set := h.Decided(); set.Len() > 0 {
		return set
	}
	return nil
}

// native returns the rule that all indices of a name share, if it lets the engine collapse by clusters; or nil.
func (c *catalog) native(e entry) *rule.Rule {
	common := c.commonRule(e.indices, func(i adapters.Index) bool { return !i.Absent })
	if e.err != nil || common == nil || !common.GoesNative() {
		return nil
	}
	return common
}

// mayName reports whether a target may, by its name alone, lead to an index that a rule matches. A look-up does not find closed indices and those of
// other clusters.
func (c *catalog) mayName(target string) bool {
	return c.ruled(target, entry{err: errUnresolved})
}

// ruled reports whether any rule matches an index of the target; where these can't be looked up, whether one may.
func (c *catalog) ruled(target string, e entry) bool {
	return slices.ContainsFunc(c.Rules, func(rule *rule.Rule) bool { return c.touches(rule, target, e) })
}

// touches reports whether the rule matches an index of the target; where these can't be looked up, whether it may.
func (c *catalog) touches(r *rule.Rule, target string, e entry) bool {
	if e.err == nil {
		return slices.ContainsFunc(e.indices, func(i adapters.Index) bool { return !i.Absent && i.Rule(c.Rules) == r })
	}
	for name := range strings.SplitSeq(target, ",") {
		if name == "" || rule.Matches(r.Match, name) || strings.Contains(name, "*") && rule.Matches(name, r.Match) {
			return true
		}
	}
	return false
}

// unknown reports whether the indices of a target could not be looked up.
func (c *catalog) unknown(ctx context.Context, who client, target string) bool {
	return target != "" && c.lookup(ctx, who, target).err != nil
}

// learn takes what a search showed of its target.
func (c *catalog) learn(who client, o adapters.Outcome) {
	if !o.Tried && (o.Reason != "" || o.Read == 0) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entry(who, o.Target)
	switch {
	case !o.Tried:
	case o.Costly:
		e.costly = time.Now().Add(unfitFor)
	case o.Unfit:
		e.fell, e.native = o.Fell, time.Now().Add(unfitFor)
	default:
		e.fell, e.native = o.Fell, time.Now().Add(doubtedFor)
	}
	if o.Reason != "" || o.Read == 0 {
		return
	}
	e.widening = e.widening.Learn(o.Stats)
	e.lacking, e.seen = o.Without > 0, true
}
