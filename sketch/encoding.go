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
//	0       1      format version, 1
//	1       1      bits a position, 8
//	2       4      scheme id, big-endian
//	6       2      source, big-endian
//	8       8      fingerprint, big-endian
//	16      1–5    number of distinct shingles, unsigned varint (encoding/binary)
//	then    k      payload, one byte a position
//
// About 196 characters at 128 positions, none of which JSON escapes.
//
// Versions of the format:
//
//	1  the first
const (
	formatVersion = 1
	formatBits    = 8
	headerSize    = 16
)

// Errors of decoding. The receiver is left unchanged whichever is returned.
var (
	// ErrMalformed: the bytes are no sketch at all.
	ErrMalformed = errors.New("sketch: malformed")
	// ErrVersion: a sketch of a format that this release does not read.
	ErrVersion = errors.New("sketch: unknown format version")
)

// AppendText appends the stored form to b; it implements [encoding.TextAppender].
func (s Sketch) AppendText(b []byte) ([]byte, error) {
	if len(s.Payload) == 0 || len(s.Payload) > maxPositions {
		return b, fmt.Errorf("%w: %d positions", ErrMalformed, len(s.Payload))
	}
	raw := make([]byte, 0, headerSize+binary.MaxVarintLen32+len(s.Payload))
	raw = append(raw, formatVersion, formatBits)
	raw = binary.BigEndian.AppendUint32(raw, s.Scheme)
	raw = binary.BigEndian.AppendUint16(raw, s.Source)
	raw = binary.BigEndian.AppendUint64(raw, s.Fingerprint)
	raw = binary.AppendUvarint(raw, uint64(s.Shingles))
	raw = append(raw, s.Payload...)
	return base64.StdEncoding.AppendEncode(b, raw), nil
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

// UnmarshalText reads a stored form; it implements [encoding.TextUnmarshaler]. On an error s is left unchanged. What it accepts,
// MarshalText gives back byte for byte.
func (s *Sketch) UnmarshalText(text []byte) error {
	if len(text) > base64.StdEncoding.EncodedLen(headerSize+binary.MaxVarintLen32+maxPositions) {
		return fmt.Errorf("%w: %d characters are too long", ErrMalformed, len(text))
	}
	raw, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	t, err := decode(raw)
	if err != nil {
		return err
	}
	// Go's decoder skips line breaks inside the text; the stored form has none.
	if base64.StdEncoding.EncodedLen(len(raw)) != len(text) {
		return fmt.Errorf("%w: white space inside", ErrMalformed)
	}
	*s = t
	return nil
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
	if raw[1] != formatBits {
		return Sketch{}, fmt.Errorf("%w: %d bits a position, this release reads %d", ErrVersion, raw[1], formatBits)
	}
	shingles, n := binary.Uvarint(raw[headerSize:])
	if n <= 0 || shingles > math.MaxUint32 || len(binary.AppendUvarint(nil, shingles)) != n {
		return Sketch{}, fmt.Errorf("%w: number of shingles", ErrMalformed)
	}
	payload := raw[headerSize+n:]
	if len(payload) == 0 || len(payload) > maxPositions {
		return Sketch{}, fmt.Errorf("%w: %d positions", ErrMalformed, len(payload))
	}
	return Sketch{
		Scheme:      binary.BigEndian.Uint32(raw[2:]),
		Source:      binary.BigEndian.Uint16(raw[6:]),
		Fingerprint: binary.BigEndian.Uint64(raw[8:]),
		Shingles:    uint32(shingles),
		Payload:     payload,
	}, nil
}
