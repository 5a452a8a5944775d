package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
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
					if a.header.Get("Content-Encoding") != "gzip" {
						t.Fatal("the reply is not compressed any more")
					}
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

// TestEngineDiesInAReply: the client must not take what came for the whole.
func TestEngineDiesInAReply(t *testing.T) {
	for _, path := range []string{"/_whatever", "/news-1/_doc/1"} {
		for _, sent := range []int{10, 3 << 20} {
			f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"_source":{"a":"`+strings.Repeat("x", sent))
				http.NewResponseController(w).Flush()
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				conn.(*net.TCPConn).Close()
			}), nil)
			if a, err := try(t, "GET", f.url+path, nil); err == nil {
				t.Errorf("%s: %d bytes of a broken reply ended well", path, len(a.body))
			}
		}
	}
}
