package sketch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/sketch/content"
)

// Sketcher makes sketches under one scheme. It is immutable and safe for concurrent use.
type Sketcher struct {
	scheme Scheme
	id     uint32
	keys   keys
	// window is the number of tokens in a shingle where all tokens have the same size.
	window int
	// powers of base, as many as a shingle can have tokens.
	powers []uint64
	// plain: only the plain way of text.go has these options.
	plain bool
	// boilerplate reports which windows of a text are left out; nil for none.
	boilerplate func(window uint64) bool
}

// New returns a Sketcher for the scheme. Zero fields of the scheme take their defaults. The error names every wrong value.
func New(scheme Scheme) (*Sketcher, error) {
	scheme = scheme.filled()
	if err := scheme.Validate(); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	s := &Sketcher{scheme: scheme, id: scheme.ID(), window: scheme.Words}
	if scheme.Features == CharacterShingles {
		s.window = scheme.Characters
	}
	seed := uint64(0)
	if scheme.Seed != "" {
		seed = xxhash.Sum64String(scheme.Seed)
	}
	s.keys = keysOf(seed)
	s.powers = []uint64{1}
	for len(s.powers) <= max(scheme.Words, PassageWords*scheme.Characters) {
		s.powers = append(s.powers, s.powers[len(s.powers)-1]*base)
	}
	s.plain = scheme.Keep != Keep{} || scheme.Features != Auto
	if scheme.Boilerplate != "" {
		s.boilerplate = s.windowsOf(scheme.Boilerplate).has
	}
	return s, nil
}

// Scheme returns the scheme of the sketcher, defaults filled in.
func (s *Sketcher) Scheme() Scheme { return s.scheme }

// SchemeID returns [Scheme.ID] of the sketcher's scheme.
func (s *Sketcher) SchemeID() uint32 { return s.id }

// Form is how a sketch's payload is to be read.
type Form uint8

const (
	// Positions: b bits of each position, of fast_similarity and permutations.
	Positions Form = iota
	// Values: the smallest hashes in rising order, of m_smallest.
	Values
	// Sample: hashes drawn by chance in rising order, of zero_mod_m.
	Sample
	// Sides: one bit for each hyperplane, of simhash.
	Sides
	// Ready: a value that came ready, of hamming.
	Ready
	// VectorSides: one bit for each hyperplane, of a vector.
	VectorSides
)

// MostWords is the largest value of [Sketch.Words].
const MostWords = 1<<14 - 1

// Sketch is the summary of one document. The zero value is not comparable with any sketch.
type Sketch struct {
	// Scheme is the identity of the scheme it was made under.
	Scheme uint32
	// Source is a mark of the caller, such as which fields the text came from. It is not compared.
	Source uint16
	// Form says how Payload is to be read.
	Form Form
	// Bits is the number of bits of each position: 1, 2, 4 or 8 for Positions, 1 for Sides, VectorSides and Ready, 64 for Values and Sample.
	Bits uint8
	// Cut says of Values and Sample that there are more than were kept.
	Cut bool
	// Shingles is the number of distinct elements of the document's set: of shingles, or of tags. It is 1 for a ready value, and of a vector
	// the number of its dimensions.
	Shingles uint32
	// Fingerprint is the keyed hash of the whole text, with white space folded and, without Keep.Case, case. Of tags it hashes the set, of
	// a vector the sides.
	Fingerprint uint64
	// Words is how many words the document has, repeated ones included; a Chinese or Japanese character counts half a word, a letter of
	// Thai and the like a quarter, a sign nothing. At most MostWords. It is 0 under Tags, Value64 and Vectors.
	Words uint32
	// Numbers is a hash, of 24 bits, of the document's numbers and signs in their order; 0 if it has none.
	Numbers uint32
	// Topics is a table of the words that the document repeats; empty if it is too short. See [Sketch.OtherTopics].
	Topics []byte
	// Payload is what is compared.
	Payload []byte
	// Vector is the sketch of the document's vector under another scheme, where the caller keeps one beside that of the words; nil for
	// none. Nothing here compares it.
	Vector *Sketch
}

