package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	searched = "GET /collections/NAME/documents/search"
	multi    = "POST /multi_search"
)

func TestTypesenseFactsExport(t *testing.T) {
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "lines of JSON, chosen by filter and fields", steps: []step{
			{request: "GET /collections/NAME/documents/export?include_fields=id,n", status: 200,
				exact: `{"id":"1","n":1}` + "\n" + `{"id":"2","n":2}` + "\n" + `{"id":"3","n":3}` + "\n" + `{"id":"a/b","n":4}`},
			{request: "GET /collections/NAME/documents/export?filter_by=n:%3E3", status: 200,
				exact: `{"body":"no train ran on the branch line for most of the snowy week","id":"a/b","n":4,"title":"beta slow trains"}`},
			{request: "GET /collections/NAME/documents/export?exclude_fields=title,body,k", status: 200, has: `{"id":"2","n":2}` + "\n"},
			{request: "GET /collections/NAME/documents/export?filter_by=nope:1", status: 404},
		}, after: func(t *testing.T, p *duo) {
			r := p.both(t, "GET /collections/NAME/documents/export", "")
			if got := r.header.Get("Content-Type"); got != "application/octet-stream" {
				t.Error(got)
			}
		}},
	})
}

// shape is a search's reply, member by member in the order of the server.
var shape = regexp.MustCompile(`^\{"facet_counts":\[\],"found":3,"hits":\[\{"document":\{.*\},"highlight":\{.*\},` +
	`"highlights":\[.*\],"text_match":\d+,` +
	`"text_match_info":\{.*\}\}.*\],"out_of":4,"page":1,"request_params":\{"collection_name":"NAME","per_page":10,"q":"alpha"\},` +
	`"search_cutoff":false,"search_time_ms":0\}$`)

