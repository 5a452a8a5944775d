package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestMainJobReindex indexes the corpus directly, looks at it through the sidecar before any document has a sketch, and lets reindex
// store them, killed halfway and started again.
func TestMainJobReindex(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		index, list := "fill-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)
		o := newOracle(t, direct, list)

		computing := api{e, serve(t, e, setup{match: "fill-*"})}
		o.checkPages(t, computing, index, "")
		alone := api{e, serve(t, e, setup{match: "fill-*", missing: "alone"})}
		for _, q := range queries {
			same(t, o.raw(t, index, q), slices.Concat(alone.whole(t, index, q, 20, "")...), "missing: alone must hide nothing, %q", q)
		}

		file := config(t, e, setup{match: "fill-*"})
		lacking := killHalfway(t, direct, index, len(list), "--config", file, "--requests-per-second", "60")
		o.checkPages(t, computing, index, "") // half done, the pages are the same

		out := string(succeed(t, "reindex", "--config", file))
		if written := number(t, out, "written"); written != lacking {
			t.Errorf("the second run wrote %d documents, %d lacked a sketch: %s", written, lacking, out)
		}
		after := stored(t, direct, index)
		if len(after) != len(list) {
			t.Fatalf("%d documents are stored, want %d", len(after), len(list))
		}
		for id, h := range after {
			plain := must(jsonedit.Cut(h.source, adapters.Our))(t)
			if diff := cmp.Diff(string(before[id].source), string(plain)); diff != "" {
				t.Fatalf("reindex changed %s: %s", id, diff)
			}
		}
		o.checkPages(t, alone, index, "")
		if out := string(succeed(t, "reindex", "--config", file)); number(t, out, "written") != 0 {
			t.Errorf("a further run wrote: %s", out)
		}
		same(t, versions(after), versions(stored(t, direct, index)), "a further run wrote documents")
	})
}

func number(t *testing.T, out, word string) int {
	t.Helper()
	m := regexp.MustCompile(`(\d+) ` + word + `|` + word + `[=: ]+(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no number of %s in: %s", word, out)
	}
	n := must(strconv.Atoi(m[1] + m[2]))(t)
	return n
}

// hit is a document as the engine holds it, with what changes whenever it is written: the engine's version of it, or else its bytes.
type hit struct {
	source  []byte
	version string
}

// stored returns every document as the engine holds it, read in one request.
func stored(t *testing.T, direct api, index string) map[string]hit {
	t.Helper()
	all := map[string]hit{}
	if direct.typesense() {
		lines := call(t, direct.e, "GET", direct.base+"/collections/"+index+"/documents/export", "").want(t, 200).body
		for line := range bytes.Lines(lines) {
			line = bytes.TrimSpace(line)
			all[idOf(t, line, "id")] = hit{line, string(line)}
		}
		return all
	}
	direct.refresh(t, index)
	body := call(t, direct.e, "POST", direct.base+"/"+index+"/_search", `{"size":1000,"version":true,"seq_no_primary_term":true}`).want(t, 200).body
	hits := must(jsonedit.Elements([]byte(hitsOnly(t, direct.e, body))))(t)
	for _, raw := range hits {
		members := must(jsonedit.Members(raw))(t)
		version := fmt.Sprintf("%s/%s", jsonedit.Get(members, "_version"), jsonedit.Get(members, "_seq_no"))
		all[idOf(t, raw, "_id")] = hit{jsonedit.Get(members, "_source"), version}
	}
	return all
}

func idOf(t *testing.T, document []byte, key string) string {
	t.Helper()
	members := must(jsonedit.Members(document))(t)
	id, ok := jsonedit.Text(jsonedit.Get(members, key))
	if !ok {
		t.Fatalf("no %s in %.200s", key, document)
	}
	return id
}

func versions(all map[string]hit) map[string]string {
	out := map[string]string{}
	for id, h := range all {
		out[id] = h.version
	}
	return out
}
