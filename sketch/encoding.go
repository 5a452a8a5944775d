package sketch

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Stored form: base64 (standard alphabet, padded) of
//
//	offset  bytes  what
//	0       1      format version, 2
//	1       1      form of the payload: see below; plus 128 if there is a table of topics, plus 64 if there is a place for a vector
//	2       4      scheme id, big-endian
//	6       2      source, big-endian
//	8       8      fingerprint, big-endian
//	16      3      hash of the numbers, big-endian
//	19      1–2    number of words, at most 16383, unsigned varint (encoding/binary)
//	then    1–5    number of distinct elements, unsigned varint, 1 or more
//	then    28     table of topics, if there is one
//	then    …      place for a vector, if there is one: the number of bytes, unsigned varint, and these: another sketch, of form 33
//	then    rest   payload
//
//	form         payload
//	1, 2, 4, 8   positions of 1, 2, 4 or 8 bits, the first in the low bits of the first byte
//	16           m_smallest: hashes in rising order, 8 bytes each, big-endian: all there are
//	17           the same: the smallest there are
//	18, 19       zero_mod_m: the same two
//	32           sides of hyperplanes, one bit each, the first in the low bit of the first byte
//	33           the same of a vector, whose dimensions are the number of distinct elements
//	48           a ready value: 8 bytes, big-endian
//
// At 96 positions of 8 bits it has at most 200 characters. JSON escapes none of them.
//
// Versions of the format:
//
//	1  the first: no numbers, words and topics
//	2  with these. Sketches of version 1 count as absent.
const (
	formatVersion = 2
	headerSize    = 19
	withTopics    = 128
	withVector    = 64

	formValues = 16
	formSample = 18
	formCut    = 1 // added to the two above
	formSides  = 32
	formVector = 33
	formReady  = 48

	valueSize  = 8
	maxPayload = maxPositions * valueSize
	maxHead    = headerSize + 3*binary.MaxVarintLen32 + topicBytes
)

// Errors of decoding. Either leaves the receiver unchanged.
var (
	// ErrMalformed means that the bytes are not a sketch.
	ErrMalformed = errors.New("sketch: malformed")
	// ErrVersion means that the sketch has a format that this release does not read.
	ErrVersion = errors.New("sketch: unknown format version")
)

// AppendText appends the stored form to b; it implements [encoding.TextAppender]. For a sketch that no decoder would accept it returns
// [ErrMalformed] and b unchanged.
func (s Sketch) AppendText(b []byte) ([]byte, error) {
	form, err := s.form()
	if err != nil {
		return b, err
	}
	var room [maxHead + defaultPositions]byte
	raw := s.appendHead(room[:0], form)
	if s.Vector != nil {
		if raw, err = s.Vector.appendAsVector(raw); err != nil {
			return b, err
		}
	}
	raw = append(raw, s.Payload...)
	return base64.StdEncoding.AppendEncode(b, raw), nil
}

// appendAsVector appends the place for a vector, with s in it.
func (s *Sketch) appendAsVector(raw []byte) ([]byte, error) {
	form, err := s.form()
	if err == nil && (form != formVector || s.Vector != nil) {
		err = errNoVector
	}
	if err != nil {
		return raw, err
	}
	own := append(s.appendHead(nil, form), s.Payload...)
	return append(binary.AppendUvarint(raw, uint64(len(own))), own...), nil
}

var errNoVector = fmt.Errorf("%w: the place for a vector holds something else", ErrMalformed)

// appendHead appends all but the vector and the payload.
func (s *Sketch) appendHead(raw []byte, form byte) []byte {
	if len(s.Topics) > 0 {
		form |= withTopics
	}
	if s.Vector != nil {
		form |= withVector
	}
	raw = append(raw, formatVersion, form)
	raw = binary.BigEndian.AppendUint32(raw, s.Scheme)
	raw = binary.BigEndian.AppendUint16(raw, s.Source)
	raw = binary.BigEndian.AppendUint64(raw, s.Fingerprint)
	raw = append(raw, byte(s.Numbers>>16), byte(s.Numbers>>8), byte(s.Numbers))
	raw = binary.AppendUvarint(raw, uint64(s.Words))
	raw = binary.AppendUvarint(raw, uint64(s.Shingles))
	return append(raw, s.Topics...)
}

// MarshalText returns the stored form; it implements [encoding.TextMarshaler].
func (s Sketch) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// String returns the stored form, or the empty string for the zero Sketch.
func (s Sketch) String() string {
	text, err := s.MarshalText()
	if err != nil {
		return ""
	}
	return string(text)
}

// strict refuses what encoding gives no text: base64 with bits left over.
var strict = base64.StdEncoding.Strict()

// UnmarshalText reads a stored form; it implements [encoding.TextUnmarshaler]. On an error s is left unchanged. What it accepts,
// MarshalText gives back byte for byte.
func (s *Sketch) UnmarshalText(text []byte) error {
	_, err := s.UnmarshalTextIn(nil, text)
	return err
}

