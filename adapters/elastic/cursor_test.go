package elastic

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

func TestCursorsLeftAlone(t *testing.T) {
	ranked, chooses, transitive := adapters.Scope{}, adapters.Scope{Chooses: true}, adapters.Scope{Transitive: true}
	const after = `{"search_after":[1],"sort":["n"]}`
	line := func(body string) string { return "{\"index\":\"news-1\"}\n" + body + "\n" }
	for _, c := range []struct {
		path, query, body string
		scope             adapters.Scope
		want              string
	}{
		{"/news-1/_search", "", after, ranked, ""},
		{"/news-1/_search", "", after, chooses, "cursor"},
		{"/news-1/_search", "", after, transitive, "cursor"},
		{"/news-1/_search", "", `{"sort":["n"]}`, chooses, ""},
		{"/news-1/_search", "", `{"search_after":[1],"sort":["n"],"from":3}`, ranked, "not_understood"},
		{"/news-1/_search", "", `{"search_after":null,"sort":["n"],"from":3}`, ranked, ""},
		{"/news-1/_search", "", `{"search_after":[1],"sort":["_score"],"knn":{"field":"v","query_vector":[1],"k":3}}`, ranked,
			"cursor"},
		{"/news-1/_search", "", `{"search_after":[1],"sort":["_shard_doc"]}`, ranked, "export"},
		{"/news-1/_search", "neardup=on", `{"search_after":[1],"sort":["_shard_doc"]}`, ranked, "export"},
		{"/news-1/_search", "scroll=1m", `{"sort":["n"]}`, ranked, "export"},
		{"/news-1/_search", "scroll=1m&neardup=on", ``, ranked, "export"},
		{"/news-1/_search", "", `{"slice":{"id":0,"max":2},"sort":["n"]}`, ranked, "export"},
		{"/_msearch", "", line(after), ranked, "cursor"},
		{"/_msearch", "", line(`{"sort":["_doc"]}`), ranked, "export"},
	} {
		class, r := searchFor(c.path, c.query, c.body)
		plan := searchPlan(t, false)
		plan.Scope = func(string) adapters.Scope { c.scope.Configured, c.scope.Window = true, 30; return c.scope }
		if p := (Dialect{}).ParseSearch(class, r, plan); string(p.Reason) != c.want || (p.Left()) != (c.want != "") {
			t.Errorf("%s?%s %s: %q, want %q", c.path, c.query, c.body, p.Reason, c.want)
		}
	}
}

// TestCursorKeys tells cursors apart that lead into other lists, and knows one again however it is written.
func TestCursorKeys(t *testing.T) {
	key := func(path, parameters, body, sort string) string {
		class, r := searchFor(path, parameters, body)
		plan := searchPlan(t, false)
		plan.Cursors = adaptertest.Cursors{}
		q := (Dialect{}).ParseSearch(class, r, plan).List[0].(*clientSearch)
		if !q.usesCursor() || q.Asked().Cursor == nil {
			t.Fatalf("%s?%s %s is not walked", path, parameters, body)
		}
		return q.cursorKey(q.pit(), []byte(sort))
	}
	const body = `{"query":{"match":{"a":"b"}},"sort":[{"n":"asc"},"id"]}`
	plain := key("/news-1/_search", "", body, `[1,"x"]`)
	for _, same := range [][4]string{
		{"/news-1/_search", "", `{ "sort" : [ {"n" : "asc"}, "id" ] , "query":{"match":{"a":"b"}}, "size":7 }`, `[1.0, "\u0078"]`},
		{"/news-1/_search", "pretty&filter_path=took",
			body[:len(body)-1] + `,"_source":["n"],"aggs":{},"search_after":[0,"y"],"highlight":{},"track_total_hits":true}`, `[1e0,"x"]`},
		{"/news-1/_search", "size=3&neardup_explain", body, `[1,"x"]`},
	} {
		expect.Same(t, plain, key(same[0], same[1], same[2], same[3]), "the key of %v", same)
	}
	expect.Same(t, key("/news-1/_search", "q=a&routing=b", body, `[1]`), key("/news-1/_search", "routing=b&pretty&q=a", body, `[1]`), "in another order")
	seen := map[string]bool{plain: true, key("/news-2/_search", "", body, `[1,"x"]`): true}
	expect.Same(t, 2, len(seen), "keys of two indices")
	for _, other := range [][3]string{
		{"", body, `[1,"y"]`}, {"", body, `["1","x"]`}, {"", body, `[null,"x"]`}, {"", body, `["x","1"]`}, {"", body, `["x 1"]`},
		{"", body, `[9007199254740992,"x"]`},
		{"routing=a", body, `[1,"x"]`}, {"preference=a", body, `[1,"x"]`}, {"q=a", body, `[1,"x"]`}, {"neardup_keep=2", body, `[1,"x"]`},
		{"neardup_window=3", body, `[1,"x"]`}, {"neardup_threshold=0.5", body, `[1,"x"]`}, {"neardup=dry_run", body, `[1,"x"]`},
		{"df=a%26q%3Db", body, `[1,"x"]`}, {"df=a&q=b", body, `[1,"x"]`}, {"df=b&q=a", body, `[1,"x"]`}, {"df=b%3Fqa", body, `[1,"x"]`},
		{"", strings.Replace(body, `"b"`, `"c"`, 1), `[1,"x"]`}, {"", strings.Replace(body, "asc", "desc", 1), `[1,"x"]`},
		{"", body[:len(body)-1] + `,"min_score":3}`, `[1,"x"]`}, {"", body[:len(body)-1] + `,"post_filter":{}}`, `[1,"x"]`},
		{"", body[:len(body)-1] + `,"pit":{"id":"p"}}`, `[1,"x"]`},
		{"", body[:len(body)-1] + `,"pit":{"id":"q","keep_alive":"1m"}}`, `[1,"x"]`},
	} {
		got := key("/news-1/_search", other[0], other[1], other[2])
		if seen[got] {
			t.Errorf("%v has the key of another: %s", other, got)
		}
		seen[got] = true
	}
}

