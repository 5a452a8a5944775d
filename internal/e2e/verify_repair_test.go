package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

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
	atOnce(t, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		index, list := "repaired-1", documents(t)[:40]
		direct := api{e, e.URL}
		file := richly(t, config(t, e, setup{match: index}), index)
		through := api{e, serveFile(t, file)}
		direct.create(t, index)
		succeed(t, "setup", "--config", file)
		through.load(t, index, list)
		before := stored(t, direct, index)
		if r, code := inspect(t, file); code != 0 || r.Right != len(list) {
			t.Fatalf("at first %d: %+v", code, r)
		}
		var ours []adapters.Ours
		for _, d := range list {
			ours = append(ours, adapters.OursOf(before[d.ID].source))
		}
		for i, spoil := range []func(o *adapters.Ours){
			func(o *adapters.Ours) { *o = adapters.Ours{} },
			func(o *adapters.Ours) { *o = ours[20] },
			func(o *adapters.Ours) { o.Sketch = "AQAA" },
			func(o *adapters.Ours) { o.Bands = nil },
			func(o *adapters.Ours) { o.Bands = ours[21].Bands },
			func(o *adapters.Ours) { o.Cluster = "" },
			func(o *adapters.Ours) { o.Cluster = "0000" + o.Cluster[4:] },
			func(o *adapters.Ours) { o.Cluster = ours[22].Cluster }, // which may be right: a cluster of others
		} {
			o := ours[i]
			spoil(&o)
			document := must(adapters.WithOurs(before[list[i].ID].source, o))(t)
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
