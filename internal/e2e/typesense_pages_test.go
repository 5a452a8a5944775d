package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/sketch"
)

// book is a collection of documents in families of near-duplicates, and the definition of its pages.
type book struct {
	t        *testing.T
	r        *rand.Rand
	direct   api
	name     string
	list     []corpus.Document
	families []int // of the documents, each by the first of it
	even     bool  // what is near in text stands near by, so that every part of every list folds alike
	oracle   *oracle
	alone    map[string]bool // documents without a sketch of the rule's scheme
	lists    map[string][]ranked
	changed  int
}

// ranked is a hit of the engine's whole list.
type ranked struct {
	id  string
	raw string // as a client sees it that knows nothing of our field
}

// newBook makes a collection of n documents, of which a share is near to others, through a sidecar. Of one in eight the sketch is
// missing, of another in eight it is of another scheme; else near-duplicates are spread evenly.
func newBook(t *testing.T, through api, n int, share float64, patchy bool) *book {
	t.Helper()
	one := seeded(t)
	b := &book{
		t: t, r: rand.New(rand.NewPCG(one, 3)), direct: api{through.e, through.e.URL}, name: fmt.Sprintf("%s%04d", ownPrefix("t"),
			duos.Add(1)),
		alone: map[string]bool{}, lists: map[string][]ranked{}, even: !patchy,
	}
	b.direct.drop(t, b.name)
	call(t, through.e, "POST", through.base+"/collections", strings.ReplaceAll(factSchema, "NAME", b.name)).want(t, 201)
	var lines [3]strings.Builder // through the sidecar, past it, past it with another sketch
	for i := range n {
		family, body := b.text(i, share)
		d := corpus.Document{ID: fmt.Sprint("d", i), Title: fmt.Sprintf("alpha t%d", family%9), Body: body}
		b.list = append(b.list, d)
		way, other, n := 0, "", family%17
		if b.even {
			n = i
		}
		if patchy {
			way = max(0, b.r.IntN(8)-5)
		}
		if b.alone[d.ID] = way > 0; way == 2 {
			other = `,"neardup_sketch":"` + foreign(t, d) + `"`
		}
		fmt.Fprintf(&lines[way], `{"id":%q,"title":%q,"body":%q,"n":%d,"k":"k%d"%s}`+"\n", d.ID, d.Title, d.Body, n, i%5, other)
	}
	for way, a := range []api{through, b.direct, b.direct} {
		if lines[way].Len() > 0 {
			a.loadLines(t, b.name, lines[way].String())
		}
	}
	return b
}

// definition is the oracle of the book's documents, made at first use.
func (b *book) definition() oracle {
	b.t.Helper()
	if b.oracle == nil {
		b.oracle = newOracle(b.t, b.direct, b.list)
	}
	return *b.oracle
}

// text returns a text of its own, or one that is near to an earlier one, and by which document the family began.
func (b *book) text(i int, share float64) (family int, text string) {
	family = i
	if i > 0 && b.r.Float64() < share { // of a document that stands near by, or anywhere
		family = b.families[max(0, i-1-b.r.IntN([]int{4, b.far(i)}[b.r.IntN(2)]))]
	}
	b.families = append(b.families, family)
	r := rand.New(rand.NewPCG(uint64(family), 4))
	words := make([]string, 60)
	for k := range words {
		words[k] = fmt.Sprintf("w%d", r.IntN(5000))
	}
	for range b.r.IntN(4) { // from the same text to one that is no longer near enough
		words[b.r.IntN(len(words))] = fmt.Sprintf("x%d", b.r.IntN(5000))
	}
	return family, strings.Join(words, " ")
}

// far returns how far behind a document what is near to it may stand.
func (b *book) far(i int) int {
	if b.even {
		return 4
	}
	return i
}

// foreign returns the sketch of a document by a scheme that is not the rule's.
func foreign(t *testing.T, d corpus.Document) string {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = "another seed"
	sketcher, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := sketcher.Sketch(d.Title, d.Body)
	return s.String()
}

