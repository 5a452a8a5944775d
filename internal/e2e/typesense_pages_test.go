package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

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
	r, w := rand.New(rand.NewPCG(seeded(t), 3)), newWriter(3)
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
