package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestHopHeaders has the headers of a connection stay on it and all others go on, whichever way a request goes out and a reply comes back.
// Proxy-Authorization and Proxy-Authenticate are such others.
func TestHopHeaders(t *testing.T) {
	const hit = `{"_index":"news-1","_id":"1","_source":{"title":"a"}}`
	const found = `{"hits":{"total":{"value":1,"relation":"eq"},"hits":[` + hit + `]}}`
	for name, c := range map[string]struct{ request, body, reply, outcome string }{
		"passes":       {"GET /_cat/indices", "", "", ""},
		"read":         {"GET /news-1/_doc/1", "", hit, ""},
		"write":        {"POST /news-1/_doc", `{"title":"a"}`, `{"_id":"1"}`, ""},
		"bulk":         {"POST /_bulk", "{\"index\":{\"_index\":\"news-1\"}}\n{\"title\":\"a\"}\n", `{"items":[]}`, ""},
		"collapsed":    {"POST /news-1/_search", `{}`, found, "collapsed"},
		"together":     {"POST /news-1/_msearch", "{}\n{}\n", `{"responses":[` + found + `]}`, "collapsed"},
		"left alone":   {"POST /news-1/_search", `{"size":0}`, found, "bypassed; reason=size_zero"},
		"unconfigured": {"POST /logs-1/_search", `{}`, found, ""},
		"next page":    {"POST /_search/scroll", `{"scroll_id":"x"}`, found, "bypassed; reason=export"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine("news-1", "logs-1")
			e.answer = func(w http.ResponseWriter, _ arrival) {
				for _, key := range hopping {
					w.Header().Set(key, "x")
				}
				w.Header().Set("Connection", "X-Private")
				w.Header().Set("Proxy-Authenticate", "Basic realm=x")
				w.Header().Set("X-Private", "x")
				_, _ = io.WriteString(w, c.reply)
			}
			f := serve(t, e, nil)
			var head strings.Builder
			head.WriteString(c.request + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTE: gzip\r\nConnection: keep-alive, upgrade\r\n")
			for _, key := range hopping {
				head.WriteString(key + ": x\r\n")
			}
			head.WriteString("Proxy-Authorization: Basic eDp5\r\nX-Other: x\r\n")
			list := send(t, strings.TrimPrefix(f.url, "http://"), inChunks(head.String(), c.body))
			reply := list[len(list)-1]
			if got := reply.get("neardup"); reply.get("proxy-authenticate") != "Basic realm=x" || !strings.HasPrefix(got, c.outcome) || (got == "") != (c.outcome == "") {
				t.Errorf("the client got %q", reply.header)
			}
			for _, key := range append([]string{"X-Private"}, hopping...) {
				expect.Same(t, "", reply.get(strings.ToLower(key)), "the client got %s", key)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.log) == 0 {
				t.Fatal("nothing was asked")
			}
			for _, a := range e.log {
				if got := a.header.Get("Proxy-Authorization"); got != "Basic eDp5" || a.header.Get("X-Other") != "x" {
					t.Errorf("%s came with Proxy-Authorization %q", a, got)
				}
				for _, key := range append([]string{"Connection", "Te"}, hopping...) {
					expect.Same(t, "", a.header.Get(key), "%s came with %s", a, key)
				}
			}
		})
	}
}

// hopping are headers of a connection that a test can set.
var hopping = []string{"Keep-Alive", "Proxy-Connection", "Upgrade"}
