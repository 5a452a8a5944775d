package adapters

// Reader reads a JSON document in one pass, as strictly as [Members] does: every byte of it is looked at once, however deep the reader goes.
// The zero Reader is of no use; it is for one goroutine.
//
//	r := NewReader(reply)
//	for r.Enter('{'); r.Next(); {
//		switch string(r.Key()) {
//		case "hits":
//			for r.Enter('['); r.Next(); {
//				hits = append(hits, r.Value())
//			}
//		}
//	}
//	if !r.Done() {
//		return ErrMalformed
//	}
type Reader struct {
	s     scanner
	open  [MaxEntered]byte // the brackets of what was entered, the outermost first
	depth int
	// key and colon are the extent of the key of the member at hand.
	key, colon int
	begun      bool // the first member or element of what was entered last is read
	due        bool // the value of the one at hand is not
	bad        bool
}

// MaxEntered is how deep a Reader can go into what it reads.
const MaxEntered = 128

// NewReader returns a Reader that stands before the value in data.
func NewReader(data []byte) Reader { return Reader{s: begin(data)} }

// Enter goes into the value that comes next if it is an object and open is '{', or an array and open is '['. It returns false, and stays
// before the value, if it is neither. Enter panics if it is called deeper than MaxEntered levels.
func (r *Reader) Enter(open byte) bool {
	if r.bad || !r.s.take(open) {
		return false
	}
	r.open[r.depth] = open
	r.depth++
	r.begun, r.due = false, false
	return true
}

// Next goes to the next member or element of what was entered last, over the value of the one at hand if that was not read. At the end it
// leaves it and returns false. It returns false too where what stands there is not well-formed, from then on, and where nothing is entered.
func (r *Reader) Next() bool {
	if r.bad || r.depth == 0 {
		return false
	}
	if r.due && r.Value() == nil {
		return false
	}
	open := r.open[r.depth-1]
	r.s.space()
	if r.s.take(open + 2) { // both brackets close two behind where they open
		r.depth--
		r.begun = true
		return false
	}
	if r.begun {
		if !r.s.take(',') {
			return r.fail()
		}
		r.s.space()
	}
	r.begun, r.due = true, true
	r.key, r.colon = r.s.at, r.s.at
	if open == '[' {
		return true
	}
	if !r.s.str() {
		return r.fail()
	}
	r.colon = r.s.at
	r.s.count(r.key)
	if r.s.space(); !r.s.take(':') {
		return r.fail()
	}
	r.s.space()
	return true
}

// quoted returns the key of the member at hand as it stands.
func (r *Reader) quoted() []byte { return r.s.data[r.key:r.colon] }

// Key returns the key of the member at hand, decoded. It shares the document's memory where that is possible.
func (r *Reader) Key() []byte {
	quoted := r.quoted()
	if !simple(quoted) {
		text, _ := Text(quoted)
		return []byte(text)
	}
	return quoted[1 : len(quoted)-1]
}

// Value reads the value that comes next and returns it as it stands; nil if it is not well-formed.
func (r *Reader) Value() []byte {
	start := r.s.at
	r.due = false
	if r.bad || !r.s.value(r.depth) {
		r.fail()
		return nil
	}
	return r.s.data[start:r.s.at]
}

// CountNames has the keys counted from there on that can be names of fields of ours, however deep they stand.
func (r *Reader) CountNames() { r.s.counts = true }

// Names returns how many there were. [Cuts] that are ours cut nothing of other members.
func (r *Reader) Names() int { return r.s.named }

// At returns where in the document the reader stands.
func (r *Reader) At() int { return r.s.at }

// Done reports whether one well-formed document was read whole, and nothing but white space and comments stands behind it.
func (r *Reader) Done() bool {
	r.s.space()
	return !r.bad && r.depth == 0 && r.s.at == len(r.s.data)
}

func (r *Reader) fail() bool {
	r.bad, r.due = true, false
	return false
}

// keyText is [Text] for a well-formed key.
func keyText(quoted []byte) (string, bool) {
	if simple(quoted) {
		return string(quoted[1 : len(quoted)-1]), true
	}
	return Text(quoted)
}

// simple reports whether a string reads as it stands: nothing in it is escaped, nor written in more bytes than it needs.
func simple(quoted []byte) bool {
	for _, c := range quoted {
		if c == '\\' || c >= 0xC0 && (c <= 0xC1 || c == 0xE0) {
			return false
		}
	}
	return true
}
