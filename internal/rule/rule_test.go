package rule

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func testRule(t testing.TB, fields ...string) *Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	r := &Rule{Match: "news-*", Fields: fields, Profile: rerank.Profile{Threshold: 0.8}, Window: 100, Compute: true, Sketcher: sketcher}
	expect.OK(t, r.Validate())
	return r
}

func enricher(rule *Rule, takes Takes, changes *[]Change) *Enricher {
	return NewEnricher(&oneWrite{rule: rule, takes: takes, changes: changes}, 1<<20)
}

// oneWrite is the write of an Enricher under test.
type oneWrite struct {
	rule    *Rule
	takes   Takes
	changes *[]Change
	number  uint64
	cluster string
	hold    func(n int) bool
}

func (w *oneWrite) Rule(index string, _ bool) (*Rule, Takes) {
	if !Matches(w.rule.Match, index) {
		return nil, TakesNothing
	}
	return w.rule, w.takes
}
func (w *oneWrite) Start(Operation) bool { return true }
func (w *oneWrite) Sketch(_ Operation, rule *Rule, texts [][]byte, vector []byte, _ bool) (*sketch.Sketch, bool) {
	s := &sketch.Sketch{}
	return s, rule.SketchInto(s, texts, vector)
}
func (w *oneWrite) Cluster(Operation, *Rule, *sketch.Sketch, bool) string { return w.cluster }
func (w *oneWrite) Number(Operation, *Rule) uint64                        { return w.number }
func (w *oneWrite) Hold(n int) bool                                       { return w.hold == nil || w.hold(n) }
func (w *oneWrite) Count(c Change)                                        { *w.changes = append(*w.changes, c) }

func TestAppendSplicesAndNothingElse(t *testing.T) {
	rule := testRule(t, "title", "meta.text")
	sketchOf := func(texts ...string) string {
		s, ok := rule.Sketch(texts)
		if !ok {
			return "null"
		}
		return `"` + s.String() + `"`
	}
	both := sketchOf("one two", "three four five six")
	for _, c := range []struct {
		name, doc, want string
		partial         bool
		change          Change
	}{
		{"whole", `{"title":"one two","meta":{"text":"three four five six"},"n":1e3}`, `{"title":"one two","meta":{"text":"three four five six"},"n":1e3,"neardup_sketch":` + both + `}`, false, Enriched},
		{"dotted key and space", ` { "meta.text" : "three four five six" , "title":"one two" } `, ` { "meta.text" : "three four five six" , "title":"one two","neardup_sketch":` + both + ` } `, false, Enriched},
		{"escapes", `{"title":"\u006fne\ttwo"}`, `{"title":"\u006fne\ttwo","neardup_sketch":` + sketchOf("one\ttwo") + `}`, false, Enriched},
		{"twice and forged", `{"title":"one","neardup_sketch":"x","title":"two"}`, `{"title":"one","title":"two"}`, false, Unreadable},
		{"a comment", `{"title":"one two" /* title */ , "meta.text":"three four five six" // more
}`, `{"title":"one two" /* title */ , "meta.text":"three four five six","neardup_sketch":` + both + ` // more
}`, false, Enriched},
		{"a brace in a comment", `/*{*/ {}`, `/*{*/ {}`, false, Textless},
		{"a byte order mark", "\uFEFF" + `{"title":["one two"],"meta.text":"three four five six"}`, "\uFEFF" + `{"title":["one two"],"meta.text":"three four five six","neardup_sketch":` + both + `}`, false, Enriched},
		{"partial with all, one of them nested", `{"title":"one two","meta":{"text":"three four five six"}}`, `{"title":"one two","meta":{"text":"three four five six"},"neardup_sketch":null}`, true, Cleared},
		{"partial beside a field", `{"meta":{"lang":"en"}}`, `{"meta":{"lang":"en"},"neardup_sketch":null}`, true, Cleared},
		{"partial twice", `{"title":"one","title":"two"}`, `{"title":"one","title":"two","neardup_sketch":null}`, true, Cleared},
		{"partial that empties", `{"title":null,"meta":null}`, `{"title":null,"meta":null,"neardup_sketch":null}`, true, Cleared},
	} {
		t.Run(c.name, func(t *testing.T) {
			var changes []Change
			got := enricher(rule, TakesAll, &changes).Append([]byte("> "), "news-1", []byte(c.doc), c.partial)
			expect.Same(t, "> "+c.want, string(got), "the document")
			expect.Same(t, []Change{c.change}, changes, "the changes")
		})
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"news", "news", true}, {"news", "news-1", false}, {"news-*", "news-1", true}, {"*", "a", true}, {"*", ".kibana", false},
		{".k*", ".kibana", true}, {"a*b*c", "aXbYc", true}, {"a*b*c", "acb", false}, {"*-1", "x-1", true}, {"a*a", "a", false}, {"**", "x", true},
	} {
		expect.Same(t, c.want, Matches(c.pattern, c.name), "Matches(%q, %q)", c.pattern, c.name)
	}
}
