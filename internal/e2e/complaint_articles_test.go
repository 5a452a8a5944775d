package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// The tests named TestComplaint… are one for each complaint of docs/complaints.md that is about results. Each has two halves:
// the situation on the engine itself, and the same through the sidecar, held against the definition: the engine's whole list,
// collapsed, and cut into pages.

// article is a document of the complaints: a text that stands several times in slightly different words, with the key by which
// the complainers had the engine itself collapse.
type article struct {
	ID    string    `json:"id"`
	Dup   string    `json:"dup,omitempty"` // equal for versions of one text; documents that have not been given a key yet lack it
	N     int       `json:"n"`             // the rank in the order that the tests sort by
	Best  int       `json:"best"`
	Kind  string    `json:"kind"`
	At    string    `json:"at"`
	Title string    `json:"title"`
	Body  string    `json:"body"`
	V     []float64 `json:"v,omitempty"`
}

// articles returns a list in rank order, of which each element is a version of the text of that number.
func articles(texts ...int) (list []article) {
	for n, text := range texts {
		r := rand.New(rand.NewPCG(uint64(text), 5))
		words := make([]string, 80)
		for i := range words {
			words[i] = fmt.Sprintf("w%d", r.IntN(90000))
		}
		words[(n*7)%len(words)] = fmt.Sprintf("edit%d", n)
		list = append(list, article{
			ID: fmt.Sprintf("a%04d", n), Dup: fmt.Sprintf("d%04d", text), N: n, Best: n, Kind: fmt.Sprintf("kind%d", n%3),
			At:    fmt.Sprintf("2025-09-%02dT10:%02d:%02dZ", 1+n/3600, n/60%60, n%60),
			Title: fmt.Sprintf("story number%d", text), Body: strings.Join(words, " "),
		})
	}
	return list
}

// copies returns the numbers of texts of which each stands so many times in a row.
func copies(texts, times int) (list []int) {
	for i := range texts * times {
		list = append(list, i/times)
	}
	return list
}

// strewn returns n numbers of texts: new ones and, for a share of them, ones that came before.
func strewn(n int, share float64) (list []int) {
	r := rand.New(rand.NewPCG(6, 7))
	next := 0
	for range n {
		if next > 0 && r.Float64() < share {
			list = append(list, r.IntN(next))
			continue
		}
		list, next = append(list, next), next+1
	}
	return list
}

// desk is one complaint's index, on one engine, with and without a sidecar in front.
type desk struct {
	t               *testing.T
	e               *engines.Engine
	direct, through api
	index           string
	list            []article
	asked           *atomic.Int32 // how many searches the sidecar sent to the engine
}

var desks atomic.Int32

// newDesk makes an index of the articles through a sidecar.
func newDesk(t *testing.T, kind string, list []article) *desk {
	t.Helper()
	d := openDesk(t, kind)
	d.create(1)
	d.add(d.through, list)
	return d
}

// openDesk starts a sidecar that counts what it asks the engine.
func openDesk(t *testing.T, kind string) *desk {
	t.Helper()
	e := engines.Shared(t, kind)
	d := &desk{t: t, e: e, direct: api{e, e.URL}, asked: &atomic.Int32{}}
	d.index = fmt.Sprintf("%s%d", ownPrefix("q"), desks.Add(1))
	engine := relay(t, e)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "search") || strings.Contains(r.URL.Path, "_search/") {
			d.asked.Add(1)
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	d.through = api{e, serve(t, e, setup{match: ownPrefix("q") + "*", urls: []string{front.URL}})}
	return d
}