// whole returns the engine's whole list for a search, as it is now.
func (b *book) whole(params url.Values) []ranked {
	b.t.Helper()
	key := fmt.Sprint(b.changed, params.Encode())
	if list, ok := b.lists[key]; ok {
		return list
	}
	var list []ranked
	for page := 1; ; page++ {
		ids, seen := clone(params), clone(params)
		ids["include_fields"], ids["exclude_fields"] = []string{"id"}, nil
		seen.Add("exclude_fields", strings.Join(append(params["exclude_fields"], adapters.SketchField), ","))
		var replies [2]struct{ Hits []json.RawMessage }
		for i, v := range []url.Values{ids, seen} {
			v.Set("page", fmt.Sprint(page))
			v.Set("per_page", "250")
			decode(b.t, b.get(b.direct, v).want(b.t, 200).body, &replies[i])
		}
		for i, raw := range replies[0].Hits {
			var h struct{ Document struct{ ID string } }
			decode(b.t, raw, &h)
			list = append(list, ranked{h.Document.ID, string(replies[1].Hits[i])})
		}
		if len(replies[0].Hits) < 250 {
			break
		}
	}
	b.lists[key] = list
	return list
}

func clone(v url.Values) url.Values {
	out := url.Values{}
	for k, values := range v {
		out[k] = slices.Clone(values)
	}
	return out
}

func (b *book) get(a api, params url.Values, header ...string) reply {
	b.t.Helper()
	return call(b.t, a.e, "GET", a.base+"/collections/"+b.name+"/documents/search?"+params.Encode(), "", header...)
}

// collapsed returns the hits of the collapsed list.
func (b *book) collapsed(list []ranked, o oracle, alone bool) []string {
	if alone {
		o.sketches = map[string]sketch.Sketch{}
		for id, s := range b.definition().sketches {
			if !b.alone[id] {
				o.sketches[id] = s
			}
		}
	}
	raw, ids := map[string]string{}, []string{}
	for _, h := range list {
		raw[h.id], ids = h.raw, append(ids, h.id)
	}
	var hits []string
	for _, id := range o.collapsed(ids) {
		hits = append(hits, raw[id])
	}
	return hits
}

// want returns the page of a search by the definition: the engine's own reply with the page's hits in it.
func (b *book) want(params url.Values, page, perPage int, hits []string) string {
	b.t.Helper()
	frame := clone(params)
	frame.Set("page", fmt.Sprint(page))
	frame.Set("per_page", "0")
	body := string(b.get(b.direct, frame).want(b.t, 200).body)
	hits = hits[min((page-1)*perPage, len(hits)):min(page*perPage, len(hits))]
	body = strings.Replace(body, `"per_page":0`, fmt.Sprintf(`"per_page":%d`, perPage), 1)
	return steady(strings.Replace(body, `"hits":[]`, `"hits":[`+strings.Join(hits, ",")+`]`, 1))
}

func steady(body string) string { return unsteady.ReplaceAllString(body, `"$1":0`) }

// params returns a search at random.
func (b *book) params() url.Values {
	v := url.Values{"q": {[]string{"alpha", "*", "alpha", "alpha", "t3", "alpha t5", "w17"}[b.r.IntN(7)]},
		"query_by": {"title,body"}}
	switch b.r.IntN(6) {
	case 0:
		v["filter_by"] = []string{"n:>1", "n:<14"}
	case 1:
		v.Set("sort_by", "n:asc,_text_match:desc")
	case 2:
		v.Set("facet_by", "k,n")
	case 3:
		v.Set("include_fields", []string{"title", "id", "n,k", "body"}[b.r.IntN(4)])
	case 4:
		v.Set("exclude_fields", []string{"body", "id", "title,body"}[b.r.IntN(3)])
	}
	return v
}

// pageSizes are what a page can hold.
var pageSizes = []int{1, 2, 7, 10, 33, 100, 249, 250}

// TestTypesensePagesByTheDefinition asks for pages at random and holds them, byte for byte, against the definition.
func TestTypesensePagesByTheDefinition(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	match := ownPrefix("t") + "*"
	through, alone := api{e, serve(t, e, setup{match: match})}, api{e, serve(t, e, setup{match: match, missing: "alone"})}
	for _, n := range []int{0, 1, 30, 300, 1400} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBook(t, through, n, 0.4, true)
			for range min(n, 22) + 3 {
				params, perPage := b.params(), pageSizes[b.r.IntN(len(pageSizes))]
				list := b.whole(params)
				page := 1 + b.r.IntN(len(list)/perPage+2)
				asked := clone(params)
				asked.Set("page", fmt.Sprint(page))
				asked.Set("per_page", fmt.Sprint(perPage))
				for i, a := range []api{through, alone} {
					r := b.get(a, asked).want(t, 200)
					want := b.want(params, page, perPage, b.collapsed(list, b.definition(), i == 1))
					if diff := cmp.Diff(want, steady(string(r.body))); diff != "" || !strings.HasPrefix(r.header.Get("Neardup"), "collapsed;") {
						t.Fatalf("%s, alone: %v: %s\nthe definition (-), the page (+): %.3000s", asked.Encode(), i == 1, r.header.Get("Neardup"),
							diff)
					}
				}
			}
		})
	}
}