// Sketch returns the sketch of a document made of one or several texts, and false if no text has a word: such a document has no sketch.
func (s *Sketcher) Sketch(texts ...string) (Sketch, bool) {
	var k Sketch
	ok := s.SketchInto(&k, texts...)
	return k, ok
}

// SketchInto is [Sketcher.Sketch] in place: it reuses the payload of k and allocates nothing if that is large enough. If it reports
// false, k is unchanged.
func (s *Sketcher) SketchInto(k *Sketch, texts ...string) bool {
	switch s.scheme.Features {
	case Value64:
		return s.ready(k, texts)
	case Vectors:
		return s.sketchVector(k, texts)
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	s.gather(w, texts)
	if len(w.set) == 0 {
		return false
	}
	k.Scheme, k.Source, k.Cut = s.id, 0, false
	k.Shingles = uint32(min(uint64(len(w.set)), math.MaxUint32))
	if s.scheme.Features == Tags { // their order does not matter
		slices.Sort(w.set)
		w.base = w.base[:0]
		for _, x := range w.set {
			w.base = binary.BigEndian.AppendUint64(w.base, x)
		}
	}
	k.Fingerprint = s.keys.fingerprint(w.base)
	k.Words = uint32(min((w.quarters+3)/4, MostWords))
	k.Numbers = uint32(w.tokens.numbers >> 40)
	k.Topics = w.topics(k.Topics[:0])
	s.summarise(k, w)
	return true
}

// summarise fills the form and payload from the set in the workspace, which it may reorder.
func (s *Sketcher) summarise(k *Sketch, w *workspace) {
	payload, slots := k.Payload[:0], w.slots.slots[:s.scheme.Positions]
	k.Form, k.Bits = Positions, uint8(s.scheme.Bits)
	switch s.scheme.Family {
	case FastSimilarity:
		w.slots.fill(len(slots), w.set)
		k.Payload = pack(payload, slots, s.scheme.Bits)
	case Permutations:
		permutations(slots, w.set)
		k.Payload = pack(payload, slots, s.scheme.Bits)
	case MSmallest:
		k.Form, k.Bits = Values, 64
		k.Payload, k.Cut = mSmallest(payload, w.set, s.scheme.Positions)
	case ZeroModM:
		k.Form, k.Bits = Sample, 64
		k.Payload, k.Cut = zeroModM(payload, w.set, s.scheme.Modulus, s.scheme.Repeats, s.scheme.Positions)
	case SimHash:
		k.Form, k.Bits = Sides, 1
		k.Payload = simHash(payload, w.set, s.scheme.Positions)
	}
}

// ready reads a 64-bit value: the first text that is one.
func (s *Sketcher) ready(k *Sketch, texts []string) bool {
	for _, text := range texts {
		digits := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "0x")
		value, err := strconv.ParseUint(digits, 16, 64)
		if len(digits) != 16 || err != nil {
			continue
		}
		k.Scheme, k.Source, k.Form, k.Bits, k.Cut, k.Shingles = s.id, 0, Ready, 1, false, 1
		k.Fingerprint = mix(value ^ s.keys.text)
		k.Words, k.Numbers, k.Topics = 0, 0, nil
		k.Payload = binary.BigEndian.AppendUint64(k.Payload[:0], value)
		return true
	}
	return false
}

// workspace has the buffers for one document.
type workspace struct {
	// base has the base texts of the document, each followed by a zero byte.
	base []byte
	// wordBits has one bit for each byte of base that says whether it is a word byte: eight to a byte, the first in the low bit.
	wordBits []byte
	// oddBits is the same for odd runes: all beyond ASCII but letters, and marks of letters, that stay as they are in a word. A word that has
	// an odd rune has a bit at one of its bytes at least; other words may have one, too.
	oddBits []byte
	// tokens of the current text.
	tokens tokens
	// all shingles of the document, and the distinct ones among them.
	all, set []uint64
	// table finds repeated shingles.
	table []uint64
	slots slotArray
	// quarters is the length of the document in quarters of a word.
	quarters uint64
	// subtracted: boilerplate was left out of the document.
	subtracted bool
	// counts has how often words occur; counted is how many were counted.
	counts  wordCounts
	counted int
	// word is the current word if it has runes beyond ASCII.
	word []byte
	// kinds is the buffer of tokens.sizes.
	kinds []uint8
	// vector is the vector under Vectors.
	vector []float64
}

