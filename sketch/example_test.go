package sketch_test

import (
	"fmt"
	"log"
	"math"

	"github.com/neardup/sidecar/sketch"
)

const (
	news = "The council voted on Tuesday to keep the old swimming pool open through the winter, after more than four thousand " +
		"residents signed a petition against closing it."
	repost = "THE COUNCIL voted on Tuesday to keep the old swimming pool open through the winter, after more than four thousand " +
		"residents signed a petition against closing it. (Agency)"
	other = "Heavy rain is expected in the north on Wednesday, and the river may rise above its banks before the weekend."
)

// sketcher returns a sketcher for the default scheme, changed.
func sketcher(change func(*sketch.Scheme)) *sketch.Sketcher {
	scheme := sketch.DefaultScheme()
	if change != nil {
		change(&scheme)
	}
	s, err := sketch.New(scheme)
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// Two texts become two sketches, and the sketches tell how much the texts share.
func Example() {
	s, err := sketch.New(sketch.Scheme{Seed: "only we know this"})
	if err != nil {
		log.Fatal(err)
	}
	a, _ := s.Sketch(news)
	b, _ := s.Sketch(repost)
	c, _ := s.Sketch(other)
	for _, k := range []sketch.Sketch{b, c} {
		agreement, comparable := a.Agreement(&k)
		fmt.Printf("%t %.2f\n", comparable, max(0, agreement)) // unbiased, so it can be a little below 0
	}
	// Output:
	// true 0.98
	// true 0.00
}

// How much of an excerpt is in the whole is another question than how much the two resemble one another.
func ExampleSketch_Containment() {
	s := sketcher(nil)
	excerpt, _ := s.Sketch("more than four thousand residents signed a petition against closing it")
	whole, _ := s.Sketch(news)
	agreement, _ := excerpt.Agreement(&whole)
	inWhole, _ := excerpt.Containment(&whole)
	inExcerpt, _ := whole.Containment(&excerpt)
	fmt.Printf("resemblance %.1f\n", agreement)
	fmt.Printf("of the excerpt in the whole %.1f, of the whole in the excerpt %.1f\n", inWhole.Value, inExcerpt.Value)
	// Output:
	// resemblance 0.4
	// of the excerpt in the whole 1.0, of the whole in the excerpt 0.4
}

// Tags are a set of their own: neither their order nor their number of words matters.
func ExampleScheme_tags() {
	s := sketcher(func(s *sketch.Scheme) { s.Features, s.Family = sketch.Tags, sketch.MSmallest })
	a, _ := s.Sketch("linen", "summer dress", "Red")
	b, _ := s.Sketch("red", "summer dress", "cotton")
	agreement, _ := a.Agreement(&b)
	fmt.Println(agreement, a.StandardError(&b)) // exact: all of both sets fits
	// Output:
	// 0.5 0
}

// Perceptual hashes of images come ready.
func ExampleScheme_ready() {
	s := sketcher(func(s *sketch.Scheme) { s.Family, s.Features = sketch.Hamming, sketch.Value64 })
	a, _ := s.Sketch("0xc3c3818100ff7e3c")
	b, _ := s.Sketch("c3c3818100ff7e3f")
	agreement, _ := a.Agreement(&b)
	fmt.Println(agreement, "of the bits are equal")
	// Output:
	// 0.96875 of the bits are equal
}

// Scripts without spaces are cut into runs of characters without further ado; Characters does so with all text, which forgives
// misspellings.
func ExampleScheme_characters() {
	s := sketcher(func(s *sketch.Scheme) { s.Features = sketch.CharacterShingles })
	a := s.Shingles("吾輩は猫である。名前はまだ無い。")
	b := s.Shingles("吾輩は猫である、名前はもう有る")
	fmt.Println(len(a), len(b), "shingles,", sketch.Resemblance(a, b))
	// Output:
	// 9 9 shingles, 0.38461538461538464
}

// Candidates for near-duplicates are found by an exact-match index over bands.
func ExampleSketch_AppendBands() {
	s := sketcher(nil)
	index := map[uint64][]string{}
	for name, text := range map[string]string{"news": news, "other": other} {
		k, _ := s.Sketch(text)
		keys, _ := k.AppendBands(nil, 16, 6)
		for _, key := range keys {
			index[key] = append(index[key], name)
		}
	}
	k, _ := s.Sketch(repost)
	keys, _ := k.AppendBands(nil, 16, 6)
	found := map[string]bool{}
	for _, key := range keys {
		for _, name := range index[key] {
			found[name] = true
		}
	}
	fmt.Println(found)
	fmt.Printf("pairs of resemblance 0.8: %.4f are candidates\n", sketch.Candidate(0.8, 16, 6))
	fmt.Printf("pairs of resemblance 0.3: %.4f are candidates\n", sketch.Candidate(0.3, 16, 6))
	// Output:
	// map[news:true]
	// pairs of resemblance 0.8: 0.9923 are candidates
	// pairs of resemblance 0.3: 0.0116 are candidates
}

// The stored form is a short text that any store can hold.
func ExampleSketch_UnmarshalText() {
	s := sketcher(func(s *sketch.Scheme) { s.Positions = 16 })
	a, _ := s.Sketch(news)
	stored := a.String()
	var b sketch.Sketch
	if err := b.UnmarshalText([]byte(stored)); err != nil {
		log.Fatal(err)
	}
	agreement, comparable := a.Agreement(&b)
	fmt.Println(stored)
	fmt.Println(agreement, comparable)
	fmt.Println(b.UnmarshalText([]byte("anything else")))
	// Output:
	// AggPL8tvAAARU/4C6QKGowAAABsavdAJ9tATGxKHz5YwYw+jSw==
	// 1 true
	// sketch: malformed: illegal base64 data at input byte 8
}

// What docs/library.md shows: two texts, two sketches, and what these say of the texts.
func Example_library() {
	s, err := sketch.New(sketch.Scheme{Seed: "chosen once"})
	if err != nil {
		log.Fatal(err)
	}
	one := "From Monday the late ferry to Saltmere leaves at ten every evening, the council decided."
	other := "From Monday the late ferry to Saltmere sails at ten every evening, the council decided. (Agency)"
	a, _ := s.Sketch(one)
	b, _ := s.Sketch(other)
	if agreement, comparable := a.Agreement(&b); comparable {
		fmt.Printf("%.2f ± %.2f, exactly %.2f\n", agreement, a.StandardError(&b), sketch.Resemblance(s.Shingles(one), s.Shingles(other)))
	}
	// Output:
	// 0.71 ± 0.05, exactly 0.71
}

// A sketch is stored as a text, and compared with those that are made later under the same scheme.
func Example_stored() {
	s, err := sketch.New(sketch.Scheme{Seed: "chosen once"})
	if err != nil {
		log.Fatal(err)
	}
	now, _ := s.Sketch("From Monday the late ferry to Saltmere leaves at ten every evening, the council decided.")
	stored := now.String()
	var then sketch.Sketch
	if err := then.UnmarshalText([]byte(stored)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(stored), then.Scheme == s.SchemeID(), then.SameText(&now))
	// Output:
	// 156 true true
}

// Two vectors at an angle of 45 degrees, as embeddings of two texts may be.
func ExampleSketcher_SketchVector() {
	sketcher, err := sketch.New(sketch.Scheme{Family: sketch.SimHash, Features: sketch.Vectors, Positions: 1024})
	if err != nil {
		log.Fatal(err)
	}
	a, _ := sketcher.SketchVector([]float32{1, 0, 0})
	b, _ := sketcher.SketchVector([]float32{1, 1, 0})
	cosine, _ := a.Agreement(&b)
	fmt.Printf("%.2f ± %.2f, exactly %.2f\n", cosine, a.StandardError(&b), math.Sqrt(0.5))
	// Output:
	// 0.69 ± 0.03, exactly 0.71
}
