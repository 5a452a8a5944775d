package elastic

import (
	"bufio"
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// FuzzClassify has any request line classified: the same each time, its target a part of the path, and nothing made, altered or written by
// a GET.
func FuzzClassify(f *testing.F) {
	for _, s := range [][2]string{
		{"/news-1/_search", "q=a"}, {"/news-1%2f_doc/1", ""}, {"/%5fsearch", "source=%7B%7D&source=1"}, {"//news-1//_doc/1", "a;b"},
		{"/%3Cnews-%7Bnow%2Fd%7D%3E/_doc", ""},
		{"/news-1/_doc/%2e%2e/%2e%2e/other/_doc/1", ""}, {"/NEWS-1/_bulk/", ""}, {"/%c0%aenews/_search", "%"}, {"", ""},
		{"/_all/_msearch/", ""}, {"/a,b/_doc/1;x", ""}, {"/i/t/1/_update", "routing=a"},
		{"/_search/scroll/id", "scroll=1m"}, {"*", ""}, {"/_nodes/_all/http", "flat_settings"},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"} {
			f.Add(method, s[0], s[1], "application/vnd.elasticsearch+json;compatible-with=7")
		}
	}
	f.Fuzz(func(t *testing.T, method, path, query, accept string) {
		r := &adapters.Request{Method: method, Path: path, RawQuery: query, Header: adapters.Header{"Accept": {accept}}}
		for _, d := range []Dialect{{}, {OpenSearch: true, RewriteSniffing: true}} {
			c := d.Classify(r)
			again := d.Classify(r)
			if c.Kind != again.Kind || c.Target != again.Target || c.ID != again.ID || c.Form != again.Form {
				t.Fatalf("%s %s is %+v, then %+v", method, path, c, again)
			}
			whole, err := url.PathUnescape(path)
			if err == nil && c.Target != "" && !strings.Contains(whole, c.Target) {
				t.Fatalf("%s %s is about %q", method, path, c.Target)
			}
			if method == "GET" && (c.Kind == adapters.KindWrite || c.NewIndex != "" || c.Alters) {
				t.Fatalf("GET %s is %+v", path, c)
			}
			_ = d.ruleName(c.Target)
			if dateMath(c.Target) && !one(c.Target) {
				t.Fatalf("%q is date math and more than one", c.Target)
			}
			_, _ = daily(c.Target), remote(c.Target)
		}
	})
}

// FuzzCanonical has any value for a cursor: it has one form.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`[1.0,"a",null,{"b":1e400}]`, `[`, `[[]]`, `1e1`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sort []byte) {
		expect.Must(t, canonical(bytes.Clone(sort)), canonical(sort), "%q", sort)
	})
}

// FuzzCleanYAML has any reply in YAML cleaned: lines go whole or stay as they are.
func FuzzCleanYAML(f *testing.F) {
	for _, s := range []string{"---\na: 1\nneardup_sketch: x\n", "neardup_sketch:\n  - a\n  - b\nc: 1",
		"a:\n  neardup_sketch: |\n    x\n\n    y\n  b: 2\n", "- neardup_bands: [1]\n- a\n", "\"neardup_sketch\": 1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		var out bytes.Buffer
		expect.OK(t, cleanYAML(&out, bufio.NewReader(bytes.NewReader(reply)), Dialect{}.cuts(adapters.Class{Form: formDoc}).Edit))
		if !bytes.Contains(reply, []byte("neardup")) && !bytes.Equal(out.Bytes(), reply) {
			t.Fatalf("%q became %q", reply, out.Bytes())
		}
		if out.Len() > len(reply) {
			t.Fatalf("%q grew to %q", reply, out.Bytes())
		}
	})
}

// FuzzBulkAction has any line for an action of a bulk: what is read of it is what a reader of JSON reads of its first member.
func FuzzBulkAction(f *testing.F) {
	for _, s := range []string{`{"index":{"_index":"a","_id":"1"}}`, "{\"\xc1\xa9ndex\":{\"_index\":\"\xc1\xa1\"}}",
		`{"update":{"_index":5,"pipeline":"_none"}}`, `{"delete":{}} x`, `{"create":{"_id":null},"index":{}}`, `{}`, `[`} {
		f.Add([]byte(s), "target")
	}
	f.Fuzz(func(t *testing.T, line []byte, target string) {
		o, _, ok := readAction(line, target, true)
		if !ok {
			return
		}
		switch o.Form {
		case "index", "create", "update", "delete":
		default:
			t.Fatalf("%q is %q", line, o.Form)
		}
		if r := jsonedit.NewReader(line); !r.Enter('{') || !r.Next() || string(r.Key()) != o.Form {
			t.Fatalf("%q is %q", line, o.Form)
		}
	})
}
