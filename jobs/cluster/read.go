package cluster

import (
	"encoding/binary"

	"github.com/neardup/sidecar/sketch"
)

// reader reads the records of a corpus that is numbered, two at a time. It is for one goroutine.
type reader struct {
	c        *Corpus
	rooms    [2][]byte
	sketches [2]sketch.Sketch
	members  []Member // room for those of further clusters
}

// read reads the record of a document into one of the two sketches, which shares its memory until the next one is read there. The
// rest of the record is its id, its host and its cluster. A document without text has no shingles.
func (r *reader) read(document uint32, at int) (names []byte, err error) {
	r.rooms[at], err = r.c.records.read(int(document), int(document)+1, r.rooms[at])
	if err != nil {
		return nil, err
	}
	return decode(r.rooms[at], r.c.options.Rule.Sketcher.SchemeID(), &r.sketches[at]), nil
}

// headerSize is how long a record is before its topics and payload.
const headerSize = 26

// namesInRecord is how many texts are behind the payload, each with its length in front.
const namesInRecord = 3

// decode reads a record into a sketch, which shares its memory, and returns the rest.
func decode(raw []byte, scheme uint32, s *sketch.Sketch) (names []byte) {
	topics := headerSize + int(raw[15])
	end := topics + int(binary.LittleEndian.Uint16(raw[24:]))
	*s = sketch.Sketch{
		Scheme: scheme, Fingerprint: binary.LittleEndian.Uint64(raw), Shingles: binary.LittleEndian.Uint32(raw[8:]),
		Form: sketch.Form(raw[12]), Bits: raw[13], Cut: raw[14] != 0, Words: binary.LittleEndian.Uint32(raw[16:]),
		Numbers: binary.LittleEndian.Uint32(raw[20:]), Topics: raw[headerSize:topics], Payload: raw[topics:end],
	}
	return raw[end:]
}

// try joins two texts if they are near-duplicates by the rule's profile. Where they are joined already it makes no difference.
func (r *reader) try(a, b uint32) error {
	c := r.c
	if c.forest.Of(a) == c.forest.Of(b) {
		return nil
	}
	if _, err := r.read(c.at[a], 0); err != nil {
		return err
	}
	if _, err := r.read(c.at[b], 1); err != nil {
		return err
	}
	if near, _ := c.options.Rule.Profile.NearDuplicates(&r.sketches[0], &r.sketches[1]); near {
		c.forest.Join(a, b)
	}
	return nil
}

// join joins two texts if they are near-duplicates by the rule's profile. alike is the rule's measure of them.
func (r *reader) join(a, b uint32, alike float64) error {
	if _, err := r.read(r.c.at[a], 0); err != nil {
		return err
	}
	if _, err := r.read(r.c.at[b], 1); err != nil {
		return err
	}
	if r.c.options.Rule.Profile.JudgeAt(&r.sketches[0], &r.sketches[1], alike).Near() {
		r.c.forest.Join(a, b)
	}
	return nil
}
