package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// inMemory carries requests to a handler without a network, so that time can be made to pass.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec, done := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(done)
		m.ServeHTTP(rec, in)
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-done:
	}
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// near returns a sidecar that reaches its engine without a network.
func near(t testing.TB, e http.Handler) front {
	return handler(t, []string{"http://engine"}, func(p *proxy.Engine) { p.Transport = inMemory{e} })
}

// ask sends a request to a sidecar without a network.
func (f front) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	f.ServeHTTP(rec, r)
	return rec
}

const one = "{\"index\":{\"_index\":\"news-1\"}}\n{\"title\":\"a b c d e\"}\n"

// writes sends a bulk of one document and says whether it arrived with a sketch.
func (f front) writes(e *engine, headers ...string) bool {
	f.ask("POST", "/_bulk", one, headers...)
	return enriched(e.last().body) == 1
}

// TestWhatIsKnownExpires: an index that is known is asked about every two seconds, one that is not there every second.
func TestWhatIsKnownExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine("news-1")
		f := near(t, e)
		for range 100 {
			if !f.writes(e) {
				t.Fatal("a document is not enriched")
			}
			time.Sleep(time.Second)
		}
		expect.Same(t, [2]int{50, 50}, [2]int{count(e.lookups(), "GET", "/news-1/_mapping"), len(e.lookups())}, "look-ups in 100 seconds: %q", uris(e.lookups()))
		e.drop("news-1") // behind our back
		time.Sleep(10 * time.Second)
		before := len(e.lookups())
		for range 20 {
			f.ask("POST", "/news-1/_search", `{}`)
			time.Sleep(time.Second)
		}
		expect.Same(t, 20, len(e.lookups())-before, "look-ups in 20 seconds of an index that is not there")
	})
}

// TestEngineThatCannotBeAsked: a failure to look up is remembered for a moment, and writes and searches go on.
func TestEngineThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := searchEngine(t)
		e.refuse = func(arrival) int { return 403 }
		f := near(t, e)
		for range 20 {
			if f.writes(e) {
				t.Fatal("a document is enriched though nobody knows whether it may")
			}
			expect.Must(t, "0 2 3", ids(f.ask("POST", "/news-1/_search", `{}`).Body.String()), "the hits of a search")
			time.Sleep(time.Second)
		}
		expect.Same(t, 20, len(e.lookups()), "look-ups in 20 seconds: one for both, every second")
		expect.Same(t, int64(20), f.counted(t, "documents_total change=unprepared"), "documents counted as unprepared")
	})
}

// TestChangesThroughUsAreKnownAtOnce drops and makes an index through the sidecar, without a moment in between.
func TestChangesThroughUsAreKnownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine("news-1", "other")
		e.answer = func(w http.ResponseWriter, a arrival) {
			switch {
			case a.method == "DELETE":
				e.drop("news-1")
			case a.method == "PUT" && a.uri == "/news-1?by=client":
				e.set("news-1", false)
			}
			w.Write([]byte("{}"))
		}
		f := near(t, e)
		for round := range 5 {
			if !f.writes(e) {
				t.Fatalf("round %d: a document is not enriched", round)
			}
			f.ask("DELETE", "/news-1?by=client", "")
			if round%2 == 0 {
				continue // the next write makes the index
			}
			e.set("news-1", false) // as a PUT of the client's would
			f.ask("PUT", "/news-1/_settings?by=client", "{}")
		}
		expect.Same(t, 4, count(e.lookups(), "PUT", "/news-1/_mapping"), "how often the index was prepared: %q", uris(e.lookups()))
	})
}

