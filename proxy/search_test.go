package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// stories are the texts of an index in the order of their rank: the second tells what the first does.
var stories = []string{
	"storm hits the northern coast and leaves ten thousand homes without power this morning",
	"Storm hits the northern coast and leaves ten thousand homes without power this morning!",
	"parliament votes on the new budget after a debate that took all of the night",
	"the museum of modern art opens its doors again after years of repair work",
}

// searching answers searches over the stories as an engine does that knows nothing of us but a stored field.
func searching(t testing.TB) func(http.ResponseWriter, arrival) {
	r := newRule(t)
	return func(w http.ResponseWriter, a arrival) {
		asked := struct {
			From, Size int
			Fields     []string `json:"docvalue_fields"`
			Source     *bool    `json:"_source"`
		}{Size: 10}
		if a.header.Get("Content-Encoding") == "gzip" {
			a.body = []byte(unzipped(t, string(a.body)))
		}
		if len(a.body) > 0 {
			if err := json.Unmarshal(a.body, &asked); err != nil {
				w.WriteHeader(400)
				return
			}
		}
		var hits []string
		for i := asked.From; i < min(len(stories), asked.From+asked.Size); i++ {
			hit := fmt.Sprintf(`{"_index":"news-1","_id":"%d"`, i)
			s, _ := r.Sketch([]string{stories[i]})
			if asked.Source == nil || *asked.Source {
				hit += fmt.Sprintf(`,"_source":{"title":%q,"neardup_sketch":%q}`, stories[i], s.String())
			}
			if slices.Contains(asked.Fields, "neardup_sketch") {
				hit += fmt.Sprintf(`,"fields":{"neardup_sketch":[%q]}`, s.String())
			}
			hits = append(hits, hit+"}")
		}
		w.Header()["Warning"] = []string{`299 x "old"`, `299 x "older"`}
		reply := fmt.Sprintf(`{"took":1,"hits":{"total":{"value":%d,"relation":"eq"},"hits":[%s]}}`, len(stories), strings.Join(hits, ","))
		if strings.Contains(a.header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			reply = zipped(reply)
		}
		io.WriteString(w, reply)
	}
}

// ids returns the ids of the hits in a reply.
func ids(body string) string {
	var list []string
	for _, found := range regexp.MustCompile(`"_id":"(\w+)"`).FindAllStringSubmatch(body, -1) {
		list = append(list, found[1])
	}
	return strings.Join(list, " ")
}

func searchEngine(t testing.TB) *engine {
	e := newEngine("news-1")
	e.answer = searching(t)
	return e
}

func TestSearchCollapses(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body, want string
		headers                        []string
		zip                            bool
	}{
		{"all", "POST", "/news-1/_search", `{}`, "0 2 3", nil, false},
		{"page of one", "POST", "/news-1/_search", `{"size":1,"from":1}`, "2", nil, false},
		{"GET", "GET", "/news-1/_search?size=2", ``, "0 2", nil, false},
		{"GET with a body", "GET", "/news-1/_search", `{"size":2}`, "0 2", nil, false},
		{"body in gzip", "POST", "/news-1/_search", zipped(`{"size":2}`), "0 2", []string{"Content-Encoding: gzip"}, false},
		{"reply in gzip", "POST", "/news-1/_search", `{}`, "0 2 3", []string{"Accept-Encoding: br, gzip;q=0.5"}, true},
		{"gzip not wanted", "POST", "/news-1/_search", `{}`, "0 2 3", []string{"Accept-Encoding: deflate, gzip;q=0"}, false},
		{"pattern", "POST", "/news-*/_search", `{}`, "0 2 3", nil, false},
		{"everything", "POST", "/_search", `{}`, "0 2 3", nil, false},
		{"threshold", "POST", "/news-1/_search?neardup_threshold=1", `{}`, "0 2 3", nil, false},
		{"off", "POST", "/news-1/_search?neardup=off", `{}`, "0 1 2 3", nil, false},
		{"off, in gzip", "POST", "/news-1/_search?neardup=off", `{}`, "0 1 2 3", []string{"Accept-Encoding: gzip"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := searchEngine(t)
			if c.name == "gzip not wanted" {
				plain := e.answer
				e.answer = func(w http.ResponseWriter, a arrival) {
					expect.Same(t, "deflate, gzip;q=0", a.header.Get("Accept-Encoding"), "what the engine is asked for")
					a.header.Del("Accept-Encoding")
					plain(w, a)
				}
			}
			f := serve(t, e, nil)
			a := do(t, c.method, f.url+c.path, c.body, c.headers...)
			if c.zip {
				a.body = unzipped(t, a.body)
			}
			if a.status != 200 || ids(a.body) != c.want || strings.Contains(a.body, "neardup") {
				t.Errorf("got %d %s", a.status, a.body)
			}
			if line := a.header.Get("Neardup"); !strings.HasPrefix(line, "collapsed; raw=4; folded=1;") && c.name != "off" && !strings.Contains(c.name, "page") && c.method != "GET" && !strings.Contains(c.name, "in gzip") {
				t.Errorf("Neardup: %s", line)
			}
			expect.Same(t, []string{`299 x "old"`, `299 x "older"`}, a.header["Warning"], "the engine's warnings")
			expect.Same(t, "Elasticsearch", a.header.Get("X-Elastic-Product"), "the engine's product")
			for _, got := range e.arrived() {
				if strings.Contains(got.uri, "neardup") {
					t.Errorf("the engine got our controls: %s", got)
				}
			}
		})
	}
}

