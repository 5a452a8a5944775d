package sketch

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/expect"
)

// TestOrderDoesNotMatter: a set has no order, and no element twice.
func TestOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 3))
	for _, scheme := range baseSchemes() {
		s := expect.Value(New(scheme))(t)
		if scheme.Features == Value64 {
			continue // no set
		}
		for _, n := range []int{1, 2, 20, 500} {
			set, _ := pair(r, n, 0)
			want := sketchOf(s, set)
			r.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
			expect.Must(t, want, sketchOf(s, set), "%s, %d elements in another order", scheme.Family, n)
		}
		texts := []string{"the quick brown fox", "jumps over", "the lazy dog", "日本語のテキスト"}
		want, _ := s.Sketch(texts...)
		slices.Reverse(texts)
		got, _ := s.Sketch(slices.Concat(texts, texts[1:], texts)...)
		got.Fingerprint, got.Words, got.Topics = want.Fingerprint, want.Words, want.Topics // of the texts, not of the set
		expect.Same(t, want, got, "%+v: texts in another order and repeated", scheme)
	}
}

// TestSlotsOfAUnion: each slot of a union is the lesser of the two sets' slots, which is what makes equal slots an estimate of
// resemblance, and sketches of parts the sketch of the whole.
func TestSlotsOfAUnion(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 44))
	room := new(slotArray)
	for name, fill := range map[string]func(slots, set []uint64){
		"permutations":          permutations,
		"fast_similarity plain": fastSimilarity,
		"fast_similarity":       func(slots, set []uint64) { room.fill(len(slots), set); copy(slots, room.slots[:]) },
	} {
		for _, k := range []int{8, 104, 128, 1024} {
			for _, n := range []int{1, 5, 64, 65, 300, 3000} {
				a, b := pair(r, n/3, n-n/3)
				one, other, both := make([]uint64, k), make([]uint64, k), make([]uint64, k)
				fill(one, a)
				fill(other, b)
				fill(both, slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))))
				for i := range both {
					if both[i] != min(one[i], other[i]) {
						t.Fatalf("%s: slot %d of %d, %d elements: %x and %x make %x", name, i, k, n, one[i], other[i], both[i])
					}
				}
			}
		}
	}
}

// TestPackKeepsTheirBits: position i of b bits stands at bit i·b, lowest first.
func TestPackKeepsTheirBits(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 22))
	slots, _ := pair(r, 64, 0)
	for _, width := range []int{1, 2, 4, 8} {
		payload := pack([]byte{7}, slots, width)
		if len(payload) != 1+64*width/8 || payload[0] != 7 {
			t.Fatalf("%d bits: %d bytes", width, len(payload))
		}
		for i, slot := range slots {
			at := i * width
			if got := uint64(payload[1+at/8]) >> (at % 8) & (1<<width - 1); got != slot>>lowBit&(1<<width-1) {
				t.Errorf("%d bits: position %d is %x, want bits from %d of %x", width, i, got, lowBit, slot)
			}
		}
	}
}

// TestEqualPositions counts by hand.
func TestEqualPositions(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 99))
	for _, width := range []int{1, 2, 4, 8} {
		for k := 8; k <= 400; k += 8 {
			a, b := make([]uint64, k), make([]uint64, k)
			want := 0
			for i := range a {
				a[i] = r.Uint64N(1 << width)
				b[i] = a[i]
				if r.IntN(3) == 0 {
					b[i] = r.Uint64N(1 << width)
				}
				want += count(a[i] == b[i])
			}
			for i := range a {
				a[i], b[i] = a[i]<<lowBit, b[i]<<lowBit
			}
			expect.Same(t, want, equalPositions(pack(nil, a, width), pack(nil, b, width), width), "of %d positions of %d bits are equal", k, width)
		}
	}
}

// TestMSmallestIsExactWhereAllFit, and takes the m smallest of the union where not.
func TestMSmallestIsExactWhereAllFit(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 7))
	s := newSketcher(t, func(s *Scheme) { s.Family = MSmallest })
	for range 400 {
		a, b := pair(r, r.IntN(250), r.IntN(150))
		if a = a[r.IntN(len(a)/2+1):]; len(a) == 0 || len(b) == 0 {
			continue
		}
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		sortedA, sortedB := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
		both := 0
		union := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
		looked := len(union)
		if max(len(a), len(b)) > defaultPositions {
			looked = min(looked, defaultPositions)
		}
		for _, x := range union[:looked] {
			both += count(slices.Contains(a, x) && slices.Contains(b, x))
		}
		e, ok := sketchOf(s, a).estimate(sketchOf(s, b))
		if want := float64(both) / float64(looked); !ok || e.Value != want {
			t.Fatalf("%d and %d elements: %v, %v, want %v", len(a), len(b), e, ok, want)
		}
		if exact := max(len(a), len(b)) <= defaultPositions; exact && (e.Error != 0 || e.Value != Resemblance(sortedA, sortedB)) {
			t.Fatalf("%d and %d elements: %v is not exact", len(a), len(b), e)
		}
	}
}

