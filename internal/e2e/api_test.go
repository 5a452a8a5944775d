package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// language is how a test speaks to a kind of engine: methods return a path below the engine, and a body.
type language interface {
	// create makes an index for the corpus, by this method, and is answered with this status.
	create(index string) (method, path, body string, status int)
	path(index string) string
	// line is a document of a bulk request, bulk where that goes, and refused what its reply holds if it refuses a document.
	line(index, id string, document []byte) string
	bulk(index string) string
	refused() string
	search(index, q string, from, size int, params, more string) (method, path, body string)
	found(t *testing.T, r reply) (ids []string, total int)
	document(index, id string) string
	// refresh makes what was written visible to searches; empty where it is at once.
	refresh(index string) string
}

// languages are those of the kinds of engine.
var languages = map[string]language{
	engines.Elasticsearch: elasticWords{}, engines.OpenSearch: elasticWords{}, engines.Typesense: typesenseWords{},
}

type elasticWords struct{}

func (elasticWords) create(index string) (method, path, body string, status int) {
	return "PUT", "/" + index, `{"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},` +
		`"url":{"type":"keyword"},"host":{"type":"keyword"},"published_at":{"type":"date"}}}}`, 200
}

func (elasticWords) path(index string) string { return "/" + index }

func (elasticWords) line(index, id string, document []byte) string {
	return fmt.Sprintf("{\"index\":{\"_index\":%q,\"_id\":%q}}\n%s\n", index, id, document)
}

func (elasticWords) bulk(string) string { return "/_bulk?refresh=true" }

func (elasticWords) refused() string { return `"errors":true` }

func (elasticWords) search(index, q string, from, size int, params, more string) (method, path, body string) {
	query := `{"match_all":{}}`
	if q != "*" {
		query = `{"multi_match":{"query":"` + q + `","fields":["title","body"]}}`
	}
	return "POST", "/" + index + "/_search?" + strings.TrimPrefix(params, "&"),
		fmt.Sprintf(`{"from":%d,"size":%d,"query":%s,"sort":["_score",{"id":"asc"}]%s}`, from, size, query, more)
}

func (elasticWords) found(t *testing.T, r reply) (ids []string, total int) { return idsOf(t, r) }

func (elasticWords) document(index, id string) string { return "/" + index + "/_source/" + id }

func (elasticWords) refresh(index string) string { return "/" + index + "/_refresh" }

type typesenseWords struct{}

func (typesenseWords) create(index string) (method, path, body string, status int) {
	return "POST", "/collections", `{"name":"` + index + `","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},` +
		`{"name":"published_at","type":"string","optional":true}]}`, 201
}

func (typesenseWords) path(index string) string { return "/collections/" + index }

func (typesenseWords) line(_, _ string, document []byte) string { return string(document) + "\n" }

func (typesenseWords) bulk(index string) string {
	return "/collections/" + index + "/documents/import?action=upsert"
}

func (typesenseWords) refused() string { return `"success":false` }

func (typesenseWords) search(index, q string, from, size int, params, _ string) (method, path, body string) {
	return "GET", fmt.Sprintf("/collections/%s/documents/search?q=%s&query_by=title,body&page=%d&per_page=%d",
		index, url.QueryEscape(q), from/max(size, 1)+1, size) + params, ""
}

func (typesenseWords) found(t *testing.T, r reply) (ids []string, total int) {
	t.Helper()
	var body struct {
		Found int
		Hits  []struct{ Document struct{ ID string } }
	}
	expect.OK(t, json.Unmarshal(r.body, &body))
	for _, h := range body.Hits {
		ids = append(ids, h.Document.ID)
	}
	return ids, body.Found
}

func (typesenseWords) document(index, id string) string {
	return "/collections/" + index + "/documents/" + id
}

func (typesenseWords) refresh(string) string { return "" }

// api is what a test says to an engine in its own language, directly or through the sidecar.
type api struct {
	e    *engines.Engine
	base string // the engine or a sidecar in front of it
}

func (a api) typesense() bool { return a.e.Kind == engines.Typesense }

// words returns the engine's language.
func (a api) words(t *testing.T) language {
	t.Helper()
	words := languages[a.e.Kind]
	if words == nil {
		t.Fatalf("no test speaks the language of %s: name one in languages", a.e.Kind)
	}
	return words
}

// create makes an index for documents as those of the corpus, until the test ends, and loads some.
func (a api) create(t *testing.T, index string, list ...corpus.Document) {
	t.Helper()
	api{a.e, a.e.URL}.drop(t, index)
	method, path, body, status := a.words(t).create(index)
	call(t, a.e, method, a.base+path, body).want(t, status)
	if len(list) > 0 {
		a.load(t, index, list)
	}
}

// drop removes an index when the test ends.
func (a api) drop(t *testing.T, index string) {
	t.Helper()
	path := a.words(t).path(index)
	t.Cleanup(func() { a.clear(t, path) })
}

// load writes the documents in one request.
func (a api) load(t *testing.T, index string, list []corpus.Document) {
	t.Helper()
	var b strings.Builder
	for _, d := range list {
		b.WriteString(a.words(t).line(index, d.ID, must(json.Marshal(d))(t)))
	}
	a.loadLines(t, index, b.String())
}

