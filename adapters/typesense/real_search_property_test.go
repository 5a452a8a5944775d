package typesense

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/rerank"
)

const vectors = `{"name":"NAME","enable_nested_fields":true,"fields":[{"name":"meta","type":"object"},
	{"name":"neardup_sketch","type":"string","index":false,"optional":true},{"name":"title","type":"string"},{"name":"body","type":"string"},
	{"name":"n","type":"int32","facet":true},{"name":"v","type":"float[]","num_dim":4}]}`

// loadVectors imports documents in families of near-duplicates, which lie near one another as vectors too. Some have no sketch, some
// one of another scheme.
func (b *bench) loadVectors(r *rand.Rand, n int, duplicates float64) {
	b.t.Helper()
	var lines strings.Builder
	for i := range n {
		family := 1000 + i
		if r.Float64() < duplicates {
			family = r.IntN(20)
		}
		near := rand.New(rand.NewPCG(uint64(family), 3))
		v := make([]float64, 4)
		for j := range v {
			v[j] = near.Float64() + 0.01*r.Float64()
		}
		body := familyText(family, r.IntN(3))
		d := map[string]any{"id": fmt.Sprint("d", i), "title": fmt.Sprintf("alpha t%d beta", r.IntN(9)), "body": body, "n": i % 7, "v": v,
			"meta": map[string]any{"a": fmt.Sprintf("alpha <m%d>&é", i%4), "b": map[string]any{"c": 9007199254740993 + int64(i)}}, "f": 1e21 * float64(i)}
		switch s := b.memo.sketch(b.rule, body); r.IntN(12) {
		case 0:
		case 1:
			other := s.Sketch
			other.Scheme++
			d[adapters.SketchField] = other.String()
		default:
			d[adapters.SketchField] = s.Text
		}
		line, err := json.Marshal(d)
		if err != nil {
			b.t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if reply := b.must(200)(b.direct("POST", "/collections/NAME/documents/import", lines.String())); strings.Contains(reply, `"success":false`) {
		b.t.Fatal(reply)
	}
}

// searchKey makes a key that may search alone, and returns how to make scoped ones of it.
func (b *bench) searchKey() func(imposed map[string]any) string {
	b.t.Helper()
	var key struct {
		ID    int
		Value string
	}
	body := b.must(201)(b.direct("POST", "/keys", `{"description":"test","actions":["documents:search"],"collections":["NAME"]}`))
	if err := json.Unmarshal([]byte(body), &key); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { b.direct("DELETE", fmt.Sprint("/keys/", key.ID), "") })
	return func(imposed map[string]any) string {
		if len(imposed) == 0 {
			return key.Value
		}
		params, err := json.Marshal(imposed)
		if err != nil {
			b.t.Fatal(err)
		}
		mac := hmac.New(sha256.New, []byte(key.Value))
		mac.Write(params)
		digest := base64.StdEncoding.EncodeToString(mac.Sum(nil))
		return base64.StdEncoding.EncodeToString([]byte(digest + key.Value[:4] + string(params)))
	}
}

// answer sends a request through the sidecar in small, and returns the outcome of its first search.
func (b *bench) answer(r *adapters.Request) (int, string, adapters.Outcome) {
	b.t.Helper()
	d := Dialect{}
	c := d.Classify(r)
	s := d.Search(c, r, b.plan)
	if s.Refusal != nil {
		return s.Refusal.Status, string(s.Refusal.Body), adapters.Outcome{Reason: "refusal"}
	}
	reason := s.Reason
	if s.Exchange != nil {
		answer, err := adaptertest.Run(s.Exchange, b.send)
		if err == nil {
			return answer.Status, string(answer.Body), answer.Outcomes[0]
		}
		reason = err.Error()
	}
	reply := b.send(s.Plain)
	var clean strings.Builder
	c.Shown = c.Shown || s.Shown
	if err := d.CleanReply(c, &clean, strings.NewReader(string(reply.Body))); err != nil {
		b.t.Fatal(err)
	}
	return reply.Status, clean.String(), adapters.Outcome{Reason: reason}
}

// searchSeed returns the seed of a random run: NEARDUP_SEED, if it is set.
func searchSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("NEARDUP_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("NEARDUP_SEED=%d", seed)
	return seed
}

// searchRounds is how many searches a random run makes: a third in a short run, ten times as many in a long one.
func searchRounds(n int) int {
	switch {
	case os.Getenv("NEARDUP_SOAK") != "":
		return n * 10
	case testing.Short():
		return n / 3
	}
	return n
}

// trial is a search with what a key and a preset bring to it.
type trial struct {
	params          url.Values
	imposed, preset map[string]any
	window, least   int
}

// value returns the parameter that counts in the end.
func (c trial) value(name string) string {
	if v, ok := c.imposed[name]; ok {
		return fmt.Sprint(v)
	}
	if c.params.Has(name) {
		return c.params.Get(name)
	}
	if v, ok := c.preset[name]; ok {
		return fmt.Sprint(v)
	}
	return ""
}

func (c trial) number(name string, otherwise int) int {
	n := otherwise
	_, _ = fmt.Sscan(c.value(name), &n)
	return n
}

// named reports whether our field is named by the client or its key. What a preset names can't be told from what it lets pass.
func (c trial) named() bool {
	c.preset = nil
	return slices.Contains(fieldList(c.value("include_fields")), adapters.SketchField)
}

// effective returns the search as one without a key or a preset would say it, less its page.
func (c trial) effective() url.Values {
	v := url.Values{}
	for _, name := range []string{"q", "query_by", "sort_by", "facet_by", "pinned_hits", "hidden_hits", "include_fields", "exclude_fields", "vector_query"} {
		if text := c.value(name); text != "" {
			v.Set(name, text)
		}
	}
	for _, from := range []any{c.params.Get("filter_by"), c.preset["filter_by"], c.imposed["filter_by"]} {
		if text, _ := from.(string); text != "" {
			v.Add("filter_by", text)
		}
	}
	return v
}

// request returns the search as that of one collection, or as a multi-search of one.
func (c trial) request(collection string, multi bool) *adapters.Request {
	if !multi {
		return get("/collections/" + collection + "/documents/search?" + c.params.Encode())
	}
	params := map[string]string{"collection": collection}
	for name := range c.params {
		params[name] = c.params.Get(name)
	}
	body, _ := json.Marshal(map[string]any{"searches": []any{params}})
	return post("/multi_search", string(body))
}

// onlyResult returns the one result of a multi-search.
func onlyResult(t *testing.T, reply []byte) []byte {
	t.Helper()
	root, _ := adapters.Members(reply)
	results, err := adapters.Elements(adapters.Get(root, "results"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%v: %s", err, reply)
	}
	return results[0]
}

func randomTrial(r *rand.Rand) trial {
	c := trial{params: url.Values{"q": {"alpha"}, "query_by": {"title,body"}}, window: 1 + r.IntN(1000), least: []int{0, 40, 100, 240}[r.IntN(4)]}
	perPage := 1 + r.IntN([]int{5, 40, 250}[r.IntN(3)])
	page := 1 + r.IntN(max(1, []int{1, 60, 500, 950}[r.IntN(4)]/perPage))
	if r.IntN(3) > 0 {
		c.params.Set("per_page", fmt.Sprint(perPage))
	}
	if r.IntN(9) > 0 {
		c.params.Set("page", fmt.Sprint(page))
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	switch r.IntN(8) {
	case 0:
		c.params.Set("q", pick("t1", "alpa t2 betta", "w17", "*", "alpha t3 w40 w80"))
	case 1:
		c.params.Set("filter_by", pick("n:>1", "n:<6"))
	case 2:
		c.params.Set("sort_by", "n:asc,_text_match:desc")
	case 3:
		c.params.Set("pinned_hits", pick("d5:3,d80:1", "d7:1,d8:2,d9:3,d10:4", "d3:40"))
		c.params.Set("hidden_hits", pick("", "d6", "d1,d2"))
	case 4:
		c.params.Set("facet_by", "n")
	case 5, 6:
		k := pick("", ", k:3", ", k: 60", ", k:120", ", flat_search_cutoff:500", ", k:30, flat_search_cutoff: 2000")
		c.params = url.Values{"q": {"*"}, "vector_query": {pick("v:([0.5,0.4,0.6,0.5]"+k+")", "v : ([] , id: d3"+k+")")},
			"page": c.params["page"], "per_page": c.params["per_page"]}
		if r.IntN(2) == 0 {
			c.params.Set("filter_by", "n:<5")
		}
	}
	for name, values := range map[string][]string{"include_fields": {"title", "id,title", "body,n"}, "exclude_fields": {"body", "id", "title,id,out_of"}} {
		if r.IntN(4) == 0 {
			c.params.Set(name, pick(values...))
		}
	}
	extra := map[string]any{"per_page": 1 + r.IntN(60), "include_fields": pick("title", "title,body", "id,body", "id,neardup_sketch,title"),
		"exclude_fields": pick("body", "neardup_sketch", "id", "title,id"), "filter_by": pick("n:<5", "n:>0"), "facet_by": "n", "limit_hits": 100 + r.IntN(600)}
	for name, value := range extra {
		switch {
		case r.IntN(20) == 0:
			c.params.Set("limit_hits", fmt.Sprint(100+r.IntN(600)))
		case r.IntN(4) > 0:
		case c.params.Has("vector_query") || r.IntN(2) == 0:
			c.imposed = merged(c.imposed, name, value)
		default:
			c.preset = merged(c.preset, name, value)
		}
	}
	return c
}

func merged(m map[string]any, name string, value any) map[string]any {
	if m == nil {
		m = map[string]any{}
	}
	m[name] = value
	return m
}

// ranked is the engine's whole list: what is compared, and what the client sees.
type ranked struct {
	hits []rerank.Hit
	seen [][]byte
}

// read reads ranks of the engine's list directly.
func (b *bench) read(c trial, params url.Values, page, perPage int) ranked {
	b.t.Helper()
	var list ranked
	whole, visible := clone(params), clone(params)
	whole.Del("include_fields")
	whole.Del("exclude_fields")
	if !c.named() {
		visible.Set("exclude_fields", params.Get("exclude_fields")+","+adapters.SketchField)
	}
	for i, v := range []url.Values{whole, visible} {
		v.Set("page", fmt.Sprint(page))
		v.Set("per_page", fmt.Sprint(perPage))
		var reply struct{ Hits []json.RawMessage }
		body := b.must(200)(b.direct("GET", "/collections/NAME/documents/search?"+v.Encode(), ""))
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			b.t.Fatal(err)
		}
		for _, raw := range reply.Hits {
			if i == 0 {
				list.hits = append(list.hits, b.judgedFor(c, raw))
			} else {
				list.seen = append(list.seen, raw)
			}
		}
	}
	return list
}

// judgedFor is a hit as what the client's key lets be seen makes it.
func (b *bench) judgedFor(c trial, raw []byte) rerank.Hit {
	h, err := parseHit(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	var document struct{ Body string }
	if err := json.Unmarshal(h.document, &document); err != nil {
		b.t.Fatal(err)
	}
	hit := rerank.Hit{ID: h.id, Pinned: h.curated}
	fixed := map[string]string{}
	for name, value := range c.imposed {
		fixed[name] = fmt.Sprint(value)
	}
	q := &query{fixed: fixed, preset: c.preset != nil, include: fieldList(c.value("include_fields")), exclude: fieldList(c.value("exclude_fields"))}
	shown := shows(fieldList(fixed["include_fields"]), fieldList(fixed["exclude_fields"]), []string{adapters.SketchField})
	text := q.mayRead([]string{"body"}) && (!q.hidesID() || q.seesText([]string{"body"}))
	if text || shown && b.rule.Decode(h.stored) != nil {
		hit.Sketch, hit.Profile = &b.memo.sketch(b.rule, document.Body).Sketch, &b.rule.Profile
	}
	return hit
}

// page returns the hits that the client must get, as it sees them.
func (b *bench) page(c trial, own []byte) [][]byte {
	b.t.Helper()
	params, window, perPage := c.effective(), c.window, c.number("per_page", 10)
	var list ranked
	for at := 1; ; at++ {
		next := b.read(c, params, at, 250)
		list.hits, list.seen = append(list.hits, next.hits...), append(list.seen, next.seen...)
		if len(next.hits) < 250 {
			break
		}
	}
	if limit := c.number("limit_hits", 0); limit > 0 {
		if _, fixed := c.imposed["per_page"]; fixed {
			limit = limit / perPage * perPage
		}
		list.hits, list.seen = list.hits[:min(limit, len(list.hits))], list.seen[:min(limit, len(list.seen))]
	}
	if text := c.value("vector_query"); text != "" {
		near := parseNeighbours(text)
		near.k = max(near.own, c.least)
		if _, fixed := c.imposed["per_page"]; fixed {
			near.k = (near.k + perPage - 1) / perPage * perPage
		}
		params.Set("vector_query", near.raised())
		if window = min(window, near.k); near.k > 0 {
			first := b.read(c, params, 1, min(near.k, 250))
			n := min(len(first.hits), len(list.hits))
			copy(list.hits, first.hits[:n])
			copy(list.seen, first.seen[:n])
		}
	}
	groups := rerank.Collapse(list.hits, window, false).Groups
	if c.value("vector_query") != "" && len(groups) == min(window, len(list.hits)) {
		return cleanHits(b.t, own, c.named())
	}
	var ranks []int
	for _, g := range groups {
		ranks = append(ranks, g.Leader)
	}
	for i := min(window, len(list.hits)); i < len(list.hits); i++ {
		ranks = append(ranks, i)
	}
	from := (c.number("page", 1) - 1) * perPage
	var hits [][]byte
	for _, rank := range ranks[min(from, len(ranks)):min(from+perPage, len(ranks))] {
		hits = append(hits, list.seen[rank])
	}
	return hits
}

func cleanHits(t *testing.T, reply []byte, named bool) [][]byte {
	t.Helper()
	if !named {
		reply = cleaned(t, string(reply), "")
	}
	members, err := adapters.Members(reply)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := adapters.Elements(adapters.Get(members, "hits"))
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// Whatever pages, windows, keys, presets, pins, limits and vectors: a page is, byte for byte, what the definition makes of the list that
// the engine itself answers, in the frame of the engine's answer to the client's own request.
func TestRealSearches(t *testing.T) {
	b := newBench(t, vectors, "body")
	r := rand.New(rand.NewPCG(searchSeed(t), 1))
	b.loadVectors(r, 700, 0.5)
	for i, override := range []string{
		`{"rule":{"query":"t1","match":"exact"},"includes":[{"id":"d20","position":2},{"id":"d40","position":3}],"excludes":[{"id":"d21"}]}`,
		`{"rule":{"query":"w17","match":"contains"},"filter_by":"n:>2","includes":[{"id":"d41","position":1}]}`,
		`{"rule":{"query":"betta","match":"contains"},"remove_matched_tokens":true,"filter_by":"n:<6"}`,
	} {
		b.must(200)(b.direct("PUT", fmt.Sprint("/collections/NAME/overrides/o", i), override))
	}
	scoped := b.searchKey()
	name := "preset_" + b.collection
	t.Cleanup(func() { b.direct("DELETE", "/presets/"+name, "") })
	rounds := searchRounds(40)
	asked, pages, left, folded := 0, 0, map[string]int{}, 0
	for range rounds {
		c := randomTrial(r)
		if c.preset != nil {
			body, err := json.Marshal(map[string]any{"value": c.preset})
			if err != nil {
				t.Fatal(err)
			}
			b.must(200)(b.direct("PUT", "/presets/"+name, string(body)))
			c.params.Set("preset", name)
		}
		b.rule.Window = c.window
		b.plan = planFor(adapters.Scope{Rate: r.Float64() / 2, Lacking: r.IntN(2) == 0, VectorWindow: c.least}, b.rule)
		request := c.request(b.collection, r.IntN(2) == 0)
		request.Header = adapters.Header{keyHeader: {scoped(c.imposed)}}
		own := b.send(request)
		status, got, outcome := b.answer(request)
		if request.Method == "POST" {
			own.Body, got = onlyResult(t, own.Body), string(onlyResult(t, []byte(got)))
		}
		answered := own.Status == 200 && !strings.HasPrefix(string(own.Body), `{"code":`)
		want := string(own.Body)
		if outcome.Reason == "" {
			pages++
			asked += outcome.Rounds
			folded += outcome.Folded
			framed, err := adapters.Set(own.Body, "hits", array(b.page(c, own.Body)))
			if err != nil {
				t.Fatal(err)
			}
			want = string(framed)
		} else if left[outcome.Reason]++; answered {
			framed, err := adapters.Set(own.Body, "hits", array(cleanHits(t, own.Body, c.named())))
			if err != nil {
				t.Fatal(err)
			}
			want = string(framed)
		}
		if diff := cmp.Diff(took.ReplaceAllString(want, ""), took.ReplaceAllString(got, "")); status != own.Status || diff != "" {
			t.Fatalf("%+v: %d and not %d, %+v: %s", c, status, own.Status, outcome, diff)
		}
		if outcome.Reason != "" && answered && outcome.Reason != "preset" && !(outcome.Reason == "scoped_key" && c.preset != nil) {
			t.Errorf("%+v is left alone: %s", c, outcome.Reason)
		}
	}
	t.Logf("%.2f requests for each of %d pages, %d folded; left alone: %v", float64(asked)/float64(pages), pages, folded, left)
	if pages < rounds/2 || folded == 0 {
		t.Error("hardly any search was collapsed")
	}
}
