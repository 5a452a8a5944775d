package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serving returns a server that gives every request the same answer.
func serving(t *testing.T, typesense bool, status int, body string) Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // a client that is gone needs none
	}))
	t.Cleanup(s.Close)
	return Server{Typesense: typesense, Base: s.URL, Client: NewClient(5 * time.Second)}
}

// TestAnswers reads what engines answer to a request of several writes: what is acknowledged, what is refused, and what says
// nothing.
func TestAnswers(t *testing.T) {
	item := func(result string, status int) string {
		return fmt.Sprintf(`{"index":{"_id":"y","result":%q,"status":%d}}`, result, status)
	}
	bulk := func(items ...string) string { return `{"items":[` + strings.Join(items, ",") + `]}` }
	for _, c := range []struct {
		name      string
		typesense bool
		kind      Kind
		status    int
		body      string
		want      string // the answers
		trouble   string
	}{
		{"done", false, Put, 200, bulk(item("created", 201), item("updated", 200)), "done done", ""},
		{"left", false, Put, 200, bulk(item("noop", 200), item("created", 201)), "left done", ""},
		{"conflict", false, Create, 200, bulk(item("", 409), item("created", 201)), "conflict done", ""},
		{"missing", false, Part, 200, bulk(item("", 404), item("noop", 200)), "missing done", ""},
		{"busy for one", false, Put, 200, bulk(item("", 429), item("created", 201)), "refused done", "429"},
		{"broken for one", false, Put, 200, bulk(item("", 503), item("created", 201)), "unknown done", "503"},
		{"too few", false, Put, 200, bulk(item("created", 201)), "unknown unknown", Garbage},
		{"busy", false, Put, 429, `{}`, "refused refused", "429"},
		{"in the way", false, Put, 502, `{}`, "unknown unknown", "502"},
		{"done", true, Put, 200, `{"success":true,"id":"x"}` + "\n" + `{"success":true,"id":"x"}`, "done done", ""},
		{"left", true, Put, 200, `{"success":true,"id":"y"}` + "\n" + `{"success":true,"id":"x"}`, "left done", ""},
		{"conflict", true, Create, 200, `{"success":false,"code":409}` + "\n" + `{"success":true,"id":"x"}`, "conflict done", ""},
		{"refused", true, Put, 200, `{"success":false,"code":400}` + "\n" + `{"success":true,"id":"x"}`, "refused done", "400"},
		{"of another form", true, Put, 200, `{"a":1}` + "\n" + `{"success":true,"id":"x"}`, "unknown done", Garbage},
		{"not ready", true, Put, 503, `{"message":"Not Ready or Lagging"}`, "unknown unknown", "503"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.typesense), func(t *testing.T) {
			s := serving(t, c.typesense, c.status, c.body)
			writes := []*Write{{Index: "i", ID: "x", Kind: c.kind, Body: []byte(one)}, {Index: "i", ID: "x", Kind: c.kind, Body: []byte(one)}}
			results, got := s.bulk(context.Background(), "i", writes, plain)
			var answers []string
			for _, r := range results {
				answers = append(answers, string(r.Answer))
			}
			if text := strings.Join(answers, " "); text != c.want || got.trouble != c.trouble {
				t.Errorf("it reads %q with trouble %q, want %q with %q: %s", text, got.trouble, c.want, c.trouble, got.why)
			}
		})
	}
}
