package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// TestReads answers reads with and without our field.
func TestReads(t *testing.T) {
	const with, without = `{"_id":"1", "_source":{"a":1,"neardup_sketch":"x","b" : 2}}`, `{"_id":"1", "_source":{"a":1,"b" : 2}}`
	const mapping, bare = `{"news-1":{"mappings":{"properties":{"neardup_sketch":{"type":"binary","doc_values":true},"a":{"type":"text"}}}}}`, `{"news-1":{"mappings":{"properties":{"a":{"type":"text"}}}}}`
	for _, c := range []struct {
		name, method, path, reply, want string
		chunked, broken                 bool
		contentType                     string
	}{
		{name: "document", path: "/news-1/_doc/1", reply: with, want: without},
		{name: "document in chunks", path: "/news-1/_doc/1", reply: with, want: without, chunked: true},
		{name: "source", path: "/news-1/_source/1", reply: `{"neardup_sketch":"x","a":1}`, want: `{"a":1}`},
		{name: "mapping", path: "/news-1/_mapping", reply: mapping, want: bare},
		{name: "index", path: "/news-1", reply: mapping, want: bare},
		{name: "vendor's type", path: "/news-1/_doc/1", reply: with, want: without, contentType: "application/vnd.elasticsearch+json;compatible-with=8"},
		{name: "many", method: "POST", path: "/_mget", reply: `{"docs":[` + with + `,` + with + `]}`, want: `{"docs":[` + without + `,` + without + `]}`},
		{name: "scroll", method: "POST", path: "/_search/scroll", reply: `{"hits":{"hits":[` + with + `]}}`, want: `{"hits":{"hits":[` + without + `]}}`},
		{name: "large", path: "/news-1/_doc/1", reply: with + strings.Repeat(" ", 2<<20), want: without + strings.Repeat(" ", 2<<20)},
		{name: "named by the client", path: "/news-1/_doc/1?_source=a,neardup_sketch", reply: with, want: with},
		{name: "named with a wildcard", path: "/news-1/_doc/1?_source=near*", reply: with, want: without},
		{name: "no JSON", path: "/news-1/_doc/1", reply: `neardup_sketch: {`, want: `neardup_sketch: {`, contentType: "text/html"},
		{name: "no JSON by its type", path: "/news-1/_doc/1", reply: with, want: with, contentType: "text/html"},
		{name: "cut short inside", path: "/news-1/_doc/1", reply: `{"_source":{"neardup_sketch":`, want: ``, broken: true},
	} {
		for _, compressed := range []bool{false, true} {
			t.Run(c.name+" gzip "+strconv.FormatBool(compressed), func(t *testing.T) {
				f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if c.contentType != "" {
						w.Header().Set("Content-Type", c.contentType)
					}
					reply := c.reply
					if compressed {
						w.Header().Set("Content-Encoding", "gzip")
						reply = zipped(reply)
					}
					if !c.chunked {
						w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
					}
					if c.chunked {
						http.NewResponseController(w).Flush()
					}
					io.WriteString(w, reply)
				}), nil)
				method := "GET"
				if c.method != "" {
					method = c.method
				}
				a := do(t, method, f.url+c.path, "{}", "Accept-Encoding: gzip")
				got := a.body
				if compressed {
					expect.Must(t, "gzip", a.header.Get("Content-Encoding"), "the reply's coding")
					got = unzipped(t, got)
				}
				if !c.broken && got != c.want {
					t.Errorf("got %.300s\nwant %.300s", got, c.want)
				}
				if c.broken && strings.Contains(got, `"x"`) {
					t.Errorf("a sketch is shown: %s", got)
				}
			})
		}
	}
}

// TestRepliesThatAreNotWhatTheySay pass as they came.
func TestRepliesThatAreNotWhatTheySay(t *testing.T) {
	for name, reply := range map[string]string{
		"no gzip":        `{"_source":{"neardup_sketch":"x"}}`,
		"large no gzip":  `{"_source":{"neardup_sketch":"x"}}` + strings.Repeat(" ", 3<<20),
		"broken gzip":    zipped(strings.Repeat(`{"_source":{"neardup_sketch":"x"}}`, 100))[:60],
		"empty":          "",
		"gzip of no end": zipped(`{"_source":{}}`)[:20],
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
				io.WriteString(w, reply)
			}), nil)
			if a := do(t, "GET", f.url+"/news-1/_doc/1", "", "Accept-Encoding: gzip"); a.status != 200 || a.body != reply {
				t.Errorf("got %d and %d bytes, want %d", a.status, len(a.body), len(reply))
			}
		})
	}
}

