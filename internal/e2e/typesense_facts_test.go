package e2e

import (
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

// fact is something that the server does. Its steps are taken directly, with a collection that we have never seen, and through
// the sidecar, with one that has our field: the server is to do what the fact says, and both replies are to be the same.
type fact struct {
	name  string
	steps []step
	// after, if set, looks at what the steps have left behind.
	after func(t *testing.T, p *duo)
}

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

// sketched fails the test unless the documents behind the sidecar have the sketch of their texts.
func (p *duo) sketched(t *testing.T, ids ...string) {
	t.Helper()
	p.sketches(t, true, ids...)
}

// unsketched fails the test unless they have none.
func (p *duo) unsketched(t *testing.T, ids ...string) {
	t.Helper()
	p.sketches(t, false, ids...)
}

func (p *duo) sketches(t *testing.T, want bool, ids ...string) {
	t.Helper()
	rule := ownRule(t)
	for _, id := range ids {
		stored := p.direct.get(t, p.names[1], id)
		computed, found := rule.SketchOf(stored)
		right := computed != nil && found != nil && computed.Text == found.Text
		if right != want || !want && adapters.HasSketch(stored) {
			t.Errorf("%s has its sketch: %v, want %v: %s", id, right, want, stored)
		}
	}
}

// checkFacts takes the steps of each fact, with collections of its own.
func checkFacts(t *testing.T, schema string, documents []string, facts []fact) {
	p := newDuo(t, "")
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) {
			q := p.renew(t, schema, documents...)
			for _, s := range f.steps {
				q.take(t, s)
			}
			if f.after != nil {
				f.after(t, q)
			}
		})
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

func TestTypesenseFactsCollections(t *testing.T) {
	const unindexed = `{"name":"NAME","fields":[{"name":"title","type":"string"},{"name":"u","type":"string","index":false,` +
		`"optional":true}]}`
	checkFacts(t, "", nil, []fact{
		{name: "a collection is made once", steps: []step{
			{request: "POST /collections", body: factSchema, status: 201, has: `"num_documents":0`},
			{request: "POST /collections", body: factSchema, status: 409, has: "already exists"},
		}},
		{name: "what is not indexed is optional and no facet", steps: []step{
			{request: "POST /collections", body: strings.Replace(unindexed, `,"optional":true`, "", 1), status: 400,
				has: "must be optional"},
			{request: "POST /collections", body: strings.Replace(unindexed, `"optional"`, `"facet":true,"optional"`, 1), status: 400,
				has: "cannot be a facet"},
		}},
		{name: "what is not indexed is stored, checked, and not found", steps: []step{
			{request: "POST /collections", body: unindexed, status: 201},
			{request: "POST /collections/NAME/documents", body: `{"id":"1","title":"one of many","u":"x"}`, status: 201, has: `"u":"x"`},
			{request: "POST /collections/NAME/documents", body: `{"id":"2","title":"two of many","u":7}`, status: 400,
				has: "must be a string"},
			{request: "GET /collections/NAME/documents/search?q=x&query_by=u", status: 400, has: "non-indexed"},
			{request: "GET /collections/NAME/documents/search?q=one&query_by=title&sort_by=u:asc", status: 404},
			{request: "GET /collections/NAME/documents/search?q=one&query_by=title&facet_by=u", status: 404},
			{request: "GET /collections/NAME/documents/search?q=one&query_by=title&filter_by=u:=x", status: 200, has: `"found":0`},
		}},
		{name: "undeclared members are stored; under a pattern they are indexed, ours is not", steps: []step{
			{request: "POST /collections", body: `{"name":"NAME","fields":[{"name":".*","type":"auto"}]}`, status: 201},
			{request: "POST /collections/NAME/documents", body: factDocuments[0], status: 201, has: `"k":"a"`},
			{request: "GET /collections/NAME", status: 200, has: `"index":true,"infix":false,"locale":"","name":"k"`},
			{request: "GET /collections/NAME/documents/search?q=alpha&query_by=title", status: 200, has: `"found":1`},
		}, after: func(t *testing.T, p *duo) {
			p.sketched(t, "1")
			schema := call(t, p.direct.e, "GET", p.direct.base+"/collections/"+p.names[1], "").want(t, 200)
			if !strings.Contains(string(schema.body), `"index":false,"infix":false,"locale":"","name":"neardup_sketch"`) {
				t.Errorf("our field is declared otherwise: %s", schema.body)
			}
		}},
		{name: "a field can be declared later, and is by the first write", after: func(t *testing.T, p *duo) {
			for i := range p.names { // both past the sidecar
				call(t, p.direct.e, "POST", p.direct.base+"/collections", p.named(i, factSchema)).want(t, 201)
			}
			p.take(t, step{request: "POST /collections/NAME/documents", body: factDocuments[0], status: 201})
			p.sketched(t, "1")
			p.take(t, step{request: "GET /collections/NAME", status: 200, lacks: adapters.SketchField})
		}},
		{name: "dropping an alias drops the collection", steps: []step{
			{request: "POST /collections", body: factSchema, status: 201},
			{request: "POST /collections/NAME/documents", body: factDocuments[0], status: 201},
			{request: "PUT /aliases/NAME-a", body: `{"collection_name":"NAME"}`, status: 200},
			{request: "GET /collections/NAME-a/documents/1", status: 200},
			{request: "DELETE /collections/NAME-a", status: 200, has: `"num_documents":1`},
			{request: "GET /collections/NAME", status: 404},
			{request: "GET /aliases/NAME-a", status: 200},
			{request: "POST /collections", body: factSchema, status: 201},
			{request: "POST /collections/NAME-a/documents", body: factDocuments[1], status: 201},
			{request: "DELETE /aliases/NAME-a", status: 200},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "2") }},
	})
}

