package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

var anywhere = http.Header{}

type nowhere struct{}

func (nowhere) Header() http.Header         { return anywhere }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Flush()                      {}

// BenchmarkCounting takes what counting and the clocks cost a request that passes: all that is done for them, and the same
// request without.
func BenchmarkCounting(b *testing.B) {
	h := &Handler{Engine: Engine{Metrics: NewMetrics(nil)}}
	h.counts.metrics = h.Metrics
	h.Log = slog.New(slog.DiscardHandler)
	m := meter{h.Metrics, nil}
	header, piece := http.Header{"Traceparent": {"x"}}, make([]byte, 4096)
	body := strings.NewReader("")
	resp := &http.Response{StatusCode: 200}
	send := func(*http.Request) (*http.Response, error) {
		body.Reset("an answer")
		resp.Body = io.NopCloser(body)
		return resp, nil
	}
	copied := func(w http.ResponseWriter, resp *http.Response) {
		w.WriteHeader(200)
		for {
			n, err := resp.Body.Read(piece)
			_, _ = w.Write(piece[:n])
			if n > 0 {
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				_ = resp.Body.Close()
				return
			}
		}
	}
	first := (&http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Header: header, Body: http.NoBody}).WithContext(context.Background())
	b.Run("with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			u, r := h.begin(nowhere{}, first)
			h.is(r.Context(), "pass")
			resp, _ := m.roundTrip(r, "", send)
			copied(u, resp)
			u.ended = true
			h.end(u, r)
		}
	})
	b.Run("without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			back := reply{ResponseWriter: nowhere{}}
			resp, _ := send(first)
			copied(back, resp)
		}
	})
}
