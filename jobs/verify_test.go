package jobs

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// conditions are documents by what Verify makes of them.
func conditions(t testing.TB, r *rule.Rule) map[string]func(text string) string {
	t.Helper()
	sketchOf := func(rule *rule.Rule, text string) string {
		computed, _ := rule.SketchOf([]byte(`{"title":"` + text + `"}`))
		return computed.Text
	}
	fields, scheme := *r, sketch.DefaultScheme()
	fields.Fields = []string{"title", "body"}
	scheme.Seed = "another"
	sketcher := expect.Value(sketch.New(scheme))(t)
	seeded := *r
	seeded.Sketcher = sketcher
	with := func(text, sketch string) string { return `{"title":"` + text + `","neardup_sketch":` + sketch + `}` }
	return map[string]func(text string) string{
		"right":                    func(text string) string { return with(text, `"`+sketchOf(r, text)+`"`) },
		"absent":                   func(text string) string { return `{"title":"` + text + `"}` },
		"absent, cleared":          func(text string) string { return with(text, "null") },
		"incomparable, fields":     func(text string) string { return with(text, `"`+sketchOf(&fields, text)+`"`) },
		"incomparable, scheme":     func(text string) string { return with(text, `"`+sketchOf(&seeded, text)+`"`) },
		"incomparable, no sketch":  func(text string) string { return with(text, `"x"`) },
		"incomparable, a number":   func(text string) string { return with(text, `7`) },
		"incomparable, no text":    func(string) string { return with("", `"x"`) },
		"stale":                    func(text string) string { return with(text+" changed", `"`+sketchOf(r, text)+`"`) },
		"emptied":                  func(text string) string { return with("…", `"`+sketchOf(r, text)+`"`) },
		"emptied, no text at all":  func(text string) string { return `{"neardup_sketch":"` + sketchOf(r, text) + `","n":1}` },
		"emptied, no texts":        func(text string) string { return `{"title":5,"neardup_sketch":"` + sketchOf(r, text) + `"}` },
		"textless":                 func(string) string { return `{"title":"…"}` },
		"textless, cleared":        func(string) string { return with("", "null") },
		"textless, can't be read":  func(string) string { return `{"title":` },
		"textless, without fields": func(string) string { return `{"n":1}` },
	}
}

// TestVerifyOfABusyEngine has an engine without room for a read now and then: each document is counted once where the engine can go on behind a
// page. It is an error where it can't, and where there is no room at all.
func TestVerifyOfABusyEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, pages := newMemory(10, documents(95)), 0
		m.onPage = func() error {
			if pages++; pages%3 == 1 {
				return fmt.Errorf("no room: %w", adapters.ErrBusy)
			}
			return nil
		}
		verify := func(all adapters.Selection) (Findings, error) {
			return Verify(t.Context(), Job{Store: m, Index: "news", Rule: testRule(t)}, all, VerifyOptions{}, nil)
		}
		got, err := verify(adapters.Selection{Part: "1-"})
		expect.OK(t, err)
		expect.Same(t, Findings{Total: 95, Scanned: 95, Absent: 95}, got, "")
		if got, err := verify(adapters.Selection{}); !errors.Is(err, adapters.ErrBusy) {
			t.Errorf("without a place to go on from: %+v %v", got, err)
		}
		m.onPage = func() error { return adapters.ErrBusy }
		start := time.Now()
		if _, err = verify(adapters.Selection{Part: "1-"}); !errors.Is(err, adapters.ErrBusy) || time.Since(start) < patience {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// add counts one document of a condition.
func (f *Findings) add(condition string) {
	f.Total++
	f.Scanned++
	counts := map[byte]*int{'r': &f.Right, 'a': &f.Absent, 'i': &f.Incomparable, 's': &f.Stale, 'e': &f.Emptied, 't': &f.Textless}
	*counts[condition[0]]++
}

// TestVerifyCounts looks at many documents, before and after reindex, which mends what it finds and nothing else.
func TestVerifyCounts(t *testing.T) {
	seed := effort.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rule := testRule(t)
	kinds := conditions(t, rule)
	names := slices.Sorted(maps.Keys(kinds))
	for range effort.Rounds(60) {
		m, want, wrong := newMemory(1+rnd.IntN(40), nil), Findings{}, []string{}
		for i := range rnd.IntN(200) {
			id, condition := fmt.Sprintf("%04d", i), names[rnd.IntN(len(names))]
			m.put(id, kinds[condition](fmt.Sprintf("the ferry number %d was late", i)))
			before := want.Wrong()
			if want.add(condition); want.Wrong() > before {
				wrong = append(wrong, id)
			}
		}
		want.Examples = append(want.Examples, wrong[:min(len(wrong), maxExamples)]...)
		var last Findings
		report := func(f Findings) { last = f }
		got := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{}, report))(t)
		expect.Must(t, want, got, "")
		if diff := cmp.Diff(got, last); diff != "" && got.Scanned > 0 {
			t.Errorf("the last report differs: %s", diff)
		}
		expect.Must(t, 0, m.writes, "documents that verify wrote")
		progress := expect.Value(Reindex(t.Context(), m.job(rule), Options{}, nil))(t)
		expect.Same(t, got.Absent+got.Incomparable+got.Wrong(), progress.Written, "documents that reindex wrote")
		expect.Same(t, got.Right, progress.Skipped, "documents that reindex skipped")
		after := expect.Value(Verify(t.Context(), Job{Store: m, Index: "news", Rule: rule}, adapters.Selection{}, VerifyOptions{}, nil))(t)
		expect.Same(t, after.Scanned, after.Right+after.Textless, "right or without a text after reindex: %+v", after)
	}
}
