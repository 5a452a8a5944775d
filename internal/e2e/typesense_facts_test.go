package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// step is a request and what its reply is like. NAME stands for the collection.
type step struct {
	request string // METHOD path
	body    string
	header  []string // names and values
	status  int
	has     string // stands in the reply
	lacks   string // does not
	exact   string // is the reply
	// apart says why the two replies differ; then they are not compared.
	apart string
}

// duo is two collections alike: one on the engine alone, one behind a sidecar.
type duo struct {
	direct, through api
	names           [2]string // as long as one another
}

var duos atomic.Int32

// ownPrefix begins the names of the collections behind the sidecars of these tests.
func ownPrefix(side string) string { return fmt.Sprintf("ts%s%d-", side, os.Getpid()) }

// newDuo starts a sidecar and makes two collections through their sides. An empty schema makes none.
func newDuo(t *testing.T, schema string, documents ...string) *duo {
	t.Helper()
	e := engines.Shared(t, engines.Typesense)
	p := &duo{direct: api{e, e.URL}, through: api{e, serve(t, e, setup{match: ownPrefix("t") + "*"})}}
	return p.renew(t, schema, documents...)
}

// renew returns a duo of other collections on the same sides.
func (p *duo) renew(t *testing.T, schema string, documents ...string) *duo {
	t.Helper()
	n := duos.Add(1)
	q := &duo{direct: p.direct, through: p.through, names: [2]string{}}
	for i, side := range []string{"d", "t"} {
		q.names[i] = fmt.Sprintf("%s%04d", ownPrefix(side), n)
		a := q.side(i)
		a.drop(t, q.names[i])
		if schema == "" {
			continue
		}
		call(t, a.e, "POST", a.base+"/collections", q.named(i, schema)).want(t, 201)
		if len(documents) > 0 {
			a.loadLines(t, q.names[i], strings.Join(documents, "\n"))
		}
	}
	return q
}

func (p *duo) side(i int) api { return [2]api{p.direct, p.through}[i] }

// named puts a collection's name into a request.
func (p *duo) named(i int, text string) string { return strings.ReplaceAll(text, "NAME", p.names[i]) }

var unsteady = regexp.MustCompile(`"(search_time_ms|created_at)":\d+`)

// unnamed takes out of a reply what differs between two collections and two moments.
func (p *duo) unnamed(i int, body []byte) string {
	return unsteady.ReplaceAllString(strings.ReplaceAll(string(body), p.names[i], "NAME"), `"$1":0`)
}

// ask sends a request on one side.
func (p *duo) ask(t *testing.T, i int, request, body string, header ...string) reply {
	t.Helper()
	method, path, _ := strings.Cut(p.named(i, request), " ")
	a := p.side(i)
	named := make([]string, len(header))
	for k, h := range header {
		named[k] = p.named(i, h)
	}
	return call(t, a.e, method, a.base+path, p.named(i, body), named...)
}

// both sends a request on both sides and compares the replies.
func (p *duo) both(t *testing.T, request, body string, header ...string) reply {
	t.Helper()
	one, two := p.ask(t, 0, request, body, header...), p.ask(t, 1, request, body, header...)
	p.alike(t, request+" "+body, one, two)
	return two
}

// alike fails the test unless two replies are the same in status, type, CORS and body.
func (p *duo) alike(t *testing.T, what string, one, two reply) {
	t.Helper()
	if one.status != two.status {
		t.Errorf("%.300s: directly %d, through us %d %.300s", what, one.status, two.status, two.body)
		return
	}
	for _, key := range []string{"Content-Type", "Access-Control-Allow-Origin"} {
		if a, b := one.header.Get(key), two.header.Get(key); a != b {
			t.Errorf("%.300s: %s is directly %q, through us %q", what, key, a, b)
		}
	}
	if diff := cmp.Diff(p.unnamed(0, one.body), p.unnamed(1, two.body)); diff != "" {
		t.Errorf("%.300s: directly (-), through us (+):\n%.2000s", what, diff)
	}
}

