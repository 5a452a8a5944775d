package typesense

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// read reads ranks of the engine's list directly, and how many it finds.
func (b *bench) read(c trial, params url.Values, page, perPage int) (list []listed, found int) {
	b.t.Helper()
	whole, visible, keyed := clone(params), clone(params), clone(params)
	whole.Del("include_fields")
	whole.Del("exclude_fields")
	if !c.named() {
		visible.Set("exclude_fields", params.Get("exclude_fields")+","+rule.SketchField)
	}
	if q := c.query(); !q.hidesID() { // what is read beside the client's hits is what its key lets be seen
		for _, name := range []string{"include_fields", "exclude_fields"} {
			keyed.Set(name, q.key.fixed[name])
		}
	}
	for i, v := range []url.Values{whole, visible, keyed} {
		v.Set("page", fmt.Sprint(page))
		v.Set("per_page", fmt.Sprint(perPage))
		var reply struct {
			Found int
			Hits  []json.RawMessage
		}
		body := b.must(200)(b.direct("GET", "/collections/NAME/documents/search?"+v.Encode(), ""))
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			b.t.Fatal(err)
		}
		found = reply.Found
		for rank, raw := range reply.Hits {
			switch i {
			case 0:
				list = append(list, b.listedFor(c, raw))
			case 1:
				list[rank].seen = raw
			default:
				h := expect.Value(parseHit(raw))(b.t)
				decoder := json.NewDecoder(bytes.NewReader(h.document))
				decoder.UseNumber()
				if err := decoder.Decode(&list[rank].values); err != nil {
					b.t.Fatal(err)
				}
			}
		}
	}
	return list, found
}

// query is what counts of a trial's lists of fields.
func (c trial) query() *query {
	fixed := map[string]string{}
	for name, value := range c.imposed {
		fixed[name] = fmt.Sprint(value)
	}
	q := &query{key: key{fixed: fixed}, fields: fields{fieldList(c.value("include_fields")), fieldList(c.value("exclude_fields"))}}
	if c.preset != nil {
		q.asked.Unseen = "preset"
	}
	return q
}

// readsText reports whether the text can be had for a sketch.
func (c trial) readsText() bool {
	q := c.query()
	return q.mayRead([]string{"body"}) && (!q.hidesID() || q.seesText([]string{"body"}))
}

// listedFor is a hit as what the client's key lets be seen makes it.
func (b *bench) listedFor(c trial, raw []byte) listed {
	h := expect.Value(parseHit(raw))(b.t)
	var document struct{ Body string }
	if err := json.Unmarshal(h.document, &document); err != nil {
		b.t.Fatal(err)
	}
	hit := listed{id: h.id, pinned: h.curated}
	if c.readsText() || c.query().mayRead([]string{rule.SketchField}) && b.rule.Decode(string(h.stored)) != nil {
		hit.sketch = &b.memo.sketch(b.rule, document.Body).Sketch
	}
	return hit
}

// expected is what a client must get.
type expected struct {
	collapsed
	list  []listed
	hits  [][]byte
	found int // -1 where it is the engine's own
	// undefined says that the engine finds other neighbours for the page than for a longer list, so that there is no one list to go by.
	undefined bool
}

// expect returns what the client must get of a search that the engine itself answers with own.
func (b *bench) expect(c trial, own []byte) expected {
	b.t.Helper()
	if c.hybrid() {
		return b.expectFused(c)
	}
	params, window, perPage := c.effective(), c.window, c.number("per_page", 10)
	var list []listed
	for at := 1; len(list) == (at-1)*250; at++ {
		next, _ := b.read(c, params, at, 250)
		list = append(list, next...)
	}
	if limit := c.number("limit_hits", 0); limit > 0 {
		if _, fixed := c.imposed["per_page"]; fixed {
			limit = limit / perPage * perPage
		}
		list = list[:min(limit, len(list))]
	}
	window = cmp.Or(c.choice.number("neardup_window"), window)
	near, all, k := parseVectorQuery(c.value("vector_query")), 0, 0
	if near != nil {
		k = max(near.own, c.least)
		if _, fixed := c.imposed["per_page"]; fixed {
			k = (k + perPage - 1) / perPage * perPage
		}
		params.Set("vector_query", near.raised(k))
		if window = min(window, k); k > 0 {
			var first []listed
			first, all = b.read(c, params, 1, min(k, 250))
			copy(list, first)
		}
		if page := c.number("page", 1); all == k && page*perPage <= k {
			list = list[:min(k, len(list))]
		}
	}
	d := definition{
		rule: b.rule, threshold: cmp.Or(c.choice.share("neardup_threshold"), b.rule.Profile.Threshold),
		keep: cmp.Or(c.choice.number("neardup_keep"), b.rule.Profile.Keep), window: window,
	}
	x := expected{collapsed: d.collapse(list), list: list, found: -1}
	if page := c.number("page", 1); near != nil && page*perPage > k {
		for at := k/perPage + 1; at <= page+1; at++ { // one page more: as many hits as folded go up
			next, _ := b.read(c, params, at, perPage)
			for i, h := range next {
				rank := (at-1)*perPage + i
				x.undefined = x.undefined || rank >= k && (rank >= len(list) || h.id != list[rank].id)
			}
		}
	}
	members := expect.Value(jsonedit.Members(own))(b.t)
	total := count(members, "found")
	if c.choice.collapsed() {
		x.found = total - x.hidden
		switch {
		case near != nil && all == k && c.number("page", 1)*perPage > k: // there is more behind
			x.found = total
		case near != nil:
			x.found = min(total, all-x.hidden)
		}
	}
	if near != nil && !x.moved() {
		if x.hits = cleanHits(b.t, own, c.named()); x.found >= 0 {
			x.found = total
		}
		return x
	}
	if near != nil {
		x.shown = x.shown[:min(len(x.shown), total)]
	}
	from := (c.number("page", 1) - 1) * perPage
	for _, rank := range x.shown[min(from, len(x.shown)):min(from+perPage, len(x.shown))] {
		x.hits = append(x.hits, list[rank].seen)
	}
	return x
}