// TestZeroModMPoolsItsRepeats: what is kept is what each of the independent sketches keeps, and the smallest of it where it is
// too much.
func TestZeroModMPoolsItsRepeats(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 8))
	for _, c := range []struct{ n, modulus, repeats, positions int }{
		{300, 16, 4, 128}, {30, 3, 2, 64}, {50, 1, 1, 64}, {900, 16, 4, 128}, {20, 1, 8, 128}, {3, 1000, 1, 8},
	} {
		s := newSketcher(t, func(s *Scheme) {
			s.Family, s.Modulus, s.Repeats, s.Positions = ZeroModM, c.modulus, c.repeats, c.positions
		})
		set, _ := pair(r, c.n, 0)
		var want []uint64
		for i := range c.repeats {
			for _, x := range set {
				if h := mix(x ^ mix(uint64(i+1)*golden)); h%uint64(c.modulus) == 0 {
					want = append(want, h)
				}
			}
		}
		slices.Sort(want)
		cut := len(want) > c.positions
		want = want[:min(len(want), c.positions)]
		k := sketchOf(s, set)
		var got []uint64
		for i := 0; i < len(k.Payload); i += 8 {
			got = append(got, binary.BigEndian.Uint64(k.Payload[i:]))
		}
		if !slices.Equal(want, got) || k.Cut != cut {
			t.Errorf("%+v: %d values, cut %v; want %d, %v", c, len(got), k.Cut, len(want), cut)
		}
	}
	s := newSketcher(t, func(s *Scheme) { s.Family, s.Modulus, s.Repeats, s.Positions = ZeroModM, 1, 1, 1024 })
	a, b := pair(r, 40, 25)
	if e, ok := sketchOf(s, a).estimate(sketchOf(s, b)); !ok || e.Value != 40.0/90 {
		t.Errorf("every hash is kept, and the resemblance is %v, %v", e, ok)
	}
}

// TestNothingKeptIsNotComparable, but something against nothing is.
func TestNothingKeptIsNotComparable(t *testing.T) {
	s := newSketcher(t, func(s *Scheme) { s.Family, s.Modulus, s.Repeats = ZeroModM, 16, 1 })
	kept, none := hashesThat(s, true), hashesThat(s, false)
	empty, other, full := sketchOf(s, none[:1]), sketchOf(s, none[1:3]), sketchOf(s, kept[:1])
	if len(empty.Payload) != 0 || len(full.Payload) != 8 {
		t.Fatalf("%d and %d bytes", len(empty.Payload), len(full.Payload))
	}
	if e, ok := empty.estimate(other); ok {
		t.Errorf("two sketches that hold nothing: %v", e)
	}
	if e, ok := empty.estimate(full); !ok || e.Value != 0 {
		t.Errorf("nothing and something: %v, %v", e, ok)
	}
}

// hashesThat returns hashes that are kept, or are not, under the first function of zero_mod_m.
func hashesThat(s *Sketcher, kept bool) (list []uint64) {
	for x := uint64(1); len(list) < 4; x++ {
		if (mix(x^mix(golden))%uint64(s.scheme.Modulus) == 0) == kept {
			list = append(list, x)
		}
	}
	return list
}

func TestAngles(t *testing.T) {
	r := rand.New(rand.NewPCG(77, 1))
	s := newSketcher(t, func(s *Scheme) { s.Family, s.Positions = SimHash, 1024 })
	for _, n := range []int{1, 2, 10, 200} {
		a, b := pair(r, 0, n)
		same, ok := sketchOf(s, a).angle(sketchOf(s, a))
		if !ok || same.Value != 0 {
			t.Errorf("%d elements: equal sets at an angle of %v, %v", n, same, ok)
		}
		if e, _ := sketchOf(s, a).estimate(sketchOf(s, a)); e.Value != 1 || e.Error == 0 {
			t.Errorf("%d elements: equal sets have a resemblance of %v", n, e)
		}
		disjoint, ok := sketchOf(s, a).angle(sketchOf(s, b))
		if !ok || math.Abs(disjoint.Value-math.Pi/2) > 4.5*disjoint.Error || disjoint.Error > 0.06 {
			t.Errorf("%d elements: disjoint sets at an angle of %v, %v, want π/2", n, disjoint, ok)
		}
		part, ok := sketchOf(s, a[:n/2+1]).angle(sketchOf(s, a))
		if want := math.Acos(math.Sqrt(float64(n/2+1) / float64(n))); !ok || math.Abs(part.Value-want) > 4.5*part.Error {
			t.Errorf("%d elements: a half and the whole at an angle of %v, %v, want %v", n, part, ok, want)
		}
	}
	a, b := pair(r, 3, 3)
	plain := newSketcher(t, nil)
	if e, ok := sketchOf(plain, a).angle(sketchOf(plain, b)); ok {
		t.Errorf("fast_similarity has an angle: %v", e)
	}
}