// take takes a step on both sides.
func (p *duo) take(t *testing.T, s step) {
	t.Helper()
	var replies [2]reply
	for i, side := range []string{"directly", "through us"} {
		r := p.ask(t, i, s.request, s.body, s.header...)
		replies[i] = r
		body := p.unnamed(i, r.body)
		if r.status != s.status {
			t.Errorf("%.200s %s: status %d, want %d: %.400s", s.request, side, r.status, s.status, body)
		}
		if s.has != "" && !strings.Contains(body, s.has) || s.lacks != "" && strings.Contains(body, s.lacks) ||
			s.exact != "" && body != s.exact {
			t.Errorf("%.200s %s: %.1000s\nwant: %s, none of: %s", s.request, side, body, s.exact+s.has, s.lacks)
		}
	}
	if s.apart == "" {
		p.alike(t, s.request, replies[0], replies[1])
	}
	if strings.Contains(string(replies[1].body), adapters.SketchField) && !strings.Contains(s.request+s.body, adapters.SketchField) {
		t.Errorf("%.200s shows our field: %.600s", s.request, replies[1].body)
	}
}

const factSchema = `{"name":"NAME","fields":[{"name":"title","type":"string"},{"name":"body","type":"string","optional":true},` +
	`{"name":"n","type":"int32","facet":true,"optional":true},{"name":"k","type":"string","facet":true,"optional":true}]}`

// The texts of the documents are far from one another, so that nothing folds: what is seen is the server's.
var factDocuments = []string{
	`{"id":"1","title":"alpha harbour wall","body":"a stretch of the old harbour wall fell into the water before dawn","n":1,` +
		`"k":"a"}`,
	`{"id":"2","title":"alpha nine bakers","body":"nine bakers from the upper town rowed a borrowed boat to a win","n":2,"k":"a"}`,
	`{"id":"3","title":"alpha owls return","body":"after thirty years the barn owls are back in the tower by the mill","n":3,` +
		`"k":"b"}`,
	`{"id":"a/b","title":"beta slow trains","body":"no train ran on the branch line for most of the snowy week","n":4}`,
}

// What the facts say of the server itself (its packages, how it starts and stops, its memory) is held by internal/engines.

const (
	searched = "GET /collections/NAME/documents/search"
	multi    = "POST /multi_search"
)

// decode reads JSON.
func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
}

// sketched fails the test unless the documents behind the sidecar have the sketch of their texts.
func (p *duo) sketched(t *testing.T, ids ...string) {
	t.Helper()
	rule := ruleOfTests(t)
	for _, id := range ids {
		if stored := p.direct.get(t, p.names[1], id); !adapters.HasSketch(stored) || wrong(rule, stored) != "" {
			t.Errorf("%s is stored as %s", id, stored)
		}
	}
}

