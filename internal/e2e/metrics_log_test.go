package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestLogLines: each line of the log is JSON, whoever wrote it, and at info and above no line holds what a client sent: here
// canaries in paths' queries, bodies, headers, credentials, over requests that succeed, fail, are broken, or meet an engine
// that does harm.
func TestLogLines(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "logged-1"
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go lie(l)
		w := monitor(t, config(t, e, setup{match: "logged-*", missing: "compute"}), nil)
		liar := monitor(t, config(t, e, setup{match: "logged-*", urls: []string{"http://" + l.Addr().String()}}), nil)
		nowhere := monitor(t, config(t, e, setup{match: "logged-*", urls: []string{"http://127.0.0.1:1"}}), nil)
		direct, through := api{e, e.URL}, api{e, w.base}
		direct.drop(t, index)
		through.create(t, index)
		through.load(t, index, documents(t)[:40])
		for _, base := range []string{w.base, liar.base, nowhere.base} {
			disturb(t, e, base, index)
		}
		for _, m := range []*monitored{w, liar, nowhere} {
			if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			<-m.ended
			lines := m.lines()
			for _, line := range lines {
				var parsed struct {
					Time       time.Time
					Level, Msg string
				}
				if err := json.Unmarshal([]byte(line), &parsed); err != nil || parsed.Time.IsZero() || parsed.Level == "" || parsed.Msg == "" {
					t.Errorf("no line of JSON: %s", line)
				}
				if strings.Contains(strings.ToLower(line), "canary") {
					t.Errorf("a client's words: %s", line)
				}
			}
			if t.Logf("%d lines", len(lines)); len(lines) < 4 || m == nowhere && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, `"WARN"`) }) {
				t.Errorf("too few lines: %v", lines)
			}
		}
	})
}

// disturb sends requests with canaries wherever one can stand.
func disturb(t *testing.T, e *engines.Engine, base, index string) {
	t.Helper()
	search, document, bulk := "/"+index+"/_search", "/"+index+"/_doc/canaryid", "/_bulk"
	if e.Kind == engines.Typesense {
		search, document, bulk = "/collections/"+index+"/documents/search", "/collections/"+index+"/documents/canaryid", "/collections/"+index+"/documents/import"
	}
	headers := [][2]string{{"Authorization", "Basic Y2FuYXJ5OmNhbmFyeQ=="}, {"Authorization", "Bearer canarytoken"}, {"X-Typesense-Api-Key", "canarykey"}, {"X-Opaque-Id", "canary"}}
	for i, body := range []string{
		"", "{}", `{"query":{"match":{"title":"canary"}}}`, `{"canary":{"canary":1}}`, `{"query":{"canary":`, `{"sort":["canary"],"search_after":["canary"]}`,
		`{"neardup_canary":1,"size":"canary"}`, "\x00canary\xff", `{"title":"canary","body":["canary"]}`, "{\"index\":{\"_index\":\"" + index + "\",\"_id\":\"canary\"}}\n{\"title\":\"canary\"}\n",
		`{"searches":[{"q":"canary","collection":"` + index + `"}]}`,
	} {
		for j, path := range []string{search + "?q=canary&query_by=title", document, bulk + "?refresh=canary", "/_msearch?canary=1", "/multi_search?x-typesense-api-key=canary", search + "?neardup_threshold=canary", "/_neardup/" + index + "?canary=1"} {
			method := "POST"
			if body == "" {
				method = "GET"
			}
			r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if e.Key != "" {
				r.Header.Set("X-Typesense-Api-Key", e.Key)
			}
			if h := headers[(i+j)%len(headers)]; (i+j)%3 == 0 {
				r.Header.Set(h[0], h[1])
			}
			if (i+j)%5 == 0 {
				r.Header.Set("Content-Encoding", "gzip") // it is none
			}
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
	}
	for _, text := range []string{"canary\r\n\r\n", "GET /canary HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\ncanary\r\n\r\n", "GET /?canary=%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST " + search + " HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{\"canary\":", "POST " + bulk + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ncanary", "\x16\x03\x01canary"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // some wait for more of the request
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}
}

// lie answers as no engine does, with the words of the request in it.
func lie(l net.Listener) {
	turn := 0
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		turn++
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(conn, []string{
				"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n{\"hits\":{\"canary\":[",
				"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n{\"hits\":{\"total\":\"canary\",\"hits\":[{\"x\":1}]",
				"HTTP/1.1 canary\r\n\r\n", "canary", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\ncanary",
				"HTTP/1.1 500 canary\r\nCanary: canary\r\nContent-Length: 18\r\n\r\n{\"error\":\"canary\"}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ncanary\r\n",
				"HTTP/1.1 200 OK\r\nCanary canary\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n",
			}[turn%9])
		}()
	}
}

// TestLogLineOfEachRequest: at debug there is one, with the trace it belongs to, and without what the client said.
func TestLogLineOfEachRequest(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	file := config(t, e, setup{match: "logged-*"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "{format: json}", "{format: json, level: debug}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := monitor(t, file, nil)
	call(t, e, "GET", w.base+"/_cat/health?h=canary", "", "Traceparent", clientParent)
	call(t, e, "GET", w.base+"/", "", "Traceparent", "canary")
	w.stop(t)
	var ids []string
	for _, line := range w.lines() {
		var request struct {
			Msg, Kind, Method, Took string
			Status                  int
			TraceID                 string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(line), &request); err != nil {
			t.Fatal(err)
		}
		if request.Msg == "request" && request.Kind == "pass" && request.Method == "GET" && request.Status != 0 && request.Took != "" {
			ids = append(ids, request.TraceID)
		}
		if strings.Contains(line, "canary") {
			t.Error(line)
		}
	}
	if !slices.Equal(ids, []string{clientTrace, ""}) {
		t.Errorf("%v in %v", ids, w.lines())
	}
}