// TestEngineDiesInAReply: the client has what came of a reply that passes, and sees of any reply that there should be more.
func TestEngineDiesInAReply(t *testing.T) {
	for _, path := range []string{"/_whatever", "/news-1/_doc/1"} {
		for _, size := range []int{10, 3 << 20} {
			for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", size+10), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size)} {
				begun := `{"_source"` + strings.Repeat(" ", size-10)
				f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					conn, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"+framing+begun+"\r\n")
					conn.Close()
				}), nil)
				a, err := try(t, "GET", f.url+path, nil)
				if err == nil {
					t.Errorf("%s, %q: %d bytes of a broken reply ended well", path, framing, len(a.body))
				}
				if path == "/_whatever" && (a.status != http.StatusCreated || !strings.HasPrefix(a.body, begun)) {
					t.Errorf("%q: %d and %d of %d bytes", framing, a.status, len(a.body), size)
				}
			}
		}
	}
}

// TestReadsNameTheField in their body, which goes on as it came.
func TestReadsNameTheField(t *testing.T) {
	const with, without = `{"docs":[{"_source":{"a":1,"neardup_sketch":"x"}}]}`, `{"docs":[{"_source":{"a":1}}]}`
	long := strings.Repeat(" ", 3<<20)
	for _, c := range []struct {
		name, body string
		gzip       bool
		shown      bool
	}{
		{name: "named", body: `{"docs":[{"_id":"1","_source":["neardup_sketch"]}]}`, shown: true},
		{name: "named in gzip", body: `{"docs":[{"_id":"1","_source":["neardup_sketch"]}]}`, gzip: true, shown: true},
		{name: "a pattern", body: `{"docs":[{"_id":"1","_source":["neardup_*"]}]}`},
		{name: "named early in a long body", body: `{"docs":[{"_id":"1","_source":["neardup_sketch"]}]}` + long, shown: true},
		{name: "named late in a long body", body: long + `{"docs":[{"_id":"1","_source":["neardup_sketch"]}]}`},
		{name: "no body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine("news-1")
			e.answer = func(w http.ResponseWriter, a arrival) { io.WriteString(w, with) }
			f := serve(t, e, nil)
			body, headers := c.body, []string{"X-A: b"}
			if c.gzip {
				body, headers = zipped(body), append(headers, "Content-Encoding: gzip")
			}
			want := without
			if c.shown {
				want = with
			}
			expect.Same(t, want, do(t, "POST", f.url+"/news-1/_mget", body, headers...).body, "")
			got := e.arrived()
			if len(got) != 1 || string(got[0].body) != body || got[0].length != int64(len(body)) || got[0].err != nil {
				t.Errorf("the engine got %d bytes of length %d, want %d", len(got[0].body), got[0].length, len(body))
			}
		})
	}
}

// TestReadsThatAreSearchesGoWithoutControls: in a read that is no search the names are the client's own.
func TestReadsThatAreSearchesGoWithoutControls(t *testing.T) {
	e := newEngine("news-1")
	f := serve(t, e, nil)
	for _, c := range []struct{ path, want, header string }{
		{"/news-1/_rank_eval?neardup_keep=2&pretty&neardup=off", "/news-1/_rank_eval?pretty", ""},
		{"/other-1/_eql/search?neardup_threshold=7", "/other-1/_eql/search", ""},
		{"/news-1/_rank_eval?pretty&a=%41", "/news-1/_rank_eval?pretty&a=%41", ""},
		{"/news-1/_doc/1?neardup_keep=2", "/news-1/_doc/1?neardup_keep=2", "off"},
	} {
		do(t, "GET", f.url+c.path, "", "Neardup-Control: off")
		last := e.last()
		expect.Same(t, [2]string{c.want, c.header}, [2]string{last.uri, last.header.Get("Neardup-Control")}, "%s", c.path)
	}
}

// TestReadsOfOthers has documents with a field of that name in an index that no rule matches.
func TestReadsOfOthers(t *testing.T) {
	const document = `{"_source":{"neardup_sketch":"somebody's own"}}`
	f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.RequestURI, fieldPath) {
			io.WriteString(w, `{"logs":{"mappings":{}}}`)
			return
		}
		io.WriteString(w, document)
	}), nil)
	expect.Same(t, document, do(t, "GET", f.url+"/logs/_doc/1", "").body, "")
}

