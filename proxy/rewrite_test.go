package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

const nodesType = "application/vnd.elasticsearch+json;compatible-with=8"

// nodes answers what nodes say of themselves, compressed as it is asked to, as the engines do.
func nodes(size int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, accept := saidAt("10.0.0.1:9200", size), r.Header.Get("Accept-Encoding")
		switch {
		case strings.Contains(accept, "zstd"):
			w.Header().Set("Content-Encoding", "zstd")
			body = "not for us to read"
		case strings.Contains(accept, "gzip"):
			w.Header().Set("Content-Encoding", "gzip")
			body = zipped(body)
		}
		w.Header().Set("Content-Type", nodesType)
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		io.WriteString(w, body)
	})
}

// saidAt is what two nodes say at the address.
func saidAt(address string, size int) string {
	const node = `{"name":"n","transport_address":"10.0.0.1:9300","http" : {"bound_address":["%[1]s"], "publish_address":"%[1]s"}}`
	one := fmt.Sprintf(node, address)
	filler := strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, size/1000)
	return `{"_nodes":{"total":2},"filler":[` + filler + `0],"nodes":{"a":` + one + `, "b":` + one + "}}\n"
}

func TestRewriteSniffing(t *testing.T) {
	for _, c := range []struct {
		name, host, advertise, want string
		headers                     []string
		size                        int
	}{
		{name: "as addressed", host: "search.example:9201", want: "search.example:9201"},
		{name: "without a port", host: "search.example", want: "search.example:80"},
		{name: "behind TLS", host: "search.example", headers: []string{"X-Forwarded-Proto: https"}, want: "search.example:443"},
		{name: "IPv6", host: "[::1]:9201", want: "[::1]:9201"},
		{name: "advertised", host: "search.example", advertise: "public.example:443", want: "public.example:443"},
		{name: "large gzip", host: "h:1", want: "h:1", size: 12 << 20, headers: []string{"Accept-Encoding: gzip"}},
		{name: "gzip among others", host: "h:1", want: "h:1", headers: []string{"Accept-Encoding: zstd, gzip;q=0.5"}},
	} {
		paths := []string{"/_nodes/http", "/_nodes", "/_nodes/_all/http?timeout=1s", "/_nodes/_local/http", "/_nodes/a,b/http,settings"}
		if c.name != "as addressed" {
			paths = paths[:1]
		}
		for _, path := range paths {
			t.Run(c.name+" "+path, func(t *testing.T) {
				f := handler(t, []string{behind(t, nodes(c.size))}, func(e *proxy.Engine) {
					e.Dialect = elastic.Dialect{RewriteSniffing: true, Advertise: c.advertise}
				})
				r := httptest.NewRequest("GET", path, nil)
				r.Host = c.host
				for _, header := range c.headers {
					name, value, _ := strings.Cut(header, ": ")
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				f.ServeHTTP(w, r)
				got := w.Body.String()
				if length := w.Header().Get("Content-Length"); length != strconv.Itoa(len(got)) && (length != "" || c.size == 0) {
					t.Errorf("Content-Length %s of %d bytes", length, len(got))
				}
				got = plainOf(t, answer{header: w.Header(), body: got})
				if want := saidAt(c.want, c.size); got != want {
					t.Errorf("got …%s\nwant …%s", got[max(0, len(got)-400):], want[max(0, len(want)-400):])
				}
				expect.Same(t, "Elasticsearch", w.Header().Get("X-Elastic-Product"), "the product")
				expect.Same(t, nodesType, w.Header().Get("Content-Type"), "the type")
			})
		}
	}
}

// behind starts an engine and returns its URL.
func behind(t testing.TB, e http.Handler) string {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}
