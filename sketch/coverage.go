package sketch

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Text is a document prepared for an exact comparison with others of the same [Sketcher]. It takes about 30 bytes for each word. It is
// immutable.
type Text struct {
	// set is that of [Sketcher.Shingles].
	set []uint64
	// shingles has the whole shingles in the order of their hashes.
	shingles []span
	// parts has where each text ends, in tokens.
	parts []int
}

// span is a shingle and its tokens [from, to), counted over all texts.
type span struct {
	hash     uint64
	from, to int32
}

// Text prepares a document made of one or several texts.
func (s *Sketcher) Text(texts ...string) *Text {
	if s.scheme.Features == Tags || !s.scheme.Features.Sets() {
		return &Text{set: s.Shingles(texts...)}
	}
	t, w, place := new(Text), new(workspace), 0
	for _, text := range texts {
		list := plainTokens(baseText(s.Content(text), s.scheme.Keep), s.scheme.Features, s.scheme.Keep)
		if s.boilerplate != nil {
			list = s.subtractPlain(w, list)
		}
		s.fill(w, list)
		w.measure(s.scheme.Features == CharacterShingles)
		w.all = s.appendShingles(w.all, w.tokens)
		for i := range list {
			list[i].text = head(list[i].text)
		}
		s.fill(w, list)
		t.shingles = s.appendSpans(t.shingles, w.tokens, place)
		place += len(w.tokens.hashes)
		t.parts = append(t.parts, place)
	}
	if w.littleRemains() {
		w.all, t.shingles = append(w.all[:0], s.finish(s.Fingerprint(texts...))), nil
	}
	w.distinct()
	t.set = slices.Sorted(slices.Values(w.set))
	slices.SortFunc(t.shingles, func(a, b span) int { return cmp.Compare(a.hash, b.hash) })
	return t
}

// letters is how many letters of a word count for coverage.
const letters = 3

// head returns the beginning of a word, so that another ending or spelling, or a misread letter after it, makes no difference. A word with
// a digit stays whole, since 2019 is not 2018.
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

// appendSpans appends the whole shingles of one text whose first token has the number place.
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
// Coverage is the share of words whose neighbourhood is also in the other document. Of each word only the first three letters count, or all
// if it has a digit. A word is marked if it is in a shingle that both documents have. It is covered if at least half of the words up to five
// away in its text are marked. Small differences all over a text (another spelling, misread letters, a changed word in every line) break
// many shingles and leave most neighbourhoods half marked: they lower the resemblance much and the coverage little. A block that both share
// (a template, a quotation) covers itself and nothing more. Coverage is 0 under [Tags] and [Value64], and where neither document has a whole
// shingle.
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

// reach is how many words a neighbourhood has to either side.
const reach = 5

// covered returns how many tokens have a neighbourhood that is at least half marked.
func (t *Text) covered(marked []bool) int {
	covered, begin := 0, 0
	for _, end := range t.parts {
		part := marked[begin:end]
		from, to, inside := 0, 0, 0 // the neighbourhood, and how many of it are marked
		for i := range part {
			for ; to < min(len(part), i+reach+1); to++ {
				inside += count(part[to])
			}
			for ; from < i-reach; from++ {
				inside -= count(part[from])
			}
			covered += count(2*inside >= to-from)
		}
		begin = end
	}
	return covered
}

// count is 1 for true.
func count(marked bool) int {
	if marked {
		return 1
	}
	return 0
}
