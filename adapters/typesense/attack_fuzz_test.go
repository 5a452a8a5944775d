package typesense

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// FuzzClassify has any request line classified: the same each time, and no write by a GET. The query's parts are the query again.
func FuzzClassify(f *testing.F) {
	for _, s := range [][2]string{
		{"/collections/a/documents/search", "q=a&collection=b"}, {"/collections/a%2fdocuments", "action=upsert&action=create"},
		{"//collections//a//documents//import", "&&action=update&"},
		{"/collections/a/documents/%zz", "?a=b"}, {"/multi_search", "x-typesense-api-key=k"}, {"/aliases/a", ""},
		{"/collections/%2B+%/documents/1", "include_fields=neardup_sketch,%2"}, {"", "%"},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			f.Add(method, s[0], s[1])
		}
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		r := &adapters.Request{Method: method, Path: path, RawQuery: query}
		c, again := Dialect{}.Classify(r), Dialect{}.Classify(r)
		if c.Kind != again.Kind || c.Target != again.Target || c.ID != again.ID || c.Form != again.Form {
			t.Fatalf("%s %s is %+v, then %+v", method, path, c, again)
		}
		if method == "GET" && (c.Kind == adapters.KindWrite || c.Alters) {
			t.Fatalf("GET %s is %+v", path, c)
		}
		var parts []string
		for _, p := range paramsOf(query) {
			parts = append(parts, p.Raw)
		}
		expect.Must(t, query, strings.Join(parts, "&"), "")
		if plain := decode(path); len(plain) > len(path) {
			t.Fatalf("%q grew to %q", path, plain)
		}
	})
}

// FuzzScopedKey has any text for a key.
func FuzzScopedKey(f *testing.F) {
	for _, s := range []string{"xyz", strings.Repeat("QUJD", 16) + "eyJmaWx0ZXJfYnkiOiJhOjEifQ==", "-", strings.Repeat("A", 65),
		strings.Repeat("/+", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		values := embedded(key)
		if len(key) < scopedHead && values != nil {
			t.Fatalf("%q embeds %v", key, values)
		}
		_ = steers(values)
	})
}

// FuzzLegible has any document read as the engine does, and what was added to the legible part put into the whole.
func FuzzLegible(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "{\"a\xff\":1}\x00{", "\xc1\xae{}", "{\"\xe0\x81\":\"é\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		read, _ := legible(document)
		members, err := jsonedit.Members(read)
		if err != nil || len(members) == 0 {
			return
		}
		enriched, err := jsonedit.Set(read, "neardup_new", []byte(`"x"`))
		if err != nil || jsonedit.Get(members, "neardup_new") != nil {
			return
		}
		again, _ := legible(insert(document, read, enriched))
		if string(again) != string(enriched) {
			t.Fatalf("%q is read %q, with a member %q", document, read, again)
		}
	})
}
