package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

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
func (p *duo) both(t *testing.T, request, body string) {
	t.Helper()
	p.alike(t, request+" "+body, p.ask(t, 0, request, body), p.ask(t, 1, request, body))
}

// alike fails the test unless two replies are the same in status, type, CORS and body.
func (p *duo) alike(t *testing.T, what string, one, two reply) {
	t.Helper()
	if one.status != two.status {
		t.Errorf("%.300s: directly %d, through us %d %.300s", what, one.status, two.status, two.body)
		return
	}
	for _, key := range []string{"Content-Type", "Access-Control-Allow-Origin"} {
		same(t, one.header.Get(key), two.header.Get(key), "%.300s: %s", what, key)
	}
	same(t, p.unnamed(0, one.body), p.unnamed(1, two.body), "%.300s: directly (-), through us (+)", what)
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

const (
	searched = "GET /collections/NAME/documents/search"
	multi    = "POST /multi_search"
)

// sketched fails the test unless the documents behind the sidecar have the sketch of their texts.
func (p *duo) sketched(t *testing.T, ids ...string) {
	t.Helper()
	r := ruleOfTests(t)
	for _, id := range ids {
		if stored := p.direct.get(t, p.names[1], id); !rule.HasSketch(stored) || wrong(r, stored) != "" {
			t.Errorf("%s is stored as %s", id, stored)
		}
	}
}

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
	one := effort.Seed(t)
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

// newKey makes a key and returns its value. It is deleted when the test ends.
func newKey(t *testing.T, e *engines.Engine, actions, collections string) string {
	t.Helper()
	var key struct {
		ID    int
		Value string
	}
	body := fmt.Sprintf(`{"description":"of a test","actions":[%s],"collections":[%s]}`, actions, collections)
	decode(t, call(t, e, "POST", e.URL+"/keys", body).want(t, 201).body, &key)
	t.Cleanup(func() { api{e, e.URL}.clear(t, fmt.Sprintf("/keys/%d", key.ID)) })
	return key.Value
}

// scopedOf makes a key of parameters that the engine puts over those of every search.
func scopedOf(key, params string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(params))
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(mac.Sum(nil)) + key[:4] + params))
}

// TestTypesenseKeysApart has a key that is good for one collection ask for another that other keys have just used.
func TestTypesenseKeysApart(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	q := p.renew(t, factSchema, factDocuments...)
	e := p.direct.e
	limited := newKey(t, e, `"*"`, `"`+p.names[1]+`"`)
	for range 2 {
		for name, key := range map[string]string{"all": e.Key, "limited": limited, "bad": "bad"} {
			for _, c := range []struct {
				request, body string
				good          int
			}{
				{"GET /collections/NAME/documents/search?q=alpha&query_by=title", "", 200},
				{"POST /collections/NAME/documents?action=upsert", factDocuments[0], 201},
				{"POST /collections/NAME/documents/import?action=upsert", factDocuments[1], 200},
				{"GET /collections/NAME", "", 200},
			} {
				if r := p.ask(t, 1, c.request, c.body, "X-Typesense-Api-Key", key); (r.status == c.good) != (name != "bad") {
					t.Errorf("%s, its own collection, %s: %d %.300s", name, c.request, r.status, r.body)
				}
				if r := q.ask(t, 1, c.request, c.body, "X-Typesense-Api-Key", key); (r.status == c.good) != (name == "all") ||
					name != "all" && strings.Contains(string(r.body), "alpha") {
					t.Errorf("%s, another collection, %s: %d %.300s", name, c.request, r.status, r.body)
				}
			}
		}
	}
	q.sketched(t, "1", "2")
}

