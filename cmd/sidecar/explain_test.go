package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/sketch"
)

const saltmere = `The evening ferry returns to Saltmere after eleven years. The council voted for the boat on Tuesday, and the
harbour master said that it would run from May. Tickets cost four pounds.`

func TestExplainSameText(t *testing.T) {
	a, b := file(t, saltmere), file(t, strings.ToUpper(saltmere))
	got := sidecar(t, "compare", a, b)
	want := fmt.Sprintf(`A: %s: 32 words, 31 different shingles
B: %s: 32 words, 31 different shingles

fingerprints        equal: the same text but for case and white space
agreement           1.0000 ± 0.0073 by the sketches, 1.0000 exactly
A contained in B    1.0000 ± 0.0037 by the sketches, 1.0000 exactly
B contained in A    1.0000 ± 0.0037 by the sketches, 1.0000 exactly
coverage            1.0000 of the words lie where both say the same

default     near-duplicates: it is the same text, except perhaps for case and white space
safe        near-duplicates: it is the same text, except perhaps for case and white space
thorough    near-duplicates: it is the same text, except perhaps for case and white space

Longest passages in both:
  32 words: the evening ferry returns to saltmere after eleven years the council voted for the boat … and the harbour master said that it would run from may tickets cost four pounds
`, a, b)
	byAll.Same(t, result{stdout: want}, got, "")
}

// TestExplainAsJSON holds what is said about a pair to the package's own functions.
func TestExplainAsJSON(t *testing.T) {
	textA, textB := numbered(600, 0), numbered(600, 5)
	page := "<html><body><p>" + textB + "</p></body></html>"
	read := func(args ...string) offline.Explanation {
		t.Helper()
		got := sidecar(t, append([]string{"compare", file(t, textA), file(t, page), "--output", "json"}, args...)...)
		var e offline.Explanation
		if err := json.Unmarshal([]byte(got.stdout), &e); err != nil || got.code != 0 {
			t.Fatalf("%v: %+v", err, got)
		}
		return e
	}
	e := read()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	setA, setB := sketcher.Shingles(textA), sketcher.Shingles(textB)
	exact := []float64{sketch.Resemblance(setA, setB), sketch.Containment(setA, setB), sketch.Containment(setB, setA)}
	expect.Same(t, exact, []float64{*e.Resemblance.Exact, *e.AInB.Exact, *e.BInA.Exact}, "")
	verdicts := func(e offline.Explanation) (list []string) {
		for _, v := range e.Verdicts {
			list = append(list, fmt.Sprintf("%s %t", v.Profile, v.NearDuplicate))
		}
		return list
	}
	expect.Same(t, []string{"default false", "safe false", "thorough false"}, verdicts(e), "")
	e = read("--threshold", "0.3")
	expect.Same(t, []string{"default false", "safe false", "thorough false", "--threshold true"}, verdicts(e), "")
}

// TestExplainByARule has a rule judge an excerpt by containment, under a scheme of its own, and say what it asks for beside that.
func TestExplainByARule(t *testing.T) {
	config := write(t, `
sketch: {words: 4}
engines:
  - indices:
      - {match: n, fields: [t]}
      - match: p
        fields: [t]
        preset: plagiarism
        within: {field: at, span: 2d}
        different: [host_field, owner]
        host_field: site`)
	whole, excerpt := file(t, numbered(600, 0)), file(t, strings.Join(strings.Fields(numbered(600, 0))[100:300], " "))
	got := sidecar(t, "compare", "-c", config, "--index", "p", excerpt, whole)
	for _, want := range []string{
		"197 different shingles\n", "default     different: the agreement ", "p           near-duplicates: the containment 1.0000 reaches 0.6\n",
		"in a search they fold only within 2d by at, only with a different site and owner\n",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, got.stdout, got.stderr)
		}
	}
	docs := docLines("a", numbered(600, 0), "b", strings.Join(strings.Fields(numbered(600, 0))[100:300], " "))
	got = piped(t, "a\tb\nb\ta\n", "compare", "-c", config, "--index", "p", "--docs", file(t, strings.ReplaceAll(docs, `"text"`, `"t"`)), "--pairs", "-")
	if lines := strings.Split(got.stdout, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "a\tb\t1.0000\t0.0") || !strings.HasSuffix(lines[1], "\ttrue") ||
		strings.TrimPrefix(lines[1], "a\tb") != strings.TrimPrefix(lines[2], "b\ta") {
		t.Errorf("%+v", got)
	}
}

// TestExplainShortTexts: two short texts that differ in numbers are apart, and which numbers these are is said.
func TestExplainShortTexts(t *testing.T) {
	a := file(t, "Take one tablet of 1.5 mg in the morning and one of 4.0 mg at night")
	b := file(t, "Take one tablet of 15 mg in the morning and one of 40 mg at night.")
	for preset, want := range map[string]string{
		"thorough": "thorough    different: too short to fold by agreement: 16 words, 30 needed; numbers differ: 1.5, 4.0 only in A; 15, 40 only in B\n",
		"logs":     "logs        near-duplicates: the words are the same\n",
	} {
		if got := sidecar(t, "compare", "--preset", preset, a, b); !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, got.stdout, got.stderr)
		}
	}
}
