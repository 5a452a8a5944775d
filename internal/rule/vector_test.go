package rule

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/sketch"
)

// vectorRule returns a rule of one field of vectors.
func vectorRule(t *testing.T, field string) *Rule {
	t.Helper()
	s := expect.Value(sketch.New(sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024}))(t)
	return &Rule{Match: "*", Fields: []string{field}, Sketcher: s}
}

// TestVectorsOfDocuments enriches documents with vectors, and others: what has no direction has no sketch and is no error.
func TestVectorsOfDocuments(t *testing.T) {
	const v = "[1, 2.5,\n-3e-1]"
	flat, nested := vectorRule(t, "v"), vectorRule(t, "a.v")
	want, _ := flat.Sketch([]string{v})
	other, _ := nested.Sketch([]string{v})
	sketched, inside := `,"neardup_sketch":"`+want.String()+`"}`, `,"neardup_sketch":"`+other.String()+`"}`
	const cleared = `,"neardup_sketch":null}`
	for _, c := range []struct {
		rule          *Rule
		document, end string
		partial       bool
		change        Change
	}{
		{flat, `{"v":` + v, sketched, false, Enriched},
		{flat, `{"v":` + v, sketched, true, Enriched},
		{flat, `{"v":"P4AAAEAgAAC+mZma"`, sketched, false, Enriched},
		{flat, `{"title":"x"`, "}", false, Textless},
		{flat, `{"title":"x"`, "}", true, Untouched},
		{flat, `{"v":null`, "}", false, Textless},
		{flat, `{"v":[]`, "}", false, Textless},
		{flat, `{"v":[0,0]`, "}", false, Textless},
		{flat, `{"v":[0,0]`, cleared, true, Cleared},
		{flat, `{"v":["1","2"]`, "}", false, Textless},
		{flat, `{"v":"a word"`, "}", false, Textless},
		{flat, `{"v":5`, "}", false, Unreadable},
		{flat, `{"v":{"x":[1]}`, "}", false, Unreadable},
		{nested, `{"a":{"v":` + v + `}`, inside, false, Enriched},
		{nested, `{"a.v":` + v, inside, false, Enriched},
		{nested, `{"a":[{"v":[1]},{"v":[2]}]`, "}", false, Textless},
	} {
		var changes []Change
		w := &oneWrite{rule: c.rule, takes: TakesAll, changes: &changes}
		got := string(NewEnricher(w, 1<<20).Append(nil, "i", []byte(c.document+"}"), c.partial))
		expect.Same(t, c.document+c.end, got, "%s", c.document)
		expect.Same(t, []Change{c.change}, changes, "%s", c.document)
	}
}

// TestNumberInsteadOfVector: the advice is that for vectors.
func TestNumberInsteadOfVector(t *testing.T) {
	members := expect.Value(jsonedit.Members([]byte(`{"v":5}`)))(t)
	for advice, r := range map[string]*Rule{"5 is no vector: write a list of numbers": vectorRule(t, "v"), "5 is no text: write it in quotes": {}} {
		if _, _, err := r.TextsIn(members, "v"); err == nil || err.Error() != advice {
			t.Errorf("%v, want %s", err, advice)
		}
	}
}

// TestVectorsFold folds by the cosine alone, however few the dimensions.
func TestVectorsFold(t *testing.T) {
	r := vectorRule(t, "v")
	r.Profile.Threshold, r.Profile.MinShingles, r.Profile.MinWords = 0.9, 8, 50
	of := func(v string) *sketch.Sketch {
		encoded, _ := r.SketchOf([]byte(`{"v":` + v + `}`))
		return &encoded.Sketch
	}
	for _, c := range []struct {
		a, b string
		near bool
	}{
		{"[1,0]", "[5,0]", true}, {"[1,0]", "[1,0.3]", true}, {"[1,0]", "[1,0.8]", false}, {"[1,0]", "[-1,0]", false}, {"[1,0]", "[1,0,0]", false},
	} {
		near, agreement := r.Profile.NearDuplicates(of(c.a), of(c.b))
		expect.Same(t, c.near, near, "%s and %s agree by %v", c.a, c.b, agreement)
	}
}