// TestTypesenseScopedKeys has keys that embed what a reading would set. Nothing that they hide is got round, by us or with our
// help.
func TestTypesenseScopedKeys(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	e := p.direct.e
	parent := newKey(t, e, `"documents:search"`, `"ts.*"`)
	for _, embedded := range []string{
		`{"filter_by":"n:>1","exclude_fields":"title"}`, `{"exclude_fields":"neardup_sketch"}`, `{"exclude_fields":"neardup_sketch,body"}`,
		`{"include_fields":"id,n"}`, `{"include_fields":"neardup_sketch"}`, `{"page":2,"per_page":1}`, `{"limit_hits":2}`, `{"group_by":"k"}`,
		`{"preset":"nope"}`, `{"q":"owls","sort_by":"n:asc"}`, `{"expires_at":1}`, `{"limit_multi_searches":1}`, `{"collection":"nope"}`,
		`{"filter_by":"k:=a","expires_at":99999999999,"cache_ttl":1}`, `{"pinned_hits":"1:1"}`, `{}`,
	} {
		key := scopedOf(parent, embedded)
		for _, params := range []string{"&filter_by=n:%3C4&include_fields=title,body", "&exclude_fields=id&per_page=2",
			"&include_fields=neardup_sketch,id", "&group_by=", "&neardup=off"} {
			request := searched + "?q=alpha&query_by=title" + params
			ask := []string{"X-Typesense-Api-Key", key}
			one := p.ask(t, 0, strings.Replace(request, "&neardup", "&x", 1), "", ask...)
			// A key that names our field shows it.
			named := strings.Contains(params, "neardup_sketch") || embedded == `{"include_fields":"neardup_sketch"}`
			if two := p.ask(t, 1, request, "", ask...); !named {
				p.alike(t, embedded+" "+request, one, two)
			} else if hides := strings.Contains(embedded, `"exclude_fields":"neardup`) || strings.Contains(embedded,
				`"include_fields":"id`); hides && strings.Contains(string(two.body), rule.SketchField) {
				t.Errorf("%s %s shows what the key hides: %s", embedded, request, two.body)
			}
			search := `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`
			if two := p.ask(t, 1, multi+"?x=1"+params, search, ask...); !named {
				p.alike(t, embedded+" multi "+params, p.ask(t, 0, multi+"?x=1"+strings.Replace(params, "&neardup", "&x", 1), search, ask...),
					two)
			}
		}
	}
}

// clear deletes something directly, also when the test's own context is done.
func (a api) clear(t *testing.T, path string) {
	t.Helper()
	r := must(requestOf(context.Background(), a.e, "DELETE", a.e.URL+path, nil))(t)
	if got, err := exchange(http.DefaultClient, r); err != nil {
		t.Error(err)
	} else if got.status >= 300 && got.status != 404 {
		t.Logf("%s stays: %d", path, got.status)
	}
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
	name := ownPrefix("t") + "pages"
	through := api{e, serve(t, e, setup{match: name, urls: []string{front.URL}})}
	through.drop(t, name)
	call(t, e, "POST", through.base+"/collections", strings.ReplaceAll(factSchema, "NAME", name)).want(t, 201)
	const documents, warm, measured = 1000, 10, 80
	r, w := rand.New(rand.NewPCG(effort.Seed(t), 3)), newWriter(3)
	var lines strings.Builder
	var body []string
	for i := range documents {
		if body == nil || r.IntN(10) > 2 {
			body = w.words(60)
		}
		fmt.Fprintf(&lines, `{"id":"d%d","title":"alpha","body":"%s","n":%d}`+"\n", i, text(body), i)
	}
	through.loadLines(t, name, lines.String())
	once, folded := 0, 0
	for i := range warm + measured {
		params := url.Values{"q": {[]string{"alpha", "*"}[r.IntN(2)]}, "query_by": {"title"}}
		params.Set("per_page", fmt.Sprint([]int{10, 20, 30, 50}[r.IntN(4)]))
		params.Set("filter_by", fmt.Sprintf("n:<%d", 150+r.IntN(documents-150))) // each a list of its own
		before := searches.Load()
		outcome := call(t, e, "GET", through.base+"/collections/"+name+"/documents/search?"+params.Encode(), "").want(t, 200).header.Get("Neardup")
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
	if once < measured*9/10 || folded < measured/2 {
		t.Errorf("%d of %d first pages in one request; something folded on %d", once, measured, folded)
	}
}

// relay returns a handler that passes requests on to an engine.
func relay(t *testing.T, e *engines.Engine) http.Handler {
	t.Helper()
	u := must(url.Parse(e.URL))(t)
	return httputil.NewSingleHostReverseProxy(u)
}
