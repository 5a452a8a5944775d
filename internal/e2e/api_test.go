package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// api is what a test says to an engine in its own language, directly or through the sidecar.
type api struct {
	e    *engines.Engine
	base string // the engine or a sidecar in front of it
}

func (a api) typesense() bool { return a.e.Kind == engines.Typesense }

// create makes an index for the corpus.
func (a api) create(t *testing.T, index string) {
	t.Helper()
	if a.typesense() {
		call(t, a.e, "POST", a.base+"/collections", `{"name":"`+index+`","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},`+
			`{"name":"published_at","type":"string","optional":true}]}`).want(t, 201)
		return
	}
	call(t, a.e, "PUT", a.base+"/"+index, `{"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},`+
		`"url":{"type":"keyword"},"host":{"type":"keyword"},"published_at":{"type":"date"}}}}`).want(t, 200)
}

// drop removes an index when the test ends.
func (a api) drop(t *testing.T, index string) {
	t.Helper()
	path := "/" + index
	if a.typesense() {
		path = "/collections/" + index
	}
	t.Cleanup(func() { a.clear(t, path) })
}

// load writes the documents in one request.
func (a api) load(t *testing.T, index string, list []corpus.Document) {
	t.Helper()
	var b strings.Builder
	for _, d := range list {
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if !a.typesense() {
			fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", index, d.ID)
		}
		b.Write(append(line, '\n'))
	}
	a.loadLines(t, index, b.String())
}

func (a api) loadLines(t *testing.T, index, lines string) {
	t.Helper()
	if a.typesense() {
		body := string(call(t, a.e, "POST", a.base+"/collections/"+index+"/documents/import?action=upsert", lines).want(t, 200).body)
		if strings.Contains(body, `"success":false`) {
			t.Fatalf("import: %.500s", body)
		}
		return
	}
	var result struct{ Errors bool }
	body := call(t, a.e, "POST", a.base+"/_bulk?refresh=true", lines).want(t, 200).body
	if err := json.Unmarshal(body, &result); err != nil || result.Errors {
		t.Fatalf("bulk: %v %.500s", err, body)
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
	if a.typesense() {
		path := fmt.Sprintf("/collections/%s/documents/search?q=%s&query_by=title,body&page=%d&per_page=%d", index, url.QueryEscape(q), from/size+1, size)
		r := call(t, a.e, "GET", a.base+path+params, "").want(t, 200)
		var body struct {
			Found int
			Hits  []struct{ Document struct{ ID string } }
		}
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatal(err)
		}
		p := page{total: body.Found, outcome: r.header.Get("Neardup"), reply: r}
		for _, h := range body.Hits {
			p.ids = append(p.ids, h.Document.ID)
		}
		return p
	}
	query := `{"match_all":{}}`
	if q != "*" {
		query = `{"multi_match":{"query":"` + q + `","fields":["title","body"]}}`
	}
	body := fmt.Sprintf(`{"from":%d,"size":%d,"query":%s,"sort":["_score",{"id":"asc"}]%s}`, from, size, query, more)
	r := call(t, a.e, "POST", a.base+"/"+index+"/_search?"+strings.TrimPrefix(params, "&"), body).want(t, 200)
	p := page{outcome: r.header.Get("Neardup"), reply: r}
	p.ids, p.total = idsOf(t, r)
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
	if a.typesense() {
		return call(t, a.e, "GET", a.base+"/collections/"+index+"/documents/"+id, "").want(t, 200).body
	}
	return call(t, a.e, "GET", a.base+"/"+index+"/_source/"+id, "").want(t, 200).body
}

// refresh makes what was written visible to searches.
func (a api) refresh(t *testing.T, index string) {
	t.Helper()
	if !a.typesense() {
		call(t, a.e, "POST", a.e.URL+"/"+index+"/_refresh", "").want(t, 200)
	}
}

// eachDialect runs a test on one engine of each dialect: Elasticsearch and OpenSearch share one.
func eachDialect(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	for _, kind := range []string{engines.Elasticsearch, engines.Typesense} {
		t.Run(kind, func(t *testing.T) { test(t, engines.Shared(t, kind)) })
	}
}