// TestHead has the length of a document be what a GET of it gets.
func TestHead(t *testing.T) {
	methods := make(chan string, 10)
	f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		if name, _, ok := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), fieldPath); ok {
			fmt.Fprintf(w, `{%q:{"mappings":{}}}`, name)
			return
		}
		methods <- r.Method
		if strings.HasSuffix(r.RequestURI, "/2") {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, `{"_source":{"a":1,"neardup_sketch":"s"}}`)
	}), nil)
	for path, want := range map[string]struct{ length, method string }{
		"/news-1/_doc/1": {"19", "GET"}, "/news-1/_doc/2": {"19", "GET"}, "/logs/_doc/1": {"40", "HEAD"}, "/news-1/_doc/1?_source=neardup_sketch": {"40", "HEAD"},
	} {
		a := do(t, "HEAD", f.url+path, "")
		if got := a.header.Get("Content-Length"); got != want.length || a.body != "" || a.header.Get("X-Elastic-Product") == "" {
			t.Errorf("%s: length %s, want %s; body %q", path, got, want.length, a.body)
		}
		expect.Same(t, want.method, <-methods, "%s: the method", path)
	}
}

// TestReadsThatAreSearches say why they are left alone, where they may concern a configured index.
func TestReadsThatAreSearches(t *testing.T) {
	f := serve(t, newEngine("news-1", "other-1"), nil)
	bare := serve(t, newEngine("news-1"), func(e *proxy.Engine) { e.Rules = nil })
	for _, c := range []struct{ base, path, want string }{
		{f.url, "/_search/scroll", "bypassed; reason=export"}, {f.url, "/_search/scroll?scroll_id=neardup_sketch", "bypassed; reason=export"},
		{f.url, "/news-1/_knn_search", "bypassed; reason=vector"}, {f.url, "/other-1/_knn_search", ""}, {f.url, "/news-1/_doc/1", ""},
		{f.url, "/news-*/_eql/search", "bypassed; reason=eql"}, {bare.url, "/_search/scroll", ""},
	} {
		expect.Same(t, c.want, do(t, "GET", c.base+c.path, "").header.Get("Neardup"), "%s", c.path)
	}
	expect.Same(t, int64(2), f.counted(t, "searches_total outcome=bypassed reason=export"), "scroll pages that were counted")
}

// TestQueryLanguages sends queries of ES|QL and SQL: their replies lose our columns, and the engine gets its own cursor back.
func TestQueryLanguages(t *testing.T) {
	e := newEngine("news-1", "other-1")
	table := `{"columns":[{"name":"a","type":"text"},{"name":"neardup_sketch","type":"binary"}],"rows":[["x","y"]],"cursor":"c2Vj"}`
	kind := "application/json"
	e.answer = func(w http.ResponseWriter, a arrival) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, table)
	}
	f := serve(t, e, nil)
	first := do(t, "POST", f.url+"/_sql?neardup_keep=3", `{"query":"SELECT * FROM news-1"}`)
	expect.Same(t, `{"columns":[{"name":"a","type":"text"}],"rows":[["x"]],"cursor":"c2Vj~1"}`, first.body, "")
	expect.Same(t, "bypassed; reason=sql", first.header.Get("Neardup"), "")
	expect.Same(t, "/_sql", e.last().uri, "")

	table = `{"rows":[["z","w"]]}`
	next := `{ "cursor" : "c2Vj~1" }`
	for _, headers := range [][]string{nil, {"Content-Encoding: gzip"}} {
		body := next
		if headers != nil {
			body = zipped(next)
		}
		expect.Same(t, `{"rows":[["z"]]}`, do(t, "POST", f.url+"/_sql", body, headers...).body, "")
		got := e.last()
		expect.Same(t, [2]string{`{ "cursor" : "c2Vj" }`, ""}, [2]string{string(got.body), got.header.Get("Content-Encoding")}, "%v", headers)
		expect.Same(t, int64(len(got.body)), got.length, "")
	}
	do(t, "POST", f.url+"/_sql/close", next)
	expect.Same(t, `{ "cursor" : "c2Vj" }`, string(e.last().body), "")

	table, kind = "a,neardup_sketch\r\nx,y\r\n", "text/csv; charset=utf-8; header=present"
	for _, c := range []struct{ query, want, header string }{
		{"FROM news-1", "a\r\nx\r\n", "bypassed; reason=esql"},
		{"FROM news-1 | KEEP neardup_sketch", table, "bypassed; reason=esql"},
		{`FROM news-1 | KEEP neardup\u005fsketch`, table, "bypassed; reason=esql"},
		{"FROM news-1 | KEEP neardup_*", "a\r\nx\r\n", "bypassed; reason=esql"},
		{"FROM other-1", table, ""},
		{"FROM other-1 | LOOKUP JOIN news-1 ON a", "a\r\nx\r\n", "bypassed; reason=esql"},
	} {
		a := do(t, "POST", f.url+"/_query?format=csv", `{"query":"`+c.query+`"}`)
		expect.Same(t, [2]string{c.want, c.header}, [2]string{a.body, a.header.Get("Neardup")}, "%s", c.query)
	}
}