func (a api) loadLines(t *testing.T, index, lines string) {
	t.Helper()
	body := string(call(t, a.e, "POST", a.base+a.words(t).bulk(index), lines).want(t, 200).body)
	if strings.Contains(body, a.words(t).refused()) {
		t.Fatalf("bulk: %.500s", body)
	}
}

// page is one page of a search.
type page struct {
	ids     []string
	total   int
	outcome string
	reply   reply
}

// search asks for one page, in the order of scores and then of ids (Typesense: its own).
func (a api) search(t *testing.T, index, q string, from, size int, params string) page {
	t.Helper()
	return a.searchMore(t, index, q, from, size, params, "")
}

// searchMore is search with more members of the body, which begin with a comma; Typesense has none.
func (a api) searchMore(t *testing.T, index, q string, from, size int, params, more string) page {
	t.Helper()
	method, path, body := a.words(t).search(index, q, from, size, params, more)
	r := call(t, a.e, method, a.base+path, body).want(t, 200)
	p := page{outcome: r.header.Get("Neardup"), reply: r}
	p.ids, p.total = a.words(t).found(t, r)
	return p
}

// whole returns the ids of the whole list, read page by page.
func (a api) whole(t *testing.T, index, q string, size int, params string) (pages [][]string) {
	t.Helper()
	for from := 0; ; from += size {
		p := a.search(t, index, q, from, size, params)
		if len(p.ids) == 0 {
			return pages
		}
		pages = append(pages, p.ids)
	}
}

// get returns a stored document's JSON.
func (a api) get(t *testing.T, index, id string) []byte {
	t.Helper()
	return call(t, a.e, "GET", a.base+a.words(t).document(index, id), "").want(t, 200).body
}

// refresh makes what was written visible to searches.
func (a api) refresh(t *testing.T, index string) {
	t.Helper()
	if path := a.words(t).refresh(index); path != "" {
		call(t, a.e, "POST", a.e.URL+path, "").want(t, 200)
	}
}

// oracle is the collapsed list by its definition, over what the engine itself answers and the texts of the corpus.
type oracle struct {
	direct    api
	sketches  map[string]sketch.Sketch
	threshold float64
	window    int
	keep      int // how many of each group are shown
	// decided are pairs of ids, each in the order of the ids, and whether they are the same.
	decided map[[2]string]bool
}

// The shipped defaults.
var (
	minShingles = uint32(rerank.Default().MinShingles)
	minWords    = uint32(rerank.Default().MinWords)
)

func newOracle(t *testing.T, direct api, list []corpus.Document) *oracle {
	t.Helper()
	return oracleOf(t, direct, list, seed, 0.7)
}

// oracleOf is the definition under a seed and at a threshold.
func oracleOf(t *testing.T, direct api, list []corpus.Document, seed string, threshold float64) *oracle {
	t.Helper()
	sketcher := sketcherOf(t, seed)
	o := &oracle{direct: direct, sketches: map[string]sketch.Sketch{}, threshold: threshold, window: 1000, keep: 1}
	for _, d := range list {
		o.sketches[d.ID], _ = sketcher.Sketch(d.Title, d.Body)
	}
	return o
}

// raw returns the engine's own list.
func (o *oracle) raw(t *testing.T, index, q string) []string {
	t.Helper()
	return slices.Concat(o.direct.whole(t, index, q, 250, "")...)
}

// list returns the collapsed list.
func (o *oracle) list(t *testing.T, index, q string) []string {
	t.Helper()
	return o.collapsed(o.raw(t, index, q))
}

// collapsed returns the collapsed list of the engine's.
func (o *oracle) collapsed(raw []string) (list []string) {
	var leaders []string
	shown := map[string]int{} // of each leader's group
	for rank, id := range raw {
		at := slices.IndexFunc(leaders, func(l string) bool {
			same, decided := o.decided[[2]string{min(id, l), max(id, l)}]
			return same || !decided && o.near(o.sketches[id], o.sketches[l])
		})
		switch {
		case rank >= o.window:
		case at < 0:
			leaders = append(leaders, id)
			shown[id] = 1
		case shown[leaders[at]] < o.keep:
			shown[leaders[at]]++
		default:
			continue
		}
		list = append(list, id)
	}
	return list
}

func (o *oracle) near(a, b sketch.Sketch) bool {
	if a.SameText(&b) {
		return true
	}
	agreement, comparable := a.Agreement(&b)
	long := min(a.Shingles, b.Shingles) >= minShingles && min(a.Words, b.Words) >= minWords
	return comparable && agreement >= o.threshold && (a.SameWords(&b) || long && !a.OtherTopics(&b))
}

// queries are searches of the corpus with short, long and whole lists.
var queries = []string{"*", "town", "the", "river bridge", "old", "recipe butter", "nothingmatchesthis"}

// checkPages walks all pages through the sidecar and holds them against the definition: pages of exactly the size asked for, the
// engine's order, every representative once.
func (o *oracle) checkPages(t *testing.T, through api, index, params string) {
	t.Helper()
	folded := 0
	for _, q := range queries {
		want := o.list(t, index, q)
		folded += len(o.raw(t, index, q)) - len(want)
		for _, size := range []int{10, 60} {
			pages := through.whole(t, index, q, size, params)
			same(t, slices.Collect(slices.Chunk(want, size)), pages, "%q in pages of %d", q, size)
		}
	}
	if folded < 300 {
		t.Errorf("only %d hits fold over all queries: the corpus or the threshold is wrong", folded)
	}
}
