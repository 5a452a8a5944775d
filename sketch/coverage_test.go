package sketch

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

// tokensOf returns the tokens of a text the plain way, and what each counts towards a shingle and what a whole one needs.
func tokensOf(s *Sketcher, text string) (list []string, sizes []int, whole int) {
	mixed := false
	tokens := plainTokens(baseText(text, s.scheme.Keep), s.scheme.Features, s.scheme.Keep)
	for _, t := range tokens {
		mixed = mixed || t.character && s.scheme.Features == Auto
	}
	whole = s.window
	if mixed {
		whole = s.scheme.Words * s.scheme.Characters
	}
	for _, t := range tokens {
		size := 1
		switch {
		case mixed && t.character:
			size = s.scheme.Words
		case mixed:
			size = s.scheme.Characters
		}
		list, sizes = append(list, t.text), append(sizes, size)
	}
	return list, sizes, whole
}

// runsOf returns, for each token, the shortest whole shingle from it on, as a string; empty where there is none.
func runsOf(s *Sketcher, text string) (list []string, ends []int) {
	tokens, sizes, whole := tokensOf(s, text)
	for i := range tokens {
		run, end, size := "", i, 0
		for ; end < len(tokens) && size < whole; end++ {
			run, size = run+tokens[end]+"\x00", size+sizes[end]
		}
		if size < whole {
			run = ""
		}
		list, ends = append(list, run), append(ends, end)
	}
	return list, ends
}

// plainCoverage is the share of tokens of both documents that [Text.Compare] documents, counted token by token.
func plainCoverage(s *Sketcher, a, b []string) float64 {
	all, covered := 0, 0
	count := func(texts, others []string) {
		has := map[string]bool{}
		for _, text := range others {
			list, _ := runsOf(s, text)
			for _, shingle := range list {
				has[shingle] = true
			}
		}
		for _, text := range texts {
			runs, ends := runsOf(s, text)
			marked := make([]bool, len(runs))
			for i, run := range runs {
				if run != "" && has[run] {
					for at := i; at < ends[i]; at++ {
						marked[at] = true
					}
				}
			}
			for i := range marked {
				inside, near := 0, 0
				for at := max(0, i-5); at <= min(len(marked)-1, i+5); at++ {
					near++
					inside += count(marked[at])
				}
				all++
				covered += count(2*inside >= near)
			}
		}
	}
	count(a, b)
	count(b, a)
	if all == 0 {
		return 0
	}
	return float64(covered) / float64(all)
}

// TestCoverageIsAsDocumented compares random documents of several texts, most of whose words come from one another.
func TestCoverageIsAsDocumented(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 12))
	words := strings.Fields("a b c d e f g h i j k l m n 日 本語 の text ภาษา 東京 tower")
	draw := func(from []string) []string {
		var texts []string
		for range 1 + r.IntN(3) {
			var text []string
			for range r.IntN(40) {
				text = append(text, words[r.IntN(len(words))])
			}
			if len(from) > 0 && r.IntN(3) > 0 {
				source := strings.Fields(from[r.IntN(len(from))])
				text = append(text[:len(text)/2], source[len(source)/4:]...)
			}
			texts = append(texts, strings.Join(text, " "))
		}
		return texts
	}
	for _, change := range []func(*Scheme){
		nil, func(s *Scheme) { s.Words = 4 },
		func(s *Scheme) { s.Features = WordShingles }, func(s *Scheme) { s.Features = CharacterShingles },
		func(s *Scheme) { s.Words, s.Characters = 1, 1 }, func(s *Scheme) { s.Words, s.Characters = 3, 7 },
	} {
		s := newSketcher(t, change)
		for range effort.Rounds(200) {
			a := draw(nil)
			b := draw(a)
			resemblance, coverage := s.Text(a...).Compare(s.Text(b...))
			if want := plainCoverage(s, a, b); coverage != want {
				t.Fatalf("%+v:\n%q\n%q\ncoverage %v, want %v", s.Scheme(), a, b, coverage, want)
			}
			if want := Resemblance(s.Shingles(a...), s.Shingles(b...)); resemblance != want {
				t.Fatalf("%q, %q: resemblance %v, want %v", a, b, resemblance, want)
			}
			back, cover := s.Text(b...).Compare(s.Text(a...))
			if back != resemblance || cover != coverage {
				t.Fatalf("%q, %q: %v, %v and the other way round %v, %v", a, b, resemblance, coverage, back, cover)
			}
		}
	}
}

// TestCoverageOfNoText: tags and ready values stand in no order, so nothing is covered.
func TestCoverageOfNoText(t *testing.T) {
	tags := newSketcher(t, func(s *Scheme) { s.Features = Tags })
	resemblance, coverage := tags.Text("red", "big").Compare(tags.Text("big", "Red", "new"))
	if resemblance != 2.0/3 || coverage != 0 {
		t.Errorf("tags: resemblance %v, coverage %v, want 2/3 and 0", resemblance, coverage)
	}
	ready := newSketcher(t, everyForm["ready"])
	value := ready.Text("0123456789abcdef")
	if resemblance, coverage = value.Compare(value); resemblance != 0 || coverage != 0 {
		t.Errorf("ready values: resemblance %v, coverage %v of no sets, want 0 and 0", resemblance, coverage)
	}
}

// TestTextWithoutNumbers: a scheme that leaves numbers out does so for the exact resemblance too.
func TestTextWithoutNumbers(t *testing.T) {
	const a, b = "at 10:30:01 the server 10.0.0.7 closed the connection + 5", "at 23:59 the server 192.168.1.1 closed the connection"
	for _, features := range []Features{Auto, WordShingles} { // of characters the blanks beside a number stay
		for _, drop := range []bool{true, false} {
			s := newSketcher(t, func(scheme *Scheme) { scheme.Features, scheme.DropNumbers = features, drop })
			resemblance, coverage := s.Text(a).Compare(s.Text(b))
			if same := resemblance == 1 && coverage == 1; same != drop {
				t.Errorf("%s, numbers dropped %t: resemblance %v, coverage %v", features, drop, resemblance, coverage)
			}
		}
	}
}
