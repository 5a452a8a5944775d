package documents

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Passage is a run of words, folded as they are for shingles.
type Passage struct {
	// In is the text that alone has it, a or b; empty where both do.
	In string `json:"in,omitempty"`
	// Words is how many words it has, Text those words, the middle left out where they are many.
	Words int    `json:"words"`
	Text  string `json:"text"`
}

const (
	// maxPassages is how many passages of a kind are shown.
	maxPassages = 10
	// maxShown is how many words of a passage are shown.
	maxShown = 30
	// maxPlaces is how many places of the same words are tried for the longest passage that begins there.
	maxPlaces = 64
)

// Passages returns the longest runs of words that stand in both texts, and the longest of words that are part of no run of w words
// that the other text has too: what keeps two texts together, and what sets them apart.
func Passages(a, b []string, w int) (shared, differing []Passage) {
	w = min(w, len(a), len(b))
	placesA, placesB := places(a, w), places(b, w)
	for i := 0; i < len(a); {
		length := longest(a, b, placesB, i, w)
		if length == 0 || longest(a, b, placesB, i+1, w) > length { // a longer one begins right behind
			i++
			continue
		}
		shared = append(shared, newPassage("", a[i:i+length]))
		i += length
	}
	differing = append(unshared("a", a, placesB, w), unshared("b", b, placesA, w)...)
	return best(shared), best(differing)
}

// places returns where each run of w words begins.
func places(words []string, w int) map[string][]int {
	if w == 0 {
		return nil
	}
	found := map[string][]int{}
	for i := range len(words) - w + 1 {
		key := runOf(words[i : i+w])
		found[key] = append(found[key], i)
	}
	return found
}

// runOf returns a run of words as a key: no word holds a zero byte or is told from another by where it ends.
func runOf(words []string) string { return strings.Join(words, "\x00") }

// longest returns how many words from place i of a on stand together in b too, 0 if fewer than w do.
func longest(a, b []string, inB map[string][]int, i, w int) int {
	if w == 0 || i+w > len(a) {
		return 0
	}
	length := 0
	found := inB[runOf(a[i:i+w])]
	for _, j := range found[:min(len(found), maxPlaces)] {
		n := w
		for i+n < len(a) && j+n < len(b) && a[i+n] == b[j+n] {
			n++
		}
		length = max(length, n)
	}
	return length
}

// unshared returns the runs of words that are part of no run of w words in the other text.
func unshared(in string, words []string, other map[string][]int, w int) (list []Passage) {
	begin, to := 0, 0 // where the run at hand begins; up to where words are shared
	for i := range len(words) + 1 {
		shared := w > 0 && i+w <= len(words) && other[runOf(words[i:i+w])] != nil
		if (shared || i == len(words)) && i > max(begin, to) {
			begin = max(begin, to)
			list = append(list, newPassage(in, words[begin:i]))
		}
		if shared {
			to = i + w
			begin = to
		}
	}
	return list
}

// best returns the longest passages, each once, the longest first.
func best(list []Passage) []Passage {
	slices.SortStableFunc(list, func(a, b Passage) int { return cmp.Compare(b.Words, a.Words) })
	var kept []Passage
	for _, p := range list {
		if len(kept) < maxPassages && !slices.Contains(kept, p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func newPassage(in string, words []string) Passage {
	text := join(words)
	if len(words) > maxShown {
		text = join(words[:maxShown/2]) + " … " + join(words[len(words)-maxShown/2:])
	}
	return Passage{In: in, Words: len(words), Text: text}
}

// join returns words with blanks between, but for two of scripts that have none.
func join(words []string) string {
	var b strings.Builder
	spaceless := false
	for i, word := range words {
		first, _ := utf8.DecodeRuneInString(word)
		if i > 0 && !(spaceless && unicode.In(first, spacelessScripts...)) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		spaceless = unicode.In(last, spacelessScripts...)
	}
	return b.String()
}

var spacelessScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}