// TestRefusedPreparing: writes go on without sketches, counted, and the engine is not asked again and again. The log says why each time that
// preparing was tried, and nothing that is secret.
func TestRefusedPreparing(t *testing.T) {
	for _, exists := range []bool{true, false} {
		t.Run(fmt.Sprintf("exists=%v", exists), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				if exists {
					e.set("news-1", false)
				}
				e.refuse = func(a arrival) int {
					if a.method == "PUT" {
						return 403
					}
					return 0
				}
				f := near(t, e)
				for range 30 {
					f.ask("POST", "/_bulk", "{\"index\":{\"_index\":\"news-1\"}}\n{\"title\":\"a b c d e\",\"neardup_sketch\":\"forged\"}\n", "Authorization: Bearer secret-token")
					time.Sleep(time.Second)
				}
				for _, a := range e.arrived() {
					expect.Must(t, 0, enriched(a.body), "sketches in %s", a.body)
				}
				expect.Same(t, int64(30), f.counted(t, "documents_total change=unprepared"), "documents counted as unprepared")
				expect.Same(t, 3, count(e.lookups(), "PUT", ""), "how often preparing was tried in 30 seconds")
				log := f.log.String()
				why := map[bool]string{true: "security_exception: no", false: "it is not there"}[exists]
				if n := strings.Count(log, "level=WARN msg=\"index not prepared"); n != 3 || !strings.Contains(log, why) ||
					!strings.Contains(log, "index=news-1") || strings.Contains(log, "secret") {
					t.Errorf("said %d times, want 3:\n%s", n, log)
				}
				e.refuse = nil
				time.Sleep(20 * time.Second)
				if !f.writes(e) {
					t.Error("when the engine allows it, documents are still not enriched")
				}
			})
		})
	}
}

// TestFirstWritesTogether: fifty first writes prepare an index once, and every one of them is enriched.
func TestFirstWritesTogether(t *testing.T) {
	for _, exists := range []bool{true, false} {
		e := newEngine()
		if exists {
			e.set("news-1", false)
		}
		f := serve(t, e, nil)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if a, err := try(t, "POST", f.url+"/_bulk", strings.NewReader(one)); err != nil || a.status != 200 {
					t.Errorf("got %d, %v", a.status, err)
				}
			})
		}
		all.Wait()
		for _, a := range e.arrived() {
			if enriched(a.body) != 1 {
				t.Errorf("exists=%v: a document came without a sketch", exists)
				break
			}
		}
		expect.Same(t, 1, count(e.lookups(), "PUT", "/news-1/_mapping"), "exists=%v: how often the index was prepared", exists)
		if n := count(e.lookups(), "PUT", "/news-1") - 1; n != 0 && exists || n != 1 && !exists {
			t.Errorf("exists=%v: the index was made %d times", exists, n)
		}
		if n := len(e.lookups()); n > 9 {
			t.Errorf("exists=%v: the engine was asked %d times: %q", exists, n, uris(e.lookups()))
		}
	}
}

// TestManyNames: clients can name what they like, as long as they like, without our remembering all of it.
func TestManyNames(t *testing.T) {
	if effort.Race {
		t.Skip("one goroutine: no race to be seen")
	}
	f := near(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // keeps no log
		if strings.Contains(r.RequestURI, "/_mapping/") {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte("{}"))
	}))
	long := strings.Repeat("x", 4<<10)
	f.ask("POST", "/a/_search", "{}")
	alloc := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := alloc()
	for i := range 4500 {
		f.ask("GET", fmt.Sprintf("/%s%d/_search", long, i), "")
	}
	if after := alloc(); after > before+8<<20 {
		t.Errorf("%d MB are held after many names", (after-before)>>20)
	}
	runtime.KeepAlive(f)
}

// TestAlteringPosts: after a POST through us that may change what a name stands for, the next write looks anew; after others it does
// not.
func TestAlteringPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for request, looks := range map[string]int{
			"POST /_aliases": 1, "POST /news/_rollover": 2 /* one of its own */, "POST /news-0/_clone/news-1": 1, "PUT /_template/x": 1, "DELETE /news-0": 1,
			"POST /_refresh": 0, "DELETE /news-1/_doc/7": 0, "GET /_aliases": 0, "DELETE /_search/scroll": 0,
		} {
			e := newEngine("news-1")
			f := near(t, e)
			f.writes(e)
			before := len(e.lookups())
			method, path, _ := strings.Cut(request, " ")
			f.ask(method, path, "{}")
			if !f.writes(e) {
				t.Errorf("%s: the write after it is not enriched", request)
			}
			expect.Same(t, looks, len(e.lookups())-before, "%s: look-ups after it", request)
		}
	})
}
