package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// findings is what verify says of one index.
type findings struct {
	Scanned, Right, Absent, Incomparable, Stale, Textless int
	Emptied                                               int `json:"textless_with_sketch"`
	Examples                                              []string
}

// verify runs the command and returns what it found in an index. Its exit code has to be that of what it found in all.
func verify(t *testing.T, file, index string, args ...string) findings {
	t.Helper()
	out, code := sidecar(t, append([]string{"verify", "--config", file, "--output", "json"}, args...)...)
	var report struct {
		Stale   int
		Indices []struct {
			Index string
			findings
		}
	}
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &report); err != nil {
		t.Fatalf("verify ended with %d and printed %v: %s", code, err, out)
	}
	var found *findings
	stale := 0
	for i := range report.Indices {
		f := &report.Indices[i].findings
		if stale += f.Stale + f.Emptied; report.Indices[i].Index == index {
			found = f
		}
	}
	if found == nil || report.Stale != stale || code != min(stale, 1) {
		t.Fatalf("verify ended with %d: %s", code, out)
	}
	return *found
}

// withRules gives a configuration file these rules, each a name and the fields.
func withRules(t *testing.T, file string, rules ...string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "    indices:\n")
	head += "    indices:\n"
	for i := 0; i+1 < len(rules); i += 2 {
		head += fmt.Sprintf("      - {match: %q, fields: [%s]}\n", rules[i], rules[i+1])
	}
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// behind is what changes documents behind the sidecar's back: of each, verify has to find as many as it changes.
type behind struct {
	name   string
	change func(t *testing.T, f *fixture)
	want   findings // without what is right
}

// fixture is an index verify-1 of eight documents, v-0 to v-7, which came through the sidecar.
type fixture struct {
	direct, through api
}

const (
	verified     = "verify-1"
	verifiedSize = 8
)

// post sends a request to the engine.
func (f *fixture) post(t *testing.T, method, path, body string, status int) {
	t.Helper()
	call(t, f.direct.e, method, f.direct.base+path, body).want(t, status)
}

var behindElastic = []behind{
	{"update by query", func(t *testing.T, f *fixture) {
		f.post(t, "POST", "/verify-1/_update_by_query?refresh=true",
			`{"query":{"ids":{"values":["v-1","v-2","v-3"]}},"script":{"source":"ctx._source.body += ' and then some'"}}`, 200)
	}, findings{Stale: 3}},
	{"update by query that empties", func(t *testing.T, f *fixture) {
		f.post(t, "POST", "/verify-1/_update_by_query?refresh=true",
			`{"query":{"ids":{"values":["v-1","v-2"]}},"script":{"source":"ctx._source.remove('title'); ctx._source.body = '…'"}}`, 200)
	}, findings{Emptied: 2}},
	{"direct partial update of another field", func(t *testing.T, f *fixture) {
		f.post(t, "POST", "/verify-1/_update/v-4", `{"doc":{"host":"elsewhere.example"}}`, 200)
	}, findings{}},
	{"direct write of the whole", func(t *testing.T, f *fixture) {
		f.post(t, "PUT", "/verify-1/_doc/v-4?refresh=true", `{"title":"written past the sidecar"}`, 200)
	}, findings{Absent: 1}},
}

var behindTypesense = []behind{
	{"direct import of parts", func(t *testing.T, f *fixture) {
		f.post(t, "POST", "/collections/verify-1/documents/import?action=update",
			`{"id":"v-1","body":"a new one"}`+"\n"+`{"id":"v-2","title":"another"}`, 200)
	}, findings{Stale: 2}},
	{"direct update that empties", func(t *testing.T, f *fixture) {
		f.post(t, "PATCH", "/collections/verify-1/documents/v-4", `{"title":"","body":"…"}`, 201)
	}, findings{Emptied: 1}},
	{"direct partial update of another field", func(t *testing.T, f *fixture) {
		f.post(t, "PATCH", "/collections/verify-1/documents/v-4", `{"published_at":"2024"}`, 201)
	}, findings{}},
	{"direct write of the whole", func(t *testing.T, f *fixture) {
		f.post(t, "POST", "/collections/verify-1/documents?action=upsert",
			`{"id":"v-4","title":"written past the sidecar","body":""}`, 201)
	}, findings{Absent: 1}},
}

// newFixture makes the index and fills it.
func newFixture(t *testing.T, e *engines.Engine, file string) *fixture {
	t.Helper()
	f := &fixture{direct: api{e, e.URL}, through: api{e, serveFile(t, file)}}
	f.direct.drop(t, verified)
	f.through.create(t, verified)
	list := documents(t)[:verifiedSize]
	for i := range list {
		list[i].ID = fmt.Sprintf("v-%d", i)
	}
	f.through.load(t, verified, list)
	return f
}

