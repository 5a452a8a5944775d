package typesense

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

const vectors = `{"name":"NAME","enable_nested_fields":true,"fields":[{"name":"meta","type":"object"},
	{"name":"neardup_sketch","type":"string","index":false,"optional":true},{"name":"title","type":"string"},{"name":"body","type":"string"},
	{"name":"n","type":"int32","facet":true},{"name":"v","type":"float[]","num_dim":4},{"name":"at","type":"int64","optional":true},
	{"name":"host","type":"string","optional":true},{"name":"tags","type":"string[]","optional":true},{"name":"votes","type":"float","optional":true}]}`

// loadVectors imports documents in families of near-duplicates, which lie near one another as vectors too. Some have no sketch, some
// one of another scheme.
func (b *bench) loadVectors(r *rand.Rand, n int, duplicates float64) {
	b.t.Helper()
	documents := make([]map[string]any, n)
	for i := range documents {
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
			"meta": map[string]any{"a": fmt.Sprintf("alpha <m%d>&é", i%4), "lang": []string{"en", "de"}[r.IntN(2)], "b": map[string]any{"c": 9007199254740993 + int64(i)}}, "f": 1e21 * float64(i)}
		b.memo.store(d, b.rule, body, r.IntN(12))
		optional := map[string]any{
			"at": 1_700_000_000 + r.IntN(400_000), "host": fmt.Sprintf("h%d.example", r.IntN(4)), "votes": float64(r.IntN(9)) / 2,
			"tags": []string{"a", "b", "c", "d", "e"}[r.IntN(4):], "un": r.IntN(3),
		}
		for _, name := range slices.Sorted(maps.Keys(optional)) { // in one order, so that a seed always makes the same documents
			if r.IntN(8) > 0 {
				d[name] = optional[name]
			}
		}
		if at, ok := d["at"].(int); ok && r.IntN(4) == 0 {
			d["at"] = int64(at)*1000 + 7
		}
		documents[i] = d
	}
	b.put(documents)
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
		params := expect.Value(json.Marshal(imposed))(b.t)
		mac := hmac.New(sha256.New, []byte(key.Value))
		mac.Write(params)
		digest := base64.StdEncoding.EncodeToString(mac.Sum(nil))
		return base64.StdEncoding.EncodeToString([]byte(digest + key.Value[:4] + string(params)))
	}
}

// searchRounds is how many searches a random run makes: fewer in a short run, ten times as many in a long one.
func searchRounds(n int) int {
	if os.Getenv("NEARDUP_SOAK") != "" {
		return n * 10
	}
	return effort.Rounds(n)
}

