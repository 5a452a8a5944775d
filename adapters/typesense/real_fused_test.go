package typesense

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// A fuser stands in for a release that fuses lists, 0.25 or later: it asks the real engine for the words and for the neighbours of a hybrid search, and
// fuses the two lists by rank as the documentation says. All other searches go through. It takes the field "embedding" in query_by for one whose vectors the engine
// makes itself.
type fuser struct {
	*bench
	lists map[string]part // by what was asked
}

// part is one of the two lists.
type part struct {
	hits [][]byte
	ids  []string
	tops []uint64 // how well the words match
	raw  []byte
}

func (f fuser) send(r *adapters.Request) *adapters.Reply {
	single := r.Method == "GET" && strings.HasSuffix(r.Path, "/documents/search")
	if !single && !strings.HasSuffix(r.Path, "/multi_search") {
		return f.engineReply(r)
	}
	searches, refusal := fakeSearches(r)
	if refusal != "" {
		return f.engineReply(r)
	}
	results := make([][]byte, len(searches))
	for i, search := range searches {
		filters := []string{}
		for _, p := range paramsOf(r.RawQuery) {
			if p.Name == "filter_by" {
				filters = append(filters, p.Value)
			}
		}
		if given, is := search["filter_by"].(string); is && len(filters) == 0 {
			filters = append(filters, given)
		}
		for name, value := range embedded(r.Header[keyHeader][0]) { // what the key imposes
			if search[name] = value; name == "filter_by" {
				filters = append(filters, value)
			}
		}
		if len(filters) > 0 {
			search["filter_by"] = strings.Join(filters, " && ")
		}
		results[i] = f.result(search)
	}
	if single {
		var failed struct {
			Code  int
			Error string
		}
		if _ = json.Unmarshal(results[0], &failed); failed.Code > 0 {
			return fakeReply(failed.Code, fmt.Sprintf(`{"message": %q}`, failed.Error))
		}
		return fakeReply(200, string(results[0]))
	}
	return fakeReply(200, `{"results":`+string(jsonedit.Array(results))+`}`)
}

func (f fuser) engineReply(r *adapters.Request) *adapters.Reply {
	return adaptertest.Send(f.t, f.engine.URL, r)
}

// ask returns the engine's result of a search with other parameters.
func (f fuser) ask(search map[string]any, params ...any) []byte {
	f.t.Helper()
	search = maps.Clone(search)
	for i := 0; i < len(params); i += 2 {
		if name := params[i].(string); params[i+1] == nil {
			delete(search, name)
		} else {
			search[name] = params[i+1]
		}
	}
	body := expect.Value(json.Marshal(map[string]any{"searches": []any{search}}))(f.t)
	reply := f.engineReply(&adapters.Request{Method: "POST", Path: "/multi_search", Header: adapters.Header{keyHeader: {f.key}}, Body: body})
	return onlyResult(f.t, reply.Body)
}

// list returns up to most hits of a search, and their ids from a second one.
func (f fuser) list(most int, search map[string]any, params ...any) (p part) {
	asked := fmt.Sprint(most, search, params)
	if p, known := f.lists[asked]; known {
		return p
	}
	defer func() { f.lists[asked] = p }()
	for page := 1; len(p.hits) < most; page++ {
		size := min(most, 250)
		at := append(slices.Clone(params), "page", page, "per_page", size)
		raw := f.ask(search, at...)
		named := f.ask(search, append(at, "include_fields", "id", "exclude_fields", "")...)
		if p.raw == nil {
			p.raw = raw
		}
		var read struct {
			Hits []struct {
				Document struct{ ID string }
				Match    uint64 `json:"text_match"`
			}
		}
		expect.OK(f.t, json.Unmarshal(named, &read))
		hits, _ := jsonedit.Elements(member(raw, "hits"))
		p.hits = append(p.hits, hits...)
		for _, hit := range read.Hits {
			p.ids, p.tops = append(p.ids, hit.Document.ID), append(p.tops, hit.Match)
		}
		if len(hits) < size {
			break
		}
	}
	most = min(most, len(p.hits))
	p.hits, p.ids = p.hits[:most], p.ids[:most]
	return p
}

