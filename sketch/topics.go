package sketch

import "math"

// What a text is about shows in the words that it repeats. Texts of one form about different subjects (the manual of one product with
// another's name throughout) share most of their shingles and differ in such a word. So a sketch has a small table of the repeated words:
// one bit for each cell that says whether a word of the text that falls there occurs often, and one whether any is repeated.

const (
	// counters is how many counters words are counted in. Two words of a text that share one count as one.
	counters = 1 << 10
	// topicBytes is the size of the table: half of it for the words that occur often, half for those that are repeated.
	topicBytes = 28
	topicCells = topicBytes * 8 / 2
	// topicTokens is how many tokens a document needs at least to have a table, topicTokensMost how many of them are counted.
	topicTokens, topicTokensMost = 40, 1<<15 - 1
)

// A word occurs often if it is one in topicShare, and at least leastOften times; mostOften times are enough in any text.
const (
	topicShare = 50
	leastOften = 4
	mostOften  = 12
)

// wordCounts are the counters, of 16 bits, four in a row.
type wordCounts [counters / 4]uint64

// add counts a word.
func (c *wordCounts) add(hash uint64) { c[hash>>56] += 1 << (hash >> 50 & 48) }

// topics appends the table of the words counted, or nothing if the document is too short.
func (w *workspace) topics(table []byte) []byte {
	if w.counted < topicTokens {
		return table
	}
	often := min(max(w.counted/topicShare, leastOften), mostOften)
	repeated := max(often/4, 2)
	var cells [topicBytes]byte
	for i, row := range &w.counts {
		if row&^0x0001000100010001 == 0 { // no word is repeated
			continue
		}
		for j := range 4 {
			count, cell := int(row>>(16*j)&math.MaxUint16), (4*i+j)*topicCells/counters
			if count >= repeated {
				cells[topicBytes/2+cell/8] |= 1 << (cell % 8)
			}
			if count >= often {
				cells[cell/8] |= 1 << (cell % 8)
			}
		}
	}
	return append(table, cells[:]...)
}

// OtherTopics reports whether one of two documents often has a word that the other does not repeat. It is false if one of them has no
// table, as documents of fewer than 40 words have none.
func (s *Sketch) OtherTopics(t *Sketch) bool {
	a, b := s.Topics, t.Topics
	if len(a) != topicBytes || len(b) != topicBytes {
		return false
	}
	const half = topicBytes / 2
	apart := byte(0)
	for i := range half {
		apart |= a[i]&^b[half+i] | b[i]&^a[half+i]
	}
	return apart != 0
}