// TestCursorKeyOfControls: a request that is made twice has one key, whatever controls it has, and the key goes by those that change what folds.
func TestCursorKeyOfControls(t *testing.T) {
	// What changes only how a page is shown, or that a search is collapsed at all.
	besides := []string{"Off", "On", "Expand", "Explain", "Collapsed", "CountsGroups"}
	class, r := searchFor("/news-1/_search", "", `{"sort":["n"],"search_after":[1]}`)
	q := (Dialect{}).ParseSearch(class, r, searchPlan(t, false)).List[0].(*clientSearch)
	key := func(field int) string {
		var c adapters.Controls
		if field >= 0 {
			fill(reflect.ValueOf(&c).Elem().Field(field))
		}
		q.asked.Scope = adapters.Scope{Configured: true, Window: 30}.Under(c, 1000)
		return q.Key()
	}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[adapters.Controls]()) {
		first, again := key(i), key(i)
		expect.Same(t, first, again, "two keys of a request with %s", field.Name)
		if changes := first != key(-1); changes == slices.Contains(besides, field.Name) {
			t.Errorf("%s changes the key: %t", field.Name, changes)
		}
	}
}

// fill sets a value to another than its zero value, what a pointer leads to in a place of its own.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.7)
	case reflect.String:
		v.SetString("x")
	default:
		v.SetInt(2)
	}
}

// TestListKeys tells lists apart whose pages are asked for by their numbers, and knows one again on each of its pages.
func TestListKeys(t *testing.T) {
	key := func(path, parameters, body string) string {
		class, r := searchFor(path, parameters, body)
		searches := (Dialect{}).ParseSearch(class, r, searchPlan(t, false))
		if len(searches.List) != 1 || searches.List[0].Asked().Sequence == nil {
			return ""
		}
		return searches.List[0].Asked().Sequence.List()
	}
	const body = `{"query":{"match":{"a":"b"}}}`
	plain, seen := key("/news-1/_search", "", body), map[string]bool{}
	for _, same := range [][2]string{{"from=10", body}, {"", `{"size":3, "from":6,"query":{"match":{"a":"b"}},"_source":["n"]}`}, {"pretty&track_total_hits=true", body}} {
		if got := key("/news-1/_search", same[0], same[1]); got != plain || got == "" {
			t.Errorf("%v: %q, want %q", same, got, plain)
		}
	}
	for _, other := range [][3]string{
		{"/news-1/_search", "", body}, {"/news-2/_search", "", body}, {"/news-1/_search", "routing=a", body}, {"/news-1/_search", "", `{"query":{"match":{"a":"c"}}}`},
		{"/news-1/_search", "", `{"query":{"match":{"a":"b"}},"sort":["n"]}`}, {"/news-1/_search", "", `{"query":{"match":{"a":"b"}},"min_score":1}`},
		{"/news-1/_search", "neardup_threshold=0.5", body}, {"/news-1/_search", "neardup_window=9", body}, {"/news-1/_search", "neardup_keep=2", body},
		{"/news-1/_search", "", `{"query":{"match":{"a":"b"}},"pit":{"id":"p"}}`},
	} {
		if got := key(other[0], other[1], other[2]); got == "" || seen[got] {
			t.Errorf("%v has no key of its own: %q", other, got)
		} else {
			seen[got] = true
		}
	}
	for _, never := range []string{`{"knn":{"field":"v","query_vector":[1],"k":3}}`, `{"query":{"match":{"a":"b"}},"rescore":{"query":{}}}`, `{"sort":["n"],"search_after":[1]}`} {
		expect.Same(t, "", key("/news-1/_search", "", never), "the key of %s", never)
	}
}
