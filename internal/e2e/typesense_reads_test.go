package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
)

const nestedSchema = `{"name":"NAME","enable_nested_fields":true,"fields":[{"name":"title","type":"string"},{"name":"body",` +
	`"type":"string","optional":true},` +
	`{"name":"n","type":"int32","facet":true},{"name":"k","type":"string","facet":true},{"name":"meta","type":"object",` +
	`"optional":true}]}`

// nestedDocuments are documents with objects in them, of which no two texts are alike.
func nestedDocuments(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"id":"%d","title":"alpha t%d","body":"%s","n":%d,"k":"k%d","meta":{"author":{"name":"a%d",`+
			`"age":%d},"tags":["x","y%d"],`+
			`"neardup_sketch":"the client's own"},"undeclared":[{"title":"inner %d"},null,1.5]}`, i, i%5,
			strings.Repeat(fmt.Sprintf("own%d w%d ", i, i*i), 6), i, i%3, i, i, i, i))
	}
	return list
}

// alphas is a search that finds every document.
const alphas = "GET /collections/NAME/documents/search?q=alpha&query_by=title"

// everyEndpoint are requests to the endpoints that the server documents, in an order in which each has something to answer:
// METHOD path, and a body. Those that concern the whole server alone (operations, keys, configuration, metrics) are left out.
var everyEndpoint = []struct{ request, body string }{
	{"GET /collections/NAME", ""},
	{"PATCH /collections/NAME", `{"fields":[{"name":"extra","type":"string","optional":true}]}`},
	{"GET /collections/NAME", ""},
	{"POST /collections?src_name=NAME", `{"name":"NAME-c"}`},
	{"GET /collections/NAME-c", ""},
	{"DELETE /collections/NAME-c", ""},
	{"PUT /aliases/NAME-a", `{"collection_name":"NAME"}`},
	{"GET /aliases/NAME-a", ""},
	{"GET /collections/NAME-a", ""},
	{"GET /collections/NAME-a/documents/3", ""},
	{"GET /collections/NAME-a/documents/search?q=*", ""},
	{"GET /collections/NAME-a/documents/export", ""},
	{"GET /collections/NAME/documents/3", ""},
	{"GET /collections/NAME/documents/3?include_fields=title", ""},
	{"GET /collections/NAME/documents/nope", ""},
	{"GET /collections/NAME/documents/export", ""},
	{"GET /collections/NAME/documents/export?filter_by=n:%3E3&exclude_fields=body", ""},
	{"POST /collections/NAME/documents", `{"id":"x1","title":"one","n":1,"k":"a"}`},
	{"POST /collections/NAME/documents", `{"id":"x1","title":"one","n":1,"k":"a"}`},
	{"POST /collections/NAME/documents?action=upsert", `{"id":"x1","title":"two","n":1,"k":"a"}`},
	{"POST /collections/NAME/documents?action=update", `{"id":"x1","body":"two"}`},
	{"POST /collections/NAME/documents?action=emplace", `{"id":"x1","n":3}`},
	{"PATCH /collections/NAME/documents/x1", `{"title":"three","body":"three words here"}`},
	{"POST /collections/NAME/documents/import?return_doc=true", `{"id":"x1","title":"four","n":1,"k":"a"}` + "\n" +
		`{"id":"x3","title":"four","n":1,"k":"a"}` + "\n" + `{"id":"x4","title":"four","n":"x"}`},
	{"POST /collections/NAME/documents/import?action=update&return_doc=true&return_id=true", `{"id":"x1","n":7}` + "\n" +
		`{"id":"nope","n":7}`},
	{"DELETE /collections/NAME/documents/x1", ""},
	{"DELETE /collections/NAME/documents/x1", ""},
	{"DELETE /collections/NAME/documents?filter_by=k:=a", ""},
	{alphas, ""},
	{alphas + "&neardup=off", ""},
	{alphas + "&highlight_full_fields=title,body,neardup_nothing", ""},
	{alphas + "&highlight_fields=title,meta.author.name", ""},
	{alphas + "&query_by=title,body,meta.author.name", ""},
	{alphas + "&facet_by=k,n&max_facet_values=50", ""},
	{alphas + "&group_by=k", ""},
	{alphas + "&group_by=k&group_limit=9", ""},
	{alphas + "&pinned_hits=5:1&hidden_hits=3", ""},
	{alphas + "&use_cache=true", ""},
	{alphas + "&include_fields=undeclared", ""}, // with anything excluded, the server looks into what is included
	{alphas + "&include_fields=undeclared&exclude_fields=id", ""},
	{alphas + "&include_fields=undeclared&exclude_fields=neardup_sketch", ""},
	{alphas + "&exclude_fields=neardup_sketch", ""},
	{alphas + "&include_fields=neardup_sketch&exclude_fields=neardup_sketch", ""},
	{"POST /multi_search", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`},
	{"POST /multi_search", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","neardup":"off"}]}`},
	{"POST /multi_search", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","group_by":"k"}]}`},
	{"POST /multi_search", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","facet_by":"k"},` +
		`{"collection":"NAME","q":"*"}]}`},
	{"POST /multi_search?exclude_fields=neardup_sketch", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`},
	{"POST /multi_search?group_by=k", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`},
	{"PUT /presets/NAME", `{"value":{"q":"alpha","query_by":"title","collection":"NAME","per_page":3}}`},
	{"GET /collections/NAME/documents/search?preset=NAME", ""},
	{"POST /multi_search", `{"searches":[{"preset":"NAME"}]}`},
	{"POST /multi_search?preset=NAME", `{"searches":[{"collection":"NAME"}]}`},
	{"PUT /presets/NAME-m", `{"value":{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}}`},
	{"POST /multi_search?preset=NAME-m", ""},
	{"POST /multi_search?preset=NAME-m", `{"searches":[]}`},
	{"PUT /collections/NAME/overrides/o",
		`{"rule":{"query":"alpha","match":"exact"},"includes":[{"id":"5","position":1}],"excludes":[{"id":"6"}]}`},
	{"GET /collections/NAME/overrides", ""},
	{"GET /collections/NAME/overrides/o", ""},
	{alphas, ""},
	{"DELETE /collections/NAME/overrides/o", ""},
	{"PATCH /collections/NAME", `{"fields":[{"name":"extra","drop":true}]}`},
	{"PATCH /collections/NAME", `{"fields":[{"name":"n","drop":true},{"name":"n","type":"int64"}]}`},
	{"GET /collections/NAME", ""},
}

// TestTypesenseShowsNothingOfOurs goes through the endpoints that the server has: each answers what it answers for a collection
// that we have never seen.
func TestTypesenseShowsNothingOfOurs(t *testing.T) {
	p := newDuo(t, nestedSchema, nestedDocuments(12)...)
	p.sketched(t, "0", "11")
	t.Cleanup(func() {
		for _, name := range p.names {
			for _, path := range []string{"/presets/" + name, "/presets/" + name + "-m", "/aliases/" + name + "-a", "/collections/" +
				name + "-c"} {
				p.direct.clear(t, path)
			}
		}
	})
	for _, s := range everyEndpoint {
		r := p.both(t, s.request, s.body)
		own := bytes.ReplaceAll(r.body, []byte(`"neardup_sketch":"the client's own"`), nil)
		if bytes.Contains(own, []byte(`"neardup_sketch"`)) {
			t.Errorf("%s %s shows our field: %.600s", s.request, s.body, own)
		}
	}
	p.sketched(t, "0", "11")
	for range 10 { // names of many collections
		p.renew(t, factSchema, factDocuments[0])
	}
	for _, request := range []string{"GET /collections", "GET /collections/"} {
		if r := p.ask(t, 1, request, "").want(t, 200); bytes.Contains(r.body, []byte(`"neardup_sketch"`)) || !bytes.Contains(r.body,
			[]byte(p.names[1])) {
			t.Errorf("%s: %.300s", request, r.body)
		}
	}
}

// TestTypesenseNamedFieldIsShown asks for our field by its name, in all places where fields are named.
func TestTypesenseNamedFieldIsShown(t *testing.T) {
	p := newDuo(t, nestedSchema, nestedDocuments(3)...)
	for _, c := range []struct{ request, body string }{
		{searched + "?q=alpha&query_by=title&include_fields=neardup_sketch", ""},
		{searched + "?q=alpha&query_by=title&include_fields=id,%20neardup_sketch,,title", ""},
		{searched + "?q=alpha&query_by=title&include_fields=neardup_sketch&neardup=off", ""},
		{searched + "?q=alpha&query_by=title&include_fields=neardup_sketch&group_by=k", ""},
		{multi, `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","include_fields":"neardup_sketch,n"}]}`},
		{multi + "?include_fields=neardup_sketch", `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`},
		{"GET /collections/NAME/documents/export?include_fields=id,neardup_sketch", ""},
	} {
		r := p.ask(t, 1, c.request, c.body).want(t, 200)
		direct := p.named(1, c.request)
		method, path, _ := strings.Cut(strings.Replace(direct, "&neardup=off", "", 1), " ")
		want := call(t, p.direct.e, method, p.direct.base+path, p.named(1, c.body)).want(t, 200)
		if got := p.unnamed(1, r.body); !strings.Contains(got, `"neardup_sketch":"`) || got != p.unnamed(1, want.body) {
			t.Errorf("%s %s: %.500s\ndirectly: %.500s", c.request, c.body, got, want.body)
		}
	}
	// One search of many that names it shows it; the others do not.
	r := p.ask(t, 1, multi, `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title","include_fields":"neardup_sketch"},`+
		`{"collection":"NAME","q":"alpha","query_by":"title"}]}`).want(t, 200)
	var many struct {
		Results []struct {
			Hits []struct{ Document map[string]any }
		}
	}
	decode(t, r.body, &many)
	for i, result := range many.Results {
		for _, h := range result.Hits {
			if _, there := h.Document[adapters.SketchField]; there != (i == 0) {
				t.Errorf("search %d: %v", i, h.Document)
			}
		}
	}
}

// pieces are what lists of fields are made of.
var pieces = []string{
	"title", "body", "id", "n", "k", "meta", "meta.author", "meta.author.name", "meta.tags", "meta.neardup_sketch", "undeclared",
	"undeclared.title", "nope", "", " ", " title ", "body ", "TITLE",
	"neardup", "neardup_sketc", "neardup_sketch2", "document", "hits", "t", "titl", "meta.", ".meta", "\"title\"", "a b",
}

func randomFields(r *rand.Rand) string {
	var list []string
	for range r.IntN(5) {
		list = append(list, pieces[r.IntN(len(pieces))])
	}
	return strings.Join(list, ",")
}

// TestTypesenseFieldsAtRandom asks for random lists of fields: the documents are, byte for byte, those of a collection without
// sketches.
func TestTypesenseFieldsAtRandom(t *testing.T) {
	p := newDuo(t, nestedSchema, nestedDocuments(20)...)
	one := seeded(t)
	r := rand.New(rand.NewPCG(one, 2))
	for range effort.Rounds(150) {
		params := url.Values{}
		for _, name := range []string{"include_fields", "exclude_fields"} {
			for range r.IntN(3) {
				params.Add(name, randomFields(r))
			}
		}
		if r.IntN(3) == 0 {
			params.Set("highlight_full_fields", randomFields(r))
		}
		query := params.Encode()
		p.both(t, "GET /collections/NAME/documents/export?"+query, "")
		params.Set("per_page", fmt.Sprint(1+r.IntN(25)))
		params.Set("page", fmt.Sprint(1+r.IntN(2)))
		query = params.Encode()
		p.both(t, searched+"?q=alpha&query_by=title&"+query, "")
		fields := fmt.Sprintf(`,"include_fields":%q,"exclude_fields":%q`, randomFields(r), randomFields(r))
		body := `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"` + fields +
			`},{"q":"t3","query_by":"title","collection":"NAME"}]}`
		p.both(t, multi, body)
		if r.IntN(2) == 0 {
			p.both(t, multi+"?"+query, body)
		}
		if t.Failed() {
			return
		}
	}
}
