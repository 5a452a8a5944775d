package sketch

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// maxDimensions is how many numbers a vector may have. Engines take up to 4,096 in a field of vectors.
const maxDimensions = 1 << 16

// SketchVector returns the sketch of a vector under [Vectors]. It reports false under other features, and for a vector without a direction: it is
// empty, has only zeros, or has a number that is not finite.
func (s *Sketcher) SketchVector(vector []float32) (k Sketch, ok bool) {
	if s.scheme.Features != Vectors {
		return k, false
	}
	w := workspaces.Get().(*workspace)
	defer w.release()
	w.vector = w.vector[:0]
	for _, x := range vector {
		w.vector = append(w.vector, float64(x))
	}
	ok = s.sides(&k, w)
	return k, ok
}

// sketchVector reads the one text as a vector: a list of numbers in JSON, or base64 of big-endian numbers of 32 bits.
func (s *Sketcher) sketchVector(k *Sketch, texts []string) bool {
	w := workspaces.Get().(*workspace)
	defer w.release()
	return len(texts) == 1 && w.readVector(strings.TrimSpace(texts[0])) && s.sides(k, w)
}

// readVector fills the vector from a text. Numbers are rounded to 32 bits, as engines store them.
func (w *workspace) readVector(text string) bool {
	w.vector = w.vector[:0]
	list, isList := strings.CutPrefix(text, "[")
	if !isList {
		if len(text) > base64.StdEncoding.EncodedLen(4*maxDimensions) || isHex(text) {
			return false
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		for ; len(raw) >= 4; raw = raw[4:] {
			w.vector = append(w.vector, float64(math.Float32frombits(binary.BigEndian.Uint32(raw))))
		}
		return err == nil && len(raw) == 0
	}
	list, ended := strings.CutSuffix(list, "]")
	for more := ended; more; {
		var number string
		number, list, more = strings.Cut(list, ",")
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 32)
		if err != nil || len(w.vector) == maxDimensions {
			return false
		}
		w.vector = append(w.vector, x)
	}
	return ended
}

// isHex reports whether a text has digits of base 16 alone. Elasticsearch takes vectors of bytes in this form. Read as base64, they would be other vectors.
func isHex(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

// sides makes the sketch of the workspace's vector, which it changes: one bit for each of P random hyperplanes, the side on which the vector lies (Charikar,
// "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002). A side depends on the vector's direction alone.
//
// The normals of the hyperplanes are rows of H·D3·H·D2·H·D1, where H is a Hadamard matrix and each D flips signs at random: d·log d additions in place
// of P·d, and as good as random normals (Andoni and others, "Practical and Optimal LSH for Angular Distance", NIPS 2015). There is no
// multiplication that a processor could fuse with an addition, so the sums are the same on every machine.
func (s *Sketcher) sides(k *Sketch, w *workspace) bool {
	v := w.vector
	dimensions, zero := len(v), true
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		zero = zero && x == 0
	}
	if zero || dimensions > maxDimensions {
		return false
	}
	size := 1 << bits.Len(uint(max(maxPositions, dimensions)-1))
	v = append(v, make([]float64, size-dimensions)...)
	w.vector = v
	for round := range uint64(3) {
		s.flip(v, round)
		hadamard(v)
	}
	k.Scheme, k.Source, k.Form, k.Bits, k.Cut, k.Shingles = s.id, 0, VectorSides, 1, false, uint32(dimensions)
	k.Words, k.Numbers, k.Topics = 0, 0, nil
	k.Payload = k.Payload[:0]
	for i := 0; i < s.scheme.Positions; i += 8 {
		var b byte
		for j, x := range v[i : i+8] {
			if x > 0 {
				b |= 1 << j
			}
		}
		k.Payload = append(k.Payload, b)
	}
	// It does not hash the numbers: an engine may round them.
	k.Fingerprint = mix(s.keys.fingerprint(k.Payload) ^ uint64(dimensions))
	return true
}

// flip flips signs at random: 64 by each hash of the round.
func (s *Sketcher) flip(v []float64, round uint64) {
	for i := 0; i < len(v); i += 64 {
		signs := mix(s.keys.word + (round<<32|uint64(i)+1)*golden)
		for j := range v[i:min(i+64, len(v))] {
			if signs>>j&1 != 0 {
				v[i+j] = -v[i+j]
			}
		}
	}
}

// hadamard multiplies a vector, whose length is a power of two, by the Hadamard matrix of Sylvester.
func hadamard(v []float64) {
	for half := 1; half < len(v); half *= 2 {
		for i := 0; i < len(v); i += 2 * half {
			a, b := v[i:i+half], v[i+half:i+2*half]
			for j, x := range a {
				y := b[j]
				a[j], b[j] = x+y, x-y
			}
		}
	}
}

// SideShare returns the expected share of equal sides of two vectors whose angle has this cosine.
func SideShare(cosine float64) float64 {
	return 1 - math.Acos(max(-1, min(1, cosine)))/math.Pi
}
