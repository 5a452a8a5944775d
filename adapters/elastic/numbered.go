package elastic

import (
	"errors"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// For a hit's id the engine unpacks its stored document, which takes several times as long as all else that a reading of sketches
// costs it. So where no one sees their ids, hits are told by their sequence numbers, which are read as fast as the sketches. No
// two documents of a shard share them, and a document that changes gets new ones. Documents of several shards can share them, and
// even what they are sorted by: that two such change places between two readings, and nothing else does, is all that would not be
// seen. (Their scores would tell them apart too, but those of one document differ between copies of a shard.)

// errUnnumbered: hits came without sequence numbers, or are to be picked from several shards, which share numbers.
var errUnnumbered = errors.New("hits that can't be told by sequence numbers")

// Narrowed implements adapters.Search: with hits that are told by their ids.
func (q *query) Narrowed(err error) adapters.Search {
	if !errors.Is(err, errUnnumbered) || !q.numbers {
		return nil
	}
	named := *q
	if named.numbers = false; named.asked.Point != nil {
		named.asked.Point = &named
	}
	return &named
}

// asksNumbers reports whether the client itself asks for sequence numbers.
func (q *query) asksNumbers() bool {
	value, inURL := adapters.Last(q.params, "seq_no_primary_term")
	if !inURL {
		value = strings.Trim(string(jsonedit.Get(q.members, "seq_no_primary_term")), `"`)
	}
	return value == "true" || inURL && value == ""
}

// appendID appends what tells a hit from the others of its index.
func (h *hits) appendID(dst []byte, one *hit) ([]byte, error) {
	if h.numbered {
		number, term := one.at(one.number), one.at(one.term)
		if len(number) == 0 || number[0] == '-' || len(term) == 0 { // an index can be without them
			return nil, errUnnumbered
		}
		dst = append(append(append(dst, number...), '.'), term...)
		return append(append(dst, '.'), one.at(one.sort)...), nil
	}
	id, ok := jsonedit.Text(one.at(one.id))
	if !ok {
		return nil, errors.New("a hit without _id")
	}
	return append(dst, id...), nil
}
