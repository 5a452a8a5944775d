package elastic

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// of returns what stands in an extent of the reply, nil if it is nowhere.
func (l *listing) of(e extent) []byte {
	if e.to == 0 {
		return nil
	}
	return l.reply[e.from:e.to]
}

// with returns the reply with the hits in place of its own, and with another total if that is not nil. Between the hits stands the white
// space that stood between its own, so that a pretty-printed reply stays one.
func (l *listing) with(hits [][]byte, total []byte) []byte {
	out, _ := l.pieces(hits, total, false)
	return out.Bytes()
}

// pieces returns what with puts together; bare leaves out our fields. It is not ok where it is not known where all of them are, or one of the hits
// is none of the reply's.
func (l *listing) pieces(hits [][]byte, total []byte, bare bool) (out adapters.Pieces, ok bool) {
	if bare && !l.sure {
		return nil, false
	}
	lead, between, tail := l.around(len(hits))
	out, at := make(adapters.Pieces, 0, 2*len(hits)+len(l.gone)+7), int32(0)
	if total != nil && l.count.to <= l.array.from {
		out, at = append(out, l.reply[:l.count.from], total), l.count.to
	}
	out = append(out, l.reply[at:l.array.from], lead)
	for i, hit := range hits {
		if i > 0 {
			out = append(out, between)
		}
		if !bare {
			out = append(out, hit)
		} else if out, ok = l.appendBare(out, hit); !ok {
			return nil, false
		}
	}
	out, at = append(out, tail), l.array.to
	if total != nil && l.count.from >= at {
		out, at = append(out, l.reply[at:l.count.from], total), l.count.to
	}
	return append(out, l.reply[at:]), true
}

// appendBare appends what stays of one of the reply's hits.
func (l *listing) appendBare(out adapters.Pieces, hit []byte) (adapters.Pieces, bool) {
	start := cap(l.reply) - cap(hit) // hits share the reply's memory
	if len(hit) == 0 || start < 0 || start+len(hit) > len(l.reply) || &l.reply[start] != &hit[0] {
		return nil, false
	}
	from, to := int32(start), int32(start+len(hit))
	i, _ := slices.BinarySearchFunc(l.gone, from, func(g extent, from int32) int { return cmp.Compare(g.from, from) })
	for ; i < len(l.gone) && l.gone[i].from < to; i++ {
		out, from = append(out, l.reply[from:l.gone[i].from]), l.gone[i].to
	}
	return append(out, l.reply[from:to]), true
}

// around returns what stands in front of, between and behind so many hits in the list.
func (l *listing) around(hits int) (lead, between, tail []byte) {
	array := l.of(l.array)
	switch held := l.first.to > 0; {
	case hits == 0 && !held:
		return array, nil, nil
	case hits == 0 && bytes.IndexByte(array, '\n') >= 0:
		return []byte("[ ]"), nil, nil
	case hits == 0 || !held:
		return []byte("["), []byte(","), []byte("]")
	}
	lead, between, tail = l.reply[l.array.from:l.first.from], []byte(","), l.reply[l.last.to:l.array.to]
	if l.second.to > 0 {
		between = l.reply[l.first.to:l.second.from]
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