// UnmarshalTextIn is [Sketch.UnmarshalText] without an allocation: it appends the bytes of s to room, which s shares from then on, and
// returns the longer room. On an error s and room are left unchanged.
func (s *Sketch) UnmarshalTextIn(room, text []byte) ([]byte, error) {
	if len(text) > base64.StdEncoding.EncodedLen(2*maxHead+maxPayload+maxPositions/8) {
		return room, fmt.Errorf("%w: %d characters are too long", ErrMalformed, len(text))
	}
	longer, err := strict.AppendDecode(room, text)
	if err != nil {
		return room, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	raw := longer[len(room):len(longer):len(longer)]
	t, err := decode(raw)
	if err != nil {
		return room, err
	}
	// Go's decoder skips line breaks inside the text; the stored form has none.
	if base64.StdEncoding.EncodedLen(len(raw)) != len(text) {
		return room, fmt.Errorf("%w: white space inside", ErrMalformed)
	}
	*s = t
	return longer, nil
}

func decode(raw []byte) (Sketch, error) {
	if len(raw) == 0 {
		return Sketch{}, fmt.Errorf("%w: empty", ErrMalformed)
	}
	if raw[0] != formatVersion {
		return Sketch{}, fmt.Errorf("%w: %d, this release reads %d", ErrVersion, raw[0], formatVersion)
	}
	if len(raw) <= headerSize {
		return Sketch{}, fmt.Errorf("%w: %d bytes, the header alone has %d", ErrMalformed, len(raw), headerSize)
	}
	words, rest, ok := readNumber(raw[headerSize:], MostWords)
	if !ok {
		return Sketch{}, fmt.Errorf("%w: number of words", ErrMalformed)
	}
	shingles, rest, ok := readNumber(rest, math.MaxUint32)
	if !ok || shingles == 0 {
		return Sketch{}, fmt.Errorf("%w: number of shingles", ErrMalformed)
	}
	t := Sketch{
		Scheme:      binary.BigEndian.Uint32(raw[2:]),
		Source:      binary.BigEndian.Uint16(raw[6:]),
		Fingerprint: binary.BigEndian.Uint64(raw[8:]),
		Numbers:     uint32(raw[16])<<16 | uint32(raw[17])<<8 | uint32(raw[18]),
		Words:       uint32(words),
		Shingles:    uint32(shingles),
		Payload:     rest,
	}
	if raw[1]&withTopics != 0 {
		if len(rest) < topicBytes {
			return Sketch{}, fmt.Errorf("%w: %d bytes of topics, there must be %d", ErrMalformed, len(rest), topicBytes)
		}
		t.Topics, t.Payload = rest[:topicBytes:topicBytes], rest[topicBytes:]
	}
	if raw[1]&withVector != 0 {
		n, rest, ok := readNumber(t.Payload, uint64(len(t.Payload)))
		if !ok || n > uint64(len(rest)) {
			return Sketch{}, fmt.Errorf("%w: number of bytes of the vector", ErrMalformed)
		}
		v, err := decode(rest[:n:n])
		if err == nil && (v.Form != VectorSides || v.Vector != nil) {
			err = errNoVector
		}
		if err != nil {
			return Sketch{}, err
		}
		t.Vector, t.Payload = &v, rest[n:]
	}
	switch form := raw[1] &^ (withTopics | withVector); form {
	case 1, 2, 4, 8:
		t.Form, t.Bits = Positions, form
	case formValues, formValues + formCut:
		t.Form, t.Bits, t.Cut = Values, 8*valueSize, form != formValues
	case formSample, formSample + formCut:
		t.Form, t.Bits, t.Cut = Sample, 8*valueSize, form != formSample
	case formSides:
		t.Form, t.Bits = Sides, 1
	case formVector:
		t.Form, t.Bits = VectorSides, 1
	case formReady:
		t.Form, t.Bits = Ready, 1
	default:
		return Sketch{}, fmt.Errorf("%w: form %d, this release reads 1, 2, 4, 8, 16 to 19, 32, 33 and 48", ErrVersion, form)
	}
	if _, err := t.form(); err != nil {
		return Sketch{}, err
	}
	return t, nil
}

// readNumber reads an unsigned varint in its shortest form, and returns what follows it.
func readNumber(raw []byte, most uint64) (number uint64, rest []byte, ok bool) {
	number, n := binary.Uvarint(raw)
	var shortest [binary.MaxVarintLen64]byte
	if n <= 0 || number > most || binary.PutUvarint(shortest[:], number) != n {
		return 0, raw, false
	}
	return number, raw[n:], true
}

// form returns the byte for the form of the payload, or what is wrong with it.
func (s *Sketch) form() (byte, error) {
	n, form, ok := len(s.Payload), byte(0), false
	switch s.Form {
	case Positions:
		form, ok = s.Bits, (s.Bits == 1 || s.Bits == 2 || s.Bits == 4 || s.Bits == 8) && n > 0 && n <= maxPositions*int(s.Bits)/8
	case Values, Sample:
		form, ok = formValues, s.Bits == 8*valueSize && n <= maxPayload && (n > 0 || s.Form == Sample && !s.Cut) && s.rising()
		if s.Form == Sample {
			form = formSample
		}
		if s.Cut {
			form += formCut
		}
	case Sides:
		form, ok = formSides, s.Bits == 1 && n > 0 && n <= maxPositions/8
	case VectorSides:
		form, ok = formVector, s.Bits == 1 && n > 0 && n <= maxPositions/8
	case Ready:
		form, ok = formReady, s.Bits == 1 && n == valueSize
	}
	ok = ok && (len(s.Topics) == 0 || len(s.Topics) == topicBytes) && s.Numbers < 1<<24 && s.Words <= MostWords
	if !ok || s.Shingles == 0 {
		return 0, fmt.Errorf("%w: form %d of %d bits with %d bytes for %d shingles", ErrMalformed, s.Form, s.Bits, n, s.Shingles)
	}
	return form, nil
}

// rising reports whether the payload is a list of hashes in strictly rising order.
func (s *Sketch) rising() bool {
	for i := valueSize; i < len(s.Payload); i += valueSize {
		if i+valueSize > len(s.Payload) || binary.BigEndian.Uint64(s.Payload[i:]) <= binary.BigEndian.Uint64(s.Payload[i-valueSize:]) {
			return false
		}
	}
	return len(s.Payload)%valueSize == 0
}
