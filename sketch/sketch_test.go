package sketch

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/neardup/sidecar/internal/expect"
)

var update = flag.Bool("update", false, "write the known answers anew")

func newSketcher(t testing.TB, change func(*Scheme)) *Sketcher {
	t.Helper()
	scheme := DefaultScheme()
	if change != nil {
		change(&scheme)
	}
	return expect.Value(New(scheme))(t)
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

// sketchOf makes the sketch of a set of ready hashes.
func sketchOf(s *Sketcher, set []uint64) *Sketch {
	w := &workspace{set: slices.Clone(set)}
	k := &Sketch{Scheme: s.id, Shingles: uint32(len(set))}
	s.summarise(k, w)
	return k
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"case and punctuation", "My name is Inigo. You killed my father!", strings.Fields("my name is inigo you killed my father")},
		{"full folding", "Straße STRASSE ΣΊΣΥΦΟΣ σίσυφος", []string{"strasse", "strasse", "σισυφοσ", "σισυφοσ"}},
		{"compatibility forms", "ﬁne ２０２４ Ⅳ", []string{"fine", "2024", "iv"}},
		{"composed, decomposed and bare are one", "caf\u00e9 cafe\u0301 cafe", []string{"cafe", "cafe", "cafe"}},
		{"inside a word", "can't 3.14 e-mail x_y", []string{"cant", "3.14", "e", "mail", "xy"}},
		{"ideographs stand alone", "日本語", []string{"日", "本", "语"}},
		{"numbers", "1.5 15 -3 3-4 1.25.3 1,000 EUR 5", []string{"1.5", "15", "−", "3", "3", "4", "1.25.3", "1,000", "eur", "5"}},
		{"signs", "a==b a != b c<=d 5% $5 C++ x*y", strings.Fields("a = = b a ≠ b c < = d 5 % $ 5 c + + x * y")},
		{"raised numbers", "10² m² 1½", []string{"10", "2", "m2", "1", "1⁄2"}},
		{"invalid bytes", "a\xffb c", []string{"ab", "c"}},
		{"nothing", " ?! — … ", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, Words(c.text), "")
		})
	}
}

// fourWords is the shingle of the lectures' examples; the default is shorter.
func fourWords(s *Scheme) { s.Words = 4 }

func TestNoWordNoSketch(t *testing.T) {
	s := newSketcher(t, nil)
	for _, texts := range [][]string{nil, {""}, {" … "}, {"", "?"}} {
		if got, ok := s.Sketch(texts...); ok {
			t.Errorf("Sketch(%q) = %v", texts, got)
		}
	}
	if _, comparable := new(Sketch).Agreement(new(Sketch)); comparable || new(Sketch).SameText(new(Sketch)) {
		t.Error("two absent sketches must not agree")
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
		got, _ := a.Agreement(&b)
		worst = max(worst, math.Abs(got-Resemblance(s.Shingles(one), s.Shingles(two))))
	}
	if worst > 0.2 { // 4.5 standard errors at J = 0.5
		t.Errorf("worst error of an agreement = %.3f", worst)
	}
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
		if agreement, comparable := one.Agreement(&two); !comparable || agreement != 1 || !one.SameText(&two) {
			t.Fatalf("a text does not agree with itself: %v", agreement)
		}
		if upper, ok := s.Sketch(strings.ToUpper(a), strings.ToUpper(b)); ok {
			if _, comparable := one.Agreement(&upper); !comparable {
				t.Fatal("not comparable")
			}
		}
	})
}

// known is one vector of testdata/known_answers.json: the promise that no release changes a sketch.
type known struct {
	Name string
	// Scheme has the fields that are not the default.
	Scheme map[string]any
	Texts  []string `json:",omitempty"`
	// Bytes are the texts in base64 where they are not all valid UTF-8, which JSON can't hold.
	Bytes [][]byte `json:",omitempty"`
	// Sketch is the stored form, or empty where there is no sketch.
	Sketch string
}

// knownFile is testdata/known_answers.json. Unicode says of the parties that know Unicode which edition they knew when the
// vectors were made.
type knownFile struct {
	Text    int
	Unicode map[string]string
	Vectors []known
}

const knownAnswers = "testdata/known_answers.json"

// unicodeEditions are those of this build.
func unicodeEditions() map[string]string {
	return map[string]string{
		"unicode":                        unicode.Version,
		"golang.org/x/text/unicode/norm": norm.Version,
		"golang.org/x/text/cases":        cases.UnicodeVersion,
	}
}

func readKnown(t *testing.T) (file knownFile) {
	t.Helper()
	expect.OK(t, json.Unmarshal(expect.Value(os.ReadFile(knownAnswers))(t), &file))
	return file
}

// differing returns the fields of a scheme that are not zero, as JSON gives them back.
func differing(t *testing.T, s Scheme) map[string]any {
	t.Helper()
	fields, v := map[string]any{}, reflect.ValueOf(s)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			fields[v.Type().Field(i).Name] = v.Field(i).Interface()
		}
	}
	data := expect.Value(json.Marshal(fields))(t)
	clear(fields)
	expect.OK(t, json.Unmarshal(data, &fields))
	return fields
}

// vector makes the vector of a case as this build answers it.
func vector(t *testing.T, name string, scheme Scheme, texts []string) known {
	t.Helper()
	s := expect.Value(New(scheme))(t)
	k, _ := s.Sketch(texts...)
	v := known{Name: name, Scheme: differing(t, scheme), Texts: texts, Sketch: k.String()}
	if text := strings.Join(texts, ""); strings.ToValidUTF8(text, "") != text {
		v.Texts = nil
		for _, text := range texts {
			v.Bytes = append(v.Bytes, []byte(text))
		}
	}
	return v
}

// TestKnownAnswers holds every case that knownCases lists against the file of vectors; -update writes that anew.
func TestKnownAnswers(t *testing.T) {
	var made []known
	for _, c := range knownCases() {
		made = append(made, vector(t, c.name, c.scheme, c.texts))
	}
	if *update {
		data := expect.Value(json.MarshalIndent(knownFile{Text: textVersion, Unicode: unicodeEditions(), Vectors: made}, "", " "))(t)
		expect.OK(t, os.WriteFile(knownAnswers, append(data, '\n'), 0o644))
	}
	file := readKnown(t)
	expect.Same(t, textVersion, file.Text, "the text version of the package (-), of the vectors (+): run with -update")
	listed := map[string]known{}
	for _, v := range made {
		listed[v.Name] = v
	}
	if len(listed) != len(made) || len(file.Vectors) != len(made) {
		t.Errorf("%d vectors for %d cases of %d names", len(file.Vectors), len(made), len(listed))
	}
	for _, want := range file.Vectors {
		expect.Same(t, want, listed[want.Name], "%s: if this is meant, raise textVersion and run with -update", want.Name)
	}
}

// TestUnicodeEdition notices a toolchain or a library that brings another edition of Unicode.
func TestUnicodeEdition(t *testing.T) {
	expect.Same(t, readKnown(t).Unicode, unicodeEditions(), "the known answers were made with other editions of Unicode (-then +now); new characters may now be letters or fold "+
		"otherwise. Check that TestKnownAnswers, TestFastIsPlain and TestEveryRune pass, raise textVersion, and write the vectors "+
		"anew: go test ./sketch -run TestKnownAnswers -update")
}
