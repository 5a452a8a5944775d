package e2e

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// readCase is a request of which the reply is compared: METHOD path, and a body. INDEX stands for the index's name.
type readCase struct {
	request, body string
	// loose says that the engine writes the members of the reply in an order that depends on our field being there too: they are
	// compared without one.
	loose bool
}

// answered is what is compared of a reply.
type answered struct {
	Status int
	Header map[string][]string
	Body   string
}

// masked is what two replies to the same request always differ in.
var masked = regexp.MustCompile(`("(?:took|creation_date|creation_date_string|uuid|_scroll_id|pit_id|id|creation_time|throttled_millis|[a-z_]*millis)" ?: ?)(?:\d+|"[^"]{13,}")`)

// twins loads the same documents into an index directly, and through sidecars into an index of the same name, and asks the same of
// all: of a rule with the sketch alone, and of one with all fields of ours.
func twins(t *testing.T, e *engines.Engine, index string, prepare func(t *testing.T, a api), ask func(t *testing.T, a api) map[string]answered) {
	t.Helper()
	direct := api{e, e.URL}
	direct.drop(t, index)
	remove := func() { call(t, e, "DELETE", e.URL+"/"+index, "") }
	remove()
	prepare(t, direct)
	want := ask(t, direct)
	for field, r := range map[string]string{rule.SketchField: "", rule.ClusterField: "bands: auto\non_duplicate: tag"} {
		remove()
		through := api{e, serve(t, e, setup{match: index, rule: r})}
		prepare(t, through)
		body := call(t, e, "GET", e.URL+"/"+index+"/_mapping", "").want(t, 200).body
		if !bytes.Contains(body, []byte(field)) || bytes.Contains(body, []byte(rule.BandsField)) != (r != "") {
			t.Fatalf("our field %s is not there, or another is: %s", field, body)
		}
		got := ask(t, through)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if r != "" && strings.Contains(name, "_validate/query?rewrite") { // a query over all fields says which: see decision 023
				continue
			}
			expect.Same(t, want[name], got[name], "%s, with %s: directly (-), through us (+)", name, field)
		}
	}
}

// fetch sends a request and returns what is compared of its reply.
func (a api) fetch(t *testing.T, method, path, body string, loose bool, header ...string) answered {
	t.Helper()
	r := call(t, a.e, method, a.base+path, body, header...)
	out := answered{Status: r.status, Header: map[string][]string{}}
	for key, values := range r.header {
		if !slices.Contains([]string{"Date", "Neardup", "Access-Control-Expose-Headers", "Task_resource_usage", "Content-Length"}, http.CanonicalHeaderKey(key)) {
			out.Header[key] = values
		}
	}
	plain := decoded(t, r)
	if length := r.header.Get("Content-Length"); length != "" {
		out.Header["Content-Length"] = []string{"of the body"}
		same(t, fmt.Sprint(len(r.body)), length, "%s %s: Content-Length", method, path)
	}
	if strings.HasSuffix(strings.Split(path, "?")[0], "search") { // a collapsed one is answered when it is whole, and so with its length
		delete(out.Header, "Content-Length")
	}
	if strings.Contains(path, "filter_path=") && strings.Contains(path, "_search") { // its sources keep the notation in which they were sent
		plain = values(masked.ReplaceAll(plain, []byte("${1}0")))
	}
	if strings.Contains(path, "_validate/query?rewrite") { // a query over all fields names them in any order
		parts := strings.FieldsFunc(string(plain), func(r rune) bool { return strings.ContainsRune("()| ", r) })
		slices.Sort(parts)
		plain = []byte(strings.Join(parts, "\n"))
	}
	if loose {
		plain = sorted(plain)
	}
	head := min(len(plain), 1<<20) // of a large reply what is masked stands at the beginning
	out.Body = masked.ReplaceAllString(string(plain[:head]), "${1}0") + string(plain[head:])
	return out
}

// values returns the values of a JSON text, in their order and in one notation: a line each.
func values(text []byte) (lines []byte) {
	from := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := from.Token()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			return text
		}
		lines = fmt.Appendf(lines, "%#v\n", token)
	}
}

// decoded returns a reply's body less its encoding.
func decoded(t *testing.T, r reply) []byte {
	t.Helper()
	var z io.Reader
	var err error
	switch r.header.Get("Content-Encoding") {
	case "gzip":
		z, err = gzip.NewReader(bytes.NewReader(r.body))
	case "deflate":
		z, err = zlib.NewReader(bytes.NewReader(r.body))
	case "snappy":
		z = s2.NewReader(bytes.NewReader(r.body))
	default:
		return r.body
	}
	check(t, err)
	return must(io.ReadAll(z))(t)
}

