package localpage

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/playground"
)

// TestServe: the files are open to who is on the machine, and the API to who has the key and comes from the page itself. All ends with the context.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	files := fstest.MapFS{"index.html": {Data: []byte("<p>own</p>")}, "own.js": {Data: []byte("1")}}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if Read(w, r, &body) {
			Answer(w, body)
		}
	})
	address, ended := make(chan string), make(chan error)
	go func() { ended <- Serve(ctx, 0, Page{Files: files, API: api}, func(a string) { address <- a }) }()
	base, key, found := strings.Cut(<-address, "#key=")
	if !found || !strings.HasPrefix(base, "http://127.0.0.1:") || len(key) < 20 {
		t.Fatalf("the address is %q and %q", base, key)
	}
	const good = `{"a":"b"}`
	for _, c := range []struct {
		name, method, path, body, host string
		header                         []string
		status                         int
		text                           string
	}{
		{name: "the page", path: "", status: 200, text: "<p>own</p>"},
		{name: "its script", path: "own.js", status: 200, text: "1"},
		{name: "a shared script", path: "local.js", status: 200, text: "export async function call"},
		{name: "the playground's style", path: "style.css", status: 200, text: ":root"},
		{name: "no file", path: "none.js", status: 404},
		{name: "out of the folder", path: "..%2flocalpage.go", status: 404},
		{name: "localhost, through a tunnel", path: "", host: "localhost:9000", status: 200, text: "own"},
		{name: "a name that leads here", path: "", host: "evil.example", status: 421},
		{name: "such a name with the key", method: "POST", path: "api/x", host: "127.0.0.1.evil.example", header: []string{"Authorization", "Bearer " + key}, body: good, status: 421},
		{name: "no key", method: "POST", path: "api/x", body: good, status: 401},
		{name: "a wrong key", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key[1:]}, body: good, status: 401},
		{name: "the key", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key}, body: good, status: 200, text: good},
		{name: "the key by GET", path: "api/x", header: []string{"Authorization", "Bearer " + key}, status: 405},
		{name: "no JSON", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key}, body: "x", status: 400, text: `{"error":"the body: `},
		{name: "too much", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key}, body: `{"a":"` + strings.Repeat("x", MaxBody) + `"}`, status: 400},
		{name: "another page", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key, "Sec-Fetch-Site", "cross-site"}, body: good, status: 403},
		{name: "another port", method: "POST", path: "api/x", header: []string{"Authorization", "Bearer " + key, "Origin", "http://127.0.0.1:1"}, body: good, status: 403},
	} {
		r := expect.Value(http.NewRequestWithContext(t.Context(), c.method, base+c.path, strings.NewReader(c.body)))(t)
		if r.Host = c.host; len(c.header) > 0 {
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
		}
		reply := expect.Value(http.DefaultClient.Do(r))(t)
		text := string(expect.Value(io.ReadAll(reply.Body))(t))
		_ = reply.Body.Close()
		if reply.StatusCode != c.status || !strings.Contains(text, c.text) || reply.Header.Get("Content-Security-Policy") != playground.Policy {
			t.Errorf("%s: %d %q %v", c.name, reply.StatusCode, text, reply.Header)
		}
	}
	stop()
	expect.OK(t, <-ended)
	if reply, err := http.Get(base); err == nil { //nolint:noctx // it fails at once
		_ = reply.Body.Close()
		t.Error("it still answers")
	}
	http.DefaultClient.CloseIdleConnections()
}
