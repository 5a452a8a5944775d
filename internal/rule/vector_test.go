package rule

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
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

// bothRule returns a rule of two fields of texts and one of vectors.
func bothRule(t *testing.T, combine rerank.Combine) *Rule {
	t.Helper()
	r := &Rule{
		Match: "*", Fields: []string{"title", "body", "a.v"}, Sketcher: expect.Value(sketch.New(sketch.DefaultScheme()))(t),
		Vector: "a.v", VectorSketcher: vectorRule(t, "a.v").Sketcher, Profile: rerank.Profile{Threshold: 0.5, MinShingles: 3},
	}
	r.Profile.Vector = rerank.Vector{Combine: combine, Threshold: 0.9}
	return r
}

// TestWordsWithVectorsOfDocuments enriches documents that have words, a vector, or both. A partial one that does not set them all clears what is stored.
func TestWordsWithVectorsOfDocuments(t *testing.T) {
	const v = "[1, 2.5, -3e-1]"
	r := bothRule(t, rerank.Both)
	words, _ := (&Rule{Fields: r.Fields[:2], Sketcher: r.Sketcher}).Sketch([]string{"one two", "three four"})
	vector, _ := vectorRule(t, "a.v").Sketch([]string{v})
	const cleared = `,"neardup_sketch":null}`
	with := words
	with.Vector = &vector
	full := `,"neardup_sketch":"` + with.String() + `"}`
	flat := *r
	flat.Fields, flat.Vector = []string{"title", "body", "v"}, "v"
	flatVector, _ := vectorRule(t, "v").Sketch([]string{v})
	with.Vector = &flatVector
	flatFull := `,"neardup_sketch":"` + with.String() + `"}`
	for _, c := range []struct {
		rule          *Rule
		document, end string
		partial       bool
		change        Change
	}{
		{r, `{"title":"one two","body":"three four","a":{"v":` + v + `}`, full, false, Enriched},
		{r, `{"a.v":` + v + `,"body":"three four","title":"one two"`, full, false, Enriched},
		{r, `{"title":"one two","body":"three four"`, "}", false, Textless},
		{r, `{"title":"one two","body":"three four","a":{"v":null}`, "}", false, Textless},
		{r, `{"title":"one two","body":"three four","a":{"v":[0,0]}`, "}", false, Textless},
		{r, `{"title":"one two","body":"three four","a":[{"v":[1]},{"v":[2]}]`, "}", false, Textless},
		{r, `{"title":"one two","body":"three four","a":{"v":5}`, "}", false, Unreadable},
		{r, `{"a":{"v":` + v + `}`, "}", false, Textless},
		{&flat, `{"title":"one two","body":"three four","v":null`, cleared, true, Cleared},
		{r, `{"a":{"v":` + v + `}`, cleared, true, Cleared},
		{r, `{"title":"one two","body":"three four"`, cleared, true, Cleared},
		{r, `{"body":"three four"`, cleared, true, Cleared},
		{r, `{"other":"three four"`, "}", true, Untouched},
		{&flat, `{"title":"one two","body":"three four","v":` + v, flatFull, true, Enriched},
	} {
		var changes []Change
		w := &oneWrite{rule: c.rule, takes: TakesAll, changes: &changes}
		got := string(NewEnricher(w, 1<<20).Append(nil, "i", []byte(c.document+"}"), c.partial))
		expect.Same(t, c.document+c.end, got, "%s", c.document)
		expect.Same(t, []Change{c.change}, changes, "%s", c.document)
	}
}

// TestWordsWithVectorsStored: a stored sketch counts if both of its parts are the rule's, and is current if both are of the document.
func TestWordsWithVectorsStored(t *testing.T) {
	r, document := bothRule(t, rerank.Both), `{"title":"one two","body":"three four","a":{"v":[1,2]}}`
	made, _ := r.SketchOf([]byte(document))
	bare, lone := made.Sketch, made.Vector.String()
	bare.Vector = nil
	words := bare.String()
	alone := *r
	alone.Fields, alone.Vector, alone.Profile.Vector = r.Fields[:2], "", rerank.Vector{}
	otherField, otherSeed := *r, *r
	otherField.Fields, otherField.Vector = []string{"title", "body", "w"}, "w"
	otherSeed.VectorSketcher = expect.Value(sketch.New(sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024, Seed: "x"}))(t)
	for _, c := range []struct {
		rule   *Rule
		stored string
		counts bool
	}{
		{r, made.Text, true}, {r, words, false}, {r, lone, false},
		{&alone, words, true}, {&alone, made.Text, false}, {&otherField, made.Text, false}, {&otherSeed, made.Text, false},
	} {
		expect.Same(t, c.counts, c.rule.Decode(c.stored) != nil, "%s", c.stored)
	}
	stored := r.Decode(made.Text)
	for _, c := range []struct {
		document string
		current  bool
	}{
		{document, true},
		{`{"title":"one two","body":"three four","a":{"v":[10,20]}}`, true},
		{`{"title":"one two","body":"three four","a":{"v":[-1,2]}}`, false},
		{`{"title":"one two","body":"three four"}`, false},
		{`{"title":"one two","body":"three four","a":{"v":[0,0]}}`, false},
		{`{"title":"one two","body":"three five","a":{"v":[1,2]}}`, false},
	} {
		expect.Same(t, c.current, r.Current(stored, []byte(c.document)), "%s", c.document)
	}
	expect.Same(t, [][]string{{"one two"}, {"three four"}}, r.FieldTexts([]byte(document)), "texts")
}