// sorted returns JSON with the members of objects in the order of their keys.
func sorted(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return body
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return body
	}
	return out
}

// readable are documents in all kinds of fields; the last holds no text of ours, and so no sketch.
var readableDocuments = []string{
	`{ "title" : "one two three four five six", "body":"the river rose again last night and the ferry stays at its pier", "n":1.50, "sub":[{"t":"x"}], "s":"one", "k":"a" }`,
	`{"title":"two","n":2,"k":"b","o":{"p":{"q":[[],1e3],"z":{}}}}`,
	`{"body":"three 😀 \u00e9 \/","k":"neardup_sketch","x.y":1}`,
	`{"title":null,"k":"d"}`,
}

const readableMapping = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"title":{"type":"text","term_vector":"with_positions_offsets","fields":{"raw":{"type":"keyword"}}},"body":{"type":"text"},"n":{"type":"double"},
	"k":{"type":"keyword"},"sub":{"type":"nested","properties":{"t":{"type":"keyword"}}},"s":{"type":"completion"},"r":{"type":"long_range"}}}}`

func prepareReadable(index string) func(t *testing.T, a api) {
	return func(t *testing.T, a api) {
		t.Helper()
		call(t, a.e, "PUT", a.base+"/"+index, readableMapping).want(t, 200)
		for i, doc := range readableDocuments {
			call(t, a.e, "PUT", fmt.Sprintf("%s/%s/_doc/%d?refresh=true", a.base, index, i), doc).want(t, 201)
		}
	}
}

// steadyReads are reads that change nothing.
var steadyReads = []readCase{
	{request: "GET /INDEX/_doc/0"}, {request: "GET /INDEX/_doc/nope"}, {request: "GET /INDEX/_doc/0?_source=neardup*"}, {request: "GET /INDEX/_doc/0?_source_includes=n*,title"},
	{request: "GET /INDEX/_doc/0?_source_excludes=*"}, {request: "GET /INDEX/_doc/0?_source=false"}, {request: "GET /INDEX/_doc/0?stored_fields=*"}, {request: "GET /INDEX/_doc/3"},
	{request: "GET /INDEX/_source/0"}, {request: "GET /INDEX/_source/1?_source_includes=near*"}, {request: "GET /INDEX/_source/3"},
	{request: "GET /INDEX/_mget", body: `{"ids":["0","1","2","3","nope"]}`}, {request: "POST /_mget", body: `{"docs":[{"_index":"INDEX","_id":"0","_source":["near*"]},{"_index":"INDEX","_id":"1","_source":{"includes":["*"],"excludes":["t*"]}}]}`},
	{request: "GET /INDEX/_mget?_source=n*&stored_fields=*", body: `{"ids":["0"]}`},
	{request: "GET /INDEX/_mapping"}, {request: "GET /INDEX"}, {request: "GET /INDEX/_mappings"},
	{request: "GET /INDEX/_mapping/field/*", loose: true}, {request: "GET /INDEX/_mapping/field/near*"}, {request: "GET /INDEX/_mapping/field/n*", loose: true},
	{request: "GET /INDEX/_mapping/field/*?include_defaults=true", loose: true},
	{request: "GET /INDEX/_field_caps?fields=*", loose: true}, {request: "GET /INDEX/_field_caps?fields=near*", loose: true}, {request: "GET /INDEX/_field_caps?fields=n*,k", loose: true},
	{request: "POST /INDEX/_field_caps?fields=*&include_unmapped", body: `{"index_filter":{"match_all":{}}}`, loose: true},
	{request: "GET /INDEX/_explain/0?_source=true", body: `{"query":{"match":{"title":"one"}}}`}, {request: "GET /INDEX/_explain/0?_source_includes=near*", body: `{"query":{"match_all":{}}}`},
	{request: "POST /INDEX/_explain/0?stored_fields=*", body: `{"query":{"match_all":{}}}`},
	{request: "GET /INDEX/_termvectors/0?fields=*", loose: true}, {request: "GET /INDEX/_termvectors/0"}, {request: "POST /INDEX/_mtermvectors", body: `{"ids":["0","2"],"parameters":{"fields":["*"]}}`, loose: true},
	{request: "POST /INDEX/_termvectors", body: `{"doc":{"title":"one"}}`},
	{request: "GET /INDEX/_validate/query?explain=true&q=title:one"}, {request: "POST /INDEX/_validate/query?rewrite=true", body: `{"query":{"query_string":{"query":"A*"}}}`},
	{request: "POST /INDEX/_search?scroll=1m", body: `{"sort":["_doc"],"size":2}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"fields":["*"],"docvalue_fields":["k*"],"script_fields":{"x":{"script":"params._source"}}}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"_source":false,"fields":["neardup*"]}`}, {request: "POST /INDEX/_search", body: `{"sort":["_doc"],"_source":["**"]}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"docvalue_fields":["near*"],"_source":["near*"]}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"stored_fields":["*"]}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"query":{"query_string":{"query":"one"}},"highlight":{"fields":{"*":{"no_match_size":50}},"require_field_match":false}}`, loose: true},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"query":{"query_string":{"query":"one"}},"highlight":{"fields":{"near*":{"no_match_size":50}}},"explain":true}`},
	{request: "POST /INDEX/_search", body: `{"size":0,"aggs":{"fields":{"top_hits":{"size":3,"_source":["near*"]}},"c":{"top_hits":{"size":1,"fields":["near*"],"_source":false}},"d":{"terms":{"field":"k"},"aggs":{"e":{"top_hits":{}}}}}}`},
	{request: "POST /INDEX/_search", body: `{"sort":["_doc"],"query":{"nested":{"path":"sub","query":{"match_all":{}},"inner_hits":{"fields":["*"]}}}}`},
	{request: "POST /INDEX/_search", body: `{"suggest":{"x":{"prefix":"o","completion":{"field":"s"}}}}`},
	{request: "POST /_msearch", body: "{\"index\":\"INDEX\"}\n{\"sort\":[\"_doc\"],\"fields\":[\"near*\"]}\n{\"index\":\"INDEX\"}\n{\"sort\":[\"_doc\"]}\n"},
	{request: "POST /INDEX/_count"}, {request: "GET /INDEX/_settings"}, {request: "GET /INDEX/_search_shards?filter_path=indices"}, {request: "POST /INDEX/_analyze", body: `{"field":"title","text":"One"}`},
}

