package sketch

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Text is a document prepared to be compared in full with others of the same [Sketcher], where texts are at hand and the sketches leave
// a doubt. It takes about 30 bytes for each word. It is immutable.
type Text struct {
	// set is that of [Sketcher.Shingles].
	set []uint64
	// shingles are those that are whole, in the order of their hashes.
	shingles []span
	// parts are the ends of the single texts, in tokens.
	parts []int
}

// span is a shingle and the tokens that it spans, from one up to but not including another, counted over all texts.
type span struct {
	hash     uint64
	from, to int32
}

// Text prepares a document made of one or several texts.
func (s *Sketcher) Text(texts ...string) *Text {
	if s.scheme.Features == Tags || s.scheme.Features == Value64 {
		return &Text{set: s.Shingles(texts...)}
	}
	t, w, place := new(Text), new(workspace), 0
	for _, text := range texts {
		list := plainTokens(baseText(s.Content(text), s.scheme.Keep), s.scheme.Features, s.scheme.Keep)
		s.fill(w, list)
		w.all = s.appendShingles(w.all, w.tokens)
		for i := range list {
			list[i].text = head(list[i].text)
		}
		s.fill(w, list)
		t.shingles = s.appendSpans(t.shingles, w.tokens, place)
		place += len(list)
		t.parts = append(t.parts, place)
	}
	w.distinct()
	t.set = slices.Sorted(slices.Values(w.set))
	slices.SortFunc(t.shingles, func(a, b span) int { return cmp.Compare(a.hash, b.hash) })
	return t
}

// letters is how many letters of a word count for coverage.
const letters = 3

// head returns the beginning of a word, so that an ending, a spelling or a misread letter further on makes no difference; a word with
// a digit in it whole, since 2019 is not 2018.
func head(word string) string {
	if strings.ContainsFunc(word, unicode.IsNumber) {
		return word
	}
	n := 0
	for i := range word {
		if n == letters {
			return word[:i]
		}
		n++
	}
	return word
}

// appendSpans appends the whole shingles of one text, which begins at a place.
func (s *Sketcher) appendSpans(list []span, t tokens, place int) []span {
	size := func(int) int { return 1 }
	whole := s.window
	if t.sizes != nil {
		size = func(i int) int { return int(t.sizes[i]) }
		whole = s.scheme.Words * s.scheme.Characters
	}
	end, length := 0, 0
	for i, hash := range s.appendShingles(nil, t) {
		for ; end < len(t.hashes) && length < whole; end++ {
			length += size(end)
		}
		if length < whole { // the one shingle of all there is
			break
		}
		list = append(list, span{hash: hash, from: int32(place + i), to: int32(place + end)})
		length -= size(i)
	}
	return list
}

// Compare returns the exact resemblance of two documents and their coverage, both 0 to 1.
//
// Coverage is the share of the words of both that lie in a neighbourhood which the other document has too, where of each word only the
// first three letters count, or all if there is a digit in it. A word is marked if it lies in a shingle that both have, and covered if
// at least half of the words up to five away in its text are marked. Small differences strewn over a text (another spelling,
// misread letters, a changed word in every line) take many shingles and leave most neighbourhoods half marked, so they lower the
// resemblance much and the coverage little; a block that both share (a template, a quotation) covers itself and nothing more. It is 0
// under [Tags] and [Value64], and where neither document has a whole shingle.
func (t *Text) Compare(u *Text) (resemblance, coverage float64) {
	markedT, markedU := make([]bool, t.tokens()), make([]bool, u.tokens())
	for i, j := 0, 0; i < len(t.shingles) && j < len(u.shingles); {
		hash := t.shingles[i].hash
		switch cmp.Compare(hash, u.shingles[j].hash) {
		case -1:
			i++
		case 1:
			j++
		default:
			i = mark(markedT, t.shingles, i)
			j = mark(markedU, u.shingles, j)
		}
	}
	resemblance = Resemblance(t.set, u.set)
	if all := len(markedT) + len(markedU); all > 0 {
		coverage = float64(t.covered(markedT)+u.covered(markedU)) / float64(all)
	}
	return resemblance, coverage
}

func (t *Text) tokens() int {
	if len(t.parts) == 0 {
		return 0
	}
	return t.parts[len(t.parts)-1]
}

// mark marks the tokens of all shingles that have the hash of the one at i, and returns where the next hash is.
func mark(marked []bool, shingles []span, i int) int {
	hash := shingles[i].hash
	for ; i < len(shingles) && shingles[i].hash == hash; i++ {
		for at := shingles[i].from; at < shingles[i].to; at++ {
			marked[at] = true
		}
	}
	return i
}

// reach is how far a neighbourhood goes to either side.
const reach = 5

// covered returns how many tokens lie in neighbourhoods of which at least half is marked.
func (t *Text) covered(marked []bool) int {
	covered, begin := 0, 0
	for _, end := range t.parts {
		part := marked[begin:end]
		from, to, inside := 0, 0, 0 // the neighbourhood, and how many of it are marked
		for i := range part {
			for ; to < min(len(part), i+reach+1); to++ {
				inside += one(part[to])
			}
			for ; from < i-reach; from++ {
				inside -= one(part[from])
			}
			covered += one(2*inside >= to-from)
		}
		begin = end
	}
	return covered
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
