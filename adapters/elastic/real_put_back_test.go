package elastic

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// deletedAndBack deletes all documents of an index and puts them back, if the engine says that this loses nothing. It may never say so of an
// index whose documents can't even be written again.
func (l *larder) deletedAndBack(s *Store, index, refused string) bool {
	l.t.Helper()
	ctx := l.t.Context()
	switch err := s.Lossless(ctx, index, ""); {
	case err != nil:
		return false
	case refused != "" && refused != "?" && refused != "document":
		l.t.Errorf("its documents could be put back, though they can't be written again: %s", refused)
	}
	var all []adapters.Stored
	expect.OK(l.t, s.Scan(ctx, index, nil, adapters.Selection{Fields: []string{adapters.AllFields}}, func(p adapters.Page) error {
		all = append(all, p.Documents...)
		return nil
	}))
	identity := expect.Value(s.Identity(ctx, index))(l.t)
	expect.Same(l.t, adapters.Patched, expect.Value(s.Prove(ctx, index, "", all[0], nil))(l.t), "the proof of %s", all[0].ID)
	clear(all)
	all = all[:0]
	expect.OK(l.t, s.Scan(ctx, index, nil, adapters.Selection{Fields: []string{adapters.AllFields}}, func(p adapters.Page) error {
		all = append(all, p.Documents...)
		return nil
	}))
	for _, write := range []func() ([]adapters.Result, error){
		func() ([]adapters.Result, error) { return s.Delete(ctx, index, all, nil) },
		func() ([]adapters.Result, error) { return s.Create(ctx, index, identity, all) },
	} {
		results, err := write()
		expect.OK(l.t, err)
		for i, result := range results {
			expect.Same(l.t, adapters.Patched, result, "document %s", all[i].ID)
		}
	}
	return true
}

// TestRealLossless refuses what TestRealKept does not: a data stream.
func TestRealLossless(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		stream := l.name + "stream"
		l.must("PUT", "/_index_template/"+stream, `{"index_patterns":["`+stream+`"],"data_stream":{},"priority":500}`)
		l.must("POST", "/"+stream+"/_doc?refresh=true", `{"@timestamp":"2024-01-01T00:00:00Z","title":"a line"}`)
		t.Cleanup(func() { l.drop("_data_stream/" + stream); l.drop("_index_template/" + stream) })
		s := l.store(http.DefaultTransport)
		list := expect.Value(s.Resolve(t.Context(), stream))(t)
		if err := s.Lossless(t.Context(), list[0].Name, ""); err == nil || !strings.Contains(err.Error(), "data stream "+stream) {
			t.Errorf("%s: %v", list[0].Name, err)
		}
	})
}

// TestRealNotTakenBack deletes no document that the mapping has become too strict for.
func TestRealNotTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index := l.name + "strict"
		t.Cleanup(func() { l.drop(index) })
		l.must("PUT", "/"+index, `{"mappings":{"properties":{"n":{"type":"integer","ignore_malformed":true}}}}`)
		l.must("PUT", "/"+index+"/_doc/good?refresh=true", `{"n":1}`)
		l.must("PUT", "/"+index+"/_doc/bad?refresh=true", "{\n\"n\":\"one\"}")
		l.must("PUT", "/"+index+"/_mapping", `{"properties":{"n":{"type":"integer","ignore_malformed":false}}}`)
		s := l.store(http.DefaultTransport)
		var all []adapters.Stored
		expect.OK(t, s.Scan(t.Context(), index, nil, adapters.Selection{IDs: []string{"bad", "good"}, Fields: []string{adapters.AllFields}}, func(p adapters.Page) error {
			all = append(all, p.Documents...)
			return nil
		}))
		expect.Must(t, 2, len(all), "documents")
		results, err := s.Delete(t.Context(), index, all, nil)
		expect.OK(t, err)
		for i, d := range all {
			expect.Same(t, d.ID == "bad", results[i] == adapters.Refused, "that %s is refused", d.ID)
		}
		l.must("GET", "/"+index+"/_doc/bad", "")
	})
}