func TestTypesenseFactsSearch(t *testing.T) {
	const title = searched + "?query_by=title&"
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "the shape of a reply", after: func(t *testing.T, p *duo) {
			r := p.both(t, title+"q=alpha", "")
			if got := p.unnamed(1, r.body); !shape.MatchString(got) {
				t.Error(got)
			}
			if got := r.header.Get("Neardup"); !strings.HasPrefix(got, "collapsed; raw=3; folded=0; ") {
				t.Error(got)
			}
		}},
		{name: "pages", steps: []step{
			{request: title + "q=*&per_page=250", status: 200, has: `"per_page":250`},
			{request: title + "q=*&per_page=251", status: 422, has: "250 hits"},
			{request: title + "q=*&per_page=0", status: 200, has: `"found":4,"hits":[],"out_of":4,"page":1`},
			{request: title + "q=*&page=0", status: 422, has: "greater than 0"},
			{request: title + "q=*&page=9", status: 200, has: `"found":4,"hits":[],"out_of":4,"page":9`},
			{request: title + "q=*&page=x", status: 400},
			{request: title + "q=*&per_page=", status: 400},
		}},
		{name: "limit and offset mean nothing here", steps: []step{
			{request: title + "q=*&include_fields=id&limit=1&offset=2", status: 200,
				has: `{"id":"a/b"},"highlight":{},"highlights":[]},{"document":{"id":"3"}`},
		}},
		{name: "limit_hits is held against page times per_page", steps: []step{
			{request: title + "q=*&limit_hits=2&per_page=3", status: 422, has: "Only upto 2 hits"},
			{request: title + "q=*&limit_hits=3&per_page=2&page=2", status: 422, has: "Only upto 3 hits"},
			{request: title + "q=*&limit_hits=3&per_page=3", status: 200, has: `"found":4`},
			{request: title + "q=*&limit_hits=4&per_page=2&page=2", status: 200, has: `"page":2`},
		}},
		{name: "fields have no wildcards, and excluding wins", steps: []step{
			{request: title + "q=alpha&include_fields=*", status: 200, has: `{"document":{},`},
			{request: title + "q=alpha&include_fields=t*,n", status: 200, has: `{"document":{"n":3},`},
			{request: title + "q=alpha&exclude_fields=t*", status: 200, has: `"title":"alpha owls return"`},
			{request: title + "q=alpha&include_fields=title,n&exclude_fields=title", status: 200, has: `{"document":{"n":3},`},
		}},
		{name: "a query may have 4000 characters", after: func(t *testing.T, p *duo) {
			for _, length := range []int{3990, 3999, 4000, 4100} {
				query := "query_by=title&q=alpha&filter_by=n:>0&x="
				query += strings.Repeat("a", length-len(query))
				r := p.both(t, searched+"?"+query, "")
				if want := map[bool]int{true: 200, false: 400}[length < 4000]; r.status != want {
					t.Errorf("%d: %d %.300s", length, r.status, r.body)
				}
				if got := r.header.Get("Neardup"); r.status == 200 && !strings.HasPrefix(got, "collapsed;") {
					t.Errorf("%d: %s", length, got)
				}
			}
		}},
		{name: "our controls do not count", after: func(t *testing.T, p *duo) {
			query := "query_by=title&q=alpha&x="
			query += strings.Repeat("a", 3999-len(query))
			r := p.ask(t, 1, searched+"?"+query+"&neardup_threshold=0.9&neardup_window=50", "")
			p.alike(t, "with controls", p.ask(t, 0, searched+"?"+query, ""), r)
			if got := r.header.Get("Neardup"); !strings.HasPrefix(got, "collapsed;") {
				t.Errorf("%d %s", r.status, got)
			}
		}},
		{name: "filters that repeat count all, of others the last", steps: []step{
			{request: title + "q=*&filter_by=n:%3E1&filter_by=n:%3C3", status: 200, has: `"found":1`},
			{request: title + "q=beta&q=alpha&per_page=9&per_page=1&page=7&page=1", status: 200, has: `"found":3`},
			{request: title + "q=*&include_fields=title&include_fields=id&filter_by=n:1", status: 200, has: `{"document":{"id":"1"}`},
		}},
		{name: "use_cache answers as of before a write", after: func(t *testing.T, p *duo) {
			const cached = title + "q=alpha&use_cache=true"
			before := p.both(t, cached, "")
			p.take(t, step{request: "POST /collections/NAME/documents", body: `{"id":"9","title":"alpha quiet lake"}`, status: 201})
			after := p.both(t, title+"q=alpha", "")
			if got := p.ask(t, 0, cached, ""); p.unnamed(0, got.body) != p.unnamed(1, before.body) {
				t.Errorf("directly: %s", got.body)
			}
			// What we ask in its place may be in the cache or not.
			if got := p.unnamed(1, p.ask(t, 1, cached, "").body); got != p.unnamed(1, before.body) && got != p.unnamed(1, after.body) {
				t.Errorf("through us: %s", got)
			}
		}},
		{name: "curated hits keep their places", steps: []step{
			{request: title + "q=*&include_fields=id&pinned_hits=1:1", status: 200, has: `"hits":[{"curated":true,"document":{"id":"1"}`},
			{request: title + "q=*&include_fields=id&hidden_hits=3", status: 200, has: `"found":3`, lacks: `"id":"3"`},
			{request: "PUT /collections/NAME/overrides/o",
				body: `{"rule":{"query":"alpha","match":"exact"},"includes":[{"id":"a/b","position":2}]}`, status: 200},
			{request: title + "q=alpha&include_fields=id", status: 200, has: `{"curated":true,"document":{"id":"a/b"}`},
		}},
	})
}

// A search by vectors says found after what it fetched, so that what is fetched beyond the client's page shows; it is left alone.
func TestTypesenseFactsVectors(t *testing.T) {
	var documents []string
	for i := range 40 {
		documents = append(documents, fmt.Sprintf(`{"id":"%d","title":"t%d","body":"%s","v":[%d,1]}`, i, i,
			strings.Repeat(fmt.Sprintf("w%d ", i), 9), i))
	}
	schema := strings.Replace(factSchema, `{"name":"n"`, `{"name":"v","type":"float[]","num_dim":2},{"name":"n"`, 1)
	const vector = searched + "?q=*&include_fields=id&vector_query="
	p := newDuo(t, schema, documents...)
	for _, s := range []step{
		{request: vector + url.QueryEscape("v:([3,1],k:5)") + "&per_page=10", status: 200, has: `"found":10`},
		{request: vector + url.QueryEscape("v:([3,1],k:5)") + "&per_page=30", status: 200, has: `"found":30`},
		{request: vector + url.QueryEscape("v:([3,1],k:20)") + "&per_page=10", status: 200, has: `"vector_distance"`},
	} {
		t.Run(s.request, func(t *testing.T) { p.take(t, s) })
	}
}

