package sketch

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Boilerplate are passages that stand in many otherwise unlike documents: disclaimers, footers, templates. A scheme lists them, and a text is
// sketched without them.
//
// They are left out by windows. A window is the shortest run of tokens that is as long as [PassageWords] words; as in a shingle, n characters
// of a script without spaces are as long as w words. Each window of a text that is also one of a passage is left out, and what
// remains of the text is closed up. So a part of a passage is left out too, if it is a window long. The fingerprint is of the whole
// text. A document of which fewer than [PassageWords] words remain has one shingle, which no other text has: only its fingerprint makes it a
// near-duplicate. "Hi" above one long passage is not the same as "Hi" above another one.

// PassageWords is how many words a passage has at least. Of passages that sidecar cluster learns, those of 8 or 10 words cost some recall on sections
// of bills ("is amended by adding at the end the following new"), those of 12 nothing. With 16, forms with gaps are missed.
const PassageWords = 12

// windowSet is a hash table of windows with open addressing, at a load of at most a half. Zero is a free place.
type windowSet []uint64

func (t windowSet) has(window uint64) bool {
	mask := uint64(len(t) - 1)
	for i := window & mask; t[i] != 0; i = (i + 1) & mask {
		if t[i] == window {
			return true
		}
	}
	return false
}

// windowsOf returns the windows of passages, one a line.
func (s *Sketcher) windowsOf(passages string) windowSet {
	var all []uint64
	for passage := range strings.Lines(passages) {
		all = s.appendWindows(all, passage)
	}
	size := 16
	for size < 2*len(all)+1 {
		size *= 2
	}
	t, mask := make(windowSet, size), uint64(size-1)
	for _, window := range all {
		i := window & mask
		for t[i] != 0 && t[i] != window {
			i = (i + 1) & mask
		}
		t[i] = window
	}
	return t
}

// Windows returns the windows of a text, in their order. It is empty if the text is shorter than one.
func (s *Sketcher) Windows(text string) []uint64 { return s.appendWindows(nil, s.Content(text)) }

// appendWindows appends the windows of a content.
func (s *Sketcher) appendWindows(list []uint64, content string) []uint64 {
	w := workspaces.Get().(*workspace)
	defer w.release()
	w.base, w.tokens.numbers = w.base[:0], 0
	s.cutText(w, content)
	v := s.view(&w.tokens)
	for i := range w.tokens.hashes {
		if !v.fill() {
			break
		}
		list = append(list, s.finish(v.sum))
		v.drop(i)
	}
	return list
}

// view is a window that slides over the tokens of a text.
type view struct {
	*tokens
	powers []uint64
	// The run ends before end and is size long. It is a window once it is at least whole long.
	end, size, whole int
	// word is how long a word is in a text of words alone.
	word int
	// sum is the number whose digits are the window's tokens.
	sum uint64
}

func (s *Sketcher) view(t *tokens) view {
	return view{tokens: t, powers: s.powers, whole: PassageWords * s.scheme.Characters, word: s.scheme.Characters}
}

// fill moves the end, and reports whether there is a whole window.
func (v *view) fill() bool {
	for ; v.size < v.whole && v.end < len(v.hashes); v.end++ {
		v.sum = v.sum*base + v.hashes[v.end]
		v.size += v.length(v.end)
	}
	return v.size >= v.whole
}

// drop drops the first token of the window, which is at i.
func (v *view) drop(i int) {
	v.sum -= v.hashes[i] * v.powers[v.end-i-1]
	v.size -= v.length(i)
}

func (v *view) length(i int) int {
	if v.sizes == nil {
		return v.word
	}
	return int(v.sizes[i])
}

// remaining calls keep with each token that is not left out, in their order. keep may change the tokens up to that one.
func (s *Sketcher) remaining(t *tokens, keep func(i int, hash uint64)) {
	v := s.view(t)
	until := 0 // the end of the last window that is left out
	for i, hash := range t.hashes {
		if v.fill() && s.boilerplate(s.finish(v.sum)) {
			until = v.end
		}
		v.drop(i)
		if i >= until {
			keep(i, hash)
		}
	}
}

// subtract leaves the boilerplate out of the tokens. numbers is the hash of the numbers in the texts before.
func (s *Sketcher) subtract(w *workspace, numbers uint64) {
	t, kept := &w.tokens, 0
	s.remaining(t, func(i int, hash uint64) {
		t.hashes[kept] = hash
		if t.sizes != nil {
			t.sizes[kept] = t.sizes[i]
		}
		kept++
		if hash&numberFlag != 0 {
			numbers = mix(numbers*base + hash)
		}
	})
	w.subtracted = w.subtracted || kept < len(t.hashes)
	t.hashes, t.numbers = t.hashes[:kept], numbers
	if t.sizes != nil {
		t.sizes = t.sizes[:kept]
	}
}

// littleRemains reports whether boilerplate was left out of a document, and what remains is shorter than a passage.
func (w *workspace) littleRemains() bool { return w.subtracted && w.quarters < 4*PassageWords }

// subtractPlain returns the tokens without the boilerplate, and without what the scheme leaves out.
func (s *Sketcher) subtractPlain(w *workspace, list []token) (left []token) {
	if s.scheme.DropNumbers {
		list = slices.DeleteFunc(list, func(t token) bool { return t.number || t.sign })
	}
	s.fill(w, list)
	s.remaining(&w.tokens, func(i int, _ uint64) { left = append(left, list[i]) })
	w.subtracted = w.subtracted || len(left) < len(list)
	return left
}

// Without returns a sketcher that leaves out these windows in place of the scheme's boilerplate. Its scheme has the same id, so its
// sketches must not be stored. The function must be safe for concurrent use.
func (s *Sketcher) Without(boilerplate func(window uint64) bool) *Sketcher {
	other := *s
	other.boilerplate = boilerplate
	return &other
}

// Place is a window and where it stands in a content: between these two bytes.
type Place struct {
	Window   uint64
	From, To int
}

// Places returns the windows of a content ([Sketcher.Content]) with where they stand. It takes about twenty times as long as [Sketcher.Windows]. It returns
// nothing for a content without a window, and for about one in 10,000 contents of odd runes, whose words it can't separate.
func (s *Sketcher) Places(content string) []Place {
	w := workspaces.Get().(*workspace)
	defer w.release()
	var all tokens
	var from, to []int // of each token
	add := func(at, end int) {
		w.base = w.base[:0]
		s.cutText(w, content[at:end])
		for i, hash := range w.tokens.hashes {
			size := uint8(s.scheme.Characters)
			if w.tokens.sizes != nil {
				size = w.tokens.sizes[i]
			}
			all.hashes, all.sizes = append(all.hashes, hash), append(all.sizes, size)
			from, to = append(from, at), append(to, end)
		}
	}
	start, alone := 0, false
	for i, r := range content {
		space, stands := unicode.IsSpace(r), unicode.IsLetter(r) && standsAlone(r)
		if space || alone && stands {
			add(start, i)
			start = i
		}
		if space {
			start = i + utf8.RuneLen(r)
		}
		alone = stands
	}
	add(start, len(content))
	var list []Place
	v := s.view(&all)
	for i := range all.hashes {
		if !v.fill() {
			break
		}
		list = append(list, Place{s.finish(v.sum), from[i], to[v.end-1]})
		v.drop(i)
	}
	for i, window := range s.appendWindows(nil, content) {
		if i >= len(list) || list[i].Window != window {
			return nil
		}
	}
	return list
}
