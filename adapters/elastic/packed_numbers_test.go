package elastic

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestPackedNumbers reads the numbers of a vector in CBOR and SMILE as they were written.
func TestPackedNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 9))
	for range 500 {
		var want []float64
		var list []any
		for range 20 {
			if random.IntN(2) == 0 {
				n := random.Int64() >> random.IntN(64) * int64(1-2*random.IntN(2))
				want, list = append(want, float64(n)), append(list, n)
			} else {
				x := random.NormFloat64() * math.Pow(10, float64(random.IntN(40)-20))
				want, list = append(want, x), append(list, x)
			}
		}
		for i, form := range []packed{cborForm{}, &smileForm{}} {
			body := writtenForms[i].write(random, pairs{{"v", list}})
			text, _ := packedAsJSON(form, body, 1<<20)
			var got struct{ V []float64 }
			expect.OK(t, json.Unmarshal(text, &got))
			expect.Must(t, want, got.V, "%s: %s", writtenForms[i].name, text)
		}
	}
}

// TestHalfFloats lists numbers of 16 bits, and those of 32 (RFC 8949, appendix A).
func TestHalfFloats(t *testing.T) {
	for text, want := range map[string]float64{
		"\xf9\x3c\x00": 1, "\xf9\x3e\x00": 1.5, "\xf9\x7b\xff": 65504, "\xf9\x00\x01": 5.960464477539063e-8, "\xf9\x04\x00": 0.00006103515625, "\xf9\xc4\x00": -4,
		"\xfa\x47\xc3\x50\x00": 100000, "\x39\x03\xe7": -1000,
	} {
		got, _ := packedAsJSON(cborForm{}, []byte(text), 100)
		var x float64
		expect.OK(t, json.Unmarshal(got, &x))
		expect.Same(t, float32(want), float32(x), "%x", text)
	}
	for _, text := range []string{"\xf9\x7c\x00", "\xfa\x7f\xc0\x00\x00", "\x3b\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if got, _ := packedAsJSON(cborForm{}, []byte(text), 100); !slices.Equal(got, []byte(unreadNumber)) {
			t.Errorf("%x is read as %s", text, got)
		}
	}
}
