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
		if a, b := one.header.Get(key), two.header.Get(key); a != b {
			t.Errorf("%.300s: %s is directly %q, through us %q", what, key, a, b)
		}
	}
	if diff := cmp.Diff(p.unnamed(0, one.body), p.unnamed(1, two.body)); diff != "" {
		t.Errorf("%.300s: directly (-), through us (+):\n%.2000s", what, diff)
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
