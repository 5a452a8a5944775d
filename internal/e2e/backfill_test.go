package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// TestMainJobReindex indexes the corpus directly, looks at it through the sidecar before any document has a sketch, and lets reindex
// store them, killed halfway and started again.
func TestMainJobReindex(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		index, list := "fill-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index, list...)
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
		same(t, lacking, number(t, out, "written"), "documents that the second run wrote: %s", out)
		after := stored(t, direct, index)
		expect.Must(t, len(list), len(after), "stored documents")
		for id, h := range after {
			plain := must(jsonedit.Cut(h.source, rule.Our))(t)
			expect.Must(t, string(before[id].source), string(plain), "%s after reindex", id)
		}
		o.checkPages(t, alone, index, "")
		same(t, 0, number(t, string(succeed(t, "reindex", "--config", file)), "written"), "documents that a further run wrote")
		same(t, versions(after), versions(stored(t, direct, index)), "a further run wrote documents")
	})
}

// number returns how many of something a job says last: lines of progress come before its summary.
func number(t *testing.T, out, word string) int {
	t.Helper()
	all := regexp.MustCompile(`(\d+) `+word+`|`+word+`[=: ]+(\d+)`).FindAllStringSubmatch(out, -1)
	if all == nil {
		t.Fatalf("no number of %s in: %s", word, out)
	}
	m := all[len(all)-1]
	return must(strconv.Atoi(m[1] + m[2]))(t)
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
	body := call(t, direct.e, "POST", direct.base+"/"+index+"/_search", `{"size":10000,"version":true,"seq_no_primary_term":true}`).want(t, 200).body
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

// summary returns the last line of what a job printed: those before it tell how far it was.
func summary(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// interpose starts a server that passes requests on to the engine. Before an import, and behind it with the reply still to come,
// it calls a function.
func interpose(t *testing.T, e *engines.Engine, before, after func(body string)) string {
	t.Helper()
	engine := relay(t, e)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !strings.HasSuffix(r.URL.Path, "/import") {
			engine.ServeHTTP(w, r)
			return
		}
		before(string(body))
		held := httptest.NewRecorder()
		engine.ServeHTTP(held, r)
		after(string(body))
		w.WriteHeader(held.Code)
		_, _ = w.Write(held.Body.Bytes())
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestTypesenseKilledInAPatch ends reindex without warning when the engine has done its update and the reply is under way. A
// document that changed just before the update is left with the sketch of its former text: verify finds it, a search that holds
// the text folds nothing by it, and the next run mends it.
func TestTypesenseKilledInAPatch(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bkill-1"
	s := setup{match: "bkill-*"}
	through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
	through.create(t, collection)
	list := documents(t)[:6]
	changed, twin := &list[2], &list[3]
	twin.Title, twin.Body = changed.Title, changed.Body
	direct.load(t, collection, list)
	through.load(t, collection, list[3:4])

	var cmd *exec.Cmd
	other := documents(t)[100].Body
	concerned := func(body string) bool { return strings.Contains(body, `"id":"`+changed.ID+`"`) }
	before := func(body string) {
		if concerned(body) {
			call(t, e, "PATCH", through.base+"/collections/"+collection+"/documents/"+changed.ID, `{"body":`+string(jsonedit.AppendString(nil, other))+`}`).want(t, 201)
		}
	}
	after := func(body string) {
		if concerned(body) {
			_ = cmd.Process.Kill()
		}
	}
	s.urls = []string{interpose(t, e, before, after)}
	cmd = command(t, t.Context(), "reindex", "--config", config(t, e, s))
	if err := cmd.Run(); err == nil {
		t.Fatal("reindex ended by itself")
	}

	s.urls = nil
	file := config(t, e, s)
	f := verify(t, file, collection) // of other parts some may have been left
	if f.Stale != 1 || f.Right+f.Absent != len(list)-1 || !slices.Equal(f.Examples, []string{changed.ID}) {
		t.Fatalf("after the kill: %+v", f)
	}
	ids := through.search(t, collection, "*", 0, 20, "").ids
	if !slices.Contains(ids, changed.ID) || !slices.Contains(ids, twin.ID) {
		t.Errorf("a search folds by the sketch of another text: %v", ids)
	}
	if out, code := sidecar(t, "reindex", "--config", file); code != 0 || number(t, summary(out), "written") != 1+f.Absent {
		t.Errorf("the next run ended with %d: %s", code, out)
	}
	same(t, len(list), verify(t, file, collection).Right, "sketches that are right after the next run")
}

// oddIDs are ids that mean something to a filter, a path or JSON.
var oddIDs = []string{
	"`", "a`b,`c", "+", " ", " lead", "a,b", "[a]", "a/b", "..", "%2F", "a?b#c", "a && id:=b", ":=", "*", "\"", "\\",
	"日本語", "e\u0301", "0", "-1", "true", "null",
	"a\nb", "(a)", "{}", strings.Repeat("é,`", 300), strings.Repeat("y", 5000),
}

// TestTypesenseOddIDs backfills documents whose ids are hard to name.
func TestTypesenseOddIDs(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bodd-1"
	direct, s := api{e, e.URL}, setup{match: "bodd-*"}
	direct.create(t, collection)
	var lines strings.Builder
	for i, id := range oddIDs {
		fmt.Fprintf(&lines, `{"id":%s,"title":"the title","body":"the body of number %d is none but its own"}`+"\n", jsonedit.AppendString(nil, id), i)
	}
	for i := range 200 {
		fmt.Fprintf(&lines, `{"id":"%0300d","title":"the title","body":"the body of number %d is long"}`+"\n", i, i)
	}
	direct.loadLines(t, collection, lines.String())
	file := config(t, e, s)
	before := stored(t, direct, collection)
	expect.Must(t, 200+len(oddIDs), len(before), "stored documents")
	out, code := sidecar(t, "reindex", "--config", file)
	if code != 0 || number(t, summary(out), "written") != len(before) {
		t.Fatalf("reindex ended with %d: %s", code, out)
	}
	r := ruleOfTests(t)
	for id, h := range stored(t, direct, collection) {
		plain, err := jsonedit.Cut(h.source, rule.Our)
		if why := wrong(r, h.source); err != nil || why != "" || !rule.HasSketch(h.source) || !bytes.Equal(plain, before[id].source) {
			t.Errorf("%q: %v %s: %s", id, err, why, h.source)
		}
	}
	for _, sample := range []string{"0", "120"} {
		if f := verify(t, file, collection, "--sample", sample); f.Right != f.Scanned || f.Scanned < 100 {
			t.Errorf("verify --sample %s: %+v", sample, f)
		}
	}
}