// TestReadsAreTheEnginesOwn compares the replies to all that shows documents or mappings: plain, pretty-printed, compressed, and with
// filters.
func TestReadsAreTheEnginesOwn(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		index := "reads-equal"
		list := slices.Clone(steadyReads)
		if e.Kind == engines.Elasticsearch {
			list = append(list, readCase{request: "GET /INDEX?features=mappings"}, readCase{request: "POST /INDEX/_field_caps?filters=-metadata&types=keyword,binary", body: `{"fields":["*"]}`, loose: true},
				readCase{request: "POST /_ingest/INDEX/_simulate", body: `{"docs":[{"_id":"1","_source":{"title":"one"}}]}`}, readCase{request: "POST /INDEX/_terms_enum", body: `{"field":"k","string":""}`}, readCase{request: "GET /INDEX/_doc/0?format=json&human=true&error_trace=true"})
		} else {
			list = append(list, readCase{request: "POST /INDEX/_search/template", body: `{"source":{"sort":["_doc"],"fields":["near*"]}}`},
				readCase{request: "POST /_msearch/template", body: "{\"index\":\"INDEX\"}\n{\"source\":{\"sort\":[\"_doc\"]}}\n"},
				readCase{request: "POST /INDEX/_rank_eval", body: `{"requests":[{"id":"q","request":{"query":{"match_all":{}}},"ratings":[{"_index":"INDEX","_id":"1","rating":1}]}],"metric":{"precision":{"k":2}}}`})
		}
		seed := effort.Seed(t)
		twins(t, e, index, prepareReadable(index), func(t *testing.T, a api) map[string]answered {
			got := map[string]answered{}
			for _, c := range list {
				r := rand.New(rand.NewPCG(seed, 1)) // the same for each of the two
				method, path, _ := strings.Cut(strings.ReplaceAll(c.request, "INDEX", index), " ")
				if !strings.Contains(path, "?") {
					path += "?"
				}
				body := strings.ReplaceAll(c.body, "INDEX", index)
				variants := []string{"", "&pretty&human"}
				for range effort.Rounds(3) {
					variants = append(variants, "&filter_path="+url.QueryEscape(readsFilter(r, !strings.Contains(c.request+c.body, "near")))+[]string{"", "&pretty"}[r.IntN(2)])
				}
				for _, more := range variants {
					got[c.request+more+" "+c.body] = a.fetch(t, method, path+more, body, c.loose)
				}
				for _, encoding := range []string{"gzip", "deflate"} {
					got[c.request+" "+c.body+" "+encoding] = a.fetch(t, method, path, body, c.loose, "Accept-Encoding", encoding)
				}
			}
			return got
		})
	})
}

