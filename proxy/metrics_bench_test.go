package proxy_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/proxy"
)

// canned answers as an engine does that is on no network: what a request costs is then what we do with it.
type canned struct {
	engine *engine
	same   map[string]*taped // what is answered to a path from then on
}

// taped is an engine's answer.
type taped struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (t *taped) Header() http.Header { return t.header }

func (t *taped) WriteHeader(status int) { t.status = status }

func (t *taped) Write(p []byte) (int, error) { return t.body.Write(p) }

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.Path
	tape := c.same[key]
	if tape == nil {
		tape = &taped{status: 200, header: http.Header{}}
		again := r.Clone(r.Context())
		if again.RequestURI = r.URL.RequestURI(); again.Body == nil {
			again.Body = http.NoBody
		}
		c.engine.ServeHTTP(tape, again)
		c.same[key] = tape
	} else if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{
		StatusCode: tape.status, Header: tape.header.Clone(), Request: r,
		Body: io.NopCloser(bytes.NewReader(tape.body.Bytes())), ContentLength: int64(tape.body.Len()),
	}, nil
}

// unread is the way to a client that reads nothing.
type unread struct{ header http.Header }

func (u unread) Header() http.Header         { return u.header }
func (u unread) WriteHeader(int)             {}
func (u unread) Write(p []byte) (int, error) { return len(p), nil }
func (u unread) Flush()                      {}

// BenchmarkRequest takes what a request costs us, without networks: one that passes, and a search that is collapsed.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct{ name, method, path, body string }{
		{"pass", "GET", "/_cat/health", ""},
		{"pass with a body", "POST", "/_tasks/x", `{"a":1}`},
		{"collapsed search", "POST", "/news-1/_search", `{"query":{"match":{"title":"storm"}}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newEngine("news-1")
			e.set("news-1", true)
			e.answer = searching(b)
			if !strings.Contains(c.path, "_search") {
				e.answer = nil
			}
			f := handler(b, []string{"http://engine:9200"}, func(e2 *proxy.Engine) {
				e2.Transport = canned{e, map[string]*taped{}}
				e2.Log = slog.New(slog.DiscardHandler)
			})
			ask := func() {
				r := &http.Request{
					Method: c.method, URL: &url.URL{Path: c.path}, RequestURI: c.path, Host: "here", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
					Header: http.Header{"Content-Type": {"application/json"}, "User-Agent": {"x"}}, Body: http.NoBody,
				}
				if c.body != "" {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
				}
				f.ServeHTTP(unread{http.Header{}}, r)
			}
			ask()
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
			b.StopTimer()
			if c.method == "POST" && strings.Contains(c.path, "_search") && f.Counts()["collapsed"] == 0 {
				b.Fatal(f.Counts())
			}
		})
	}
}
