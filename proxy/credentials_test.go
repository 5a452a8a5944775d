package proxy_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestCredentialsAreKeptApart has two clients with different rights ask for the same: what one may see never answers the other, and
// every look-up carries the credentials of the client that it is for.
func TestCredentialsAreKeptApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		header func(who string) []string
		query  func(who string) string
		is     func(a arrival, who string) bool
	}{
		{
			name:   "Authorization",
			header: func(who string) []string { return []string{"Authorization: Bearer secret-" + who} },
			is: func(a arrival, who string) bool {
				return slices.Equal(a.header["Authorization"], []string{"Bearer secret-" + who})
			},
		},
		{
			name:   "a header that only a gateway knows",
			header: func(who string) []string { return []string{"X-Gateway-User: secret-" + who} },
			is:     func(a arrival, who string) bool { return a.header.Get("X-Gateway-User") == "secret-"+who },
		},
		{
			name:  "key in the query",
			query: func(who string) string { return "?x-typesense-api-key=secret-" + who },
			is:    func(a arrival, who string) bool { return strings.Contains(a.uri, "api-key=secret-"+who) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := searchEngine(t)
			e.refuse = func(a arrival) int {
				if c.is(a, "reader") { // who may not even see the mapping
					return 403
				}
				return 0
			}
			f := serve(t, e, nil)
			asked := map[string]int{}
			for _, who := range []string{"writer", "reader", "writer", "reader"} {
				var headers []string
				query := ""
				if c.header != nil {
					headers = c.header(who)
				}
				if c.query != nil {
					query = c.query(who)
				}
				before := len(e.lookups())
				do(t, "POST", f.url+"/_bulk"+query, one, headers...)
				got := e.arrived()
				last := got[len(got)-1]
				if !c.is(last, who) {
					t.Errorf("%s's write came as %s %v", who, last, last.header)
				}
				if want := map[string]int{"writer": 1}[who]; enriched(last.body) != want {
					t.Errorf("%s's write came with %d sketches, want %d", who, enriched(last.body), want)
				}
				for _, a := range e.lookups()[before:] {
					if !c.is(a, who) {
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
		if good := strings.HasPrefix(a.header.Get("Authorization"), "Bearer good"); good != (enriched(a.body) == 1) {
			t.Errorf("%v came with %d sketches", a.header["Authorization"], enriched(a.body))
		}
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
