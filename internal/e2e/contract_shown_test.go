package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/jsonedit"
)

// members takes an object apart.
func (c *contract) members(object []byte) []jsonedit.Member {
	c.t.Helper()
	return must(jsonedit.Members(object))(c.t)
}

// without takes members out of the object under a key of a hit; where nothing is left and the engine's own hit has no such
// object, it goes too.
func (c *contract) without(hit, own []byte, key string, ours ...string) (left []byte, taken [][]byte) {
	c.t.Helper()
	taken = make([][]byte, len(ours))
	object := jsonedit.Get(c.members(hit), key)
	if object == nil {
		return hit, taken
	}
	for i, name := range ours {
		taken[i] = jsonedit.Get(c.members(object), name)
	}
	rest := must(jsonedit.Cut(object, func(name string) bool { return slices.Contains(ours, name) }))(c.t)
	if len(c.members(rest)) == 0 && jsonedit.Get(c.members(own), key) == nil {
		return must(jsonedit.Cut(hit, func(name string) bool { return name == key }))(c.t), taken
	}
	return must(jsonedit.Set(hit, key, rest))(c.t), taken
}

// shownFold is what an answer shows of the hits that were folded into one.
type shownFold struct {
	present bool
	total   int
	exact   bool
	hits    []shownHit
	why     string // the explanation, "" if none
}

type shownHit struct {
	index, id string
	raw       json.RawMessage // unchanged; Typesense: its document
	agreement float64
	why       string
}

// stripped returns a result less what is shown of the groups of its hits, and what is wrong with that.
func (c *contract) stripped(v verdict, result, header string) (plain, wrong string) {
	c.t.Helper()
	var hits []json.RawMessage
	decode(c.t, rawHits(c, []byte(result)), &hits)
	if len(hits) != len(v.page) {
		return result, "" // compared below
	}
	var bare []string
	ids := map[int]string{} // by leader
	for i, raw := range hits {
		own := &v.list[v.page[i]]
		var shown shownFold
		left := []byte(raw)
		if v.labels() {
			if w := c.wrongLabel(v, v.page[i], ids, left, header); w != "" && wrong == "" {
				wrong = fmt.Sprintf("hit %d, %v: %s\nthe hit: %.1500s", i, own, w, raw)
			}
			if !c.typesense() || !v.shows() {
				left = must(jsonedit.Cut(left, func(name string) bool { return name == "neardup" }))(c.t)
			}
		}
		switch {
		case !v.shows():
		case c.typesense():
			left, shown = c.typesenseFold(left)
		default:
			left, shown = c.elasticFold(left, []byte(own.raw))
		}
		if bare = append(bare, string(left)); !v.shows() {
			continue
		}
		if w := c.wrongFold(v, v.page[i], shown, header); w != "" && wrong == "" {
			wrong = fmt.Sprintf("hit %d, %v: %s\nthe hit: %.1500s", i, own, w, raw)
		}
	}
	return framed(c, result, bare), wrong
}

