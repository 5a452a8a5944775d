package cluster

import (
	"encoding/binary"

	"github.com/neardup/sidecar/sketch"
)

// Reader reads the sketches of a corpus that is numbered. It is for one goroutine.
type Reader struct {
	c             *Corpus
	room, other   []byte
	first, second sketch.Sketch
}

// Reader returns a reader. It is safe for concurrent use.
func (c *Corpus) Reader() *Reader {
	r := &Reader{c: c}
	if !c.sketches.whole() {
		r.room, r.other = make([]byte, c.longest()), make([]byte, c.longest())
	}
	return r
}

// longest is how long a record of sketches can be.
func (c *Corpus) longest() int {
	if c.stride > 0 {
		return c.stride
	}
	return headerSize + 8*1024
}

// place is where the record of a document stands.
func (c *Corpus) place(document uint32) int64 {
	if c.stride > 0 {
		return int64(document) * int64(c.stride)
	}
	return c.offsets[document]
}

// header is what stands before a payload.
type header struct {
	fingerprint uint64
	named       int64
	textless    bool
}

// decode reads a record into a sketch, which shares its memory.
func (c *Corpus) decode(raw []byte, s *sketch.Sketch) header {
	flags := raw[22]
	h := header{binary.LittleEndian.Uint64(raw), int64(binary.LittleEndian.Uint64(raw[8:])), flags&flagTextless != 0}
	s.Scheme, s.Form, s.Bits, s.Cut = c.options.Rule.Sketcher.SchemeID(), c.form, c.bits, flags&flagCut != 0
	s.Shingles, s.Fingerprint = binary.LittleEndian.Uint32(raw[16:]), h.fingerprint
	s.Payload = raw[headerSize : headerSize+int(binary.LittleEndian.Uint16(raw[20:]))]
	return h
}

// document reads the record of a document.
func (r *Reader) document(document uint32, room []byte, s *sketch.Sketch) (header, error) {
	raw, err := r.c.sketches.read(r.c.place(document), r.c.longest(), room)
	if err != nil {
		return header{}, err
	}
	return r.c.decode(raw, s), nil
}

// Near reports whether two texts are near-duplicates by the rule's profile, and their agreement.
func (r *Reader) Near(a, b uint32) (near bool, agreement float64, err error) {
	if _, err := r.document(r.c.at[a], r.room, &r.first); err != nil {
		return false, 0, err
	}
	if _, err := r.document(r.c.at[b], r.other, &r.second); err != nil {
		return false, 0, err
	}
	near, agreement = r.c.options.Rule.Profile.NearDuplicates(&r.first, &r.second)
	return near, agreement, nil
}
