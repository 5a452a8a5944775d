package proxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// nobody returns a URL where nothing listens.
func nobody(t testing.TB) string {
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// TestDeadNodeIsSkipped: every request reaches a living node, whole, whichever flow it takes.
func TestDeadNodeIsSkipped(t *testing.T) {
	e := searchEngine(t)
	f := serveNodes(t, []string{nobody(t), behind(t, e), nobody(t)}, nil)
	large := fat("logs", 300)
	for range 4 {
		for _, c := range []struct{ path, body string }{
			{"/_whatever", `{"a":1}`}, {"/_whatever", large}, {"/logs/_bulk", large}, {"/logs/_bulk", bulk("logs", 2)},
		} {
			before := len(e.arrived())
			if a := do(t, "POST", f.url+c.path, c.body); a.status >= 500 {
				t.Fatalf("%s: got %d %s", c.path, a.status, a.body)
			}
			if got := e.arrived()[before:]; len(got) != 1 || string(got[0].body) != c.body {
				t.Fatalf("%s: a body of %d bytes came %d times", c.path, len(c.body), len(got))
			}
		}
		expect.Must(t, "0 2 3", ids(do(t, "POST", f.url+"/news-1/_search", `{}`).body), "the hits")
	}
}

// TestNodeThatResets has a node take requests and hang up: another node may not get them too.
func TestNodeThatResets(t *testing.T) {
	known := newEngine("news-1")
	bad, times := dying(t, known, 1<<20)
	good := newEngine("news-1")
	f := serveNodes(t, []string{behind(t, bad), behind(t, good)}, nil)
	const writes = 10
	failed := 0
	for range writes {
		if a := do(t, "POST", f.url+"/_bulk", one); a.status == 502 {
			failed++
		}
	}
	if n := int(times.Load()) + len(good.arrived()); n != writes || failed != int(times.Load()) || failed == 0 {
		t.Errorf("%d writes became %d, of which %d failed at the client and %d at the node", writes, n, failed, times.Load())
	}
}

// dialing is a transport of which some nodes can't be dialled.
type dialing struct {
	down map[string]bool
	got  []string
}

func (d *dialing) RoundTrip(r *http.Request) (*http.Response, error) {
	d.got = append(d.got, r.URL.Host)
	if d.down[r.URL.Host] {
		return nil, &net.OpError{Op: "dial", Err: net.UnknownNetworkError("none")}
	}
	rec := httptest.NewRecorder()
	rec.WriteString("{}")
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// TestNodesComeBack: a node that could not be dialled is left out for a moment, and if none can be, all are tried.
func TestNodesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialing{down: map[string]bool{"a": true}}
		f := handler(t, []string{"http://a", "http://b"}, func(p *proxy.Engine) { p.Transport = d })
		asked := func() string {
			d.got = nil
			f.ask("GET", "/", "")
			f.ask("GET", "/", "")
			return strings.Join(d.got, " ")
		}
		if got := asked(); strings.Count(got, "a") != 1 || strings.Count(got, "b") != 2 {
			t.Errorf("with a down: %s", got)
		}
		expect.Same(t, "b b", asked(), "with a known to be down")
		d.down["b"] = true
		if got := asked(); strings.Count(got, "a") != 2 || strings.Count(got, "b") != 2 {
			t.Errorf("with both down: %s", got)
		}
		clear(d.down)
		time.Sleep(6 * time.Second)
		if got := asked(); strings.Count(got, "a") != 1 || strings.Count(got, "b") != 1 {
			t.Errorf("with both back: %s", got)
		}
	})
}

// TestNodeWithAPath: an engine may stand behind a path of its own.
func TestNodeWithAPath(t *testing.T) {
	e := newEngine()
	f := serveNodes(t, []string{behind(t, e) + "/search%2Fhere/"}, nil)
	for path, want := range map[string]string{
		"/": "/search%2Fhere/", "/a%2Fb//c": "/search%2Fhere/a%2Fb//c", "/<x{y%2Fz}>?q": "/search%2Fhere/<x{y%2Fz}>?q",
	} {
		send(t, strings.TrimPrefix(f.url, "http://"), "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		expect.Same(t, want, e.last().uri, "as what %s came", path)
	}
}
