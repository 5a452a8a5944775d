package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestOversizedBody sends a bulk over the engine's limit, which it refuses, and one just below, which it takes though our sketches would
// cross the limit.
func TestOversizedBody(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "big-1"
	base := serve(t, e, setup{match: "big-*"})
	direct := api{e, e.URL}
	direct.create(t, index)
	const limit = 100 << 20
	for _, size := range []int{limit + 4096, limit - 4096} {
		body := bulkOf(index, size)
		status := post(t, base+"/_bulk", body)
		same(t, map[bool]int{true: http.StatusRequestEntityTooLarge, false: http.StatusOK}[size > limit], status, "the status of %d bytes", size)
	}
}

// post sends a large body and returns the status; an engine that cuts the connection under an upload refuses it as too large.
func post(t *testing.T, url, body string) int {
	t.Helper()
	resp, err := http.Post(url, "application/x-ndjson", strings.NewReader(body))
	if err != nil {
		t.Log(err)
		return http.StatusRequestEntityTooLarge
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// bulkOf returns a bulk of exactly size bytes.
func bulkOf(index string, size int) string {
	var b strings.Builder
	filler := strings.Repeat("many different words stand here to be read ", 2500)
	for i := 0; b.Len() < size-220_000; i++ {
		fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":\"b%d\"}}\n{\"title\":\"document %d\",\"url\":\"x\",\"body\":%q}\n", index, i, i, filler)
	}
	fmt.Fprintf(&b, "{\"index\":{\"_index\":%q,\"_id\":\"last\"}}\n", index)
	const open, end = `{"title":"the last one of all","body":"`, "\"}\n"
	b.WriteString(open + strings.Repeat("x ", (size-b.Len()-len(open)-len(end))/2))
	b.WriteString(strings.Repeat("y", size-b.Len()-len(end)) + end)
	return b.String()
}

// TestMainJobDeadEngine has no engine behind the sidecar, which answers as a proxy does, 502 in the engine's own shape; then the engine comes back, and
// the same sidecar goes on.
func TestMainJobDeadEngine(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		dead := "http://" + l.Addr().String()
		l.Close()
		base := serve(t, e, setup{match: "dead-*", urls: []string{dead}})
		requests := []sending{{"GET", "/", "", nil}, {"GET", "/dead-1/_search", "", nil}, {"PUT", "/dead-1/_doc/1", `{"title":"a"}`, nil}}
		if e.Kind == engines.Typesense {
			requests = []sending{{"GET", "/health", "", nil}, {"GET", "/collections/dead-1/documents/search?q=a&query_by=b", "", nil},
				{"POST", "/collections/dead-1/documents", `{"title":"a"}`, nil}}
		}
		for _, r := range requests {
			got := call(t, e, r.method, base+r.path, r.body).want(t, 502)
			if !inShape(gotten{reply: got}) {
				t.Errorf("%s %s: %s", r.method, r.path, got.body)
			}
			if e.Kind == engines.Elasticsearch && got.header.Get("X-Elastic-Product") != "Elasticsearch" {
				t.Error("no X-Elastic-Product on an error of ours")
			}
		}
		there := must(url.Parse(e.URL))(t)
		l = must(net.Listen("tcp", l.Addr().String()))(t)
		back := &http.Server{Handler: httputil.NewSingleHostReverseProxy(there)}
		go back.Serve(l)
		defer back.Close()
		var got reply
		if !until(func() bool { got = call(t, e, "GET", base+requests[0].path, ""); return got.status == 200 }) {
			t.Fatalf("the engine is back, the sidecar answers %d: %s", got.status, got.body)
		}
	})
}

