package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestDeadlines asks sidecars with hardly any time for collapsing, and with some: what says reason=deadline is the engine's own answer to
// the client's search, byte for byte but for the time it took.
func TestDeadlines(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, late := "dlimits-1", map[string]int{}
		direct := api{e, e.URL}
		direct.create(t, index)
		direct.load(t, index, documents(t)) // without sketches: these are computed
		for _, deadline := range []string{"1ns", "300us", "2ms", "20ms"} {
			through := api{e, serve(t, e, setup{match: "dlimits-*", limits: fmt.Sprintf("{deadline: %s, fallback_share: 1}", deadline)})}
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
	base := strings.TrimPrefix(serve(t, e, setup{match: "dlimits-*", limits: "{header_timeout: 300ms, idle_timeout: 500ms}"}), "http://")
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
