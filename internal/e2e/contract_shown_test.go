package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// part is a member of a JSON object.
type part struct {
	key   string
	value json.RawMessage
}

// parts takes an object apart without losing a byte of its values.
func (c *contract) parts(object []byte) (list []part) {
	c.t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		c.t.Fatalf("%v: %s", err, object)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			c.t.Fatalf("%v: %s", err, object)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			c.t.Fatalf("%v: %s", err, object)
		}
		list = append(list, part{key.(string), value})
	}
	return list
}

// joinedParts puts an object together again.
func joinedParts(list []part) string {
	var b strings.Builder
	for i, p := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", p.key, p.value)
	}
	return "{" + b.String() + "}"
}

func find(list []part, key string) json.RawMessage {
	for _, p := range list {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// without takes members out of the object under a key of a hit; where nothing is left and the engine's own hit has no such
// object, it goes too.
func (c *contract) without(hit, own []byte, key string, ours ...string) (left string, taken []json.RawMessage) {
	c.t.Helper()
	taken = make([]json.RawMessage, len(ours))
	var kept []part
	for _, p := range c.parts(hit) {
		if p.key != key {
			kept = append(kept, p)
			continue
		}
		var rest []part
		for _, inner := range c.parts(p.value) {
			if i := slices.Index(ours, inner.key); i >= 0 {
				taken[i] = inner.value
				continue
			}
			rest = append(rest, inner)
		}
		if len(rest) > 0 || find(c.parts(own), key) != nil {
			kept = append(kept, part{key, json.RawMessage(joinedParts(rest))})
		}
	}
	return joinedParts(kept), taken
}

// shownFold is what an answer shows of the hits that were folded into one.
type shownFold struct {
	present bool
	total   int
	exact   bool
	hits    []shownHit
}

type shownHit struct {
	index, id string
	raw       json.RawMessage // as it stands; Typesense: its document
	agreement float64
}

// stripped returns a result less what was folded and is shown, and what is wrong with that.
func (c *contract) stripped(v verdict, result, header string) (plain, wrong string) {
	c.t.Helper()
	var hits []json.RawMessage
	decode(c.t, rawHits(c, []byte(result)), &hits)
	if len(hits) != len(v.page) {
		return result, "" // compared below
	}
	var bare []string
	for i, raw := range hits {
		own := &v.list[v.page[i]]
		var shown shownFold
		var left string
		if c.typesense() {
			left, shown = c.typesenseFold(raw)
		} else {
			left, shown = c.elasticFold(raw, []byte(own.raw))
		}
		bare = append(bare, left)
		if w := c.wrongFold(v, v.page[i], shown, header); w != "" && wrong == "" {
			wrong = fmt.Sprintf("hit %d, %v: %s\nas it stands: %.1500s", i, own, w, raw)
		}
	}
	return framed(c, result, bare), wrong
}

func (c *contract) elasticFold(hit, own []byte) (left string, shown shownFold) {
	c.t.Helper()
	left, folded := c.without(hit, own, "inner_hits", "neardup")
	if folded[0] == nil {
		return left, shown
	}
	shown.present = true
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
			Agreement []float64 `json:"neardup_agreement"`
		}
	}
	decode(c.t, raw, &h)
	one := shownHit{index: h.Index, id: h.ID, raw: raw, agreement: math.NaN()}
	if len(h.Fields.Agreement) == 1 {
		one.agreement = h.Fields.Agreement[0]
	}
	return one
}

func (c *contract) typesenseFold(hit []byte) (left string, shown shownFold) {
	c.t.Helper()
	var kept []part
	for _, p := range c.parts(hit) {
		if p.key != "neardup" {
			kept = append(kept, p)
			continue
		}
		var folded struct {
			Found *int
			Exact *bool
			Hits  []struct {
				ID        string
				Agreement *float64
				Document  json.RawMessage
			}
		}
		decode(c.t, p.value, &folded)
		if shown.present = folded.Found != nil && folded.Exact != nil; shown.present {
			shown.total, shown.exact = *folded.Found, *folded.Exact
		}
		for _, h := range folded.Hits {
			one := shownHit{id: h.ID, raw: h.Document, agreement: math.NaN()}
			if h.Agreement != nil {
				one.agreement = *h.Agreement
			}
			shown.hits = append(shown.hits, one)
		}
	}
	return joinedParts(kept), shown
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
	if group == nil {
		group = &foldGroup{leader: rank, representative: rank} // a further member, or beyond the window
	}
	_, figures := stated(header)
	n := len(shown.hits)
	switch {
	case !shown.present:
		return "nothing shows what was folded"
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
	return c.wrongSource(v, own, shown)
}

// wrongSource returns what is wrong with what is shown of a folded hit beside its agreement.
func (c *contract) wrongSource(v verdict, own *standing, shown shownHit) string {
	c.t.Helper()
	source := v.expand == "source"
	if c.typesense() {
		want := ""
		if source {
			want = string(find(c.parts([]byte(own.raw)), "document"))
		}
		if diff := cmp.Diff(want, string(shown.raw)); diff != "" {
			return fmt.Sprintf("document: %s", diff)
		}
		return ""
	}
	plain, _ := c.without(shown.raw, []byte(own.raw), "fields", "neardup_agreement")
	if source {
		if diff := cmp.Diff(own.raw, plain); diff != "" {
			return fmt.Sprintf("the engine's own hit (-), the folded one (+): %s", diff)
		}
		return ""
	}
	plain, _ = c.without(shown.raw, []byte(`{}`), "fields", "neardup_agreement")
	mine := c.parts([]byte(own.raw))
	for _, p := range c.parts([]byte(plain)) {
		if p.key == "_source" || p.key == "fields" || p.key == "highlight" {
			return fmt.Sprintf("%s is shown: %s", p.key, p.value)
		}
		if diff := cmp.Diff(string(find(mine, p.key)), string(p.value)); diff != "" {
			return fmt.Sprintf("%s: %s", p.key, diff)
		}
	}
	return ""
}
