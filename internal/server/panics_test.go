package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// canary is a secret that must not be shown.
const canary = "hunter2canary"

// TestGuarded panics in a handler, with a secret in hand.
func TestGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		raise func(r *http.Request)
		want  string
	}{
		"with a text":      {func(r *http.Request) { panic("key " + r.Header.Get("Authorization")) }, "error=string"},
		"with an error":    {func(r *http.Request) { panic(errors.New(r.Header.Get("Authorization"))) }, "error=*errors.errorString"},
		"with the request": {func(r *http.Request) { panic(r) }, "error=*http.Request"},
		"of the runtime":   {func(r *http.Request) { _ = []int{}[len(r.Method)] }, "index out of range"},
		"on purpose":       {func(*http.Request) { panic(http.ErrAbortHandler) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := httptest.NewUnstartedServer(logPanics(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.raise(r) }), slog.New(slog.NewTextHandler(&log, nil))))
			server.Config.ErrorLog = serverErrors(slog.New(slog.NewTextHandler(&log, nil)))
			server.Start()
			defer server.Close()
			request := expect.Value(http.NewRequest(http.MethodGet, server.URL, nil))(t)
			request.Header.Set("Authorization", "ApiKey "+canary)
			if resp, err := http.DefaultTransport.RoundTrip(request); err == nil {
				t.Errorf("status %d, where the connection is to be cut", resp.StatusCode)
			}
			server.Close()
			if text := log.String(); strings.Contains(text, canary) || !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("logged %s", text)
			}
		})
	}
}
