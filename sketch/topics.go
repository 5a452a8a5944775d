package sketch

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

// wordCounts are the counters, of 16 bits, four in a row: the first lane of all rows has the first quarter of them, in order. So a row is
// compared at once.
type wordCounts [counters / 4]uint64

// add counts a word.
func (c *wordCounts) add(hash uint64) { c[hash>>54&(counters/4-1)] += 1 << (hash >> 58 & 48) }

// lanes is 1 in each lane of a row.
const lanes = 0x0001000100010001

// topics appends the table of the words counted, or nothing if the document is too short.
func (w *workspace) topics(table []byte) []byte {
	if w.counted < topicTokens {
		return table
	}
	often := min(max(w.counted/topicShare, leastOften), mostOften)
	repeated := max(often/4, 2)
	// Added to a counter, these set its top bit if it has as many or more.
	atOften, atRepeated := lanes*(1<<15-uint64(often)), lanes*(1<<15-uint64(repeated))
	var cells [topicBytes]byte
	row := 0
	for i := range topicCells / 4 {
		oftens, repeats := uint64(0), uint64(0)
		for end := ((i+1)*counters + topicCells - 1) / topicCells; row < end; row++ {
			oftens |= w.counts[row] + atOften
			repeats |= w.counts[row] + atRepeated
		}
		for lane := range 4 {
			cell := lane*topicCells/4 + i
			cells[cell/8] |= byte(oftens>>(16*lane+15)&1) << (cell % 8)
			cells[topicBytes/2+cell/8] |= byte(repeats>>(16*lane+15)&1) << (cell % 8)
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
