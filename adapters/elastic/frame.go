package elastic

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// frame is a reply to a search around its hits: where other ones are put in their place.
type frame struct {
	reply []byte
	// count and array are where the count of hits and the list of them stand; the zero extent is nowhere.
	count, array extent
	// first and last are those of the hits in the list, second that of the one behind the first.
	first, second, last extent
	// gone is what goes of the list with our fields, in order; sure says that nothing else in the reply goes with them.
	gone []extent
	sure bool
}

// of returns what stands in an extent of the reply, nil if it is nowhere.
func (f *frame) of(e extent) []byte {
	if e.to == 0 {
		return nil
	}
	return f.reply[e.from:e.to]
}

// with returns the reply with the hits in place of its own, and with another total if that is not nil. Between the hits stands the white
// space that stood between its own, so that a pretty-printed reply stays one.
func (f *frame) with(hits [][]byte, total []byte) []byte {
	out, _ := f.pieces(hits, total, false)
	return out.Bytes()
}

// pieces returns what with puts together; bare leaves out our fields. It is not ok where it is not known where all of them are, or one of the hits
// is none of the reply's.
func (f *frame) pieces(hits [][]byte, total []byte, bare bool) (out adapters.Pieces, ok bool) {
	if bare && !f.sure {
		return nil, false
	}
	lead, between, tail := f.around(len(hits))
	out, at := make(adapters.Pieces, 0, 2*len(hits)+len(f.gone)+7), int32(0)
	if total != nil && f.count.to <= f.array.from {
		out, at = append(out, f.reply[:f.count.from], total), f.count.to
	}
	out = append(out, f.reply[at:f.array.from], lead)
	for i, hit := range hits {
		if i > 0 {
			out = append(out, between)
		}
		if !bare {
			out = append(out, hit)
		} else if out, ok = f.appendBare(out, hit); !ok {
			return nil, false
		}
	}
	out, at = append(out, tail), f.array.to
	if total != nil && f.count.from >= at {
		out, at = append(out, f.reply[at:f.count.from], total), f.count.to
	}
	return append(out, f.reply[at:]), true
}

// appendBare appends what stays of one of the reply's hits.
func (f *frame) appendBare(out adapters.Pieces, hit []byte) (adapters.Pieces, bool) {
	start := cap(f.reply) - cap(hit) // hits share the reply's memory
	if len(hit) == 0 || start < 0 || start+len(hit) > len(f.reply) || &f.reply[start] != &hit[0] {
		return nil, false
	}
	from, to := int32(start), int32(start+len(hit))
	i, _ := slices.BinarySearchFunc(f.gone, from, func(g extent, from int32) int { return cmp.Compare(g.from, from) })
	for ; i < len(f.gone) && f.gone[i].from < to; i++ {
		out, from = append(out, f.reply[from:f.gone[i].from]), f.gone[i].to
	}
	return append(out, f.reply[from:to]), true
}

// around returns what stands in front of, between and behind so many hits in the list.
func (f *frame) around(hits int) (lead, between, tail []byte) {
	array := f.of(f.array)
	switch held := f.first.to > 0; {
	case hits == 0 && !held:
		return array, nil, nil
	case hits == 0 && bytes.IndexByte(array, '\n') >= 0:
		return []byte("[ ]"), nil, nil
	case hits == 0 || !held:
		return []byte("["), []byte(","), []byte("]")
	}
	lead, between, tail = f.reply[f.array.from:f.first.from], []byte(","), f.reply[f.last.to:f.array.to]
	if f.second.to > 0 {
		between = f.reply[f.first.to:f.second.from]
	}
	return lead, between, tail
}

// withHits returns a reply with the hits in place of its own.
func withHits(reply []byte, hits [][]byte) ([]byte, error) {
	l, err := readListing(reply, nil)
	if err != nil {
		return nil, err
	}
	return l.with(hits, nil), nil
}

// totalOf returns a number as it stands in place of a reply's total, in whichever form it has one, nil where it has none.
func totalOf(total []byte, n int) []byte {
	count := total
	form, err := jsonedit.Members(total)
	if err == nil {
		count = jsonedit.Get(form, "value")
	}
	if known, invalid := strconv.Atoi(string(count)); invalid != nil || known < 0 {
		return nil
	}
	value := strconv.AppendInt(nil, int64(n), 10)
	if err != nil {
		return value
	}
	if value, err = jsonedit.Set(total, "value", value); err != nil {
		return nil
	}
	return value
}