// readsFilter returns a filter that leads to where our field would be, or past it. It takes out only where that is said to be possible:
// whether an object was empty before Elasticsearch took something out of it can't be told from a reply, and one that holds our field
// alone since nothing else was asked for is taken not to have been.
func readsFilter(r *rand.Rand, takesOut bool) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var filters []string
	for range 1 + r.IntN(2) {
		sign := pick("", "", "-")
		if !takesOut {
			sign = ""
		}
		filters = append(filters, sign+pick("", "**.", "*.", "hits.hits.", "docs.", "*.mappings.", "get.", "responses.hits.hits.", "aggregations.*.hits.hits.")+
			pick("_source", "fields", "properties", "mappings", "highlight", "*", "_source", "properties")+pick("", ".*", ".n*", ".near*", ".title", ".near*.*", ".**"))
	}
	return strings.Join(filters, ",")
}

// TestRepliesToChangesAreTheEnginesOwn compares the replies to what changes documents and shows them, or quotes them in an error.
func TestRepliesToChangesAreTheEnginesOwn(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "reads-changes"
	long := `"body":"` + strings.Repeat("many words ", 30) + `"`
	tooBig := `"r":{"gte":123456789012345678901234567890}`
	list := []readCase{
		{request: "POST /INDEX/_update/0?_source=true", body: `{"doc":{"n":7}}`}, {request: "POST /INDEX/_update/0?_source=near*", body: `{"doc":{"title":"four new words"}}`},
		{request: "POST /INDEX/_update/0", body: `{"doc":{"title":"one two","body":"three"},"_source":["*"]}`},
		{request: "POST /INDEX/_update/1?filter_path=get._source.near*", body: `{"doc":{"n":7},"_source":true}`},
		{request: "POST /_bulk", body: "{\"update\":{\"_index\":\"INDEX\",\"_id\":\"0\",\"_source\":true}}\n{\"doc\":{\"n\":8}}\n{\"update\":{\"_index\":\"INDEX\",\"_id\":\"1\"}}\n{\"doc\":{\"n\":8}}\n"},
		{request: "POST /_bulk?_source=n*&filter_path=items.*.get", body: "{\"update\":{\"_index\":\"INDEX\",\"_id\":\"0\"}}\n{\"doc\":{\"n\":9}}\n"},
		{request: "PUT /INDEX/_doc/9", body: `{"title":"some words",` + tooBig + `}`}, {request: "POST /INDEX/_doc?filter_path=error.*.reason", body: `{` + tooBig + `,"title":"some words"}`},
		{request: "PUT /INDEX/_create/9", body: `{"title":"some words",` + tooBig + "\n,\n" + `"k":"\"}"}`},
		{request: "POST /_bulk", body: "{\"index\":{\"_index\":\"INDEX\"}}\n{\"title\":\"some words\"," + tooBig + "}\n{\"create\":{\"_index\":\"INDEX\",\"_id\":\"9\"}}\n{\"title\":\"some words\"}\n"},
		{request: "PUT /INDEX/_doc/9", body: `{"title":"some words",` + long + `,` + tooBig + `}`}, // quoted up to within our field
		{request: "POST /INDEX/_update_by_query?refresh=true&conflicts=proceed", body: `{"query":{"ids":{"values":["2"]}},"script":"ctx._source.n=1"}`},
		{request: "POST /INDEX/_delete_by_query?refresh=true", body: `{"query":{"ids":{"values":["3"]}}}`},
		{request: "GET /INDEX/_doc/2"}, {request: "DELETE /INDEX/_doc/1"},
	}
	twins(t, e, index, prepareReadable(index), func(t *testing.T, a api) map[string]answered {
		got := map[string]answered{}
		for i, c := range list {
			method, path, _ := strings.Cut(strings.ReplaceAll(c.request, "INDEX", index), " ")
			r := a.fetch(t, method, path, strings.ReplaceAll(c.body, "INDEX", index), c.loose)
			r.Body = madeUp.ReplaceAllString(r.Body, `"_id":""`)
			r.Body = inDocumentOf.ReplaceAllString(r.Body, "in document with id ''")
			delete(r.Header, "Location")
			got[fmt.Sprint(i, " ", c.request, " ", c.body)] = r
		}
		return got
	})
}

// Ids that the engine makes up.
var (
	madeUp       = regexp.MustCompile(`"_id":"[A-Za-z0-9_-]{20}"`)
	inDocumentOf = regexp.MustCompile(`in document with id '[A-Za-z0-9_-]{20}'`)
)
