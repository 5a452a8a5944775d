package adaptertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// label is what a hit says of its group, as clients read it.
type label struct {
	Group     string
	Size      int
	Exact     *bool
	Agreement *float64
}

// walk is what the pages of one list have said of its groups so far.
type walk struct {
	*trial
	target []string
	window int
	hits   []rerank.Hit
	of     map[int]rerank.Group // by the ranks of their members; those beyond the window belong to none
	ids    map[int]string       // by leader, those that are not stored
	sizes  map[int]int          // by leader
}

// testGroups goes through lists of groups at random: each hit of each page says which group it is of, as the definition of the collapsed list has it.
func testGroups(t *testing.T, s Subject) {
	for c, random := range corpora(t, s, 60) {
		c.cluster(t, random)
		target := s.Targets[random.IntN(len(s.Targets))]
		w := &walk{trial: &trial{Subject: s, corpus: c, plan: c.plan(random)}, target: target, ids: map[int]string{}}
		if w.window = min(c.window(target), maxWindow); w.window == 0 {
			continue
		}
		if random.IntN(2) == 0 { // then pages go on where those before them ended
			w.plan.Cursors = Cursors{}
		}
		w.hits, w.of = c.hits(target), map[int]rerank.Group{}
		for _, g := range c.collapse(target, w.window).Groups {
			for _, rank := range slices.Concat(g.Kept, g.Folded, []int{g.Representative}) {
				w.of[rank] = g
			}
		}
		for range 2 {
			w.check(t, 1+random.IntN(12), random.IntN(2) == 0)
		}
		if ids := slices.Sorted(maps.Values(w.ids)); len(slices.Compact(ids)) < len(w.ids) {
			t.Errorf("%v: two groups have one id: %v", target, w.ids)
		}
	}
}

// check goes through all pages of a size. They are read until all groups are whole, or no farther than each page needs.
func (w *walk) check(t *testing.T, size int, whole bool) {
	t.Helper()
	w.sizes = map[int]int{}
	list, shown := w.raw(t, Search{Target: w.target}), w.collapsed(w.target, w.window)
	for from := 0; ; from += size {
		r := w.Search(Search{Target: w.target, From: from, Size: size})
		r = w.trial.controls(r, "neardup_group=true")
		if whole {
			r = w.trial.controls(r, "neardup_totals=collapsed")
		}
		answer := expect.Value(Run(w.parse(r), w.ask))(t)
		page := w.Hits(answer.Body)[0]
		if from+len(page) > len(shown) || len(page) == 0 {
			expect.Same(t, len(shown), min(from, len(shown))+len(page), "%v by %d: the pages end after", w.target, size)
			break
		}
		for i, hit := range page {
			members := expect.Value(jsonedit.Members([]byte(hit)))(t)
			var l label
			expect.OK(t, json.Unmarshal(jsonedit.Get(members, "neardup"), &l))
			bare := expect.Value(jsonedit.Cut([]byte(hit), func(key string) bool { return key == "neardup" }))(t)
			rank := shown[from+i]
			expect.Same(t, list[rank], string(bare), "the hit of rank %d", rank)
			if wrong := w.wrong(rank, l, whole); wrong != "" {
				t.Errorf("%v from %d of %d, whole %t: rank %d of %+v says %+v: %s\n%s", w.target, from, size, whole, rank, w.of[rank], l, wrong, hit)
			}
		}
	}
	sum := 0
	for _, n := range w.sizes {
		sum += n
	}
	if sum != len(list) && whole {
		t.Errorf("%v: the groups of %d hits have %d members", w.target, len(list), sum)
	}
}

// wrong says what is wrong with a label.
func (w *walk) wrong(rank int, l label, whole bool) string {
	g, compared := w.of[rank]
	if !compared {
		g = rerank.Group{Leader: rank, Representative: rank}
	}
	members := slices.Concat(g.Kept, g.Folded, []int{g.Representative})
	stored := w.hits[g.Leader].Label
	before, known := w.ids[g.Leader]
	_, said := w.sizes[g.Leader]
	switch {
	case stored != "" && l.Group != stored && compared:
		return "the leader's cluster is " + stored
	case stored == l.Group:
	case len(l.Group) != 13 || l.Group[0] == '_':
		return "the id has the form of a stored one"
	case known && before != l.Group:
		return "elsewhere it was " + before
	default:
		w.ids[g.Leader] = l.Group
	}
	if l.Size == 0 && said && l.Exact == nil { // an earlier page has said it
		return ""
	}
	w.sizes[g.Leader] = max(l.Size, w.sizes[g.Leader])
	least := 2.0
	for _, m := range members {
		if m != g.Leader {
			estimate, _ := w.hits[m].Profile.Estimate(w.hits[m].Sketch, w.hits[g.Leader].Sketch)
			least = min(least, estimate.Value)
		}
	}
	switch {
	case l.Exact == nil, l.Size < 1, l.Size > len(members), *l.Exact && l.Size != len(members), whole && !*l.Exact:
		return fmt.Sprintf("it has %d members", len(members))
	case (l.Size > 1) != (l.Agreement != nil), l.Agreement != nil && *l.Exact && fmt.Sprintf("%.4f", least) != fmt.Sprintf("%.4f", *l.Agreement):
		return fmt.Sprintf("their least agreement is %.4f", least)
	}
	return ""
}

// controls returns a request with one more control in its query.
func (x *trial) controls(r *adapters.Request, control string) *adapters.Request {
	with := *r
	with.RawQuery = strings.Trim(control+"&"+r.RawQuery, "&")
	return &with
}

// cluster has some of the rules store clusters: most documents have one at random, some one of another rule.
func (c *corpus) cluster(t *testing.T, random *rand.Rand) {
	for i, r := range c.rules {
		clustering := *r
		clustering.Clusters = random.IntN(3) > 0
		c.rules[i] = &clustering
	}
	for _, list := range c.list {
		for i, d := range list {
			r := c.rules.For(d.Index)
			if r == nil || !r.Clusters || random.IntN(4) == 0 {
				continue
			}
			ours := rule.OursOf(d.Source)
			if ours.Cluster = r.ClusterID(random.Uint64N(20)); random.IntN(4) == 0 {
				ours.Cluster = "_~" + ours.Cluster[2:]
			}
			list[i].Source = expect.Value(rule.WithOurs(d.Source, ours))(t)
		}
	}
}