// TestTypesenseWalks walks whole lists, also while documents go in between: each page is that of the list as it is then, and
// where it stands still every group comes once.
func TestTypesenseWalks(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	through := api{e, serve(t, e, setup{match: ownPrefix("t") + "*"})}
	b := newBook(t, through, 1150, 0.4, true)
	walk := func(params url.Values, perPage int, between func()) (ids []string) {
		for page := 1; ; page++ {
			asked := clone(params)
			asked.Set("page", fmt.Sprint(page))
			asked.Set("per_page", fmt.Sprint(perPage))
			r := b.get(through, asked).want(t, 200)
			want := b.want(params, page, perPage, b.collapsed(b.whole(params), b.definition(), false))
			if diff := cmp.Diff(want, steady(string(r.body))); diff != "" {
				t.Fatalf("%s: %s\nthe definition (-), the page (+): %.3000s", asked.Encode(), r.header.Get("Neardup"), diff)
			}
			var body struct {
				Hits []struct{ Document struct{ ID string } }
			}
			if decode(t, r.body, &body); len(body.Hits) == 0 {
				return ids
			}
			for _, h := range body.Hits {
				ids = append(ids, h.Document.ID)
			}
			between()
		}
	}
	every := url.Values{"q": {"alpha"}, "query_by": {"title"}}
	for _, perPage := range []int{90, 250} {
		ids := walk(every, perPage, func() {})
		seen := slices.Sorted(slices.Values(ids))
		if len(slices.Compact(seen)) != len(ids) || len(ids) < 600 {
			t.Errorf("in pages of %d: %d hits, %d of them different", perPage, len(ids), len(slices.Compact(seen)))
		}
	}
	walk(url.Values{"q": {"alpha"}, "query_by": {"title"}, "sort_by": {"n:desc"}}, 200, func() {
		for range 7 {
			path := "/collections/" + b.name + "/documents/" + b.list[b.r.IntN(len(b.list))].ID
			if s := call(t, e, "DELETE", through.base+path, "").status; s != 200 && s != 404 {
				t.Errorf("DELETE %s: %d", path, s)
			}
		}
		b.changed++
	})
}

// TestTypesensePageOneInOneRequest counts what the engine is asked for first pages where three in ten documents are duplicates.
func TestTypesensePageOneInOneRequest(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	var searches atomic.Int32
	engine := relay(t, e)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "search") {
			searches.Add(1)
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	through := api{e, serve(t, e, setup{match: ownPrefix("t") + "*", urls: []string{front.URL}})}
	b := newBook(t, through, 1500, 0.3, false)
	const warm, measured = 10, 300
	once, folded := 0, 0
	for i := range warm + measured {
		params := url.Values{"q": {[]string{"alpha", "*"}[b.r.IntN(2)]}, "query_by": {"title"}}
		params.Set("per_page", fmt.Sprint([]int{10, 20, 30, 50}[b.r.IntN(4)]))
		params.Set("filter_by", fmt.Sprintf("n:<%d", 150+b.r.IntN(len(b.list)-150))) // each a list of its own
		before := searches.Load()
		outcome := b.get(through, params).want(t, 200).header.Get("Neardup")
		if !strings.HasPrefix(outcome, "collapsed;") {
			t.Fatal(outcome)
		}
		if !strings.Contains(outcome, "folded=0;") {
			folded++
		}
		if i >= warm && searches.Load() == before+1 {
			once++
		}
	}
	t.Logf("%d of %d first pages in one request; something folded on %d", once, measured, folded)
	if once < measured*95/100 || folded < measured/2 {
		t.Errorf("%d of %d first pages in one request; something folded on %d", once, measured, folded)
	}
}