// TestTypesenseFacts holds what the adapter builds on (docs/decisions/009-typesense-facts.md) against the server.
func TestTypesenseFacts(t *testing.T) {
	const title = searched + "?query_by=title&include_fields=id,n&"
	const one = `{"collection":"NAME","q":"alpha","query_by":"title","include_fields":"id","per_page":1}`
	many := func(n int) string { return `{"searches":[` + strings.Repeat(one+",", n-1) + one + `]}` }
	const imported = "POST /collections/NAME/documents/import"
	p := newDuo(t, factSchema, factDocuments...)
	t.Cleanup(func() {
		for _, name := range p.names {
			p.direct.clear(t, "/presets/"+name)
			p.direct.clear(t, "/aliases/"+name+"-a")
		}
	})
	for _, s := range []step{
		{request: title + "q=*&per_page=250", status: 200, has: `"per_page":250`},
		{request: title + "q=*&per_page=251", status: 422, has: "250 hits"},
		{request: title + "q=*&per_page=0", status: 200, has: `"found":4,"hits":[],"out_of":4,"page":1`},
		{request: title + "q=*&limit=1&offset=2", status: 200, has: `"id":"1"`}, // of newer servers
		{request: title + "q=*&limit_hits=2&per_page=3", status: 422, has: "Only upto 2 hits"},
		{request: title + "q=*&filter_by=n:%3E1&filter_by=n:%3C3", status: 200, has: `"found":1`},
		{request: title + "q=beta&q=alpha&per_page=9&per_page=1", status: 200, has: `"found":3`},
		{request: searched + "?query_by=title&q=alpha&include_fields=t*,n", status: 200, has: `{"document":{"n":3},`},
		{request: title + "q=alpha&x=" + strings.Repeat("a", 4000), status: 400},
		{request: title + "q=*&pinned_hits=1:1", status: 200, has: `"hits":[{"curated":true,"document":{"id":"1"`},
		{request: "GET /collections/NAME-nope/documents/1?collection=NAME", status: 200, has: "harbour"},
		{request: "GET /collections/NAME/documents/x?id=1", status: 200, has: "harbour"},
		{request: multi, body: `{"searches":[{"collection":"NAME-nope","q":"*"},` + one + `]}`, status: 200,
			has: `{"results":[{"code":404,"error":"Not found."},{"facet_counts":`},
		{request: "PUT /presets/NAME", body: `{"value":{"q":"beta","query_by":"title","per_page":2,"collection":"NAME-nope"}}`, status: 200},
		{request: multi, body: `{"searches":[{"preset":"NAME","collection":"NAME"}]}`, status: 200, has: `"per_page":2,"q":"beta"`},
		{request: multi + "?q=owls&per_page=3", body: many(1), status: 200, has: `"per_page":3,"q":"owls"`},
		{request: multi + "?collection=NAME-nope", body: many(1), status: 200, has: `"code":404`},
		{request: multi, body: many(50), status: 200},
		{request: multi, body: many(51), status: 400, has: "limit_multi_searches"},
		{request: multi, body: `{"searches":[]}`, status: 500},
		{request: multi, body: `{"union":true,` + many(2)[1:], status: 200, has: `{"results":[`},
		{request: imported + "?action=update&return_doc=true", body: `{"id":"1","n":5}`, status: 200, has: `"title":"alpha harbour wall"`},
		{request: imported, body: ` {"id":"1" , "title":"dup"}` + "\n\nnonsense\n  \n", status: 200,
			has: `{"code":409,"document":" {\"id\":\"1\" , \"title\":\"dup\"}","error":"A document with id 1 already exists.","success":false}` + "\n" +
				`{"code":400,"document":"nonsense"`},
		{request: "POST /collections/NAME/documents", body: `{"z":1e3,"title":"last","b":[ 1.50, {"y":1,"x":2} ],"id":"9"}`, status: 201,
			exact: `{"b":[1.5,{"x":2,"y":1}],"id":"9","title":"last","z":1000.0}`}, // stored JSON is written anew
		{request: "PATCH /collections/NAME/documents?filter_by=n:1", body: `{"title":"other"}`, status: 404}, // of newer servers
		{request: "PUT /aliases/NAME-a", body: `{"collection_name":"NAME"}`, status: 200},
		{request: "DELETE /collections/NAME-a", status: 200, has: `"num_documents":5`},
		{request: "GET /collections/NAME", status: 404},
		{request: "POST /collections/NAME/documents", body: factDocuments[0], status: 404}, // no write makes a collection
		{request: "POST /collections", body: factSchema, status: 201},
		{request: "POST /collections/NAME-a/documents", body: factDocuments[1], status: 201},
	} {
		p.take(t, s)
	}
	p.sketched(t, "2")
}

// TestTypesenseOddFieldNames has fields that are called as something of ours might be. This server never answers a search that highlights
// a field which is not indexed.
func TestTypesenseOddFieldNames(t *testing.T) {
	schema := strings.Replace(factSchema, `{"name":"n"`, `{"name":"none","type":"string","index":false,"optional":true},{"name":"n"`, 1)
	var documents []string
	for i := range 40 {
		documents = append(documents, fmt.Sprintf(`{"id":"%d","title":"alpha","none":"x","body":"%s","neardup":"y"}`, i,
			strings.Repeat(fmt.Sprintf("w%d ", i), 9)))
	}
	p := newDuo(t, schema, documents...)
	for _, request := range []string{searched + "?q=alpha&query_by=title&per_page=5&page=4",
		searched + "?q=alpha&query_by=title&include_fields=none,neardup", "GET /collections/NAME/documents/3"} {
		p.both(t, request, "")
	}
}
