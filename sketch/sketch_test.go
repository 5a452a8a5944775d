package sketch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the known answers anew")

func newSketcher(t testing.TB, change func(*Scheme)) *Sketcher {
	t.Helper()
	scheme := DefaultScheme()
	if change != nil {
		change(&scheme)
	}
	s, err := New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"case and punctuation", "My name is Inigo Montoya. You killed my father!", []string{"my", "name", "is", "inigo", "montoya", "you", "killed", "my", "father"}},
		{"full folding", "Straße STRASSE ΣΊΣΥΦΟΣ σίσυφος", []string{"strasse", "strasse", "σίσυφοσ", "σίσυφοσ"}},
		{"compatibility forms", "ﬁne ２０２４ Ⅳ", []string{"fine", "2024", "iv"}},
		{"composed and decomposed are one", "caf\u00e9 cafe\u0301", []string{"café", "café"}},
		{"inside a word", "can't 3.14 e-mail x_y", []string{"can't", "3.14", "e", "mail", "x_y"}},
		{"ideographs stand alone", "日本語", []string{"日", "本", "語"}},
		{"invalid bytes", "a\xffb c", []string{"ab", "c"}},
		{"nothing", " ?! — … ", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Words(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The nine 4-word shingles of Manning and Raghavan's slides.
func TestShinglesOfTheLecture(t *testing.T) {
	s := newSketcher(t, nil)
	text := "My name is Inigo Montoya. You killed my father. Prepare to die"
	var want []uint64
	for _, shingle := range []string{
		"my name is inigo", "name is inigo montoya", "is inigo montoya you", "inigo montoya you killed", "montoya you killed my",
		"you killed my father", "killed my father prepare", "my father prepare to", "father prepare to die",
	} {
		want = append(want, s.Shingles(shingle)...)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, s.Shingles(text)); diff != "" {
		t.Error(diff)
	}
}

func TestShinglesDoNotSpanTexts(t *testing.T) {
	s := newSketcher(t, nil)
	apart, joined := s.Shingles("one two three four", "five six seven eight"), s.Shingles("one two three four five six seven eight")
	if len(apart) != 2 || len(joined) != 5 {
		t.Errorf("got %d and %d shingles, want 2 and 5", len(apart), len(joined))
	}
	if short := s.Shingles("one two"); len(short) != 1 {
		t.Errorf("a text of two words makes %d shingles, want 1", len(short))
	}
	if order := s.Shingles("two one"); slices.Equal(order, s.Shingles("one two")) {
		t.Error("the order of the words is lost")
	}
}

func TestFingerprint(t *testing.T) {
	s := newSketcher(t, nil)
	same := func(a, b string) bool {
		x, _ := s.Sketch(a)
		y, _ := s.Sketch(b)
		return x.SameText(y)
	}
	if !same("Hello  World\n", "hello world") {
		t.Error("case and white space must not matter")
	}
	for _, pair := range [][2]string{{"C++", "C#"}, {"version 1.2", "version 1.3"}, {"resume", "résumé"}, {"a, b", "a b"}} {
		if same(pair[0], pair[1]) {
			t.Errorf("%q and %q must differ", pair[0], pair[1])
		}
	}
	x, _ := s.Sketch("a b", "c")
	y, _ := s.Sketch("a", "b c")
	if x.SameText(y) {
		t.Error("the border between two texts must matter")
	}
}

func TestNoWordNoSketch(t *testing.T) {
	s := newSketcher(t, nil)
	for _, texts := range [][]string{nil, {""}, {" … "}, {"", "?"}} {
		if got, ok := s.Sketch(texts...); ok {
			t.Errorf("Sketch(%q) = %v", texts, got)
		}
	}
	if _, comparable := (Sketch{}).Agreement(Sketch{}); comparable || (Sketch{}).SameText(Sketch{}) {
		t.Error("two absent sketches must not agree")
	}
}

func TestSchemesAreToldApart(t *testing.T) {
	seen := map[uint32]string{}
	text := "the quick brown fox jumps over the lazy dog"
	base, _ := newSketcher(t, nil).Sketch(text)
	for name, change := range map[string]func(*Scheme){
		"default": nil, "family": func(s *Scheme) { s.Family = Permutations }, "words": func(s *Scheme) { s.Words = 3 },
		"positions": func(s *Scheme) { s.Positions = 64 }, "seed": func(s *Scheme) { s.Seed = "secret" },
	} {
		s := newSketcher(t, change)
		if other, taken := seen[s.SchemeID()]; taken {
			t.Errorf("schemes %s and %s share an id", name, other)
		}
		seen[s.SchemeID()] = name
		if got, _ := s.Sketch(text); name != "default" {
			if _, comparable := got.Agreement(base); comparable || got.SameText(base) {
				t.Errorf("a sketch of another %s is comparable", name)
			}
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	err := Scheme{Family: "simhush", Words: 0, Positions: 5000}.Validate()
	for _, want := range []string{`family: "simhush"`, "words: 0", "positions: 5000"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// known is one vector of testdata/known_answers.json: promise that no release changes a sketch.
type known struct {
	Scheme Scheme
	Texts  []string
	Sketch string
}

func TestKnownAnswers(t *testing.T) {
	const file = "testdata/known_answers.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []known
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		s, err := New(v.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := s.Sketch(v.Texts...)
		if *update {
			vectors[i].Sketch = got.String()
		} else if got.String() != v.Sketch {
			t.Errorf("vector %d %+v %.40q:\ngot  %s\nwant %s", i, v.Scheme, v.Texts, got, v.Sketch)
		}
	}
	if *update {
		data, err := json.MarshalIndent(vectors, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pair makes two random shingle sets with the given number of common and of own elements.
func pair(r *rand.Rand, common, own int) (a, b []uint64) {
	for range common {
		x := r.Uint64()
		a, b = append(a, x), append(b, x)
	}
	for range own {
		a, b = append(a, r.Uint64()), append(b, r.Uint64())
	}
	return a, b
}

func sketchOf(s *Sketcher, shingles []uint64) Sketch {
	slots := make([]uint64, s.scheme.Positions)
	s.positions(slots, shingles)
	out := Sketch{Scheme: s.id, Shingles: uint32(len(shingles)), Payload: make([]byte, len(slots))}
	for i, slot := range slots {
		out.Payload[i] = byte(slot)
	}
	return out
}

// TestAgreementIsUnbiased holds the mean of many estimates against the exact resemblance, and the spread against theory:
// sqrt(J(1-J)/k), which Fast Similarity Sketching stays below (its bound is that of independent positions).
func TestAgreementIsUnbiased(t *testing.T) {
	trials := 4000
	if testing.Short() {
		trials = 800
	}
	for _, family := range []Family{FastSimilarity, Permutations} {
		s := newSketcher(t, func(s *Scheme) { s.Family = family })
		for _, c := range []struct{ common, own int }{{1, 0}, {1, 1}, {4, 3}, {27, 3}, {8, 1}, {90, 5}, {60, 30}, {400, 50}, {700, 300}} {
			r := rand.New(rand.NewPCG(101, uint64(c.common*1000+c.own)))
			var sum, squares float64
			j := 0.0
			for range trials {
				a, b := pair(r, c.common, c.own)
				slices.Sort(a)
				slices.Sort(b)
				j = Resemblance(a, b)
				got, comparable := sketchOf(s, a).Agreement(sketchOf(s, b))
				if !comparable {
					t.Fatal("not comparable")
				}
				sum, squares = sum+got, squares+(got-j)*(got-j)
			}
			n := float64(trials)
			bias, rmse := sum/n-j, math.Sqrt(squares/n)
			// One byte a position adds the chance that two different positions look alike.
			theory := math.Sqrt((j + (1-j)*chance) * (1 - j) * (1 - chance) / 128 / ((1 - chance) * (1 - chance)))
			if limit := max(4.5*rmse/math.Sqrt(n), 0.002); math.Abs(bias) > limit {
				t.Errorf("%s %+v: J = %.3f, bias %.4f beyond %.4f", family, c, j, bias, limit)
			}
			if rmse > 1.08*theory {
				t.Errorf("%s %+v: J = %.3f, error %.4f, theory %.4f", family, c, j, rmse, theory)
			}
			t.Logf("%-16s %4d common %4d own each: J %.3f bias %+.4f error/theory %.2f", family, c.common, c.own, j, bias, rmse/max(theory, 1e-9))
		}
	}
}

// TestTextsAgainstExactResemblance goes all the way from text to agreement.
func TestTextsAgainstExactResemblance(t *testing.T) {
	s := newSketcher(t, nil)
	r := rand.New(rand.NewPCG(7, 7))
	var worst float64
	for range 200 {
		words := make([]string, 150+r.IntN(200))
		for i := range words {
			words[i] = fmt.Sprintf("word%d", r.IntN(3000))
		}
		edited := slices.Clone(words)
		for range r.IntN(12) {
			edited[r.IntN(len(edited))] = "edit"
		}
		one, two := strings.Join(words, " "), strings.ToUpper(strings.Join(edited, ",  "))
		a, _ := s.Sketch(one)
		b, _ := s.Sketch(two)
		got, _ := a.Agreement(b)
		worst = max(worst, math.Abs(got-Resemblance(s.Shingles(one), s.Shingles(two))))
	}
	if worst > 0.2 { // 4.5 standard errors at J = 0.5
		t.Errorf("worst error of an agreement = %.3f", worst)
	}
}

func TestEncodingRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 2000 {
		want := Sketch{Scheme: r.Uint32(), Source: uint16(r.Uint32()), Shingles: r.Uint32() >> r.IntN(32), Fingerprint: r.Uint64(), Payload: make([]byte, 1+r.IntN(maxPositions))}
		for i := range want.Payload {
			want.Payload[i] = byte(r.Uint32())
		}
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Sketch
		if err := got.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func FuzzUnmarshalText(f *testing.F) {
	good, _ := newSketcher(f, nil).Sketch("one two three four five")
	text := good.String()
	for _, s := range []string{"", text, text[:40], text + "A", "AQgAAAAA", "not base64 !", text[:20] + "\n" + text[20:], strings.Repeat("A", 4000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := Sketch{Scheme: 7, Payload: []byte{1, 2}}
		got := before
		if err := got.UnmarshalText(data); err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Fatalf("unnamed error %v", err)
			}
			if diff := cmp.Diff(before, got); diff != "" {
				t.Fatalf("changed on error: %s", diff)
			}
			return
		}
		if back := got.String(); back != string(data) {
			t.Fatalf("%q came back as %q", data, back)
		}
	})
}

func FuzzSketchIsDeterministic(f *testing.F) {
	f.Add("Ünïcode\xff text — of any kind 日本語 ﬁ", "second")
	s := newSketcher(f, nil)
	f.Fuzz(func(t *testing.T, a, b string) {
		one, ok1 := s.Sketch(a, b)
		two, ok2 := s.Sketch(a, b)
		if ok1 != ok2 || one.String() != two.String() {
			t.Fatal("two sketches of one text differ")
		}
		if !ok1 {
			return
		}
		if agreement, comparable := one.Agreement(two); !comparable || agreement != 1 || !one.SameText(two) {
			t.Fatalf("a text does not agree with itself: %v", agreement)
		}
		if upper, ok := s.Sketch(strings.ToUpper(a), strings.ToUpper(b)); ok {
			if _, comparable := one.Agreement(upper); !comparable {
				t.Fatal("not comparable")
			}
		}
	})
}

func ExampleSketcher_Sketch() {
	sketcher, err := New(DefaultScheme())
	if err != nil {
		panic(err)
	}
	news := "The council voted on Tuesday to keep the old swimming pool open through the winter, after more than four thousand " +
		"residents signed a petition against closing it."
	repost := strings.ToUpper(news) + " (Agency)"
	a, _ := sketcher.Sketch(news)
	b, _ := sketcher.Sketch(repost)
	agreement, comparable := a.Agreement(b)
	fmt.Println(comparable, agreement > 0.85, a.SameText(b))
	// Output: true true false
}

func BenchmarkSketch(b *testing.B) {
	s := newSketcher(b, nil)
	r := rand.New(rand.NewPCG(1, 1))
	words := make([]string, 300)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", r.IntN(5000))
	}
	text := strings.Join(words, " ")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Sketch(text)
	}
}