func TestTypesenseFactsGroups(t *testing.T) {
	const grouped = searched + "?query_by=title&include_fields=id&"
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "what can be grouped by, and how many hits a group has", steps: []step{
			{request: grouped + "q=*&group_by=title", status: 400, has: "should be a facet field"},
			{request: grouped + "q=*&group_by=k&group_limit=100", status: 400, has: "between 1 and 99"},
			{request: grouped + "q=*&group_by=k&group_limit=0", status: 400, has: "between 1 and 99"},
			{request: grouped + "q=alpha&group_by=k&group_limit=99", status: 200,
				has: `"found":2,"grouped_hits":[{"group_key":["b"],"hits":[{"document":{"id":"3"}`, lacks: `found_docs`},
		}},
		{name: "documents without the field are one group", steps: []step{
			{request: "POST /collections/NAME/documents",
				body: `{"id":"9","title":"gamma","body":"without a k of its own, nor much else","n":9}`, status: 201},
			{request: grouped + "q=*&filter_by=n:%3E0&group_by=k&group_limit=9", status: 200,
				has: `{"group_key":[],"hits":[{"document":{"id":"9"},"highlight":{},"highlights":[]},{"document":{"id":"a/b"}`},
		}},
		{name: "a pinned hit has a group of its own, a hidden one lowers found", steps: []step{
			{request: grouped + "q=alpha&group_by=k&pinned_hits=2:1", status: 200,
				has: `"found":3,"grouped_hits":[{"group_key":["a"],"hits":[{"curated":true`},
			{request: grouped + "q=alpha&group_by=k&hidden_hits=3", status: 200, has: `"found":1`},
		}},
	})
}

