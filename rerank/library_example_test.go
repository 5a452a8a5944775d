package rerank_test

import (
	"fmt"
	"log"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// What docs/library.md shows: a ranked list of your own, and what is left of it.
func ExampleCollapse() {
	ranked := []string{
		"From Monday the late ferry to Saltmere leaves at ten every evening, the council decided.",
		"FROM MONDAY the late ferry to Saltmere leaves at ten every evening – the council decided",
		"The library in Saltmere stays open until midnight for a month, to see who comes.",
	}
	s, err := sketch.New(sketch.Scheme{Seed: "chosen once"})
	if err != nil {
		log.Fatal(err)
	}
	hits := make([]rerank.Hit, len(ranked))
	for rank, text := range ranked {
		if k, ok := s.Sketch(text); ok { // a hit without a sketch stays by itself
			hits[rank] = rerank.Hit{Sketch: &k} // no profile: rerank.Default()
		}
	}
	for _, g := range rerank.Collapse(hits, len(hits)).Groups {
		fmt.Printf("%.30s… and %d like it\n", ranked[g.Representative], len(g.Folded))
	}
	// Output:
	// From Monday the late ferry to … and 1 like it
	// The library in Saltmere stays … and 0 like it
}

// A profile says when two hits fold: here from an agreement of 0.5 on, however short they are, and only if their hosts differ. The longest is shown.
func ExampleProfile() {
	s, err := sketch.New(sketch.Scheme{})
	if err != nil {
		log.Fatal(err)
	}
	profile := rerank.Profile{Threshold: 0.5, MinShingles: 8, Different: true, Chooses: true}
	hit := func(host, text string) rerank.Hit {
		k, _ := s.Sketch(text)
		traits := rerank.Traits{Different: [][]string{{host}}, Merit: rerank.Merit{Known: true, Number: float64(k.Shingles)}}
		return rerank.Hit{ID: host, Sketch: &k, Profile: &profile, Traits: traits}
	}
	hits := []rerank.Hit{
		hit("gazette.example", "From Monday the late ferry to Saltmere leaves at ten every evening, the council decided."),
		hit("gazette.example", "From Monday the late ferry to Saltmere leaves at ten every evening, the council decided!"),
		hit("wire.example", "From Monday the late ferry to Saltmere leaves at ten every evening, the council decided. (Agency)"),
	}
	for _, g := range rerank.Collapse(hits, len(hits)).Groups {
		fmt.Println(hits[g.Representative].ID, "for ranks", g.Leader, g.Folded)
	}
	// Output:
	// wire.example for ranks 0 [0]
	// gazette.example for ranks 1 []
}

// A page of two hits, of a list that is read in pieces.
func ExampleFindPage() {
	engine := []string{ // in practice: a search engine that you ask
		"From Monday the late ferry to Saltmere leaves at ten every evening, the council decided.",
		"FROM MONDAY the late ferry to Saltmere leaves at ten every evening – the council decided",
		"The library in Saltmere stays open until midnight for a month, to see who comes.",
		"Divers will look at the hull of the ferry on Sunday, so no boats run on that day.",
	}
	s, err := sketch.New(sketch.Scheme{Seed: "chosen once"})
	if err != nil {
		log.Fatal(err)
	}
	read := func(rank int) rerank.Hit { // reads one hit
		hit := rerank.Hit{ID: fmt.Sprint("document ", rank)}
		if k, ok := s.Sketch(engine[rank]); ok {
			hit.Sketch = &k
		}
		return hit
	}
	page := rerank.FindPage(rerank.Page{From: 0, Size: 2, Window: 1000})
	for to, ranks := range page.Readings() {
		var hits []rerank.Hit
		for _, rank := range ranks { // these hits alone
			hits = append(hits, read(rank))
		}
		for rank := 0; rank < min(to, len(engine)); rank++ { // the list from its beginning, up to this rank
			hits = append(hits, read(rank))
		}
		if err := page.Add(hits); err != nil {
			log.Fatal(err)
		}
	}
	for _, rank := range page.Ranks {
		fmt.Printf("%d: %.30s…\n", rank, engine[rank])
	}
	// Output:
	// 0: From Monday the late ferry to …
	// 2: The library in Saltmere stays …
}
