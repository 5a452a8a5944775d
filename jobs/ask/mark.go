package ask

import (
	"strings"
	"unicode"
)

// Piece is a word of a text as it is shown, or a sign of a script that is written without spaces.
type Piece struct {
	Text string
	// Own says that the other text does not have it here. Joined says that no space goes before it.
	Own    bool
	Joined bool
}

// Mark returns the pieces of two texts, and marks those that differ. A word does not differ if the other text has it too, next to the same word.
// compared returns the form in which a word is compared, and nothing for what is not a word: that is never marked.
func Mark(a, b string, compared func(string) string) (x, y []Piece) {
	x, y = piecesOf(a), piecesOf(b)
	wordsX, wordsY := wordsOf(x, compared), wordsOf(y, compared)
	own(x, wordsX, neighbours(wordsY))
	own(y, wordsY, neighbours(wordsX))
	return x, y
}

// piecesOf cuts a text at white space, and around each sign of a script that is written without.
func piecesOf(text string) (list []Piece) {
	for _, word := range strings.Fields(text) {
		begun, joined := 0, false
		add := func(to int) {
			if begun < to {
				list = append(list, Piece{Text: word[begun:to], Joined: joined})
				begun, joined = to, true
			}
		}
		for at, r := range word {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
				add(at)
				add(at + len(string(r)))
			}
		}
		add(len(word))
	}
	return list
}

// word is what is compared of a piece, and where that stands.
type word struct {
	text  string
	piece int
}

func wordsOf(pieces []Piece, compared func(string) string) (list []word) {
	for i, p := range pieces {
		if text := compared(p.Text); text != "" {
			list = append(list, word{text, i})
		}
	}
	return list
}

// neighbours returns the pairs of neighbours, and each word beside nothing if it stands at an end.
func neighbours(words []word) map[[2]string]bool {
	pairs := map[[2]string]bool{}
	for i := range len(words) + 1 {
		pairs[beside(words, i)] = true
	}
	return pairs
}

// beside returns the words before and at a place.
func beside(words []word, at int) (pair [2]string) {
	if at > 0 {
		pair[0] = words[at-1].text
	}
	if at < len(words) {
		pair[1] = words[at].text
	}
	return pair
}

func own(pieces []Piece, words []word, other map[[2]string]bool) {
	for i, w := range words {
		pieces[w.piece].Own = !other[beside(words, i)] && !other[beside(words, i+1)]
	}
}

// Excerpt shortens a text to its beginning and the pieces that differ, with up to around common pieces on each side of them. An empty piece stands where
// others were left out. It returns at most most pieces, and then an empty one if there are more.
func Excerpt(pieces []Piece, around, most int) (list []Piece) {
	keep := make([]bool, len(pieces))
	differs := false
	for i, p := range pieces {
		if p.Own {
			differs = true
			for at := max(0, i-around); at <= min(len(pieces)-1, i+around); at++ {
				keep[at] = true
			}
		}
	}
	for i := range min(len(pieces), 2*around) { // the beginning says what the text is about
		keep[i] = true
	}
	if !differs {
		for i := range keep {
			keep[i] = true
		}
	}
	for i, p := range pieces {
		switch {
		case len(list) == most:
			return append(list, Piece{})
		case keep[i]:
			list = append(list, p)
		case len(list) > 0 && list[len(list)-1].Text != "":
			list = append(list, Piece{})
		}
	}
	return list
}
