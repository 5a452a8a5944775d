package elastic

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
)

// silent is an engine none of whose nodes answers.
type silent struct {
	err   error
	asked int
}

func (s *silent) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked++
	return nil, s.err
}

// TestSecondNode: a request that a node may have carried out, and that changes something, is not sent to another. A scroll moves on with each.
func TestSecondNode(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		r     raw
		err   error
		asked int
	}{
		{raw{http.MethodPost, "/_search/scroll", "", "{}"}, io.ErrUnexpectedEOF, 1},
		{raw{http.MethodPost, "/_bulk", "", "{}"}, io.ErrUnexpectedEOF, 1},
		{raw{http.MethodPut, "/news/_mapping", "", "{}"}, io.ErrUnexpectedEOF, 1},
		{raw{http.MethodPost, "/news/_search", "", "{}"}, io.ErrUnexpectedEOF, 2},
		{raw{http.MethodGet, "/news/_mapping", "", ""}, io.ErrUnexpectedEOF, 2},
		{raw{http.MethodPost, "/_bulk", "", "{}"}, refused, 2},
		{raw{http.MethodPost, "/_search/scroll", "", "{}"}, refused, 2},
	} {
		engine := &silent{err: c.err}
		nodes := []*url.URL{{Scheme: "http", Host: "a:9200"}, {Scheme: "http", Host: "b:9200"}}
		s := Dialect{}.Open(engine, nodes, nil)(nil, "").(*Store)
		if _, err := s.body(t.Context(), c.r, 0); err == nil || engine.asked != c.asked {
			t.Errorf("%s %s after %v: %d nodes were asked, want %d (%v)", c.r.method, c.r.path, c.err, engine.asked, c.asked, err)
		}
	}
}
