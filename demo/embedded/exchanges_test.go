package embedded

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

var record = flag.String("record", "", "URL of an empty, real Elasticsearch whose replies to record")

const exchangesFile = "testdata/exchanges.txt"

// exchange is a request and the reply of a real Elasticsearch.
type exchange struct {
	method, path, body string
	status             int
	reply              string
}

func (x exchange) String() string { return x.method + " " + x.path + " " + x.body }

func readExchanges(t *testing.T) (head string, list []exchange) {
	t.Helper()
	raw := expect.Value(os.ReadFile(exchangesFile))(t)
	for line := range strings.Lines(string(raw)) {
		switch {
		case strings.HasPrefix(line, "#"):
			head += line
		case strings.HasPrefix(line, "> "):
			method, path, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
			list = append(list, exchange{method: method, path: path})
		case strings.HasPrefix(line, "< "):
			x := &list[len(list)-1]
			status, reply, _ := strings.Cut(strings.TrimSpace(line[2:]), " ")
			expect.Value(fmt.Sscan(status, &x.status))(t)
			x.reply = reply
		default:
			list[len(list)-1].body += line
		}
	}
	for i, x := range list {
		if !strings.HasSuffix(x.path, "_msearch") && !strings.Contains(x.path, "_bulk") {
			list[i].body = strings.TrimSuffix(x.body, "\n")
		}
	}
	return head, list
}

func withNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func ask(t *testing.T, base string, x exchange) (int, string, http.Header) {
	t.Helper()
	req := expect.Value(http.NewRequestWithContext(t.Context(), x.method, base+x.path, strings.NewReader(x.body)))(t)
	if x.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res := expect.Value(http.DefaultClient.Do(req))(t)
	defer res.Body.Close()
	b := expect.Value(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(bytes.TrimSpace(b)), res.Header
}

// differing are keys whose values name a server, a time or a place in the request, or that a small engine leaves out.
var differing = []string{"took", "index_uuid", "uuid", "node", "_scroll_id", "cluster_name", "caused_by", "line", "col", "settings",
	"active_primary_shards", "active_shards", "ignored_field_values"}

var place = regexp.MustCompile(`^\[\d+:\d+\] (failed to parse: \[\d+:\d+\] )?`)

// comparable strips a reply of what differs between two real servers too, and a reason of all but its first sentence.
func comparable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range differing {
			delete(v, k)
		}
		for k, e := range v {
			v[k] = comparable(e)
			if n, ok := e.(json.Number); ok && strings.HasSuffix(k, "_score") { // Lucene rounds to 32 bits at each step
				f, _ := n.Float64()
				v[k] = fmt.Sprintf("%.5g", f)
			}
		}
		if reason, ok := v["reason"].(string); ok {
			reason, _, _ = strings.Cut(place.ReplaceAllString(reason, ""), ". ")
			reason, _, _ = strings.Cut(reason, " found at [")
			v["reason"] = regexp.MustCompile(`/[\w-]{22}\]`).ReplaceAllString(reason, "/uuid]")
		}
		if v["type"] == "parse_exception" || v["type"] == "query_shard_exception" {
			delete(v, "index")
		}
	case []any:
		for i, e := range v {
			v[i] = comparable(e)
		}
	}
	return v
}

func parsed(t *testing.T, reply string) any {
	t.Helper()
	if reply == "" {
		return nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(reply))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("read reply %s: %v", reply, err)
	}
	return comparable(v)
}

func TestExchanges(t *testing.T) {
	head, list := readExchanges(t)
	if *record != "" {
		out := head
		for _, x := range list {
			status, reply, _ := ask(t, *record, x)
			out += fmt.Sprintf("> %s %s\n%s< %d %s\n", x.method, x.path, withNewline(x.body), status, reply)
		}
		expect.OK(t, os.WriteFile(exchangesFile, []byte(out), 0o644))
		return
	}
	server := start(t)
	for _, x := range list {
		t.Run(x.String(), func(t *testing.T) {
			status, reply, header := ask(t, server, x)
			expect.Same(t, x.status, status, "status")
			expect.Same(t, parsed(t, x.reply), parsed(t, reply), "%s (-Elasticsearch +embedded)", reply)
			expect.Same(t, "Elasticsearch", header.Get("X-Elastic-Product"), "the product")
		})
	}
}

// start serves a new engine and returns its URL.
func start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(New())
	t.Cleanup(server.Close)
	return server.URL
}