// wrongLabel returns what is wrong with the group that the hit of a rank says it is of. ids are those of the groups of the page's hits before it.
func (c *contract) wrongLabel(v verdict, rank int, ids map[int]string, hit []byte, header string) string {
	c.t.Helper()
	var label struct {
		Group     string
		Size      int
		Exact     *bool
		Agreement *float64
	}
	ours := jsonedit.Get(c.members(hit), "neardup")
	if ours == nil {
		return "it does not say of which group it is"
	}
	decode(c.t, ours, &label)
	group := foldGroup{leader: rank, members: []int{rank}}
	for _, g := range v.fold.groups {
		if slices.Contains(g.members, rank) {
			group = g
		}
	}
	for leader, id := range ids {
		if (leader == group.leader) != (id == label.Group) {
			return fmt.Sprintf("the group of rank %d has the id %s", leader, id)
		}
	}
	ids[group.leader] = label.Group
	_, figures := stated(header)
	least, n := 2.0, len(group.members)
	for _, member := range group.members {
		if member != group.leader {
			agreement, _ := agreementOf(&v.list[member], &v.list[group.leader])
			least = min(least, max(0, agreement))
		}
	}
	chained := v.transitive && v.list[rank].rule != nil && v.list[rank].rule.measure == "containment" // of some no agreement is known
	switch {
	case label.Exact == nil && label.Size == 0 && label.Agreement == nil && !slices.Contains(v.page, group.representative): // an earlier page has said it
	case len(label.Group) != 13 || label.Exact == nil || label.Size < 1 || label.Size > n || *label.Exact && label.Size != n:
		return fmt.Sprintf("it has %d members", n)
	case figures["exact"] == "true" && !*label.Exact:
		return "the window was read to its end, and yet there can be more"
	case (label.Agreement != nil) != (label.Size > 1), *label.Exact && n > 1 && !chained && !(math.Abs(*label.Agreement-least) < 0.5001e-4):
		return fmt.Sprintf("their least agreement is %.4f", least)
	}
	return ""
}

func (c *contract) elasticFold(hit, own []byte) (left []byte, shown shownFold) {
	c.t.Helper()
	left, folded := c.without(hit, own, "inner_hits", "neardup")
	if folded[0] == nil {
		return left, shown
	}
	left, why := c.without(left, own, "fields", "neardup_explain")
	shown.present, shown.why = true, string(why[0])
	var inner struct {
		Hits struct {
			Total struct {
				Value    int
				Relation string
			}
			Hits []json.RawMessage
		}
	}
	decode(c.t, folded[0], &inner)
	shown.total, shown.exact = inner.Hits.Total.Value, inner.Hits.Total.Relation == "eq"
	for _, raw := range inner.Hits.Hits {
		shown.hits = append(shown.hits, c.elasticFolded(raw))
	}
	return left, shown
}

func (c *contract) elasticFolded(raw json.RawMessage) shownHit {
	c.t.Helper()
	var h struct {
		Index  string `json:"_index"`
		ID     string `json:"_id"`
		Fields struct {
			Agreement []float64       `json:"neardup_agreement"`
			Why       json.RawMessage `json:"neardup_explain"`
		}
	}
	decode(c.t, raw, &h)
	one := shownHit{index: h.Index, id: h.ID, raw: raw, agreement: math.NaN(), why: string(h.Fields.Why)}
	if len(h.Fields.Agreement) == 1 {
		one.agreement = h.Fields.Agreement[0]
	}
	return one
}

func (c *contract) typesenseFold(hit []byte) (left []byte, shown shownFold) {
	c.t.Helper()
	ours := jsonedit.Get(c.members(hit), "neardup")
	if ours == nil {
		return hit, shown
	}
	var folded struct {
		Found *int
		Exact *bool
		Hits  []struct {
			ID                string
			Agreement         *float64
			Document, Explain json.RawMessage
		}
		Explain json.RawMessage
	}
	decode(c.t, ours, &folded)
	if shown.present = folded.Found != nil && folded.Exact != nil; shown.present {
		shown.total, shown.exact, shown.why = *folded.Found, *folded.Exact, string(folded.Explain)
	}
	for _, h := range folded.Hits {
		one := shownHit{id: h.ID, raw: h.Document, agreement: math.NaN(), why: string(h.Explain)}
		if h.Agreement != nil {
			one.agreement = *h.Agreement
		}
		shown.hits = append(shown.hits, one)
	}
	return must(jsonedit.Cut(hit, func(name string) bool { return name == "neardup" }))(c.t), shown
}

