package sketch_test

import (
	"fmt"
	"log"

	"github.com/neardup/sidecar/sketch"
)

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
	// 0.72 ± 0.04, exactly 0.71
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
	// 196 true true
}