// TestLosslessNeedsAllFields takes credentials for which an engine hides fields: both engines then refuse every update, in these words.
func TestLosslessNeedsAllFields(t *testing.T) {
	for _, words := range []string{
		"Can't execute an update request if field or document level security is enabled",
		"Update is not supported when FLS or DLS or Fieldmasking is activated", "",
	} {
		engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.Contains(r.URL.Path, "_update") && words != "":
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":{"type":"illegal_argument_exception","reason":"` + words + `"}}`))
			case strings.Contains(r.URL.Path, "_update"):
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"error":{"type":"index_not_found_exception","reason":"no such index [news] and [require_alias] request flag is [true]"}}`))
			default:
				_, _ = w.Write([]byte(`{"news":{"settings":{"index.uuid":"u","index.number_of_shards":"1"},"mappings":{}}}`))
			}
		}))
		at := expect.Value(url.Parse(engine.URL))(t)
		s := Dialect{}.Open(http.DefaultTransport, []*url.URL{at}, nil)(nil, "")
		for _, field := range []string{"", "hidden"} { // each writes whole documents
			err := s.Lossless(t.Context(), "news", field)
			if errors.Is(err, adapters.ErrLossy) || (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), "may see only a part") {
				t.Errorf("%q: %v", words, err)
			}
		}
		read := adapters.Stored{ID: "1", Source: []byte(`{"title":"a"}`), Version: version{uuid: "u"}}
		_, err := s.Patch(t.Context(), "news", nil, []adapters.Stored{read.With(rule.Ours{})})
		if strings.Contains(fmt.Sprint(err), "may see only a part") != (words != "") { // it writes whole documents too
			t.Errorf("%q: patched: %v", words, err)
		}
		engine.Close()
	}
}

// shaped is an engine of one index of a shape. It answers bulks with statuses, and keeps what they hold.
func shaped(t *testing.T, shape, bulk string, sent *string) *Store {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := `{"acknowledged":true}`
		switch {
		case strings.Contains(r.URL.Path, "_update"):
			w.WriteHeader(http.StatusNotFound)
			reply = `{"error":{"type":"index_not_found_exception","reason":"no such index [news] and [require_alias] request flag is [true]"}}`
		case strings.Contains(r.URL.Path, "_bulk"):
			body, _ := io.ReadAll(r.Body)
			*sent += string(body)
			reply = bulk
		case r.Method == http.MethodGet:
			reply = `{"news":{"settings":{"index.uuid":"u","index.number_of_shards":"1"` + shape + `}}`
		}
		_, _ = w.Write([]byte(reply))
	}))
	t.Cleanup(engine.Close)
	s, _ := Dialect{}.Open(http.DefaultTransport, []*url.URL{expect.Value(url.Parse(engine.URL))(t)}, nil)(nil, "").(*Store)
	return s
}

// TestFlag takes a boolean that filters find in the documents.
func TestFlag(t *testing.T) {
	for mapping, want := range map[string]bool{
		`"properties":{"h":{"type":"boolean"}}`: true, `"properties":{"h":{"type":"long"}}`: false, `"properties":{"h":{"type":"boolean","index":false}}`: false,
		`"properties":{"h":{"type":"boolean"}},"runtime":{"h":{"type":"boolean"}}`: false, `"runtime":{"h":{"type":"boolean"}}`: false, ``: false,
		`"properties":{"h":{"properties":{"h":{"type":"boolean"}}}}`: false,
	} {
		s := shaped(t, `},"mappings":{`+mapping+`}`, "", nil)
		expect.Same(t, want, expect.Value(s.Flag(t.Context(), "news", "h"))(t), "%s", mapping)
	}
}

// TestSetFieldByUpdate takes a field out without a script, where the engine's own update has to do it.
func TestSetFieldByUpdate(t *testing.T) {
	for _, shape := range []string{`,"index.final_pipeline":"p"},"mappings":{}`, `},"mappings":{"properties":{"s":{"type":"semantic_text"}}}`} {
		sent := ""
		s := shaped(t, shape, `{"items":[{"update":{"status":200}},{"update":{"status":200}}]}`, &sent)
		list := []adapters.Stored{{ID: "1", Source: []byte(`{"h":true}`), Version: version{uuid: "u"}}, {ID: "2", Source: []byte(`{"h":true}`), Version: version{uuid: "u"}}}
		results, err := s.SetField(t.Context(), "news", "h", list, [][]byte{nil, []byte("false")})
		expect.OK(t, err)
		expect.Same(t, []adapters.Result{adapters.Patched, adapters.Patched}, results, "results")
		for _, want := range []string{`{"doc":{"h":null}}`, `{"doc":{"h":false}}`} {
			if !strings.Contains(sent, want) || strings.Contains(sent, "script") {
				t.Errorf("%s: %s is sent", shape, sent)
			}
		}
	}
}

// TestFullDiskRefuses: an index that takes only deletions, since the disk is full, is no busy one.
func TestFullDiskRefuses(t *testing.T) {
	for setting, want := range map[string]adapters.Result{`,"index.blocks.read_only_allow_delete":"true"`: adapters.Refused, ``: adapters.Busy} {
		sent := ""
		s := shaped(t, setting+`},"mappings":{}`, `{"items":[{"index":{"status":429}}]}`, &sent)
		results, err := s.Delete(t.Context(), "news", []adapters.Stored{{ID: "1", Source: []byte(`{}`), Version: version{uuid: "u"}}}, nil)
		expect.OK(t, err)
		expect.Same(t, []adapters.Result{want}, results, "with %q", setting)
		expect.Same(t, false, strings.Contains(sent, "delete"), "that it deletes: %s", sent)
	}
}