// tokens are the words and characters of one text, as hashes.
type tokens struct {
	hashes []uint64
	// sizes says what each counts towards a shingle; nil if all count alike.
	sizes []uint8
	// numbers is the hash of the numbers and signs among them and in the texts of the document before.
	numbers uint64
}

// dropNumbers drops all numbers and signs.
func (t *tokens) dropNumbers() {
	n := 0
	for i, h := range t.hashes {
		if h&numberFlag != 0 {
			continue
		}
		t.hashes[n] = h
		if t.sizes != nil {
			t.sizes[n] = t.sizes[i]
		}
		n++
	}
	t.hashes, t.numbers = t.hashes[:n], 0
	if t.sizes != nil {
		t.sizes = t.sizes[:n]
	}
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// maxKept is the size in bytes of the largest workspace that is kept for the next document.
const maxKept = 8 << 20

func (w *workspace) release() {
	numbers := cap(w.all) + cap(w.set) + cap(w.table) + cap(w.tokens.hashes) + cap(w.slots.spread) + cap(w.vector)
	if cap(w.base)+2*cap(w.wordBits)+cap(w.kinds)+8*numbers <= maxKept {
		workspaces.Put(w)
	}
}

// gather fills the workspace with the base texts and the set of the document.
func (s *Sketcher) gather(w *workspace, texts []string) {
	w.base, w.all, w.quarters, w.tokens.numbers, w.counted = w.base[:0], w.all[:0], 0, 0, 0
	w.subtracted = false
	for _, text := range texts {
		numbers := w.tokens.numbers
		s.cutText(w, s.Content(text))
		if s.boilerplate != nil {
			s.subtract(w, numbers)
		}
		if s.scheme.Features != Tags {
			w.measure(s.scheme.Features == CharacterShingles)
		}
		w.all = s.appendShingles(w.all, w.tokens)
		w.base = append(w.base, 0)
	}
	if w.littleRemains() {
		w.all = append(w.all[:0], s.finish(s.keys.fingerprint(w.base)))
	}
	w.distinct()
}

// measure adds the length of a text to that of the document, and counts its words.
func (w *workspace) measure(characters bool) {
	t := &w.tokens
	if len(t.hashes) == 0 {
		return
	}
	if w.counted == 0 {
		clear(w.counts[:])
	}
	counts, counted := &w.counts, min(len(t.hashes), topicTokensMost-w.counted)
	w.counted += counted
	for _, h := range t.hashes[:counted] {
		counts.add(h)
	}
	if t.sizes == nil && !characters { // all are words or signs
		w.quarters += 4 * uint64(len(t.hashes))
		for _, h := range t.hashes {
			w.quarters -= h & quarterWord // of all words signs alone have this flag
		}
		return
	}
	for _, h := range t.hashes {
		w.quarters += quartersOf(h)
	}
}

// Fingerprint returns the fingerprint of the sketch of these texts, in a quarter of the time. Use it to check whether a sketch is of these
// texts. For texts without a sketch it returns a number that a sketch has with a chance of 2^-64.
func (s *Sketcher) Fingerprint(texts ...string) uint64 {
	if !s.scheme.Features.Sets() || s.scheme.Features == Tags { // hashed from the value, the sides or the set, not from the texts
		k, _ := s.Sketch(texts...)
		return k.Fingerprint
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	w.base = w.base[:0]
	for _, text := range texts {
		s.appendBase(w, s.Content(text))
		w.base = append(w.base, 0)
	}
	return s.keys.fingerprint(w.base)
}

// appendBase appends the base text of a text to the workspace.
func (s *Sketcher) appendBase(w *workspace, text string) {
	if s.plain {
		w.base = append(w.base, baseText(text, s.scheme.Keep)...)
	} else {
		w.appendBase(text)
	}
}

// cutText appends the base text of a text's content to the workspace and fills the tokens from it.
func (s *Sketcher) cutText(w *workspace, text string) {
	start := len(w.base)
	s.appendBase(w, text)
	switch {
	case s.scheme.Features == Tags:
		s.tag(w, string(w.base[start:]))
	case s.plain:
		s.cutPlain(w, string(w.base[start:]))
	default:
		s.cutFast(w, start)
		s.dropNumbers(w)
	}
}

// dropNumbers drops the numbers and signs among the tokens, if the scheme leaves them out.
func (s *Sketcher) dropNumbers(w *workspace) {
	if s.scheme.DropNumbers {
		w.tokens.dropNumbers()
	}
}

// Content returns the part of a text that is sketched, by [Scheme.Content]: of HTML what a reader sees, or the useful part of that.
func (s *Sketcher) Content(text string) string {
	if s.scheme.Content == ContentRaw || s.scheme.Features == Tags || !content.IsHTML(text) {
		return text
	}
	if s.scheme.Content == ContentUseful {
		return content.Useful(text)
	}
	return content.Text(text)
}

// tag makes one token of a whole text.
func (s *Sketcher) tag(w *workspace, base string) {
	s.fill(w, nil)
	if folded := strings.TrimSpace(foldedText(base, s.scheme.Keep)); folded != "" {
		s.add(w, flagged(s.keys.hash(folded), false), false)
	}
}

// cutPlain fills the tokens from a base text in the plain way.
func (s *Sketcher) cutPlain(w *workspace, base string) {
	s.fill(w, plainTokens(base, s.scheme.Features, s.scheme.Keep))
}

// fill fills the tokens with those of a list that the scheme does not leave out.
func (s *Sketcher) fill(w *workspace, list []token) {
	w.tokens.hashes, w.tokens.sizes = w.tokens.hashes[:0], nil
	s.addAll(w, list)
	s.dropNumbers(w)
}

func (s *Sketcher) addAll(w *workspace, list []token) {
	for _, t := range list {
		s.add(w, t.flag(s.keys.hash(t.text)), t.character)
	}
}

// add appends one token. In a text with both words and characters each token has a size.
func (s *Sketcher) add(w *workspace, hash uint64, character bool) {
	t := &w.tokens
	if s.scheme.Features == Auto && character && t.sizes == nil {
		t.sizes = append(w.kinds[:0], 0)[:0] // not nil
		s.levelSizes(w)
	}
	t.hashes = append(t.hashes, hash)
	if hash&numberFlag != 0 {
		t.numbers = mix(t.numbers*base + hash)
	}
	if t.sizes != nil {
		size := s.scheme.Characters
		if character {
			size = s.scheme.Words
		}
		t.sizes = append(t.sizes, uint8(size))
	}
}

// distinct fills set with the distinct shingles of all, in any order: the families take minima, sums, or sort. It uses a hash table with
// open addressing, at a load of at most a quarter. For long texts, where the table is most of their memory, the load is at most a half. A
// hash of zero, one in 2^64, is counted each time it occurs.
func (w *workspace) distinct() {
	const long = 1 << 16
	size, each, spare := 16, 4, len(w.all)/2
	if len(w.all) > long {
		each, spare = 2, 0
	}
	for size < each*len(w.all) {
		size *= 2
	}
	if cap(w.table) < size {
		w.table = make([]uint64, size)
	}
	table, mask := w.table[:size], uint64(size-1)
	clear(table)
	if cap(w.set) < len(w.all) {
		w.set = make([]uint64, 0, len(w.all)+spare)
	}
	set := w.set[:len(w.all)]
	n, rest := firsts(set, w.all, table)
	for _, x := range w.all[:rest] {
		i := x & mask
		for table[i] != 0 && table[i] != x {
			i = (i + 1) & mask
		}
		if set[n] = x; table[i] == 0 {
			n++
		}
		table[i] = x
	}
	w.set = set[:n]
}

// firsts is the first pass of distinct, without a branch on what the table has. Each shingle looks only at its own place there. If that is
// free, the shingle takes it and goes to the set. If another shingle is there, it goes to the front of all, for the second pass.
func firsts(set, all, table []uint64) (n, rest int) {
	for _, x := range all {
		place := &table[x&uint64(len(table)-1)]
		found, first, other := *place, 0, 0
		set[n], all[rest] = x, x
		if found == 0 {
			first = 1
		}
		if found == 0 {
			found = x
		}
		if found != x {
			other = 1
		}
		*place = found
		n, rest = n+first, rest+other
	}
	return n, rest
}