// widened says that a search asks for our field.
func widened(a arrival) bool { return strings.Contains(string(a.body), "neardup_sketch") }

// TestSearchFallsBack gives every reason not to collapse: the engine then gets the client's search as it was, less our controls.
func TestSearchFallsBack(t *testing.T) {
	const asked = `{ "query" : {"match_all":{} }, "size": 2 }`
	reply := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name     string
		tampered func(http.ResponseWriter) // the answer to the widened search
		reason   string
		closed   int // the status where the operator wants errors
	}{
		{"refused for being widened", reply(400, `{"error":"no such field"}`), "engine_status", 200},
		{"too large", reply(200, `{"hits":{"hits":[]},"x":"`+strings.Repeat("x", 70<<10)+`"}`), "too_large", 503},
		{"no JSON", reply(200, `<html>`), "not_understood", 503},
		{"JSON of another kind", reply(200, `{"hits":[1,2]}`), "not_understood", 503},
		{"empty", reply(200, ``), "not_understood", 503},
		{"hits without an id", reply(200, `{"hits":{"hits":[{"_index":"news-1"}]}}`), "not_understood", 503},
		{"an encoding that we do not know", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "\x01")
		}, "not_understood", 503},
		{"broken gzip", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "\x1f\x8bxxxx")
		}, "not_understood", 503},
		{"a gzip bomb", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, zipped(strings.Repeat(" ", 1<<20)))
		}, "too_large", 503},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s closed=%v", c.name, closed), func(t *testing.T) {
				e := searchEngine(t)
				plain := e.answer
				e.answer = func(w http.ResponseWriter, a arrival) {
					if widened(a) {
						c.tampered(w)
						return
					}
					plain(w, a)
				}
				f := serve(t, e, func(p *proxy.Engine) { p.FailClosed, p.Limits.MaxReply = closed, 64<<10 })
				a := do(t, "POST", f.url+"/news-1/_search?neardup_threshold=0.9&pretty=", zipped(asked), "Content-Encoding: gzip", "Neardup-Control: window=50", "X-Mine: 1")
				if closed && c.closed != 200 {
					if a.status != c.closed || len(e.arrived()) != 1 || f.counted(t, "searches_total outcome=failed reason="+c.reason) != 1 {
						t.Errorf("got %d %s after %q", a.status, a.body, uris(e.arrived()))
					}
					return
				}
				if a.status != 200 || ids(a.body) != "0 1" || strings.Contains(a.body, "neardup") {
					t.Errorf("got %d %s", a.status, a.body)
				}
				expect.Same(t, "bypassed; reason="+c.reason, a.header.Get("Neardup"), "Neardup")
				got := e.arrived()
				expect.Must(t, 2, len(got), "requests to the engine: %q", uris(got))
				if got := got[1]; got.uri != "/news-1/_search?pretty=" || unzipped(t, string(got.body)) != asked || got.header.Get("X-Mine") != "1" || got.header.Get("Neardup-Control") != "" {
					t.Errorf("the engine got %s %v %q", got, got.header, got.body)
				}
				expect.Same(t, int64(1), f.counted(t, "searches_total outcome=bypassed reason="+c.reason), "counted %v", exported(t, f.Metrics))
			})
		}
	}
}