// TestVerifyFindsWhatTheEngineChanged changes documents where the sidecar can't see it: verify finds each of them and writes
// nothing, reindex mends them, and then verify finds none.
func TestVerifyFindsWhatTheEngineChanged(t *testing.T) {
	atOnce(t, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		changes := behindElastic
		if e.Kind == engines.Typesense {
			changes = behindTypesense
		}
		for _, c := range changes {
			t.Run(c.name, func(t *testing.T) {
				file := config(t, e, setup{match: "verify-*"})
				f := newFixture(t, e, file)
				if got := verify(t, file, verified); got.Right != verifiedSize {
					t.Fatalf("at first: %+v", got)
				}
				c.change(t, f)
				before := stored(t, f.direct, verified)
				want := c.want
				want.Scanned = verifiedSize
				want.Right = verifiedSize - want.Stale - want.Emptied - want.Absent
				got := verify(t, file, verified)
				examples := got.Examples
				got.Examples = nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				checkExamples(t, before, examples, want.Stale+want.Emptied, file)
				if diff := cmp.Diff(versions(before), versions(stored(t, f.direct, verified))); diff != "" {
					t.Errorf("verify wrote: %s", diff)
				}
				mended(t, f, file, verified, want.Emptied)
			})
		}
	})
}

// checkExamples holds the ids that verify names against the stored documents: each has to have the sketch of another text.
func checkExamples(t *testing.T, all map[string]hit, examples []string, want int, file string) {
	t.Helper()
	if len(examples) != want {
		t.Errorf("%d examples of %d stale documents", len(examples), want)
	}
	for _, id := range examples {
		members, err := adapters.Members(all[id].source)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		plain, err := adapters.Cut(all[id].source, adapters.Our)
		if err != nil {
			t.Fatal(err)
		}
		kept, _ := adapters.Text(adapters.Get(members, adapters.SketchField))
		if computed := sketchOf(t, file, plain); kept == "" || kept == computed {
			t.Errorf("%s is named as stale and has %q, and its text %q", id, kept, computed)
		}
	}
}

// sketchOf returns what the command sketch makes of a document: an opinion from outside of verify.
func sketchOf(t *testing.T, file string, document []byte) string {
	t.Helper()
	document, err := adapters.Set(document, "id", []byte(`"x"`))
	if err != nil {
		t.Fatal(err)
	}
	lines := t.TempDir() + "/document.jsonl"
	if err := os.WriteFile(lines, []byte(strings.ReplaceAll(string(document), "\n", " ")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := sidecar(t, "sketch", "--config", file, lines)
	columns := strings.Split(strings.TrimRight(out, "\n"), "\t")
	if code != 0 || len(columns) != 3 {
		t.Fatalf("sketch ended with %d: %s", code, out)
	}
	return columns[2]
}

// mended runs reindex and checks that verify has nothing left to say but of so many documents without text.
func mended(t *testing.T, f *fixture, file, index string, textless int) {
	t.Helper()
	if out, code := sidecar(t, "reindex", "--config", file); code != 0 {
		t.Fatalf("reindex ended with %d: %s", code, out)
	}
	got := verify(t, file, index)
	want := findings{Scanned: verifiedSize, Right: verifiedSize - textless, Textless: textless, Examples: []string{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after reindex: %s", diff)
	}
}

// TestVerifySamples looks at a part of a larger index, which was filled past the sidecar.
func TestVerifySamples(t *testing.T) {
	atOnce(t, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		direct, list := api{e, e.URL}, documents(t)[:200] // whole runs of a sample
		direct.drop(t, verified)
		direct.create(t, verified)
		direct.load(t, verified, list)
		file := config(t, e, setup{match: verified})
		for _, n := range []int{7, 137, 10_000} {
			got, want := verify(t, file, verified, "--sample", fmt.Sprint(n)), min(n, len(list))
			if got.Scanned != want || got.Absent != want {
				t.Errorf("of a sample of %d: %+v", n, got)
			}
		}
		if out, code := sidecar(t, "reindex", "--config", file, "--max-docs", fmt.Sprint(len(list)/2)); code != 0 {
			t.Fatalf("reindex ended with %d: %s", code, out)
		}
		// Half are sketched, in the engine's order: a sample that is not spread over all of them would have them all, or none.
		got := verify(t, file, verified, "--sample", "100")
		if got.Right < 20 || got.Absent < 20 || got.Right+got.Absent != 100 {
			t.Errorf("of a sample of 100, half of which are sketched: %+v", got)
		}
	})
}