// result is the answer to one search.
func (f fuser) result(search map[string]any) []byte {
	fields := fieldList(fmt.Sprint(search["query_by"]))
	embeds := slices.Contains(fields, "embedding")
	near := parseVectorQuery(fmt.Sprint(search["vector_query"]))
	if embeds {
		fields = slices.DeleteFunc(fields, func(name string) bool { return name == "embedding" })
		near = &vectorQuery{head: "v:([0.5,0.4,0.6,0.5]"}
	}
	text := func(name string, otherwise int) int {
		if value, given := search[name]; given {
			return digits(fmt.Sprint(value))
		}
		return otherwise
	}
	page, perPage := text("page", 1), text("per_page", defaultPerPage)
	if q := search["q"]; near == nil || q == "*" || perPage > maxPerPage {
		return f.ask(search)
	}
	fetch, facets := page*perPage, []any{"facet_by", nil}
	k := cmp.Or(near.own, max(fetch, 100))
	if len(fields) == 0 { // neighbours alone
		return f.ask(search, "query_by", nil, "q", "*", "vector_query", near.raised(cmp.Or(near.own, fetch)))
	}
	delete(search, "page")
	delete(search, "per_page")
	most := max(fetch, 250)
	words := f.list(most, search, "vector_query", nil, "query_by", strings.Join(fields, ","))
	neighbours := f.list(k, search, append(facets, "q", "*", "query_by", nil, "vector_query", near.raised(k))...)
	alpha := 0.3
	for _, param := range near.params {
		if value, is := strings.CutPrefix(param, "alpha:"); is {
			alpha = expect.Value(strconv.ParseFloat(strings.TrimSpace(value), 64))(f.t)
		}
	}
	type fused struct {
		id    string
		hit   []byte
		score float64
	}
	of, list, rank := map[string]int{}, []fused{}, 0
	for i, id := range words.ids {
		if i == 0 || words.tops[i] < words.tops[i-1] { // equal matches share a rank
			rank++
		}
		of[id] = i
		list = append(list, fused{id, words.hits[i], (1 - alpha) / float64(rank)})
	}
	only := 0
	for i, id := range neighbours.ids {
		score := alpha / float64(i+1)
		if at, both := of[id]; both {
			list[at].score += score
			list[at].hit = expect.Value(jsonedit.Set(list[at].hit, "vector_distance", member(neighbours.hits[i], "vector_distance")))(f.t)
		} else {
			only++
			list = append(list, fused{id, neighbours.hits[i], score})
		}
	}
	slices.SortFunc(list, func(a, b fused) int {
		number := func(id string) int { return digits(strings.TrimPrefix(id, "d")) }
		return cmp.Or(cmp.Compare(b.score, a.score), number(b.id)-number(a.id))
	})
	list = list[:min(most, len(list))]
	var hits [][]byte
	for _, h := range list[min(fetch-perPage, len(list)):min(fetch, len(list))] {
		hits = append(hits, expect.Value(jsonedit.Set(h.hit, "hybrid_search_info", fmt.Appendf(nil, `{"rank_fusion_score":%g}`, h.score)))(f.t))
	}
	found := digits(string(member(words.raw, "found"))) + only
	params := expect.Value(jsonedit.Set(member(words.raw, "request_params"), "per_page", strconv.AppendInt(nil, int64(perPage), 10)))(f.t)
	out := expect.Value(jsonedit.Set(words.raw, "hits", jsonedit.Array(hits)))(f.t)
	out = expect.Value(jsonedit.Set(out, "found", strconv.AppendInt(nil, int64(found), 10)))(f.t)
	out = expect.Value(jsonedit.Set(out, "page", strconv.AppendInt(nil, int64(page), 10)))(f.t)
	return expect.Value(jsonedit.Set(out, "request_params", params))(f.t)
}

// hybrid reports whether the search is for words and for neighbours.
func (c trial) hybrid() bool {
	return c.value("q") != "*" && (c.value("vector_query") != "" || strings.Contains(c.value("query_by"), "embedding"))
}

// fusedRanksOf returns how many ranks of a hybrid search's list are the same on every page.
func (c trial) fusedRanksOf() int {
	ranks := 250
	if c.value("vector_query") == "" { // the engine then looks for as many neighbours as the page needs, from 100 on
		ranks = 100
	}
	if _, fixed := c.imposed["per_page"]; fixed {
		ranks = ranks / c.number("per_page", 10) * c.number("per_page", 10)
	}
	return ranks
}