// trial is a search with what a key and a preset bring to it.
type trial struct {
	params          url.Values
	imposed, preset map[string]any
	window, least   int
	choice          choice
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
	return slices.Contains(fieldList(c.value("include_fields")), rule.SketchField)
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
	root, _ := jsonedit.Members(reply)
	results, err := jsonedit.Elements(jsonedit.Get(root, "results"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%v: %s", err, reply)
	}
	return results[0]
}

func randomTrial(r *rand.Rand) trial {
	c := trial{params: url.Values{"q": {"alpha"}, "query_by": {"title,body"}}, window: 1 + r.IntN([]int{40, 1000, 10_000}[r.IntN(3)]), least: []int{0, 40, 100, 240}[r.IntN(4)]}
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
	for name, values := range map[string][]string{"include_fields": {"title", "id,title", "body,n", "at,host,votes,tags,un,meta.lang,meta"},
		"exclude_fields": {"body", "id", "title,id,out_of", "at,meta", "host,body"}} {
		if r.IntN(4) == 0 {
			c.params.Set(name, pick(values...))
		}
	}
	extra := map[string]any{"per_page": 1 + r.IntN(60), "include_fields": pick("title", "title,body", "id,body", "id,neardup_sketch,title"),
		"exclude_fields": pick("body", "neardup_sketch", "id", "title,id", "host,at", "meta.lang,un"), "filter_by": pick("n:<5", "n:>0"), "facet_by": "n", "limit_hits": 100 + r.IntN(600)}
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
	c.choice = randomChoice(r, c.window)
	return c
}

func merged(m map[string]any, name string, value any) map[string]any {
	if m == nil {
		m = map[string]any{}
	}
	m[name] = value
	return m
}

func cleanHits(t *testing.T, reply []byte, named bool) [][]byte {
	t.Helper()
	if !named {
		reply = cleaned(t, string(reply), "")
	}
	members := expect.Value(jsonedit.Members(reply))(t)
	hits := expect.Value(jsonedit.Elements(jsonedit.Get(members, "hits")))(t)
	return hits
}

// Whatever pages, windows, keys, presets, pins, limits and vectors: a page is, byte for byte, what the definition makes of the list that
// the engine itself answers, in the frame of the engine's answer to the client's own request.
func TestRealSearches(t *testing.T) {
	b := newBench(t, vectors, "body")
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	b.loadVectors(r, 450, 0.5)
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
	rounds := searchRounds(24)
	sum := sums{left: map[adapters.Reason]int{}}
	for range rounds {
		c := randomTrial(r)
		if c.preset != nil {
			body := expect.Value(json.Marshal(map[string]any{"value": c.preset}))(t)
			b.must(200)(b.direct("PUT", "/presets/"+name, string(body)))
			c.params.Set("preset", name)
		}
		b.try(c, r, scoped(c.imposed), &sum)
		if r.IntN(4) == 0 { // between two pages
			b.direct("DELETE", fmt.Sprintf("/collections/NAME/documents/d%d", 100+r.IntN(350)), "")
		}
	}
	t.Logf("%+v", sum)
	if sum.undefined > rounds/8 {
		t.Errorf("the engine does not agree with itself on neighbours in %d of %d searches", sum.undefined, rounds)
	}
	if sum.pages < rounds/3 || rounds >= 24 && sum.folded == 0 {
		t.Error("hardly any search was collapsed")
	}
}

// sums are what searches came to.
type sums struct {
	pages, folded int
	undefined     int // see expected
	left          map[adapters.Reason]int
}

// try makes a search, and compares the answer with what the definition makes of the engine's own list.
func (b *bench) try(c trial, r *rand.Rand, key string, sum *sums) {
	t := b.t
	t.Helper()
	b.rule.Window = c.window
	c.choice.put(b.rule)
	b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: r.Float64() / 2}, Lacking: r.IntN(2) == 0, VectorWindow: c.least}, b.rule)
	b.plan.MaxWindow = 10_000
	plain := c.request(b.collection, r.IntN(2) == 0)
	plain.Header = adapters.Header{keyHeader: {key}}
	own := b.send(plain)
	status, got, outcome := b.answer(c.choice.control(plain))
	if plain.Method == "POST" {
		own.Body, got = onlyResult(t, own.Body), string(onlyResult(t, []byte(got)))
	}
	answered := own.Status == 200 && !strings.HasPrefix(string(own.Body), `{"code":`)
	want := string(own.Body)
	switch {
	case outcome.Reason == "":
		x := b.expect(c, own.Body)
		if x.undefined {
			sum.undefined++
			return
		}
		if outcome.Folded > x.hidden || outcome.Exact && outcome.Folded != x.hidden || outcome.DryRun != c.choice.dryRun() {
			t.Fatalf("%+v: %+v, but %d are folded", c, outcome, x.hidden)
		}
		if x.found >= 0 && outcome.Exact != (outcome.Raw <= outcome.Window) && c.value("limit_hits")+c.value("vector_query") == "" && !c.hybrid() {
			t.Fatalf("%+v: %+v", c, outcome)
		}
		if outcome.DryRun {
			x.hits, x.found = cleanHits(t, own.Body, c.named()), -1
		}
		want = framed(t, own.Body, x)
		sum.pages, sum.folded = sum.pages+1, sum.folded+outcome.Folded
	case answered:
		want = framed(t, own.Body, expected{hits: cleanHits(t, own.Body, c.named()), found: -1})
	}
	if diff := cmp.Diff(took.ReplaceAllString(want, ""), took.ReplaceAllString(got, "")); status != own.Status || diff != "" {
		t.Fatalf("%+v: %d and not %d, %+v: %s", c, status, own.Status, outcome, diff)
	}
	if outcome.Reason == "" {
		return
	}
	sum.left[outcome.Reason]++
	// More pages of the size that a key sets than a search may cost: of one in a multi-search no more is said than that it was left alone.
	bound := c.imposed["per_page"] != nil &&
		(strings.Contains(string(outcome.Reason), "too many pages") || c.window > mostQueries && outcome.Reason == adapters.ReasonNotUnderstood)
	far := c.hybrid() && strings.HasSuffix(string(outcome.Reason), string(adapters.ReasonRankWindow)) && c.number("page", 1)*c.number("per_page", 10) > c.fusedRanksOf()
	if answered && !bound && !far && outcome.Reason != "preset" && !(outcome.Reason == "scoped_key" && c.preset != nil) {
		t.Errorf("%+v is left alone: %s", c, outcome.Reason)
	}
}