func TestTypesenseFactsDocuments(t *testing.T) {
	const documents = "/collections/NAME/documents"
	whole := func(title string) string {
		return `{"id":"9","title":"` + title + `","body":"` + strings.Repeat(title+" ", 9) + `","n":9}`
	}
	checkFacts(t, factSchema, factDocuments, []fact{
		{name: "every action answers the whole stored document", steps: []step{
			{request: "POST " + documents, body: whole("one"), status: 201, has: `"n":9`},
			{request: "POST " + documents, body: whole("one"), status: 409, has: "already exists"},
			{request: "POST " + documents + "?action=upsert", body: whole("two"), status: 201, has: `"title":"two"`},
			{request: "POST " + documents + "?action=update", body: `{"id":"9","n":10}`, status: 201, has: `"title":"two"`},
			{request: "POST " + documents + "?action=emplace", body: `{"id":"9","n":11}`, status: 201, has: `"title":"two"`},
			{request: "PATCH " + documents + "/9", body: `{"n":12}`, status: 201, has: `"title":"two"`},
			{request: "DELETE " + documents + "/9", status: 200, has: `"n":12`},
			{request: "POST " + documents + "?action=emplace", body: whole("three"), status: 201, has: `"title":"three"`},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "9", "1") }},
		{name: "upsert replaces, the others merge, null deletes", steps: []step{
			{request: "POST " + documents + "?action=upsert", body: `{"id":"1","title":"short one of some words"}`, status: 201,
				exact: `{"id":"1","title":"short one of some words"}`},
			{request: "POST " + documents + "?action=update", body: `{"id":"2","k":"z"}`, status: 201, has: `"title":"alpha nine bakers"`},
			{request: "PATCH " + documents + "/3", body: `{"n":null}`, status: 201, lacks: `"n":`},
			{request: "POST " + documents + "?action=emplace", body: `{"id":"a/b","body":null}`, status: 201, lacks: `"body":`},
			{request: "PATCH " + documents + "/nope", body: `{"n":1}`, status: 404},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "1", "2", "3"); p.unsketched(t, "a%2Fb") }},
		{name: "a part of the text clears the sketch, all of it renews it", steps: []step{
			{request: "PATCH " + documents + "/1", body: `{"title":"gamma of another name"}`, status: 201, has: `"title":"gamma`},
			{request: "PATCH " + documents + "/2", body: `{"title":"gamma","body":"all of another text than before, at some length"}`,
				status: 201, has: `"n":2`},
			{request: "POST " + documents + "?action=update", body: `{"id":"3","body":"of another text alone"}`, status: 201,
				has: `"n":3`},
		}, after: func(t *testing.T, p *duo) { p.unsketched(t, "1", "3"); p.sketched(t, "2") }},
		{name: "stored JSON is written anew", steps: []step{
			{request: "POST " + documents, body: `{"z":1e3,"title":"first","b":[ 1.50, {"y":1,"x":2} ],"id":"9","big":9007199254740993,` +
				`"title":"last"}`,
				status: 201, exact: `{"b":[1.5,{"x":2,"y":1}],"big":9007199254740993,"id":"9","title":"last","z":1000.0}`},
			{request: "GET " + documents + "/9", status: 200,
				exact: `{"b":[1.5,{"x":2,"y":1}],"big":9007199254740993,"id":"9","title":"last","z":1000.0}`},
		}, after: func(t *testing.T, p *duo) { p.unsketched(t, "9") }}, // which of two titles counts we do not guess
		{name: "this server knows no PATCH by a filter", steps: []step{
			{request: "PATCH " + documents + "?filter_by=n:1", body: `{"title":"other"}`, status: 404, has: "Not Found"},
			{request: "GET " + documents + "/1", status: 200, has: "alpha harbour wall"},
		}, after: func(t *testing.T, p *duo) { p.sketched(t, "1") }},
		{name: "deleting by a filter answers a number", steps: []step{
			{request: "DELETE " + documents + "?filter_by=n:%3E2", status: 200, exact: `{"num_deleted":2}`},
			{request: "DELETE " + documents, status: 400},
			{request: "GET " + documents + "/3", status: 404},
		}},
	})
}
