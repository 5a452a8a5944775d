package typesense

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

var dialect Dialect

// TestLookFor: the request names one collection and carries what was typed, and is short enough for the engine.
func TestLookFor(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "a*", "a,b"} {
		if r, err := dialect.LookFor(adapters.Look{Index: name}); err == nil {
			t.Errorf("%q: %s", name, r.Path)
		}
	}
	l := adapters.Look{
		Index: "ä b", Words: "say & \"hi\"", Size: 7, Fields: []string{"title", "meta.text"}, Titles: []string{"name"}, Judged: true,
		Header: adapters.Header{keyHeader: {"x"}}, Deciding: []rule.Deciding{{Field: "at", Date: true}},
	}
	r, err := dialect.LookFor(l)
	expect.OK(t, err)
	got := expect.Value(url.ParseQuery(r.RawQuery))(t)
	want := url.Values{
		"q": {`say & "hi"`}, "query_by": {"title,meta.text"}, "per_page": {"7"}, "highlight_fields": {"neardup_none"},
		"include_fields": {"id,title,meta.text,meta,name,neardup_sketch,at"},
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Path != "/collections/%C3%A4%20b/documents/search" || r.Method != "GET" {
		t.Errorf("%s %s\n%s", r.Method, r.Path, diff)
	}
	if class := (Dialect{}).Classify(r); class.Kind != adapters.KindSearch || !class.NamesOurs {
		t.Errorf("%+v", class)
	}
	l.Judged = false
	if r, err = dialect.LookFor(l); err != nil || strings.Contains(r.RawQuery, "neardup_sketch") {
		t.Errorf("%v %s", err, r.RawQuery)
	}
	l.IDs = []string{"a", "b,c"}
	if r, err = dialect.LookFor(l); err != nil || !strings.Contains(r.RawQuery, "filter_by="+url.QueryEscape("id:[`a`,`b,c`]")) {
		t.Errorf("%v %s", err, r.RawQuery)
	}
	l.Words = strings.Repeat("x", 9000)
	if r, err = dialect.LookFor(l); err == nil && len(r.RawQuery) >= maxQuery {
		t.Errorf("a query of %d bytes", len(r.RawQuery))
	}
}

// TestLookedAt: hits are read as a search that is collapsed reads them, and refusals are the engine's own.
func TestLookedAt(t *testing.T) {
	const reply = `{"found":9,"page":1,"request_params":{"collection_name":"a","per_page":7,"q":"x"},"hits":[
{"document":{"id":"1","body":"x","at":1700000000,"neardup_sketch":"abc","meta":{"text":"y"},"meta.text":"y"},
"text_match":578730123365711993,"curated":true},
{"document":{"id":"2"}}]}`
	at := rule.Deciding{Field: "at", Date: true}
	got, err := dialect.LookedAt(adapters.Look{Deciding: []rule.Deciding{at}}, &adapters.Reply{Status: 200, Body: []byte(reply)})
	if err != nil || got.Total != 9 || len(got.Hits) != 2 || !got.Doubting {
		t.Fatalf("%v %+v", err, got)
	}
	first, second := got.Hits[0], got.Hits[1]
	if first.Index != "a" || first.Name != "a" || first.ID != "1" || string(first.Stored) != "abc" ||
		string(first.Score) != "578730123365711993" || !first.Pinned || strings.Contains(string(first.Document), "meta.text") ||
		fmt.Sprint(first.Shown.Values(at)) != "[1700000000000]" {
		t.Errorf("%+v %s", first, first.Document)
	}
	if second.Score != nil || second.Pinned || len(second.Stored) > 0 {
		t.Errorf("%+v", second)
	}
	rule := &rule.Rule{Fields: []string{"body"}}
	if string(first.Shown.Document(rule)) == "" {
		t.Error("no document for a key that sees it")
	}
	hiding := adapters.Look{Header: adapters.Header{keyHeader: {scopedKey(`{"exclude_fields":"body"}`)}}}
	got, err = dialect.LookedAt(hiding, &adapters.Reply{Status: 200, Body: []byte(reply)})
	if err != nil || got.Hits[0].Shown.Document(rule) != nil {
		t.Errorf("%v: a document for a key that hides its text", err)
	}
	for status, body := range map[int]string{401: `{"message":"Forbidden - a valid key must be sent."}`, 404: `{"message":"Not found"}`} {
		_, err := dialect.LookedAt(adapters.Look{}, &adapters.Reply{Status: status, Body: []byte(body)})
		expect.Same(t, status, adapters.StatusOf(err), "%v", err)
	}
	for _, body := range []string{"", "{}", `{"found":1,"request_params":{"collection_name":"a","per_page":7},"hits":[{"document":{}}]}`} {
		_, err := dialect.LookedAt(adapters.Look{}, &adapters.Reply{Status: 200, Body: []byte(body)})
		if !errors.Is(err, adapters.ErrNotUnderstood) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
