package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// asking sends a GET to the admin listener under a host, "" for its own.
func asking(t *testing.T, url, host string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), "GET", url, nil))(t)
	if host != "" {
		r.Host = host
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp := must(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	body := must(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, string(body)
}

// TestAdminPages asks the built program for each page.
func TestAdminPages(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	node := strings.TrimPrefix(e.URL, "http://")
	w := monitor(t, config(t, e, setup{match: "x-*", urls: []string{e.URL, "http://127.0.0.1:1"}}), nil)
	for _, c := range []struct {
		path, host string
		header     []string
		status     int
		has        []string
	}{
		{"/livez", "", nil, 200, []string{"ok"}},
		{"/readyz", "", nil, 200, []string{"engine elasticsearch: ok"}},
		{"/readyz?verbose", "", nil, 200, []string{"[+] engine elasticsearch: ok", "http://" + node + ": answers ", "http://127.0.0.1:1: dial", "[+] config", "\nready"}},
		{"/version", "", nil, 200, []string{"sidecar "}},
		{"/version?output=json", "", nil, 200, []string{`"go": "go1.`}},
		{"/version", "", []string{"Accept", "application/json"}, 200, []string{`"version": "`}},
		{"/", "", nil, 200, []string{`href="/metrics"`, `href="/readyz?verbose"`}},
		{"/metrics", "", nil, 200, []string{"neardup_build_info{", "go_goroutines", "process_open_fds"}},
		{"/nothing", "", nil, 404, nil},
		{"/debug/pprof/", "", nil, 404, nil},
		// Names under which a page of a stranger can't have come here, and one under which it can.
		{"/metrics", "localhost:1", nil, 200, nil},
		{"/metrics", "[::1]:9600", nil, 200, nil},
		{"/metrics", "sidecar", nil, 200, nil},
		{"/metrics", "sidecar.search.svc", nil, 200, nil},
		{"/metrics", "sidecar.search.svc.cluster.local:9600", nil, 200, nil},
		{"/metrics", "rebound.example.com", nil, 421, nil},
		{"/metrics", "127.0.0.1.example.com:9600", nil, 421, nil},
		{"/", "rebound.example.com", nil, 421, nil},
		{"/version", "rebound.example.com", nil, 421, nil},
		{"/livez", "health.example.com", nil, 200, []string{"ok"}},
	} {
		status, header, body := asking(t, w.admin+c.path, c.host, c.header...)
		if status != c.status {
			t.Errorf("%s of %q: %d, want %d", c.path, c.host, status, c.status)
		}
		for _, text := range c.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q: %s", c.path, text, body)
			}
		}
		for _, name := range []string{"X-Content-Type-Options", "Content-Security-Policy", "Cache-Control", "X-Frame-Options", "Referrer-Policy"} {
			if header.Get(name) == "" {
				t.Errorf("%s has no %s", c.path, name)
			}
		}
	}
	if _, _, body := asking(t, w.admin+"/readyz?verbose", "rebound.example.com"); strings.Contains(body, node) {
		t.Errorf("a stranger's page is shown %s", body)
	}
	if resp, err := http.Post(w.admin+"/metrics", "text/plain", strings.NewReader("x")); err != nil || resp.StatusCode != 405 {
		t.Errorf("POST: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	w.stop(t)
}