// TestDeadlines asks sidecars with hardly any time for collapsing, and with some: what says reason=deadline is the engine's own answer to
// the client's search, byte for byte but for the time it took.
func TestDeadlines(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, late := "dlimits-1", map[string]int{}
		direct := api{e, e.URL}
		direct.create(t, index, documents(t)...) // without sketches: these are computed
		for _, deadline := range []string{"1ns", "300us", "2ms", "20ms"} {
			through := api{e, serve(t, e, setup{match: "dlimits-*", limits: fmt.Sprintf("{deadline: %s, advanced: {fallback_share: 1}}", deadline)})}
			for _, from := range []int{0, 10, 40} {
				for _, totals := range []string{"", "collapsed"} {
					method, path, body := "POST", "/"+index+"/_search", fmt.Sprintf(`{"from":%d,"size":10,"query":{"match":{"body":"the"}},"sort":["_score","published_at"]}`, from)
					controls := "?neardup_totals=" + totals
					if e.Kind == engines.Typesense {
						method, path, body = "GET", fmt.Sprintf("/collections/%s/documents/search?q=the&query_by=body&per_page=10&page=%d", index, from/10+1), ""
						controls = "&neardup_totals=" + totals
					}
					if totals == "" {
						controls = ""
					}
					r := call(t, e, method, through.base+path+controls, body).want(t, 200)
					outcome := r.header.Get("Neardup")
					verb, _, _ := strings.Cut(outcome, ";")
					late[deadline+" "+verb]++
					switch {
					case strings.HasPrefix(outcome, "bypassed; reason=deadline"):
						if own := call(t, e, method, e.URL+path, body).want(t, 200); !bytes.Equal(untimed(own.body), untimed(r.body)) {
							t.Errorf("%s %s%s: directly\n%.900s\nthrough us\n%.900s", deadline, path, body, own.body, r.body)
						}
					case !strings.HasPrefix(outcome, "collapsed"):
						t.Errorf("%s %s%s: %s", deadline, path, body, outcome)
					}
				}
			}
		}
		if t.Log(late); late["1ns bypassed"] != 6 {
			t.Errorf("not all are late after a nanosecond: %v", late)
		}
	})
}

// TestHeaderTimeout: who takes too long to send a header, or keeps a connection for nothing, is let go; a body may take as long as it does.
func TestHeaderTimeout(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	base := strings.TrimPrefix(serve(t, e, setup{match: "dlimits-*", limits: "{advanced: {header_timeout: 300ms, idle_timeout: 500ms}}"}), "http://")
	for _, c := range []struct {
		name, begin, slow, want string
	}{
		{"header", "GET / HTTP/1.1\r\nHost: x\r\n", "", ""},
		{"body", "POST /_analyze HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n" + `{"text":"a`, `b"}  `, "200 OK"},
		{"idle", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", "200 OK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := must(net.Dial("tcp", base))(t)
			defer conn.Close()
			_, _ = io.WriteString(conn, c.begin)
			if c.slow != "" {
				time.Sleep(600 * time.Millisecond) // longer than both timeouts
				_, _ = io.WriteString(conn, c.slow)
			}
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			got, err := io.ReadAll(conn)
			if !strings.Contains(string(got), c.want) || c.want == "" && strings.Contains(string(got), "200 OK") {
				t.Errorf("%q", got)
			}
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				t.Error("the connection is kept")
			}
		})
	}
}

// TestEngineTimeouts has searches end by the engine's own time limit. Without partial results that is an error, which Elasticsearch 9
// answers with 429: the client gets the engine's own. With them the reply says so.
func TestEngineTimeouts(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		const index = "slow-1"
		direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "slow-*"})}
		through.create(t, index)
		var lines strings.Builder
		for i := range 4000 { // the engines look at the clock after some thousands of documents
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q}}\n{\"title\":\"the ferry was late on day %d\"}\n", index, i)
		}
		through.loadLines(t, index, lines.String())
		const slow = `{"timeout":"1ms","query":{"script":{"script":"double x=0; for(int i=0;i<20000;i++){x+=Math.sin(i)} return x>-1e9"}}}`
		path := "/" + index + "/_search?allow_partial_search_results=false"
		own := call(t, e, "POST", direct.base+path, slow)
		got := call(t, e, "POST", through.base+path, slow)
		if own.status < 400 || got.status != own.status {
			t.Fatalf("status %d, directly %d: %.300s", got.status, own.status, own.body)
		}
		same(t, string(own.body), string(got.body), "")
		if e.Name == engines.Elasticsearch && own.status != 429 {
			t.Errorf("Elasticsearch 9 answers %d", own.status)
		}
		partly := call(t, e, "POST", through.base+"/"+index+"/_search", slow).want(t, 200)
		if !strings.Contains(string(partly.body), `"timed_out":true`) {
			t.Errorf("%.200s", partly.body)
		}
	})
}
