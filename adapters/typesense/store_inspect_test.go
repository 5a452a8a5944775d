package typesense

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestRecognize shows it the replies of an engine in its states, and of strangers.
func TestRecognize(t *testing.T) {
	type reply struct {
		status int
		body   string
	}
	no := reply{401, `{"message": "Forbidden - a valid x-typesense-api-key header must be sent."}`}
	for _, c := range []struct {
		name        string
		replies     map[string]reply
		ours, locks bool
		version     string
	}{
		{"open", map[string]reply{"/health": {200, `{"ok":true}`}, "/debug": {200, `{"state":1,"version":"0.24.1"}`}}, true, false, "0.24.1"},
		{"catching up", map[string]reply{"/health": {503, `{"ok":false}`}, "/debug": {200, `{"version":"0.24.1"}`}}, true, false, "0.24.1"},
		{"locked", map[string]reply{"/health": {200, `{"ok":true}`}, "/debug": no, "/collections": no}, true, true, ""},
		{"a key for lists alone", map[string]reply{"/health": {200, `{"ok":true}`}, "/debug": no, "/collections": {200, `[]`}}, true, false, ""},
		{"another API", map[string]reply{"/health": {200, `{"status":"green"}`}}, false, false, ""},
		{"nothing of the kind", nil, false, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reply, known := c.replies[r.URL.Path]
				if !known {
					reply.status = 404
				}
				w.WriteHeader(reply.status)
				_, _ = w.Write([]byte(reply.body))
			}))
			defer server.Close()
			u := expect.Value(url.Parse(server.URL))(t)
			got, ours, err := Dialect{}.Open(http.DefaultTransport, []*url.URL{u}, nil)(nil, "").Recognize(t.Context())
			if err != nil || ours != c.ours || got.Locked != c.locks || got.Version != c.version || ours && got.Name != "Typesense" {
				t.Errorf("%+v, ours: %v, %v", got, ours, err)
			}
		})
	}
}