// TestTypesenseControls steers searches from the query, from a search of many and from the header.
func TestTypesenseControls(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	through := api{e, serve(t, e, setup{match: ownPrefix("t") + "*"})}
	b := newBook(t, through, 400, 0.5, false)
	params := url.Values{"q": {"alpha"}, "query_by": {"title"}}
	list := b.whole(params)
	want := func(o oracle, off bool) string {
		hits := b.collapsed(list, o, false)
		if off {
			hits = nil
			for _, h := range list {
				hits = append(hits, h.raw)
			}
		}
		return b.want(params, 1, 250, hits)
	}
	strict, short := b.definition(), b.definition()
	strict.threshold, short.window = 0.95, 60
	both := strict
	both.window = 60
	for _, c := range []struct {
		query  string // of the URL
		entry  string // members of a search of many
		header string
		want   string
	}{
		{"", "", "", want(b.definition(), false)},
		{"neardup=off", `"neardup":"off"`, "off", want(b.definition(), true)},
		{"neardup=false", `"neardup":false`, "neardup=off", want(b.definition(), true)},
		{"neardup=on", `"neardup":true`, "on", want(b.definition(), false)},
		{"neardup_threshold=0.95", `"neardup_threshold":0.95`, "threshold=0.95", want(strict, false)},
		{"neardup_window=60", `"neardup_window":"60"`, "window=60", want(short, false)},
		{"neardup_threshold=0.95&neardup_window=60", `"neardup_window":60,"neardup_threshold":"0.95"`, "threshold=0.95; window=60",
			want(both, false)},
	} {
		query, _ := url.ParseQuery(c.query) // as it stands in the table
		asked := clone(params)
		asked.Set("per_page", "250")
		all := clone(asked)
		for k, v := range query {
			all[k] = v
		}
		check := func(how, got string) {
			t.Helper()
			if diff := cmp.Diff(c.want, steady(got)); diff != "" {
				t.Errorf("%q %s: %.1500s", c.query, how, diff)
			}
		}
		check("in the query", string(b.get(through, all).want(t, 200).body))
		check("in the header", string(b.get(through, asked, "Neardup-Control", c.header).want(t, 200).body))
		if query.Has("neardup_threshold") && query.Has("neardup_window") {
			check("in the query over the header", string(b.get(through, all, "Neardup-Control", "threshold=0.2; window=5").want(t,
				200).body))
		}
		search := func(extra string) string {
			return strings.Replace(`{"collection":"`+b.name+`","q":"alpha","query_by":"title","per_page":250,`+extra+`}`, ",}", "}", 1)
		}
		var many struct{ Results []json.RawMessage }
		body := `{"searches":[` + search(c.entry) + `,` + search(`"neardup":"off"`) + `]}`
		decode(t, call(t, e, "POST", through.base+"/multi_search", body).want(t, 200).body, &many)
		check("in a search of many", string(many.Results[0]))
		if diff := cmp.Diff(want(b.definition(), true), steady(string(many.Results[1]))); diff != "" {
			t.Errorf("%q reaches beyond its own search: %.1000s", c.entry, diff)
		}
	}
}

// TestTypesenseBadControls has values that are refused, in the server's own shape and so that a browser may read it.
func TestTypesenseBadControls(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	for _, c := range []struct{ request, body, header, says string }{
		{searched + "?q=alpha&query_by=title&neardup=maybe", "", "", "[neardup]"},
		{searched + "?q=alpha&query_by=title&neardup_threshold=2", "", "", "[neardup_threshold]"},
		{searched + "?q=alpha&query_by=title&neardup_threshold=high", "", "", "[neardup_threshold]"},
		{searched + "?q=alpha&query_by=title&neardup_window=0", "", "", "[neardup_window]"},
		{searched + "?q=alpha&query_by=title&neardup_nothing=1", "", "", "[neardup_nothing]"},
		{searched + "?q=alpha&query_by=title", "", "threshold=x", "[neardup_threshold]"},
		{searched + "?q=alpha&query_by=title", "", "nonsense", "[neardup_nonsense]"},
		{multi, `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","neardup_threshold":7}]}`, "", "[neardup_threshold]"},
		{multi + "?neardup_window=-1", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`, "", "[neardup_window]"},
	} {
		r := p.ask(t, 1, c.request, c.body, "Neardup-Control", c.header, "Origin", "http://shop.example")
		var shape map[string]string
		if r.status != 400 || json.Unmarshal(r.body, &shape) != nil || !strings.Contains(shape["message"], c.says) || len(shape) != 1 {
			t.Errorf("%s %s %s: %d %s", c.request, c.body, c.header, r.status, r.body)
		}
		if r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%s: a browser may not read it: %v", c.request, r.header)
		}
	}
}