// TestNoVectorStoresNothing: a document without a vector is right without a sketch, and words alone are compared.
func TestNoVectorStoresNothing(t *testing.T) {
	r := bothRule(t, rerank.Either)
	r.Bands, r.Rows, r.Compute = 4, 2, true
	const document = `{"title":"one two","body":"three four"`
	computed, stored := r.SketchOf([]byte(document + "}"))
	if computed == nil || computed.Vector != nil || computed.Text != "" || stored != nil {
		t.Fatalf("computed %+v, stored %+v", computed, stored)
	}
	want, right := r.OursFor([]byte(document+"}"), "0")
	if !want.Equal(Ours{}) || !right {
		t.Errorf("it is to store %+v, right: %v", want, right)
	}
	words := computed.String()
	if want, right = r.OursFor([]byte(document+`,"neardup_sketch":"`+words+`"}`), "0"); !want.Equal(Ours{}) || right {
		t.Errorf("in place of a sketch of words it is to store %+v, right: %v", want, right)
	}
	// The engine makes the vector: no sketch of before is believed.
	j := NewJudge(Rules{r}, 0, 0)
	for _, stored := range []string{"", words} {
		hit := j.Hit(Seen{Index: "i", ID: "1", Stored: []byte(stored), Shown: shown{document + `,"a":{"v":[1,2]}}`, nil}})
		if hit.Sketch == nil || hit.Sketch.Vector == nil {
			t.Errorf("stored %q: compared by %+v", stored, hit.Sketch)
		}
	}
}

// TestVectorsThatCannotAgree: where words agree and there is no cosine, none is named.
func TestVectorsThatCannotAgree(t *testing.T) {
	r := bothRule(t, rerank.Both)
	of := func(v string) *sketch.Sketch {
		encoded, _ := r.SketchOf([]byte(`{"body":"one two","a":{"v":` + v + `}}`))
		return &encoded.Sketch
	}
	for v, want := range map[string]string{
		"null": "the texts agree, but one has no vector", "[1,0,0]": "the texts agree, but they have vectors of different lengths",
		"[0,1]": "the texts agree, but not the vectors: their cosine 0.0000 is below 0.9",
	} {
		a, b := of("[1,0]"), of(v)
		agreement, reason := r.Profile.Judge(a, b)
		expect.Same(t, want, r.Profile.Why(a, b, agreement, reason), "%s", v)
	}
}

// TestWordsWithVectorsFold folds by words and vectors, with what is said of it.
func TestWordsWithVectorsFold(t *testing.T) {
	const text, other = "a b c d e f g h", "p q r s t u v w"
	for _, c := range []struct {
		a, b, v, w   string
		both, either bool
		least, most  float64 // the agreement under either
	}{
		{text, text, "[1,0]", "[1,0]", true, true, 1, 1},
		{text, text, "[1,0]", "[0,1]", false, true, 1, 1},
		{text, text, "[1,0]", "null", false, true, 1, 1},
		{text, text, "[1,0]", "[1,0,0]", false, true, 1, 1},
		{text, text + " i", "[1,0]", "[5,0.1]", true, true, 0.6, 0.99},
		{text, other, "[1,0]", "[1,0.1]", false, true, 0.97, 1},
		{text, other, "[1,0]", "[1,1]", false, false, -0.1, 0.1},
		{text, other, "null", "null", false, false, -0.1, 0.1},
	} {
		for combine, want := range map[rerank.Combine]bool{rerank.Both: c.both, rerank.Either: c.either} {
			r := bothRule(t, combine)
			of := func(body, v string) *sketch.Sketch {
				encoded, _ := r.SketchOf([]byte(`{"body":"` + body + `","a":{"v":` + v + `}}`))
				return &encoded.Sketch
			}
			a, b := of(c.a, c.v), of(c.b, c.w)
			agreement, reason := r.Profile.Judge(a, b)
			expect.Same(t, want, reason.Near(), "%s: %s and %s: %s", combine, c.v, c.w, r.Profile.Why(a, b, agreement, reason))
			estimate, _ := r.Profile.Estimate(a, b)
			expect.Same(t, agreement, estimate.Value, "%s: %s and %s: the agreement and its estimate", combine, c.v, c.w)
			if combine == rerank.Either && (agreement < c.least || agreement > c.most) {
				t.Errorf("%s and %s agree by %v, not %v to %v", c.v, c.w, agreement, c.least, c.most)
			}
		}
	}
}

// TestGivenTextWithVector: beside a vector a bare text counts, unless the document has one of the text fields.
func TestGivenTextWithVector(t *testing.T) {
	r := bothRule(t, rerank.Both)
	_, want := r.Given([]byte(`{"title":"one two three four five","a":{"v":[1,2.5,-0.3]}}`))
	if want == nil || want.Vector == nil {
		t.Fatalf("%+v", want)
	}
	for document, takes := range map[string]bool{
		`{"text":"one two three four five","a":{"v":[1,2.5,-0.3]}}`:                          true,
		`{"text":"one two three four five","a.v":[1,2.5,-0.3]}`:                              true,
		`{"text":"one two three four five","a":{"v":[1,2.5,-0.3]},"body":"six seven eight"}`: false,
		`{"text":"one two three four five","a":{"v":[1,2.5,-0.3]},"title":null}`:             false,
		`{"text":"one two three four five"}`:                                                 false,
	} {
		_, got := r.Given([]byte(document))
		expect.Same(t, takes, got != nil && got.String() == want.String(), "%s", document)
	}
	_, got := r.Given([]byte(`{"text":"one two three four five"}`))
	expect.Same(t, true, got != nil, "a text alone")
}
