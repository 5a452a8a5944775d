package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestCredentialsAreKeptApart has two clients with different rights ask for the same: what one may see never answers the other, and
// every look-up carries the credentials of the client that it is for.
func TestCredentialsAreKeptApart(t *testing.T) {
	for name, c := range map[string]struct{ header, query string }{
		"Authorization":                      {"Authorization: Bearer secret-WHO", ""},
		"a header that only a gateway knows": {"X-Gateway-User: secret-WHO", ""},
		"key in the query":                   {"X-Request-Id: 7", "?x-typesense-api-key=secret-WHO"},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(a arrival, who string) bool {
				return strings.Contains(fmt.Sprint(a.header, a.uri), "secret-"+who)
			}
			e := searchEngine(t)
			e.refuse = func(a arrival) int {
				if of(a, "reader") { // who may not even see the mapping
					return 403
				}
				return 0
			}
			f := serve(t, e, nil)
			asked := map[string]int{}
			for _, who := range []string{"writer", "reader", "writer", "reader"} {
				before := len(e.lookups())
				do(t, "POST", f.url+"/_bulk"+strings.ReplaceAll(c.query, "WHO", who), one, strings.ReplaceAll(c.header, "WHO", who))
				if last := e.last(); !of(last, who) || (enriched(last.body) == 1) != (who == "writer") {
					t.Errorf("%s's write came as %s %v with %d sketches", who, last, last.header, enriched(last.body))
				}
				for _, a := range e.lookups()[before:] {
					if !of(a, who) {
						t.Errorf("for %s the engine was asked %s with %v", who, a, a.header)
					}
					asked[who]++
				}
			}
			if asked["writer"] != 1 || asked["reader"] == 0 {
				t.Errorf("look-ups: %v", asked)
			}
		})
	}
}

// TestCredentialsTogether mixes clients at one moment, where waiting for another's answer would be a leak.
func TestCredentialsTogether(t *testing.T) {
	e := newEngine("news-1")
	e.refuse = func(a arrival) int {
		if !strings.HasPrefix(a.header.Get("Authorization"), "Bearer good") {
			return 401
		}
		return 0
	}
	f := serve(t, e, nil)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			who := "good"
			if i%2 == 1 {
				who = "bad"
			}
			try(t, "POST", f.url+"/_bulk", strings.NewReader(one), fmt.Sprintf("Authorization: Bearer %s%d", who, i%6))
		})
	}
	all.Wait()
	for _, a := range e.arrived() {
		good := strings.HasPrefix(a.header.Get("Authorization"), "Bearer good")
		expect.Same(t, good, enriched(a.body) == 1, "%v came with a sketch", a.header["Authorization"])
	}
}

// TestNothingSecretIsLogged has every flow fail and reads the log.
func TestNothingSecretIsLogged(t *testing.T) {
	e := newEngine("news-1")
	e.refuse = func(arrival) int { return 500 }
	e.answer = func(w http.ResponseWriter, a arrival) { fmt.Fprint(w, "nonsense secret-reply") }
	f := serve(t, e, nil)
	each := func() {
		for _, path := range []string{"/_bulk?api_key=secret-query", "/news-1/_search", "/_whatever?key=secret-query", "/news-1/_update/1"} {
			try(t, "POST", f.url+path, strings.NewReader(`{"query":{"match":{"title":"secret-text"}}}`+"\n"), "Authorization: Bearer secret-token", "Cookie: secret-cookie")
		}
	}
	each()
	f.behind.Close()
	each()
	if log := f.log.String(); strings.Contains(log, "secret") || !strings.Contains(log, "engine unreachable") || !strings.Contains(log, "could not be collapsed") {
		t.Errorf("the log:\n%s", log)
	}
}