// randomHybrid returns a hybrid search.
func randomHybrid(r *rand.Rand) trial {
	c := randomTrial(r)
	for c.value("vector_query") != "" || c.value("pinned_hits") != "" || c.value("sort_by") != "" || c.value("q") == "*" || c.preset != nil ||
		c.value("limit_hits") != "" || c.imposed["per_page"] != nil && c.number("per_page", 10) < 10 { // of pages that small a reading would take very many
		c = randomTrial(r)
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	c.params.Set("q", pick("alpha", "t1", "alpha t3 w40 w80", "t5 w7"))
	if r.IntN(3) == 0 {
		c.params.Set("query_by", pick("embedding,title,body", "title, embedding"))
	} else {
		c.params.Set("vector_query", "v:([0.5,0.4,0.6,0.5]"+pick("", ", k:3", ", k: 60, alpha: 0.8", ", alpha:0.6", ", k:200")+")")
	}
	c.params.Set("per_page", pick("5", "10", "30"))
	c.params.Set("page", fmt.Sprint(1+r.IntN(4)))
	return c
}

// expectFused returns what the client must get of a hybrid search: a page of the collapsed list, made of the first ranks of the engine's own.
func (b *bench) expectFused(c trial) expected {
	params, ranks, perPage := c.effective(), c.fusedRanksOf(), c.number("per_page", 10)
	if near := parseVectorQuery(c.value("vector_query")); near != nil && near.own == 0 {
		params.Set("vector_query", near.raised(100))
	}
	list, found := b.read(c, params, 1, ranks)
	d := definition{
		rule: b.rule, threshold: cmp.Or(c.choice.share("neardup_threshold"), b.rule.Profile.Threshold),
		keep: cmp.Or(c.choice.number("neardup_keep"), b.rule.Profile.Keep), window: min(ranks, cmp.Or(c.choice.number("neardup_window"), c.window)),
	}
	x := expected{collapsed: d.collapse(list), list: list, found: found}
	if c.choice.collapsed() {
		x.found = found - x.hidden
	}
	from := (c.number("page", 1) - 1) * perPage
	for _, rank := range x.shown[min(from, len(x.shown)):min(from+perPage, len(x.shown))] {
		x.hits = append(x.hits, list[rank].seen)
	}
	return x
}

// Whatever words, vectors, pages, windows and keys: a page of a hybrid search is, byte for byte, what the definition makes of the first ranks of the fused list.
func TestRealFused(t *testing.T) {
	b := newBench(t, vectors, "body")
	r := rand.New(rand.NewPCG(effort.Seed(t), 7))
	b.loadVectors(r, 450, 0.5)
	scoped := b.searchKey()
	b.front = fuser{b, map[string]part{}}.send
	rounds := searchRounds(24)
	sum := sums{left: map[adapters.Reason]int{}}
	for range rounds {
		c := randomHybrid(r)
		b.try(c, r, scoped(c.imposed), &sum)
	}
	t.Logf("%+v", sum)
	if sum.pages < rounds/2 || rounds >= 24 && sum.folded == 0 {
		t.Error("hardly any search was collapsed")
	}
}

// Release 0.24 refuses hybrid searches: its answer is the client's.
func TestRealHybridRefused(t *testing.T) {
	b := newBench(t, vectors, "body")
	const hybrid = "/collections/NAME/documents/search?q=x&query_by=body&vector_query=v:([0.5,0.4,0.6,0.5])"
	want := b.must(400)(b.direct("GET", hybrid, ""))
	expect.Same(t, want, b.must(400)(b.through("GET", hybrid, "")), "the answer")
}

// The pages of a hybrid search show each group once, and the last of them says that the list is read no further.
func TestRealFusedPages(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(effort.Seed(t), 8)), 450, 0.6)
	b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.3}, Window: 1000}, b.rule)
	ask := fuser{b, map[string]part{}}.send
	for _, params := range []url.Values{
		{"q": {"alpha"}, "query_by": {"title,body"}, "vector_query": {"v:([0.5,0.4,0.6,0.5])"}},
		{"q": {"alpha"}, "query_by": {"embedding,title,body"}},
	} {
		params.Set("per_page", "20")
		shown, ended := map[string]bool{}, false
		for page := 1; page <= 5; page++ {
			params.Set("page", fmt.Sprint(page))
			answer := expect.Value(adaptertest.Run(search(b.request("GET", "/collections/NAME/documents/search?"+params.Encode(), ""), b.plan), ask))(t)
			o := answer.Outcomes[0]
			hits := cleanHits(t, answer.Body, false)
			for _, raw := range hits {
				id := expect.Value(parseHit(raw))(t).id
				if shown[id] || ended {
					t.Errorf("%v: %s comes again, or after the end", params, id)
				}
				shown[id] = true
			}
			if o.Limited != (len(hits) < 20) || o.Limited && o.Shorter != "rank_window" || o.Folded == 0 {
				t.Errorf("%v: %d hits, %+v", params, len(hits), o)
			}
			ended = o.Limited
		}
	}
}
