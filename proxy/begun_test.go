//go:build unix

package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBegun asks over a connection that is used again and again for replies of which more or less is there when their heads are.
func TestBegun(t *testing.T) {
	next := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var length int
		var head, early bool
		_, _ = fmt.Sscan(strings.ReplaceAll(r.URL.RawQuery, "+", " "), &length, &head, &early)
		if early {
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Set("Content-Length", fmt.Sprint(length))
		if head {
			_ = http.NewResponseController(w).Flush()
			<-next
		}
		_, _ = w.Write([]byte(strings.Repeat("x", length)))
	}))
	defer engine.Close()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	for _, c := range []struct {
		length              int
		head, early, wanted bool
	}{
		{1500, false, false, true},
		{1500, true, false, false},
		{3000, false, false, true},
		{100, false, false, true},
		{2000, false, true, true},
		{2000, true, true, false}, // what came is another head
		{2000, false, false, true},
	} {
		r, err := http.NewRequest("GET", fmt.Sprintf("%s/?%d+%t+%t", engine.URL, c.length, c.head, c.early), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &sent{w: httptest.NewRecorder()}
		resp, err := transport.RoundTrip(s.request(r))
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string]bool{"as it comes": begun(resp.Body), "while it is timed": begun(&answer{ReadCloser: resp.Body})} {
			if body != c.wanted {
				t.Errorf("%+v, %s: begun %v", c, name, body)
			}
		}
		if c.head {
			next <- struct{}{}
		}
		w := httptest.NewRecorder()
		if err := pour(w, resp, c.wanted); err != nil || w.Body.Len() != c.length {
			t.Errorf("%+v: %d bytes, %v", c, w.Body.Len(), err)
		}
		_ = resp.Body.Close()
	}
}
