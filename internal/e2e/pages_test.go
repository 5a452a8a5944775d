package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// pyRun runs the engine's Python client through the sidecar.
func pyRun(t *testing.T, a api, verb, index string, args ...string) []byte {
	t.Helper()
	program := map[string]string{engines.Elasticsearch: "elastic_client.py", engines.OpenSearch: "opensearch_client.py", engines.Typesense: "typesense_client.py"}[a.e.Kind]
	all := append([]string{verb, "--url", a.base, "--index", index}, args...)
	all = append(all, clients.For(a.e)...)
	if a.e.Key != "" {
		all = append(all, "--key", a.e.Key)
	}
	return clients.Run(t, program, all...)
}

// TestOriginalsPlusOneField reads documents back directly: each is what was sent, byte for byte where the engine keeps bytes, and
// our field behind it.
func TestOriginalsPlusOneField(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index := "plain-1"
		through, direct := api{e, serve(t, e, setup{match: "plain-*"})}, api{e, e.URL}
		through.create(t, index)
		documents := map[string]string{
			"n1": `{"id":"n1","z":1e3,"a":-0,"title":"Numbers and  spaces","body":"one two three","f":1.10,"big":9007199254740993,"nested":{"b":[ {"c":null},{"c":1.50}],"a":"\u00e9"}}`,
			"n2": `{ "title" : "Ünïcode <b>&amp;</b> \"quotes\" \/ \ud83d\ude00" , "body":"日本語のテキスト", "id":"n2" }`,
			"n3": `{"id":"n3","title":"?","body":"!"}`,
		}
		var lines strings.Builder
		for _, id := range []string{"n1", "n2", "n3"} {
			if !direct.typesense() {
				fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", index, id)
			}
			lines.WriteString(documents[id] + "\n")
		}
		through.loadLines(t, index, lines.String())
		for id, sent := range documents {
			stored := direct.get(t, index, id)
			if with := bytes.Contains(stored, []byte(rule.SketchField)); with == (id == "n3") {
				t.Errorf("%s has a sketch: %v", id, with)
			}
			plain := must(jsonedit.Cut(stored, rule.Our))(t)
			if !direct.typesense() && string(plain) != sent {
				t.Errorf("stored less our field:\n%s\nsent:\n%s", plain, sent)
			}
			same(t, canonical(t, []byte(sent)), canonical(t, plain), "")
			same(t, string(plain), string(through.get(t, index, id)), "through the sidecar")
		}
	})
}

// canonical decodes JSON with numbers by value.
func canonical(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	decode(t, data, &v)
	return v
}

// hitsOnly returns the hits of a reply as they stand.
func hitsOnly(t *testing.T, e *engines.Engine, body []byte) string {
	t.Helper()
	members := must(jsonedit.Members(body))(t)
	hits := jsonedit.Get(members, "hits")
	if e.Kind != engines.Typesense {
		hits = jsonedit.Get(must(jsonedit.Members(hits))(t), "hits")
	}
	return string(hits)
}

// untimed returns a reply with the time it took set to nought.
func untimed(body []byte) []byte {
	return took.ReplaceAll(body, []byte(`${1}0`))
}

var took = regexp.MustCompile(`("took" ?: ?|"search_time_ms":)\d+`)

// The tests that begin with TestMainJob are what make test runs on real engines; make test-all runs the rest.

// TestMainJobPages has the corpus go in and the collapsed pages come out through the sidecar with each engine's official Python client, and holds
// all pages of all queries against the definition.
func TestMainJobPages(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		list, index := documents(t), "news-py"
		through, direct := api{e, serve(t, e, setup{match: "news-*"})}, api{e, e.URL}
		direct.drop(t, index)
		pyRun(t, through, "load", index, "--corpus", corpusFile(t, list))
		o := newOracle(t, direct, list)
		o.checkPages(t, through, index, "")
		for _, q := range queries[:3] {
			var walked struct{ Pages [][]string }
			decode(t, pyRun(t, through, "walk", index, "--query", q, "--size", "10"), &walked)
			want := slices.Collect(slices.Chunk(o.list(t, index, q), 10))
			same(t, want, walked.Pages, "%q", q)
		}
	})
}
