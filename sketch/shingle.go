package sketch

import "slices"

// Shingles returns the set of a document as sorted, distinct hashes. Every text (a field, or one value of a field that has
// several) is cut separately, so that no shingle spans two of them. A text too short for a shingle becomes one shingle; a text
// without a word has none. Under [Tags] each text is one element; under [Value64] there is no set and the result is nil.
func (s *Sketcher) Shingles(texts ...string) []uint64 {
	if !s.scheme.Features.Sets() {
		return nil
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	s.gather(w, texts)
	set := slices.Clone(w.set)
	slices.Sort(set)
	return set
}

// appendShingles appends the hashes of the shingles of one text: from each token on, the shortest run that is a whole shingle. The tokens
// of a shingle are the digits of a number in base, from which its hash is mixed. So no shingle is built as a string.
func (s *Sketcher) appendShingles(set []uint64, t tokens) []uint64 {
	if t.sizes != nil {
		return s.appendMixed(set, t)
	}
	w, sum, drop := s.window, uint64(0), s.powers[s.window]
	for _, hash := range t.hashes[:min(w, len(t.hashes))] {
		sum = sum*base + hash
	}
	if len(t.hashes) == 0 {
		return set
	}
	set = append(set, s.finish(sum))
	if len(t.hashes) <= w {
		return set
	}
	from := t.hashes[:len(t.hashes)-w]
	start := len(set)
	set = slices.Grow(set, len(from))[:start+len(from)]
	if w == 2 { // not from the sum before, so that no step waits for another
		before, key, room := t.hashes[1], s.keys.shingle, set[start:]
		for i, hash := range t.hashes[2:] {
			room[i] = foldMul((before*base+hash)^key, finisher)
			before = hash
		}
		return set
	}
	for i, hash := range t.hashes[w:] {
		sum = sum*base + (hash - from[i]*drop)
		set[start+i] = s.finish(sum)
	}
	return set
}

// appendMixed is appendShingles for texts with both words and characters. With w words or n characters to a shingle, a word counts n and a
// character w, and a shingle needs w·n. So a shingle of both kinds is as long as one of either. If the last whole shingle ends before the
// text, what follows its first token is a shingle too.
func (s *Sketcher) appendMixed(set []uint64, t tokens) []uint64 {
	whole := s.scheme.Words * s.scheme.Characters
	end, size, sum := 0, 0, uint64(0)
	for i, hash := range t.hashes {
		covered := end
		for ; end < len(t.hashes) && size < whole; end++ {
			sum = sum*base + t.hashes[end]
			size += int(t.sizes[end])
		}
		if size >= whole || covered < end {
			set = append(set, s.finish(sum))
		}
		if size < whole {
			break
		}
		sum -= hash * s.powers[end-i-1]
		size -= int(t.sizes[i])
	}
	return set
}

// finish returns the hash of a shingle from the number whose digits are its tokens.
func (s *Sketcher) finish(sum uint64) uint64 { return foldMul(sum^s.keys.shingle, finisher) }

// finisher is an odd number without a pattern: the fraction of the square root of 2.
const finisher = 0x6a09e667f3bcc909

// Resemblance returns |A∩B| / |A∪B| of two shingle sets as [Sketcher.Shingles] returns them. It is exact, and the oracle of every
// estimate. Two empty sets have no resemblance: 0.
func Resemblance(a, b []uint64) float64 {
	both := common(a, b)
	if union := len(a) + len(b) - both; union > 0 {
		return float64(both) / float64(union)
	}
	return 0
}

// Containment returns |A∩B| / |A|, the share of a that is in b, of two shingle sets as [Sketcher.Shingles] returns them. It is exact.
// An empty set is not contained in anything: 0.
func Containment(a, b []uint64) float64 {
	if len(a) == 0 {
		return 0
	}
	return float64(common(a, b)) / float64(len(a))
}

// common returns how many elements two sorted sets share.
func common(a, b []uint64) int {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return both
}