// create makes the index, with the key as the engines want it for their own collapsing.
func (d *desk) create(shards int) {
	d.t.Helper()
	d.direct.drop(d.t, d.index)
	if d.direct.typesense() {
		call(d.t, d.e, "POST", d.through.base+"/collections", `{"name":"`+d.index+`","fields":[{"name":"title","type":"string"},`+
			`{"name":"body","type":"string"},{"name":"dup","type":"string","facet":true,"optional":true},`+
			`{"name":"kind","type":"string","facet":true},{"name":"n","type":"int32"}]}`).want(d.t, 201)
		return
	}
	vector, settings := `{"type":"dense_vector","dims":2,"index":true,"similarity":"l2_norm","index_options":{"type":"hnsw"}}`, ""
	if d.e.Kind == engines.OpenSearch {
		vector = `{"type":"knn_vector","dimension":2,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}`
		settings = `,"index.knn":true`
	}
	call(d.t, d.e, "PUT", d.through.base+"/"+d.index, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0%s},`+
		`"mappings":{"properties":{"id":{"type":"keyword"},"dup":{"type":"keyword"},"n":{"type":"integer"},"best":{"type":"integer"},`+
		`"kind":{"type":"keyword"},"at":{"type":"date"},"title":{"type":"text"},"body":{"type":"text"},"v":%s}}}`,
		shards, settings, vector)).want(d.t, 200)
}

// add writes articles through a sidecar or past it.
func (d *desk) add(a api, list []article) {
	d.t.Helper()
	var b strings.Builder
	for _, one := range list {
		line, err := json.Marshal(one)
		if err != nil {
			d.t.Fatal(err)
		}
		if !a.typesense() {
			fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", d.index, one.ID)
		}
		b.Write(append(line, '\n'))
	}
	a.loadLines(d.t, d.index, b.String())
	d.list = append(d.list, list...)
}

// definition is the oracle of the articles.
func (d *desk) definition() *oracle {
	d.t.Helper()
	var list []corpus.Document
	for _, a := range d.list {
		list = append(list, corpus.Document{ID: a.ID, Title: a.Title, Body: a.Body})
	}
	return newOracle(d.t, d.direct, list)
}

// texts returns the keys of articles, by id: which text each is a version of.
func (d *desk) texts() map[string]string {
	texts := map[string]string{}
	for _, a := range d.list {
		texts[a.ID] = a.Dup
	}
	return texts
}

// found is what a search answers.
type found struct {
	ids     []string
	sort    string // of the last hit
	total   int
	groups  int // of Typesense's own grouping
	outcome string
	body    []byte
}

// search sends the body of a search of Elasticsearch or OpenSearch.
func (d *desk) search(a api, body, params string) found {
	d.t.Helper()
	r := call(d.t, d.e, "POST", a.base+"/"+d.index+"/_search?"+params, body).want(d.t, 200)
	return d.read(r)
}

// read reads the answer to a search of any form of Elasticsearch or OpenSearch.
func (d *desk) read(r reply) found {
	d.t.Helper()
	var body struct {
		Hits struct {
			Total json.RawMessage
			Hits  []struct {
				ID   string `json:"_id"`
				Sort json.RawMessage
			}
		}
	}
	decode(d.t, r.body, &body)
	f := found{outcome: r.header.Get("Neardup"), body: r.body, total: -1}
	var total struct{ Value int }
	if json.Unmarshal(body.Hits.Total, &f.total) != nil && json.Unmarshal(body.Hits.Total, &total) == nil {
		f.total = total.Value
	}
	for _, h := range body.Hits.Hits {
		f.ids, f.sort = append(f.ids, h.ID), string(h.Sort)
	}
	return f
}

// query asks Typesense.
func (d *desk) query(a api, params string) found {
	d.t.Helper()
	v, err := url.ParseQuery(params)
	if err != nil {
		d.t.Fatal(err)
	}
	for key, value := range map[string]string{"q": "*", "query_by": "title", "sort_by": "n:asc"} {
		if !v.Has(key) {
			v.Set(key, value)
		}
	}
	if v.Get("sort_by") == "" { // the engine's own order
		v.Del("sort_by")
	}
	r := call(d.t, d.e, "GET", a.base+"/collections/"+d.index+"/documents/search?"+v.Encode(), "").want(d.t, 200)
	type hit struct{ Document struct{ ID string } }
	var body struct {
		Found  int
		Hits   []hit
		Groups []struct{ Hits []hit } `json:"grouped_hits"`
	}
	decode(d.t, r.body, &body)
	f := found{total: body.Found, outcome: r.header.Get("Neardup"), body: r.body, groups: len(body.Groups)}
	for _, g := range body.Groups {
		body.Hits = append(body.Hits, g.Hits...)
	}
	for _, h := range body.Hits {
		f.ids = append(f.ids, h.Document.ID)
	}
	return f
}

// page asks any engine for one page of all articles in rank order.
func (d *desk) page(a api, from, size int, params string) found {
	d.t.Helper()
	if a.typesense() {
		return d.query(a, fmt.Sprintf("page=%d&per_page=%d&%s", from/size+1, size, params))
	}
	return d.search(a, fmt.Sprintf(`{"query":{"match_all":{}},"from":%d,"size":%d,"sort":[{"n":"asc"}]}`, from, size), params)
}

// raw returns the engine's own list of all articles in rank order.
func (d *desk) raw() (list []string) {
	d.t.Helper()
	for from := 0; ; from += 250 {
		f := d.page(d.direct, from, 250, "")
		if list = append(list, f.ids...); len(f.ids) < 250 {
			return list
		}
	}
}

// walk reads all pages of all articles in rank order.
func (d *desk) walk(a api, size int, params string) (pages []found) {
	d.t.Helper()
	for from := 0; ; from += size {
		f := d.page(a, from, size, params)
		if len(f.ids) == 0 {
			return pages
		}
		pages = append(pages, f)
	}
}

// ids returns the ids on each page.
func ids(pages []found) (list [][]string) {
	for _, p := range pages {
		list = append(list, p.ids)
	}
	return list
}

// want returns the collapsed list by the definition, and fails the test if it is not what a person would see: one article of
// each text.
func (d *desk) want() []string {
	d.t.Helper()
	list := d.definition().collapsed(d.raw())
	if again := repeats(of(d.texts(), list)); len(again) > 0 || len(list) == len(d.list) {
		d.t.Fatalf("the collapsed list has %d of %d hits, and twice %v", len(list), len(d.list), again)
	}
	return list
}

// collapsing is the engine's own collapsing by the key: a page of its groups.
func (d *desk) collapsing(from, size int) found {
	d.t.Helper()
	if d.direct.typesense() {
		return d.query(d.direct, fmt.Sprintf("page=%d&per_page=%d&group_by=dup&group_limit=1", from/size+1, size))
	}
	return d.search(d.direct, fmt.Sprintf(`{"from":%d,"size":%d,"sort":[{"n":"asc"}],"collapse":{"field":"dup"}}`, from, size), "")
}

// reports returns a figure of the header Neardup.
func (f found) reports(t *testing.T, name string) int {
	t.Helper()
	_, figures := stated(f.outcome)
	n, err := strconv.Atoi(figures[name])
	if err != nil {
		t.Fatalf("no %s in %q", name, f.outcome)
	}
	return n
}

// repeats returns which values stand more than once.
func repeats(list []string) (again []string) {
	seen := map[string]int{}
	for _, v := range list {
		if seen[v]++; seen[v] == 2 {
			again = append(again, v)
		}
	}
	return again
}

// of returns the values for ids.
func of(texts map[string]string, ids []string) (list []string) {
	for _, id := range ids {
		list = append(list, texts[id])
	}
	return list
}

// pagesOf cuts a list into pages.
func pagesOf(list []string, size int) [][]string { return slices.Collect(slices.Chunk(list, size)) }