// TestEstimatesByHand holds estimates from positions and sides against figures worked out by hand: of positions, what chance makes equal is
// taken off.
func TestEstimatesByHand(t *testing.T) {
	zeros := make([]byte, 8)
	for _, c := range []struct {
		bits                                             uint8
		other                                            []byte
		value, err, containment, containmentErr, reverse float64
	}{
		{8, []byte{0, 0, 0, 0, 1, 2, 4, 8}, 1016.0 / 2040, 0.177470, 0.443281, 0.105443, 1},
		{4, []byte{0, 0, 0, 0, 0x10, 0x01, 0x30, 0x03}, 0.733333, 0.117647, 0.564103, 0.052210, 1},
		{2, []byte{0, 0, 0, 0, 0x0f, 0, 0, 0}, 0.916667, 0.062369, 0.637681, 0.022637, 1},
		{1, []byte{0, 0, 0, 0, 0xff, 0xff, 0, 0}, 0.5, 0.108803, 0.444444, 0.064476, 1},
	} {
		a, b := Sketch{Bits: c.bits, Shingles: 30, Payload: zeros}, Sketch{Bits: c.bits, Shingles: 10, Payload: c.other}
		r, ok := a.estimate(&b)
		inB, okInB := a.Containment(&b)
		inA, okInA := b.Containment(&a)
		if !ok || !okInB || !okInA {
			t.Fatalf("%d bits: not comparable", c.bits)
		}
		for i, got := range []float64{r.Value, r.Error, inB.Value, inB.Error, inA.Value} {
			if want := []float64{c.value, c.err, c.containment, c.containmentErr, c.reverse}[i]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%d bits: figure %d is %.6f, want %.6f", c.bits, i, got, want)
			}
		}
	}
	a, b := Sketch{Form: Sides, Bits: 1, Shingles: 30, Payload: zeros}, Sketch{Form: Sides, Bits: 1, Shingles: 30, Payload: []byte{255, 255, 0, 0, 0, 0, 0, 0}}
	if e, ok := a.angle(&b); !ok || math.Abs(e.Value-math.Pi/4) > 1e-9 || math.Abs(e.Error-0.170907) > 1e-6 {
		t.Errorf("a quarter of the sides differ: an angle of %v, %v", e, ok)
	}
}

func TestReadyValues(t *testing.T) {
	s := newSketcher(t, everyForm["ready"])
	for text, want := range map[string]uint64{
		"0123456789abcdef": 0x0123456789abcdef, "0x0123456789ABCDEF": 0x0123456789abcdef, " 0XffffFFFFffffFFFF\n": math.MaxUint64,
		"0000000000000000": 0,
	} {
		k, ok := s.Sketch(text)
		if !ok || k.Form != Ready || k.Bits != 1 || k.Shingles != 1 ||
			len(k.Payload) != 8 || binary.BigEndian.Uint64(k.Payload) != want {
			t.Errorf("%q: %+v, %v", text, k, ok)
		}
	}
	for _, text := range []string{
		"", "0x", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "+123456789abcdef",
		"-123456789abcdef", "0123456789abcd_f",
		"0x0x23456789abcdef", "0x0x0123456789abcdef", "0123 456789abcdef", "１23456789abcdef", "81985529216486895",
	} {
		k := Sketch{Scheme: 3, Payload: []byte{1}}
		if s.SketchInto(&k, text) || !cmp.Equal(k, Sketch{Scheme: 3, Payload: []byte{1}}) {
			t.Errorf("%q is no ready value and makes %+v", text, k)
		}
	}
	a, _ := s.Sketch("no value", "ffffffffffffffff", "0000000000000000")
	b, _ := s.Sketch("0xFFFFFFFFFFFF0000")
	if e, ok := a.estimate(&b); !ok || e != (Estimate{Value: 0.75}) {
		t.Errorf("48 of 64 equal bits: %v, %v", e, ok)
	}
	if again, _ := s.Sketch("FFFFFFFFFFFFFFFF"); !a.SameText(&again) || a.SameText(&b) {
		t.Error("a fingerprint is not that of the value")
	}
	if e, ok := a.Containment(&b); ok {
		t.Errorf("containment of ready values, which are no sets: %v", e)
	}
	if set := s.Shingles("0123456789abcdef"); set != nil {
		t.Errorf("ready values have a set of %d shingles", len(set))
	}
}

// TestSketchInto: the room that a sketch has is used again, and what cannot be sketched leaves it as it was.
func TestSketchInto(t *testing.T) {
	var k Sketch
	for _, scheme := range baseSchemes() {
		s := expect.Value(New(scheme))(t)
		texts := []string{"one", "0123456789abcdef", "日本語 text", inigo, long()}
		for _, text := range texts {
			k.Source, k.Cut = 9, true
			before := k
			before.Payload = slices.Clone(k.Payload)
			want, ok := s.Sketch(text)
			if !ok {
				want = before
			}
			if got := s.SketchInto(&k, text); got != ok || !cmp.Equal(want, k, cmpopts.EquateEmpty()) {
				t.Errorf("%+v, %.20q: %v, want %v: %s", scheme, text, got, ok, cmp.Diff(want, k, cmpopts.EquateEmpty()))
			}
		}
	}
}
