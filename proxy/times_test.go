package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/neardup/sidecar/proxy"
)

// TestTimes: who asks for the times of a request gets them, the engine's apart from ours; they add up to no more than all of it.
func TestTimes(t *testing.T) {
	const slow = 30 * time.Millisecond
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(slow)
		_, _ = w.Write([]byte("an answer"))
	}))
	defer e.Close()
	f := handler(t, []string{e.URL}, nil)
	var times proxy.Times
	r := httptest.NewRequestWithContext(proxy.WithTimes(t.Context(), &times), "GET", "/elsewhere", nil)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if w.Body.String() != "an answer" || times.Engine < slow || times.Own <= 0 || times.Total < times.Engine+times.Own {
		t.Errorf("%q %+v", w.Body, times)
	}
}
