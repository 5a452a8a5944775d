package elastic

import (
	"bytes"
	"errors"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// For a hit's id the engine unpacks its stored document, which takes several times as long as all else that a reading of sketches
// costs it. So where no one sees their ids, hits are told by their sequence numbers, which are read as fast as the sketches. No
// two documents of a shard share them, and a document that changes gets new ones. Documents of several shards can share them, and
// even what they are sorted by: that two such change places between two readings, and nothing else does, is all that would not be
// seen. (Their scores would tell them apart too, but those of one document differ between copies of a shard.)

// errUnnumbered: a hit came without sequence numbers.
var errUnnumbered = errors.New("a hit without sequence numbers")

// numbers reports whether the hits of a page are told by their sequence numbers: one whose sketches are read first.
func (c *collapse) numbers() bool {
	first, _ := rerank.NewPager(c.page).Next()
	shown := c.show.Expand > adapters.ExpandOff || c.q.after != nil || c.near != nil || c.texts
	return first.SketchOnly && !c.d.Named && !c.named && !shown && c.q.picks() &&
		!bytes.Contains(c.q.body, []byte(`"inner_hits"`)) // which go by their hit's id
}

// asksNumbers reports whether the client itself asks for sequence numbers.
func (q *query) asksNumbers() bool {
	value, inURL := adapters.Last(q.params, "seq_no_primary_term")
	if !inURL {
		value = strings.Trim(string(adapters.Get(q.members, "seq_no_primary_term")), `"`)
	}
	return value == "true" || inURL && value == ""
}

// appendID appends what tells a hit from the others of its index.
func (c *collapse) appendID(dst []byte, h *hit) ([]byte, error) {
	if c.numbered {
		number, term := h.at(h.number), h.at(h.term)
		if len(number) == 0 || number[0] == '-' || len(term) == 0 { // an index can be without them
			return nil, errUnnumbered
		}
		dst = append(append(append(dst, number...), '.'), term...)
		return append(append(dst, '.'), h.at(h.sort)...), nil
	}
	id, ok := adapters.Text(h.at(h.id))
	if !ok {
		return nil, errors.New("a hit without _id")
	}
	return append(dst, id...), nil
}

// unnumbered returns a hit less the sequence numbers that only we asked for.
func (c *collapse) unnumbered(hit []byte) ([]byte, error) {
	if !c.numbered || c.q.asksNumbers() {
		return hit, nil
	}
	return adapters.Cut(hit, func(key string) bool { return key == "_seq_no" || key == "_primary_term" })
}

// name notes whether the hits are of one shard, and begins the page anew if its hits have to be told by their ids: some lack a number, or sources are to be picked from
// several shards, which share numbers.
func (c *collapse) name(reply []byte, err error) bool {
	if err == nil && c.numbered && c.span.SketchOnly && c.picks {
		c.alone = shardsOf(reply) == 1
	}
	if err == nil && c.numbered && c.span.SketchOnly && c.scatters && !c.alone {
		if span, more := c.pager.Next(); more && span.Ranks != nil {
			if f := c.fetchFor(span, nil); f.wide() && c.pickable(&f) {
				err = errUnnumbered
			}
		}
	}
	if !errors.Is(err, errUnnumbered) {
		return false
	}
	c.named = true
	c.readTexts(c.texts)
	return true
}

// withNumbers returns the body of a reading whose hits come with their sequence numbers, and of sketches alone without anything
// stored.
func withNumbers(body []byte, sketchOnly bool) ([]byte, error) {
	body, err := adapters.Set(body, "seq_no_primary_term", []byte("true"))
	if err == nil && sketchOnly {
		body, err = adapters.Set(body, "stored_fields", []byte(`"_none_"`))
	}
	return body, err
}

// numbersOf returns a filter for documents of one shard that are told by their sequence numbers.
func numbersOf(list []document) []byte {
	out := []byte(`{"terms":{"_seq_no":[`)
	for i, d := range list {
		if i > 0 {
			out = append(out, ',')
		}
		number, _, _ := strings.Cut(d.id, ".")
		out = append(out, number...)
	}
	return append(out, `]}}`...)
}