// TestEngineRefuses: these refusals are the answer, and one request is all they cost.
func TestEngineRefuses(t *testing.T) {
	for _, status := range []int{401, 403, 404, 408, 429, 500, 502, 503, 504} {
		e := newEngine("news-1")
		e.answer = func(w http.ResponseWriter, a arrival) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Www-Authenticate", "Basic")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"status": %d}`, status)
		}
		f := serve(t, e, nil)
		a := do(t, "POST", f.url+"/news-1/_search", `{}`)
		if a.status != status || a.body != fmt.Sprintf(`{"status": %d}`, status) || a.header.Get("Retry-After") != "7" || a.header.Get("Www-Authenticate") != "Basic" {
			t.Errorf("%d: got %d %s %v", status, a.status, a.body, a.header)
		}
		expect.Same(t, 1, len(e.arrived()), "%d: requests to the engine", status)
	}
}

// TestBudgetOfBadSearches: what the engine refuses either way is no trouble of ours and leaves the budget alone.
func TestBudgetOfBadSearches(t *testing.T) {
	e := newEngine("news-1")
	e.answer = func(w http.ResponseWriter, a arrival) {
		w.WriteHeader(400)
		io.WriteString(w, `{"error":"parse"}`)
	}
	f := serve(t, e, nil)
	for range 100 {
		if a := do(t, "POST", f.url+"/news-1/_search", `{"query":{"x":{}}}`); a.status != 400 || a.body != `{"error":"parse"}` {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	e.answer = searching(t)
	expect.Same(t, "0 2 3", ids(do(t, "POST", f.url+"/news-1/_search", `{}`).body), "the hits of a good search")
}

// TestSearchesThatCannotBeRead lose their controls all the same, and their replies our fields.
func TestSearchesThatCannotBeRead(t *testing.T) {
	large := `{"size":4,"x":"` + strings.Repeat("x", 2000) + `"}`
	for _, c := range []struct {
		name, body, reason string
		headers            []string
	}{
		{"too large", large, "too_large", nil},
		{"too large in gzip", zipped(large), "too_large", []string{"Content-Encoding: gzip"}},
		{"broken deflate", "\x01\x02", "encoding", []string{"Content-Encoding: deflate"}},
		{"an encoding that we do not know", "\x01\x02", "encoding", []string{"Content-Encoding: br"}},
		{"broken gzip", zipped(large)[:30], "encoding", []string{"Content-Encoding: gzip"}},
		{"no JSON", `{"size":`, "not_understood", nil},
		{"CBOR", "\xbf\xff", "format", []string{"Content-Type: application/cbor"}},
		{"signed", `{}`, "signed", []string{"Authorization: AWS4-HMAC-SHA256 x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine("news-1")
			e.answer = func(w http.ResponseWriter, a arrival) { io.WriteString(w, hit(1)) }
			limit := func(p *proxy.Engine) { p.Limits.MaxSearchBody = 1000 }
			f := serve(t, e, limit)
			a := do(t, "POST", f.url+"/news-1/_search?neardup_window=7&a=%zz", c.body, append(c.headers, "Neardup-Control: window=9")...)
			if a.status != 200 || strings.Contains(a.body, "neardup") || a.header.Get("Neardup") != "bypassed; reason="+c.reason {
				t.Errorf("got %d %.100s, Neardup: %s", a.status, a.body, a.header.Get("Neardup"))
			}
			got := e.arrived()
			if len(got) != 1 || got[0].uri != "/news-1/_search?a=%zz" || string(got[0].body) != c.body || got[0].header.Get("Neardup-Control") != "" {
				t.Errorf("the engine got %q", got)
			}
			elsewhere := do(t, "POST", f.url+"/logs/_search", c.body, c.headers...)
			if elsewhere.header.Get("Neardup") != "" && c.name != "signed" {
				t.Errorf("an index that is none of our business: Neardup: %s", elsewhere.header.Get("Neardup"))
			}
		})
	}
}

// TestEngineIsDown answers in the engine's shape, whatever the flow.
func TestEngineIsDown(t *testing.T) {
	f := serve(t, newEngine(), nil)
	f.behind.Close()
	for _, c := range []struct{ method, path string }{
		{"POST", "/news-1/_search"}, {"POST", "/_bulk"}, {"GET", "/news-1/_doc/1"}, {"GET", "/"},
	} {
		a := do(t, c.method, f.url+c.path, "{}\n")
		if a.status != 502 || !json.Valid([]byte(a.body)) || a.header.Get("X-Elastic-Product") == "" {
			t.Errorf("%v: got %d %s", c, a.status, a.body)
		}
	}
	expect.Same(t, 4, strings.Count(f.log.String(), unreachable), "how often the log says it")
}

// TestSlowEngine: a time-out is the operator's to set, on the transport; it is answered as one and nothing is asked twice.
func TestSlowEngine(t *testing.T) {
	t.Parallel()
	known, end := newEngine("news-1"), make(chan struct{})
	defer close(end)
	times := make(chan string, 10)
	f := serve(t, known.beside(func(w http.ResponseWriter, r *http.Request) {
		times <- r.RequestURI
		<-end
	}), func(p *proxy.Engine) {
		slow := proxy.NewTransport()
		slow.ResponseHeaderTimeout = 200 * time.Millisecond
		p.Transport = slow
	})
	for _, path := range []string{"/news-1/_search", "/_bulk"} {
		expect.Same(t, 504, do(t, "POST", f.url+path, "{}\n").status, "%s", path)
	}
	expect.Same(t, 2, len(times), "requests to the engine")
}

// TestControlsWithoutARule go to the engine as they came where no rule matches, for it to refuse: that they look like ours is no one's
// concern.
func TestControlsWithoutARule(t *testing.T) {
	for _, c := range []struct {
		uri, body string
		header    []string
	}{
		{"/logs-1/_search?neardup_frob=1", `{}`, nil},
		{"/logs-1/_search?q=a&neardup_threshold=2&x", ``, nil},
		{"/logs-1/_search", `{"neardup_frob":1}`, nil},
		{"/logs-1/_search", `{}`, []string{"Neardup-Control: zzz"}},
		{"/_msearch", "{\"index\":\"logs-1\"}\n{\"neardup_frob\":1}\n", nil},
		{"/logs-1/_msearch", "{}\n{\"neardup_frob\":1}\n", nil},
		{"/logs-1/_search/template?neardup_frob=1", `{}`, nil},
	} {
		e := searchEngine(t)
		e.indices["logs-1"] = false
		e.answer = func(w http.ResponseWriter, _ arrival) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"the engine's own","status":400}`)
		}
		f := serve(t, e, nil)
		a := do(t, "POST", f.url+c.uri, c.body, c.header...)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "the engine's own") || a.header.Get("Neardup") != "" {
			t.Errorf("%s %s: %d %s, %s", c.uri, c.body, a.status, a.body, a.header.Get("Neardup"))
			continue
		}
		got := e.last()
		if sent := got.header.Get("Neardup-Control"); got.uri != c.uri || string(got.body) != c.body || (sent == "zzz") != (c.header != nil) {
			t.Errorf("%s %s came as %s %s, Neardup-Control %q", c.uri, c.body, got, got.body, sent)
		}
		a = do(t, "POST", f.url+strings.ReplaceAll(c.uri, "logs", "news"), strings.ReplaceAll(c.body, "logs", "news"), c.header...)
		if a.status != http.StatusBadRequest || strings.Contains(a.body, "the engine's own") {
			t.Errorf("%s %s in a rule's index: %d %s", c.uri, c.body, a.status, a.body)
		}
	}
}
