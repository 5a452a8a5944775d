package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/internal/config"
)

// surveyedEngine is an engine as init meets it: it speaks as Elasticsearch does, as far as init asks.
type surveyedEngine struct {
	t                  *testing.T
	version            string
	indices            map[string]*surveyedIndex
	locked             bool   // to who does not show the password
	distorted          string // in place of its first reply
	greeted, described atomic.Int32
}

type surveyedIndex struct {
	fields     map[string]string // types by name
	documents  []string
	attributes []string
	aliases    []string
	stream     bool
}

// at starts the engine and returns its address.
func (s *surveyedEngine) at() string {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	return server.URL
}

const surveyedLogin = "Basic ZWxhc3RpYzpjYW5hcnktcGFzc3dvcmQ=" // elastic:canary-password

func (s *surveyedEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/_search") {
		s.t.Errorf("init sends %s %s", r.Method, r.URL.Path)
	}
	if s.greeted.Add(1) == 1 && r.Header.Get("Authorization") != "" {
		s.t.Error("it shows its credentials before it knows to whom")
	}
	answer := func(status int, value any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	refused := map[string]any{"error": map[string]string{"type": "security_exception", "reason": "no"}, "status": 403}
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	names := strings.Split(parts[0], ",")
	switch {
	case s.distorted != "":
		w.Header().Del("X-Elastic-Product")
		_, _ = w.Write([]byte(s.distorted))
	case s.locked && r.Header.Get("Authorization") != surveyedLogin:
		w.Header().Set("WWW-Authenticate", `Basic realm="security" charset="UTF-8"`)
		answer(401, refused)
	case r.URL.Path == "/":
		answer(200, map[string]any{"version": map[string]string{"number": s.version}, "tagline": "You Know, for Search"})
	case parts[0] == "_resolve":
		answer(200, s.resolved())
	case len(parts) == 2 && parts[1] == "_count":
		n := 0
		for _, name := range names {
			n += len(s.indices[name].documents)
		}
		answer(200, map[string]int{"count": n})
	case len(parts) == 2 && parts[1] == "_field_caps":
		s.described.Add(1)
		answer(200, map[string]any{"fields": s.caps(names)})
	case len(parts) == 2 && parts[1] == "_search":
		hits := []map[string]any{}
		for _, d := range s.indices[names[0]].documents {
			hit := map[string]any{"_id": "x"}
			if d != "" { // which stands for one without a source
				hit["_source"] = json.RawMessage(d)
			}
			hits = append(hits, hit)
		}
		answer(200, map[string]any{"hits": map[string]any{"hits": hits}})
	default:
		answer(404, map[string]string{"error": "no such thing"})
	}
}

func (s *surveyedEngine) resolved() map[string]any {
	indices, streams := []map[string]any{}, []map[string]any{}
	for name, i := range s.indices {
		if i.stream {
			backing := ".ds-" + name + "-000001"
			indices = append(indices, map[string]any{"name": backing, "data_stream": name, "attributes": []string{"hidden", "open"}})
			streams = append(streams, map[string]any{"name": name, "backing_indices": backing})
			continue
		}
		indices = append(indices, map[string]any{"name": name, "aliases": i.aliases, "attributes": append([]string{"open"}, i.attributes...)})
	}
	return map[string]any{"indices": indices, "data_streams": streams}
}

func (s *surveyedEngine) caps(names []string) map[string]any {
	fields := map[string]map[string]any{}
	for _, name := range names {
		for field := range s.indices[name].fields {
			fields[field] = map[string]any{}
		}
	}
	for field, types := range fields {
		lacking := []string{}
		for _, name := range names {
			kind, has := s.indices[name].fields[field]
			if !has {
				lacking = append(lacking, name)
				continue
			}
			types[kind] = map[string]any{}
		}
		if len(lacking) > 0 {
			types["unmapped"] = map[string]any{"indices": lacking}
		}
	}
	out := map[string]any{}
	for field, types := range fields {
		out[field] = types
	}
	return out
}

// articles are fields and documents of an index that is as init likes it: two versions each of two texts, and one more.
func articles() *surveyedIndex {
	i := &surveyedIndex{fields: map[string]string{
		"title": "text", "title.keyword": "keyword", "body": "text", "url": "text", "url.keyword": "keyword", "lang": "keyword",
		"host": "keyword", "published_at": "date", "size": "long", "neardup_sketch": "binary", "_id": "_id",
	}}
	const long = "the evening ferry returns to its pier after eleven years in which nobody crossed the river there but by the old bridge" +
		" and the fare is four pounds for grown people and two for children while sheep and letters travel free of charge as they did in the days of the old company whose bell still hangs above the ticket window"
	for n, text := range []string{long, long + " again", "another story of goats that climb into the tallest trees of a dry plain", "x", long + "!"} {
		i.documents = append(i.documents, fmt.Sprintf(`{"title":"Report number %d","body":%q,"url":"https://a.example/%d","host":"a.example"}`, n, text, n))
	}
	return i
}

// surveyedFor runs init in an empty folder and returns what it ended with and the file that it wrote, empty if none.
func surveyedFor(t *testing.T, args ...string) (r result, file string) {
	t.Helper()
	for _, name := range []string{"ENGINE_USERNAME", "ENGINE_PASSWORD", "ENGINE_API_KEY"} {
		if _, set := os.LookupEnv(name); !set {
			t.Setenv(name, "")
		}
	}
	t.Chdir(t.TempDir())
	r = sidecar(t, append([]string{"init"}, args...)...)
	text, err := os.ReadFile("config.yaml")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return r, string(text)
}

// ruled returns the rules of a configuration as match and fields.
func ruled(t *testing.T, text string) (list []string) {
	t.Helper()
	c, err := config.Parse([]byte(text), os.LookupEnv)
	if err != nil {
		t.Fatalf("our own loader: %v\n%s", err, text)
	}
	for _, i := range c.Engines[0].Indices {
		list = append(list, i.Match+": "+strings.Join(i.Fields, " "))
	}
	return list
}