// wrongFold returns what is wrong with what is shown of the hits folded into the one of a rank.
func (c *contract) wrongFold(v verdict, rank int, shown shownFold, header string) string {
	c.t.Helper()
	var group *foldGroup
	for i := range v.fold.groups {
		if v.fold.groups[i].representative == rank {
			group = &v.fold.groups[i]
		}
	}
	explained := v.explain
	if group == nil { // a further member, which Typesense's pages do not explain, or beyond the window
		group = &foldGroup{leader: rank, representative: rank}
		explained = v.explain && (!c.typesense() || rank >= v.window)
	}
	_, figures := stated(header)
	n := len(shown.hits)
	switch {
	case !shown.present:
		return "nothing shows what was folded"
	case (shown.why != "") != explained:
		return fmt.Sprintf("explained by %q", shown.why)
	case shown.total != n:
		return fmt.Sprintf("%d folded hits are shown, and said to be %d", n, shown.total)
	case n > len(group.folded):
		return fmt.Sprintf("%d folded hits are shown, by the definition there are %d", n, len(group.folded))
	case (shown.exact || figures["exact"] == "true") && n != len(group.folded):
		return fmt.Sprintf("%d folded hits are shown (exact: %v), by the definition there are %d", n, shown.exact, len(group.folded))
	case figures["exact"] == "true" && !shown.exact && len(group.members) > 0:
		return "the window was read to its end, and yet there can be more"
	}
	for i, h := range shown.hits {
		if w := c.wrongFolded(v, group, group.folded[i], h); w != "" {
			return fmt.Sprintf("folded hit %d: %s", i, w)
		}
	}
	return ""
}

// wrongFolded returns what is wrong with a folded hit that is shown.
func (c *contract) wrongFolded(v verdict, group *foldGroup, rank int, shown shownHit) string {
	c.t.Helper()
	own, other := &v.list[rank], group.leader
	if rank == group.leader {
		other = group.representative
	}
	if shown.id != own.id || !c.typesense() && shown.index != own.index {
		return fmt.Sprintf("is %s/%s, want %v", shown.index, shown.id, own)
	}
	later, earlier := &v.list[max(rank, other)], &v.list[min(rank, other)]
	agreement, _ := agreementOf(later, earlier)
	agreement = max(0, agreement) // chance takes an estimate below 0
	if !(math.Abs(shown.agreement-agreement) < 0.5001e-4) {
		return fmt.Sprintf("%v has the agreement %v, want %.4f", own, shown.agreement, agreement)
	}
	if (shown.why != "") != v.explain || v.explain && !strings.Contains(shown.why, fmt.Sprintf(`"agreement":%.4f,"error":`, shown.agreement)) {
		return fmt.Sprintf("%v is explained by %q", own, shown.why)
	}
	return c.wrongSource(v, own, shown)
}

// wrongSource returns what is wrong with what is shown of a folded hit beside its agreement.
func (c *contract) wrongSource(v verdict, own *standing, shown shownHit) string {
	c.t.Helper()
	source := v.expand == "source"
	if c.typesense() {
		want := ""
		if source {
			want = string(jsonedit.Get(c.members([]byte(own.raw)), "document"))
		}
		if diff := cmp.Diff(want, string(shown.raw)); diff != "" {
			return fmt.Sprintf("document: %s", diff)
		}
		return ""
	}
	plain, _ := c.without(shown.raw, []byte(own.raw), "fields", "neardup_agreement", "neardup_explain")
	if source {
		if diff := cmp.Diff(own.raw, string(plain)); diff != "" {
			return fmt.Sprintf("the engine's own hit (-), the folded one (+): %s", diff)
		}
		return ""
	}
	plain, _ = c.without(shown.raw, []byte(`{}`), "fields", "neardup_agreement", "neardup_explain")
	mine := c.members([]byte(own.raw))
	for _, m := range c.members(plain) {
		if m.Key == "_source" || m.Key == "fields" || m.Key == "highlight" {
			return fmt.Sprintf("%s is shown: %s", m.Key, m.Value)
		}
		if diff := cmp.Diff(string(jsonedit.Get(mine, m.Key)), string(m.Value)); diff != "" {
			return fmt.Sprintf("%s: %s", m.Key, diff)
		}
	}
	return ""
}
