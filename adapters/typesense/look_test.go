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

// TestLookForSearch: a client's own search keeps its page, or has the first ranks read, without our controls and without a key.
func TestLookForSearch(t *testing.T) {
	l := adapters.Look{Index: "a", Fields: []string{"body"}, Search: []byte(
		`{"collection":"b","q":"x","query_by":"t","per_page":3,"page":2,"include_fields":"t","exclude_fields":"id,u","prefix":false,"neardup":"off"}`)}
	params := func() url.Values {
		return expect.Value(url.ParseQuery(expect.Value(dialect.LookFor(l))(t).RawQuery))(t)
	}
	expect.Same(t, url.Values{
		"q": {"x"}, "query_by": {"t"}, "per_page": {"3"}, "page": {"2"}, "include_fields": {"id,t"}, "exclude_fields": {"u"}, "prefix": {"false"},
	}, params(), "the client's page")
	l.Size = 200
	expect.Same(t, url.Values{
		"q": {"x"}, "query_by": {"t"}, "per_page": {"200"}, "include_fields": {"id,body"}, "prefix": {"false"}, "highlight_fields": {noField},
	}, params(), "the first ranks")
	l.Search, l.Size = []byte("q=a+b&query_by=t&x-typesense-api-key=secret"), 0
	expect.Same(t, url.Values{"q": {"a b"}, "query_by": {"t"}}, params(), "a query string")
	l.Search = []byte(`{"q":"` + strings.Repeat("x", 9000) + `","query_by":"t"}`)
	r := expect.Value(dialect.LookFor(l))(t)
	if r.Path != "/multi_search" || !strings.HasPrefix(string(r.Body), `{"searches":[{"collection":"a","q":"xxx`) {
		t.Errorf("a long search: %s %.100s", r.Path, r.Body)
	}
	const hits = `{"found":1,"page":1,"request_params":{"collection_name":"a","per_page":7},"hits":[{"document":{"id":"1"},"neardup":{"hits":[{"id":"2"}]}}]}`
	got, err := dialect.LookedAt(l, &adapters.Reply{Status: 200, Body: []byte(`{"results":[` + hits + `]}`)})
	if err != nil || len(got.Hits) != 1 || len(got.Hits[0].Folded) != 1 || got.Hits[0].Folded[0] != (adapters.Named{Index: "a", ID: "2"}) {
		t.Errorf("%v %+v", err, got)
	}
	_, err = dialect.LookedAt(l, &adapters.Reply{Status: 200, Body: []byte(`{"results":[{"code":404,"error":"Not found."}]}`)})
	expect.Same(t, 404, adapters.StatusOf(err), "%v", err)
	for text, want := range map[string]string{
		`{"q":`: "column 5", `{"searches":[]}`: "several searches", `{"q":["x"]}`: "a list", `{"q":"x","group_by":"h"}`: "group_by",
	} {
		l.Search, l.Size = []byte(text), 5
		if _, err := dialect.LookFor(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReadQuery: words, objects and query strings are told apart, and no key stays.
func TestReadQuery(t *testing.T) {
	for line, want := range map[string]adapters.Query{
		" storm over sylt ": {Words: "storm over sylt"},
		`"q=1"`:             {Words: "q=1"},
		"is q=1 & x=2 so":   {Words: "is q=1 & x=2 so"},
		`{"q":"x"}`:         {Search: []byte(`{"q":"x"}`)},
		"query_by=t&q=a%20b&x-typesense-api-key=secret": {Search: []byte("q=a+b&query_by=t")},
	} {
		got, err := dialect.ReadQuery(line)
		expect.OK(t, err)
		expect.Same(t, want, got, "%s", line)
	}
	if q, err := dialect.ReadQuery(`{"q":`); err == nil {
		t.Errorf("%+v", q)
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