// Grouping by an id of clusters, with one hit each, is collapsing the list: with a filter. Without one this server errs on q=*,
// so what it answers then is compared with itself alone.
func TestTypesenseFactsGroupingCollapses(t *testing.T) {
	var documents []string
	for i := range 60 {
		documents = append(documents, fmt.Sprintf(`{"id":"%d","title":"alpha t%d","n":%d,"k":"c%d","body":"%s"}`, i, i%7, i*7%60,
			i*i%23, strings.Repeat(fmt.Sprintf("w%d ", i), 9)))
	}
	p := newDuo(t, factSchema, documents...)
	for _, params := range []string{"q=*&filter_by=k:!=zz", "q=alpha", "q=alpha&sort_by=n:desc", "q=t3&filter_by=n:<40",
		"q=*&sort_by=n:asc", "q=*&filter_by=n:>9&sort_by=n:desc", "q=*"} {
		t.Run(params, func(t *testing.T) {
			params := strings.NewReplacer("<", "%3C", ">", "%3E").Replace(params)
			common := searched + "?query_by=title&per_page=250&include_fields=id,k&" + params
			type documents struct{ Document struct{ ID, K string } }
			var flat struct{ Hits []documents }
			var groups struct {
				Found  int
				Groups []struct{ Hits []documents } `json:"grouped_hits"`
			}
			decode(t, p.ask(t, 0, common, "").want(t, 200).body, &flat)
			decode(t, p.both(t, common+"&group_by=k&group_limit=1", "").want(t, 200).body, &groups)
			if params == "q=*" {
				return
			}
			var want, got []string
			seen := map[string]bool{}
			for _, h := range flat.Hits {
				if !seen[h.Document.K] {
					seen[h.Document.K], want = true, append(want, h.Document.ID)
				}
			}
			for _, g := range groups.Groups {
				got = append(got, g.Hits[0].Document.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" || groups.Found != len(want) {
				t.Errorf("found %d: %s", groups.Found, diff)
			}
		})
	}
}

func TestTypesenseFactsMultiSearch(t *testing.T) {
	const one = `{"collection":"NAME","q":"alpha","query_by":"title","include_fields":"id","per_page":1}`
	many := func(n int) string { return `{"searches":[` + strings.Repeat(one+",", n-1) + one + `]}` }
	search := func(extra string) string { return `{"searches":[` + strings.Replace(one, "}", ","+extra+"}", 1) + `]}` }
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "one result for each, also where one fails", steps: []step{
			{request: multi, body: `{"searches":[{"collection":"NAME-nope","q":"*"},` + one + `]}`, status: 200,
				has: `{"results":[{"code":404,"error":"Not found."},{"facet_counts":`},
			{request: multi, body: `{"searches":[{"collection":"NAME","q":"a","query_by":"nope"}]}`, status: 200, has: `"code":404`},
			{request: multi, body: search(`"per_page":251`), status: 200, has: `"code":422`},
			{request: multi, body: search(`"page":1.5`), status: 200, has: `"code":400`},
		}},
		{name: "the query string over the body over a preset", steps: []step{
			{request: "PUT /presets/NAME", body: `{"value":{"q":"beta","query_by":"title","per_page":2,"collection":"NAME-nope"}}`,
				status: 200},
			{request: multi, body: `{"searches":[{"preset":"NAME","collection":"NAME"}]}`, status: 200, has: `"per_page":2,"q":"beta"`},
			{request: multi, body: `{"searches":[{"preset":"NAME","collection":"NAME","q":"alpha"}]}`, status: 200,
				has: `"per_page":2,"q":"alpha"`},
			{request: multi + "?q=owls&per_page=3", body: many(1), status: 200, has: `"per_page":3,"q":"owls"`},
			{request: multi + "?include_fields=n&exclude_fields=x", body: many(1), status: 200, has: `"document":{"n":3}`},
			{request: multi + "?collection=NAME-nope", body: many(1), status: 200, has: `"code":404`},
			{request: multi + "?collection=NAME", body: `{"searches":[{"collection":"NAME-nope","q":"alpha","query_by":"title"}]}`,
				status: 200, has: `"found":3`},
			{request: "DELETE /presets/NAME", status: 200},
		}},
		{name: "values that are no values, and too many searches", steps: []step{
			{request: multi, body: search(`"page":null`), status: 400, has: "malformed"},
			{request: multi, body: search(`"page":[1]`), status: 400, has: "malformed"},
			{request: multi, body: search(`"other":{}`), status: 400, has: "malformed"},
			{request: multi, body: many(50), status: 200},
			{request: multi, body: many(51), status: 400, has: "limit_multi_searches"},
			{request: multi + "?limit_multi_searches=51", body: many(51), status: 200},
			{request: multi, body: `{"searches":[]}`, status: 500},
			{request: multi, body: `{}`, status: 400, has: "Missing `searches`"},
			{request: multi, body: `[]`, status: 400},
			{request: multi, body: `{"searches":`, status: 400, has: "Bad JSON"},
		}},
		{name: "union means nothing here", steps: []step{
			{request: multi, body: `{"union":true,` + many(2)[1:], status: 200, has: `{"results":[`},
			{request: multi, body: `{"union":false,` + many(2)[1:], status: 200, has: `{"results":[`},
		}},
	})
}

// A search that is read again soon after a write is the engine's to keep fresh.
func TestTypesenseFactsFreshness(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	for i := range 5 {
		p.take(t, step{request: "POST /collections/NAME/documents", body: fmt.Sprintf(`{"title":"delta %d %s"}`, i,
			strings.Repeat(fmt.Sprint("x", i, " "), 9)), status: 201})
		p.take(t, step{request: searched + "?q=delta&query_by=title", status: 200, has: fmt.Sprintf(`"found":%d,`, i+1)})
	}
}
