package adaptertest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// Send sends a request to a real engine, unchanged. It does so after the test's context has ended too, for cleaning up.
func Send(t testing.TB, base string, r *adapters.Request) *adapters.Reply {
	t.Helper()
	request := expect.Value(http.NewRequest(r.Method, strings.TrimSuffix(base+r.Path+"?"+r.RawQuery, "?"), bytes.NewReader(r.Body)))(t)
	for key, values := range r.Header {
		request.Header[key] = values
	}
	resp := expect.Value(http.DefaultClient.Do(request))(t)
	defer resp.Body.Close()
	return &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: expect.Value(io.ReadAll(resp.Body))(t)}
}
