package jobs

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// byID is a memory that reads documents by their ids too, as engines do.
type byID struct{ *memory }

func (m byID) Scan(ctx context.Context, index string, rule *rule.Rule, s adapters.Selection,
	yield func(adapters.Page) error) error {
	return m.memory.Scan(ctx, index, rule, s, func(p adapters.Page) error {
		p.Documents = slices.DeleteFunc(slices.Clone(p.Documents), func(d adapters.Stored) bool {
			return s.IDs != nil && !slices.Contains(s.IDs, d.ID)
		})
		return yield(p)
	})
}

// richRule is a rule that stores all three fields.
func richRule(t testing.TB) *rule.Rule {
	rule := testRule(t)
	rule.Bands, rule.Rows, rule.Clusters = 12, 8, true
	return rule
}

// format1 is a sketch in format 1, as builds before format 2 stored it.
const format1 = "AQjcD0D+AABFcUutXuULfeUEE4LrtIsct+Yu6orrmspQ3D2pLEDvfjNtwevnZqvWWfcnYTKsANCzKM1DwbRk0v2EHpGVyq+34uCkybb08dLuIqfA9E1CxsaR8bRl6ctHwBqDiBixDbILPEGW2cJCCUaD1OUzhxu2tYKkCr6kYTLVLiBG6aYJ6Tt0p+fSo5CwG5A="

// TestVerifyLooksBesideTheSketch spoils one thing in a document that is right.
func TestVerifyLooksBesideTheSketch(t *testing.T) {
	r := richRule(t)
	other := *r
	other.Profile.Threshold = 0.9
	text := `{"title":"the ferry was late again on the way to Saltmere"}`
	right, _ := r.OursFor([]byte(text), "1")
	another, _ := r.OursFor([]byte(`{"title":"quite another thing altogether in every word"}`), "1")
	plain := *r
	plain.Bands, plain.Rows, plain.Clusters = 0, 0, false
	for _, c := range []struct {
		name string
		rule *rule.Rule
		have rule.Ours
		text string
		want Findings
	}{
		{"all right", r, right, text, Findings{Right: 1}},
		{"no bands", r, rule.Ours{Sketch: right.Sketch, Cluster: right.Cluster}, text, Findings{Right: 1, Bands: FieldFindings{Absent: 1}}},
		{
			"stale bands", r, rule.Ours{Sketch: right.Sketch, Bands: another.Bands, Cluster: right.Cluster}, text,
			Findings{Right: 1, Bands: FieldFindings{Stale: 1}, Examples: []string{"one"}},
		},
		{
			"a foreign cluster", r, rule.Ours{Sketch: right.Sketch, Bands: right.Bands, Cluster: other.ClusterID(7)}, text,
			Findings{Right: 1, Cluster: FieldFindings{Foreign: 1}},
		},
		{"nothing", r, rule.Ours{}, text, Findings{Absent: 1, Bands: FieldFindings{Absent: 1}, Cluster: FieldFindings{Absent: 1}}},
		{"all of another text is stale once", r, another, text, Findings{Stale: 1, Examples: []string{"one"}}},
		{
			"of another scheme", r, rule.Ours{Sketch: "AQAA", Bands: another.Bands, Cluster: other.ClusterID(7)}, text,
			Findings{Incomparable: 1, Cluster: FieldFindings{Foreign: 1}},
		},
		{
			"of format 1, which earlier builds stored", r, rule.Ours{Sketch: format1, Bands: right.Bands, Cluster: right.Cluster}, text,
			Findings{Incomparable: 1},
		},
		{"left over", &plain, right, text, Findings{Right: 1, Leftover: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := expect.Value(rule.WithOurs([]byte(c.text), c.have))(t)
			m := byID{newMemory(10, map[string]string{"one": string(source)})}
			c.want.Total, c.want.Scanned = 1, 1
			got := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: c.rule}, adapters.Selection{}, VerifyOptions{}, nil))(t)
			expect.Same(t, c.want, got, "")
			expect.Same(t, 0, m.writes, "documents that were written")
			expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: c.rule}, adapters.Selection{}, VerifyOptions{Repair: true}, nil))(t)
			if want, fits := c.rule.OursFor([]byte(m.sources["one"]), "one"); !fits {
				t.Errorf("after the repair %s, want %+v", m.sources["one"], want)
			}
		})
	}
}

// TestRepair mends documents of every condition, while others write, and counts what became of each.
func TestRepair(t *testing.T) {
	seed := effort.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rule := testRule(t)
	kinds := conditions(t, rule)
	names := slices.Sorted(maps.Keys(kinds))
	for range effort.Rounds(60) {
		synctest.Test(t, func(t *testing.T) {
			m := byID{newMemory(1+rnd.IntN(40), nil)}
			n := 1 + rnd.IntN(200)
			for i := range n {
				m.put(fmt.Sprintf("%04d", i), kinds[names[rnd.IntN(len(names))]](fmt.Sprintf("the ferry number %d was late", i)))
			}
			refused := fmt.Sprintf("%04d", rnd.IntN(n))
			m.refuse[refused] = true
			_, fine := rule.OursFor([]byte(m.sources[refused]), "0")
			m.onPatch = func(batch int) (int, error) {
				if rnd.IntN(3) == 0 {
					id := fmt.Sprintf("%04d", rnd.IntN(n))
					if _, there := m.sources[id]; there && id != refused {
						m.put(id, kinds[names[rnd.IntN(len(names))]]("written meanwhile"))
					}
				}
				return batch, nil
			}
			got := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{Repair: true}, nil))(t)
			expect.Same(t, map[bool]int{false: 1, true: 0}[fine], got.Repair.Refused, "documents that were refused")
			m.onPatch = nil
			m.refuse = map[string]bool{}
			again := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{Repair: true}, nil))(t)
			expect.Same(t, 0, again.Repair.Refused+again.Repair.Changed, "refused or changed: %+v", again)
			last := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{}, nil))(t)
			expect.Same(t, last.Scanned, last.Right+last.Textless, "right or without a text after all: %+v", last)
		})
	}
}

// TestRepairGivesWay has a writer change the same document whenever it is to be mended.
func TestRepairGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := testRule(t)
		stale, _ := rule.SketchOf([]byte(`{"title":"of another text"}`))
		m := byID{newMemory(10, nil)}
		m.put("busy", `{"title":"version 0","neardup_sketch":"`+stale.Text+`"}`)
		version := 0
		m.onPatch = func(batch int) (int, error) {
			version++
			m.put("busy", fmt.Sprintf(`{"title":"version %d","neardup_sketch":"%s"}`, version, stale.Text))
			return batch, nil
		}
		got := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{Repair: true}, nil))(t)
		expect.Same(t, [3]int{1, 0, 0}, [3]int{got.Repair.Changed, got.Repair.Mended, m.writes}, "changed, mended and written: %+v", got)
		if !strings.Contains(m.sources["busy"], fmt.Sprintf("version %d", version)) {
			t.Errorf("a changed document was overwritten: %s", m.sources["busy"])
		}
	})
}
