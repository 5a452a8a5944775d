package sketch

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
)

func TestDefaultsAreFilled(t *testing.T) {
	want := Scheme{
		Family: FastSimilarity, Features: Auto, Words: 2, Characters: 6, Positions: 96, Bits: 8, Modulus: 16, Repeats: 4,
		Content: ContentAll,
	}
	expect.Same(t, want, DefaultScheme(), "")
	if err := DefaultScheme().Validate(); err != nil {
		t.Error(err)
	}
	s := expect.Value(New(Scheme{}))(t)
	if s.Scheme() != want || s.SchemeID() != want.ID() || (Scheme{}).ID() != want.ID() {
		t.Errorf("the zero scheme is %+v, id %d and %d, want %d", s.Scheme(), s.SchemeID(), Scheme{}.ID(), want.ID())
	}
}

// valid returns the default scheme with the one thing that a family or kind of features asks for besides.
func valid(family Family, features Features) Scheme {
	s := DefaultScheme()
	s.Family, s.Features = family, features
	if family == Hamming {
		s.Features = Value64
	}
	return s
}

func TestValidateNamesEveryMistake(t *testing.T) {
	for message, spoil := range map[string]func(*Scheme){
		`family: "simhush" is unknown`:    func(s *Scheme) { s.Family = "simhush" },
		`features: "bigrams" is unknown`:  func(s *Scheme) { s.Features = "bigrams" },
		`content: "best" is unknown`:      func(s *Scheme) { s.Content = "best" },
		"words: 33 is out of range":       func(s *Scheme) { s.Words = 33 },
		"words: -1 is out of range":       func(s *Scheme) { s.Words = -1 },
		"characters: 65 is out of range":  func(s *Scheme) { s.Characters = 65 },
		"positions: 1032 is out of range": func(s *Scheme) { s.Positions = 1032 },
		"positions: -8 is out of range":   func(s *Scheme) { s.Positions = -8 },
		"positions: 100 is no multiple":   func(s *Scheme) { s.Positions = 100 },
		"bits: 3 bits a position":         func(s *Scheme) { s.Bits = 3 },
		"bits: 16 bits a position":        func(s *Scheme) { s.Bits = 16 },
		"modulus: 65537 is out of range":  func(s *Scheme) { s.Modulus = 65537 },
		"repeats: 65 is out of range":     func(s *Scheme) { s.Repeats = 65 },
		"features: value64 does not go":   func(s *Scheme) { s.Features = Value64 },
		"features: auto does not go":      func(s *Scheme) { s.Family = Hamming },
		"hamming and value64 go together": func(s *Scheme) { s.Family, s.Features = Hamming, Tags },
	} {
		s := DefaultScheme()
		spoil(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), message) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q alone", err, message)
		}
		if _, made := New(s); made == nil || !strings.Contains(made.Error(), message) {
			t.Errorf("New: error %v, want %q", made, message)
		}
	}
	err := Scheme{Family: "simhush", Words: 0, Positions: 5000}.Validate()
	for _, want := range []string{
		`family: "simhush"`, `features: ""`, "words: 0", "characters: 0", "positions: 5000", "bits: 0", "modulus: 0", "repeats: 0",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// baseSchemes are the schemes of all families over all kinds of features that go together.
func baseSchemes() (list []Scheme) {
	for _, family := range []Family{FastSimilarity, Permutations, MSmallest, ZeroModM, SimHash} {
		for _, features := range []Features{Auto, WordShingles, CharacterShingles, Tags} {
			list = append(list, valid(family, features))
		}
	}
	return append(list, valid(Hamming, Value64))
}

// otherValues has, for every field of a Scheme (and of its Keep), a value that is not the default.
var otherValues = map[string]func(*Scheme){
	"Words":            func(s *Scheme) { s.Words = 3 },
	"Characters":       func(s *Scheme) { s.Characters = 4 },
	"Positions":        func(s *Scheme) { s.Positions = 64 },
	"Bits":             func(s *Scheme) { s.Bits = 4 },
	"Modulus":          func(s *Scheme) { s.Modulus = 8 },
	"Repeats":          func(s *Scheme) { s.Repeats = 3 },
	"Content":          func(s *Scheme) { s.Content = ContentUseful },
	"Content raw":      func(s *Scheme) { s.Content = ContentRaw },
	"Keep.Case":        func(s *Scheme) { s.Keep.Case = true },
	"Keep.Accents":     func(s *Scheme) { s.Keep.Accents = true },
	"Keep.Punctuation": func(s *Scheme) { s.Keep.Punctuation = true },
	"DropNumbers":      func(s *Scheme) { s.DropNumbers = true },
	"Boilerplate":      func(s *Scheme) { s.Boilerplate = longText(300)[100:300] },
	"Seed":             func(s *Scheme) { s.Seed = "secret" },
}

// TestIDSaysWhatChangesASketch: changing one option changes the id of a scheme if and only if it changes a sketch, of texts in
// which every option has something to do.
func TestIDSaysWhatChangesASketch(t *testing.T) {
	texts := [][]string{
		{"Don’t FEAR the café: C++ and the Straße, well!"}, {"日本語のテキストと some English words ภาษาไทยไม่มี"}, {knownPage}, {longText(300)},
		{"Red", "naïve", "C++", "big-small"}, {"red", "naive", "c", "big small"}, strings.Fields(longText(300)),
		{"0123456789abcdef"},
	}
	sketches := func(s Scheme) (list []Sketch) {
		sketcher := expect.Value(New(s))(t)
		for _, text := range texts {
			k, _ := sketcher.Sketch(text...)
			k.Scheme = 0
			list = append(list, k)
		}
		return list
	}
	changes := 0
	for _, scheme := range baseSchemes() {
		if scheme.Family != FastSimilarity && scheme.Features != Auto && scheme.Family != Hamming {
			continue // what an option does to the features is the same in every family
		}
		before := sketches(scheme)
		for option, change := range otherValues {
			other := scheme
			change(&other)
			if other.Boilerplate != "" && other.Validate() != nil {
				continue // TestBoilerplateIsPartOfTheScheme
			}
			changed := !cmp.Equal(before, sketches(other))
			expect.Same(t, changed, other.ID() != scheme.ID(), "%s over %s: that another %s changes the id (of sketches: %v)", scheme.Family, scheme.Features, option, changed)
			if changed {
				changes++
			}
		}
	}
	if changes < 40 {
		t.Errorf("only %d changes of an option changed a sketch: the texts do not show them", changes)
	}
}

// TestEveryOptionIsTried fails where a Scheme has a field that otherValues does not change.
func TestEveryOptionIsTried(t *testing.T) {
	changed := map[string]bool{"Family": true, "Features": true} // by baseSchemes
	for name, change := range otherValues {
		s := DefaultScheme()
		change(&s)
		if s == DefaultScheme() {
			t.Errorf("%s changes nothing", name)
		}
		changed[strings.Fields(name)[0]] = true
	}
	var each func(prefix string, fields reflect.Type)
	each = func(prefix string, fields reflect.Type) {
		for i := range fields.NumField() {
			field := fields.Field(i)
			if field.Type.Kind() == reflect.Struct {
				each(field.Name+".", field.Type)
			} else if !changed[prefix+field.Name] {
				t.Errorf("no scheme has another %s%s", prefix, field.Name)
			}
		}
	}
	each("", reflect.TypeFor[Scheme]())
}

// TestSchemesAreToldApart: families and features that differ have another id, and their sketches are not comparable.
func TestSchemesAreToldApart(t *testing.T) {
	seen := map[uint32]string{}
	var sketches []Sketch
	for _, scheme := range baseSchemes() {
		for _, seed := range []string{"", "secret", "secre"} {
			scheme.Seed = seed
			s := expect.Value(New(scheme))(t)
			name := fmt.Sprintf("%+v", scheme)
			if other, taken := seen[s.SchemeID()]; taken {
				t.Errorf("%s and %s share an id", name, other)
			}
			seen[s.SchemeID()] = name
			k, ok := s.Sketch("0123456789abcdef")
			if !ok {
				t.Fatalf("%s makes no sketch", name)
			}
			sketches = append(sketches, k)
		}
	}
	for i := range sketches {
		for j := range sketches {
			a, b := &sketches[i], &sketches[j]
			_, comparable := a.Agreement(b)
			_, contained := a.Containment(b)
			if i != j && (comparable || contained || a.SameText(b)) {
				t.Errorf("%s and %s are comparable", seen[a.Scheme], seen[b.Scheme])
			}
		}
	}
}

// TestASeedChangesEverything: under another seed no value of any family is the same.
func TestASeedChangesEverything(t *testing.T) {
	for _, scheme := range baseSchemes() {
		other := scheme
		other.Seed = "secret"
		one, err1 := New(scheme)
		two, err2 := New(other)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		text := long() + " 0123456789abcdef"
		if scheme.Features == Value64 {
			text = "0123456789abcdef"
		}
		a, _ := one.Sketch(text)
		b, _ := two.Sketch(text)
		b.Scheme = a.Scheme
		if a.Fingerprint == b.Fingerprint {
			t.Errorf("%+v: the fingerprint does not depend on the seed", scheme)
		}
		// Tags has one element here and Hamming no hash of ours.
		e, ok := a.estimate(&b)
		if scheme.Features != Value64 && ok && e.Value > 4.5*max(e.Error, 0.02) {
			t.Errorf("%+v: sketches of one text under two seeds agree to %v", scheme, e)
		}
	}
}
