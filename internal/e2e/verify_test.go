package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
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
	decode(t, []byte(out[max(0, strings.Index(out, "{")):]), &report)
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
	onEach(t, true, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
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
				same(t, want, got, "")
				for _, id := range examples {
					if wrong(ruleOfTests(t), before[id].source) == "" {
						t.Errorf("%s is named as stale: %s", id, before[id].source)
					}
				}
				same(t, want.Stale+want.Emptied, len(examples), "examples: %v", examples)
				same(t, versions(before), versions(stored(t, f.direct, verified)), "verify wrote")
				mended(t, f, file, verified, want.Emptied)
			})
		}
	})
}

// mended runs reindex and checks that verify has nothing left to say but of so many documents without text.
func mended(t *testing.T, f *fixture, file, index string, textless int) {
	t.Helper()
	succeed(t, "reindex", "--config", file)
	got := verify(t, file, index)
	want := findings{Scanned: verifiedSize, Right: verifiedSize - textless, Textless: textless, Examples: []string{}}
	same(t, want, got, "after reindex")
}

// repairs is what verify says of an index whose rule stores all three fields.
type repairs struct {
	findings
	Bands, Cluster struct{ Absent, Foreign, Stale int }
	Repair         *struct {
		Mended, Gone, Refused int
		Changed               int `json:"changed_meanwhile"`
	}
}

// inspect runs verify and returns what it says of the one index, and its exit code.
func inspect(t *testing.T, file string, args ...string) (r repairs, code int) {
	t.Helper()
	out, code := sidecar(t, append([]string{"verify", "--config", file, "--output", "json"}, args...)...)
	var report struct{ Indices []repairs }
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &report); err != nil || len(report.Indices) != 1 {
		t.Fatalf("verify ended with %d, %v: %s", code, err, out)
	}
	report.Indices[0].Examples = nil
	return report.Indices[0], code
}

// TestVerifyRepairs spoils our fields of documents past the sidecar, one thing in each: verify tells them apart, and with
// --repair every document gets again what it had.
func TestVerifyRepairs(t *testing.T) {
	onEach(t, true, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		index, list := "repaired-1", documents(t)[:40]
		direct := api{e, e.URL}
		file := config(t, e, setup{match: index, threshold: 0.64, rule: "bands: auto\nnative: true"})
		through := api{e, serveFile(t, file)}
		direct.create(t, index)
		succeed(t, "setup", "--config", file)
		through.load(t, index, list)
		before := stored(t, direct, index)
		if r, code := inspect(t, file); code != 0 || r.Right != len(list) {
			t.Fatalf("at first %d: %+v", code, r)
		}
		var ours []rule.Ours
		for _, d := range list {
			ours = append(ours, rule.OursOf(before[d.ID].source))
		}
		for i, spoil := range []func(o *rule.Ours){
			func(o *rule.Ours) { *o = rule.Ours{} },
			func(o *rule.Ours) { *o = ours[20] },
			func(o *rule.Ours) { o.Sketch = "AQAA" },
			func(o *rule.Ours) { o.Bands = nil },
			func(o *rule.Ours) { o.Bands = ours[21].Bands },
			func(o *rule.Ours) { o.Cluster = "" },
			func(o *rule.Ours) { o.Cluster = "0000" + o.Cluster[4:] },
			func(o *rule.Ours) { o.Cluster = ours[22].Cluster }, // which may be right: a cluster of others
		} {
			o := ours[i]
			spoil(&o)
			document := must(rule.WithOurs(before[list[i].ID].source, o))(t)
			direct.replace(t, index, list[i].ID, string(document))
		}
		want := repairs{findings: findings{Scanned: 40, Right: 37, Absent: 1, Stale: 1, Incomparable: 1}}
		want.Bands.Absent, want.Bands.Stale = 2, 1
		want.Cluster.Absent, want.Cluster.Foreign = 2, 1
		got, code := inspect(t, file)
		got.Cluster.Stale = 0 // that of the one without a comparable sketch, beside
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(repairs{})); diff != "" || code != 1 {
			t.Errorf("verify ended with %d: %s", code, diff)
		}
		if got, code = inspect(t, file, "--repair"); code != 0 || got.Repair == nil || got.Repair.Mended != 7 ||
			got.Repair.Refused+got.Repair.Changed != 0 {
			t.Errorf("a repair ended with %d: %+v, %+v", code, got, got.Repair)
		}
		if got, code = inspect(t, file, "--repair"); code != 0 || got.Right != len(list) || got.Repair.Mended != 0 {
			t.Errorf("another ended with %d: %+v, %+v", code, got, got.Repair)
		}
		after := stored(t, direct, index)
		for i, d := range list {
			if i != 7 && string(after[d.ID].source) != string(before[d.ID].source) {
				t.Errorf("document %d is %s, was %s", i, after[d.ID].source, before[d.ID].source)
			}
		}
	})
}

// replace writes a document whole, past the sidecar.
func (a api) replace(t *testing.T, index, id, document string) {
	t.Helper()
	if a.typesense() {
		call(t, a.e, "POST", a.e.URL+"/collections/"+index+"/documents?action=upsert", document).want(t, 201)
		return
	}
	call(t, a.e, "PUT", a.e.URL+"/"+index+"/_doc/"+id+"?refresh=true", document).want(t, 200)
}
