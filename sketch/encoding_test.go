package sketch

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// randomSketch returns a random sketch that has a stored form, of any form there is.
func randomSketch(r *rand.Rand) Sketch {
	k := Sketch{Scheme: r.Uint32(), Source: uint16(r.Uint32()), Shingles: 1 + r.Uint32()>>(1+r.IntN(31)), Fingerprint: r.Uint64()}
	k.Words, k.Numbers = r.Uint32()%(MostWords+1), r.Uint32()>>8
	bytes := func(n int) []byte {
		list := make([]byte, n)
		for i := range list {
			list[i] = byte(r.Uint32())
		}
		return list
	}
	if r.IntN(2) == 0 {
		k.Topics = bytes(topicBytes)
	}
	random := func(n int) { k.Payload = bytes(n) }
	if r.IntN(4) == 0 {
		k.Vector = &Sketch{Scheme: r.Uint32(), Source: uint16(r.Uint32()), Form: VectorSides, Bits: 1, Shingles: 1 + r.Uint32()>>16, Fingerprint: r.Uint64()}
		k.Vector.Payload = bytes(1 + r.IntN(maxPositions/8))
	}
	switch k.Form = []Form{Positions, Values, Sample, Sides, Ready}[r.IntN(5)]; k.Form {
	case Positions:
		k.Bits = []uint8{1, 2, 4, 8}[r.IntN(4)]
		random((1 + r.IntN(maxPositions/8)) * int(k.Bits))
	case Values, Sample: // a sample alone can be empty
		least := 1
		if k.Form == Sample {
			least = 0
		}
		values := make([]uint64, least+r.IntN(maxPositions))
		for i := range values {
			values[i] = r.Uint64()
		}
		slices.Sort(values)
		k.Bits, k.Cut, k.Payload = 64, len(values) > 0 && r.IntN(2) == 0, []byte{}
		for _, x := range slices.Compact(values) {
			k.Payload = binary.BigEndian.AppendUint64(k.Payload, x)
		}
	case Sides:
		k.Bits = 1
		random(1 + r.IntN(maxPositions/8))
	case Ready:
		k.Bits = 1
		random(8)
	}
	return k
}

func TestEncodingRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range effort.Rounds(800) {
		want := randomSketch(r)
		text := expect.Value(want.MarshalText())(t)
		var got Sketch
		expect.OK(t, got.UnmarshalText(text))
		expect.Must(t, want, got, "")
		appended := expect.Value(want.AppendText([]byte("before ")))(t)
		expect.Must(t, [2]string{"before " + string(text), string(text)}, [2]string{string(appended), want.String()}, "AppendText and String")
	}
}

// TestStoredFormIsShort: under the default scheme it has at most 200 characters, up to two million shingles.
func TestStoredFormIsShort(t *testing.T) {
	k := Sketch{Bits: 8, Shingles: 1<<21 - 1, Words: MostWords, Numbers: 1<<24 - 1, Topics: make([]byte, topicBytes), Payload: make([]byte, defaultPositions)}
	expect.Same(t, 200, len(k.String()), "characters")
	whole, _ := newSketcher(t, nil).Sketch(longText(3000))
	if n := len(whole.String()); n == 0 || n > 200 || len(whole.Topics) == 0 {
		t.Errorf("%d characters, topics %v", n, whole.Topics)
	}
}

// everyForm has one scheme for each form of payload.
var everyForm = map[string]func(*Scheme){
	"positions of 8 bits": nil,
	"positions of 4 bits": func(s *Scheme) { s.Bits = 4 },
	"positions of 2 bits": func(s *Scheme) { s.Bits, s.Family = 2, Permutations },
	"positions of 1 bit":  func(s *Scheme) { s.Bits = 1 },
	"all values":          func(s *Scheme) { s.Family = MSmallest },
	"values that are cut": func(s *Scheme) { s.Family, s.Positions = MSmallest, 8 },
	"few values":          func(s *Scheme) { s.Family, s.Modulus, s.Repeats = ZeroModM, 1, 1 },
	"no value":            func(s *Scheme) { s.Family, s.Modulus, s.Repeats = ZeroModM, maxModulus, 1 },
	"sides":               func(s *Scheme) { s.Family, s.Positions = SimHash, 64 },
	"ready":               func(s *Scheme) { s.Family, s.Features = Hamming, Value64 },
}

// TestNoStoredForm: what no decoder would take is not written either, and leaves what it was to be appended to.
func TestNoStoredForm(t *testing.T) {
	good := func() Sketch { return Sketch{Bits: 8, Shingles: 1, Payload: make([]byte, 8)} }
	for name, spoil := range map[string]func(*Sketch){
		"zero":               func(k *Sketch) { *k = Sketch{} },
		"no shingles":        func(k *Sketch) { k.Shingles = 0 },
		"half a table":       func(k *Sketch) { k.Topics = make([]byte, topicBytes/2) },
		"too many words":     func(k *Sketch) { k.Words = MostWords + 1 },
		"numbers of 25 bits": func(k *Sketch) { k.Numbers = 1 << 24 },
		"three bits":         func(k *Sketch) { k.Bits = 3 },
		"no bits":            func(k *Sketch) { k.Bits = 0 },
		"no positions":       func(k *Sketch) { k.Payload = nil },
		"too many positions": func(k *Sketch) { k.Payload = make([]byte, maxPositions+1) },
		"too many bits":      func(k *Sketch) { k.Bits, k.Payload = 1, make([]byte, maxPositions/8+1) },
		"unknown form":       func(k *Sketch) { k.Form = 9 },
		"values of 8 bits":   func(k *Sketch) { k.Form = Values },
		"half a value":       func(k *Sketch) { k.Form, k.Bits, k.Payload = Values, 64, make([]byte, 4) },
		"value and a half":   func(k *Sketch) { k.Form, k.Bits, k.Payload = Values, 64, make([]byte, 12) },
		"a value twice":      func(k *Sketch) { k.Form, k.Bits, k.Payload = Values, 64, make([]byte, 16) },
		"values that fall": func(k *Sketch) {
			k.Form, k.Bits, k.Payload = Values, 64, append(make([]byte, 7), 1, 0, 0, 0, 0, 0, 0, 0, 0)
		},
		"cut, and none":           func(k *Sketch) { k.Form, k.Bits, k.Cut, k.Payload = Values, 64, true, nil },
		"too many sides":          func(k *Sketch) { k.Form, k.Bits, k.Payload = Sides, 1, make([]byte, maxPositions/8+1) },
		"sides of 8 bits":         func(k *Sketch) { k.Form = Sides },
		"a short ready value":     func(k *Sketch) { k.Form, k.Bits, k.Payload = Ready, 1, make([]byte, 7) },
		"a ready value of 8 bits": func(k *Sketch) { k.Form = Ready },
		"a place without vector":  func(k *Sketch) { k.Vector = &Sketch{} },
		"words for a vector":      func(k *Sketch) { words := good(); k.Vector = &words },
		"a vector of a vector": func(k *Sketch) {
			k.Vector = &Sketch{Form: VectorSides, Bits: 1, Shingles: 1, Payload: make([]byte, 8), Vector: &Sketch{Form: VectorSides, Bits: 1, Shingles: 1, Payload: make([]byte, 8)}}
		},
		"a vector without sides": func(k *Sketch) { k.Vector = &Sketch{Form: VectorSides, Bits: 1, Shingles: 1} },
	} {
		k := good()
		spoil(&k)
		got, err := k.AppendText([]byte("before"))
		if !errors.Is(err, ErrMalformed) || string(got) != "before" || k.String() != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if k := good(); k.String() == "" {
		t.Error("what is spoilt is not good to begin with")
	}
}

// stored returns the base64 of bytes, as seeds of decoding.
func stored(parts ...[]byte) string {
	return base64.StdEncoding.EncodeToString(slices.Concat(parts...))
}

func TestDecodingNamesWhatIsWrong(t *testing.T) {
	header := func(version, form byte) []byte { return append([]byte{version, form}, make([]byte, headerSize-2)...) }
	good := stored(header(2, 8), []byte{40, 1}, make([]byte, 8))
	var k Sketch
	expect.OK(t, k.UnmarshalText([]byte(good)))
	vector := slices.Concat(header(2, formVector), []byte{0, 1}, make([]byte, 8))
	withPlace := slices.Concat(header(2, 8+withVector), []byte{40, 1})
	expect.OK(t, k.UnmarshalText([]byte(stored(withPlace, []byte{byte(len(vector))}, vector, make([]byte, 8)))))
	vectorInVector := slices.Concat(header(2, formVector+withVector), []byte{0, 1, 0}, make([]byte, 8))
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":                    {"", ErrMalformed},
		"not base64":               {"not base64 !", ErrMalformed},
		"URL-safe base64":          {strings.Replace(stored(header(2, 8), []byte{40, 1}, bytes.Repeat([]byte{255}, 6)), "/", "_", 1), ErrMalformed},
		"without padding":          {strings.TrimRight(stored(header(2, 8), []byte{40, 1}, make([]byte, 4)), "="), ErrMalformed},
		"bits behind the end":      {strings.Replace(stored(header(2, 8), []byte{40, 1}, make([]byte, 8)), "A=", "B=", 1), ErrMalformed},
		"line break":               {good[:8] + "\n" + good[8:], ErrMalformed},
		"line break at the end":    {good + "\n", ErrMalformed},
		"another version":          {stored(header(1, 8), []byte{40, 1}, make([]byte, 8)), ErrVersion},
		"another form":             {stored(header(2, 34), []byte{40, 1}, make([]byte, 8)), ErrVersion},
		"form 0":                   {stored(header(2, 0), []byte{40, 1}, make([]byte, 8)), ErrVersion},
		"header alone":             {stored(header(2, 8)), ErrMalformed},
		"no payload":               {stored(header(2, 8), []byte{40, 1}), ErrMalformed},
		"no shingles":              {stored(header(2, 8), []byte{40, 0}, make([]byte, 8)), ErrMalformed},
		"varint with a spare byte": {stored(header(2, 8), []byte{40, 0x81, 0}, make([]byte, 8)), ErrMalformed},
		"too many shingles":        {stored(header(2, 8), binary.AppendUvarint([]byte{40}, math.MaxUint32+1), make([]byte, 8)), ErrMalformed},
		"varint without end":       {stored(header(2, 8), []byte{40, 0xff}), ErrMalformed},
		"words alone":              {stored(header(2, 8), []byte{40}), ErrMalformed},
		"words with a spare byte":  {stored(header(2, 8), []byte{0x81, 0, 1}, make([]byte, 8)), ErrMalformed},
		"too many words":           {stored(header(2, 8), binary.AppendUvarint(nil, MostWords+1), []byte{1}, make([]byte, 8)), ErrMalformed},
		"half a table of topics":   {stored(header(2, 8+withTopics), []byte{40, 1}, make([]byte, 14)), ErrMalformed},
		"a table and no payload":   {stored(header(2, 8+withTopics), []byte{40, 1}, make([]byte, topicBytes)), ErrMalformed},
		"values that fall":         {stored(header(2, formValues), []byte{40, 2, 9}, make([]byte, 15)), ErrMalformed},
		"cut, and none":            {stored(header(2, formCut), []byte{40, 2}), ErrMalformed},
		"no place for a vector":    {stored(header(2, 8+withVector), []byte{40, 1}), ErrMalformed},
		"an empty place":           {stored(withPlace, []byte{0}, make([]byte, 8)), ErrMalformed},
		"half a vector":            {stored(withPlace, []byte{byte(len(vector))}, vector[:20]), ErrMalformed},
		"a vector and no payload":  {stored(withPlace, []byte{byte(len(vector))}, vector), ErrMalformed},
		"words for a vector":       {stored(withPlace, []byte{byte(headerSize + 10)}, header(2, 8), []byte{40, 1}, make([]byte, 16)), ErrMalformed},
		"a vector of a vector":     {stored(withPlace, []byte{byte(len(vectorInVector))}, vectorInVector, make([]byte, 8)), ErrMalformed},
		"a vector of version 1":    {stored(withPlace, []byte{byte(len(vector))}, []byte{1}, vector[1:], make([]byte, 8)), ErrVersion},
		"too long":                 {strings.Repeat("A", 12000), ErrMalformed},
	} {
		before := Sketch{Scheme: 7, Payload: []byte{1, 2}}
		got := before
		if err := got.UnmarshalText([]byte(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
		expect.Same(t, before, got, "%s: changed on error", name)
	}
}

// storedSeeds are stored forms of every kind, whole and broken.
func storedSeeds(f *testing.F) (list []string) {
	r := rand.New(rand.NewPCG(11, 4))
	for range 24 {
		k := randomSketch(r)
		list = append(list, k.String())
	}
	for _, name := range slices.Sorted(maps.Keys(everyForm)) {
		if s := newSketcher(f, everyForm[name]); s.Scheme().Features != Value64 {
			k, _ := s.Sketch("one two three four five")
			list = append(list, k.String())
		}
	}
	text := list[len(list)-1]
	return append(list, "", text[:40], text+"A", "AQgAAAAA", "not base64 !", text[:20]+"\n"+text[20:], strings.Repeat("A", 4000))
}

func FuzzUnmarshalText(f *testing.F) {
	for _, s := range storedSeeds(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := Sketch{Scheme: 7, Payload: []byte{1, 2}}
		got := before
		err := got.UnmarshalText(data)
		room, among := append(make([]byte, 0, 300), "kept"...), before
		longer, amongErr := among.UnmarshalTextIn(room, data)
		if diff := cmp.Diff(got, among); diff != "" || (err == nil) != (amongErr == nil) || string(longer[:4]) != "kept" || err != nil && len(longer) > 4 {
			t.Fatalf("in room at hand: %v, want %v, %q: %s", amongErr, err, longer, diff)
		}
		if err == nil && cap(among.Payload) > len(among.Payload) {
			t.Fatal("the payload can grow into the room of the next")
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Fatalf("unnamed error %v", err)
			}
			expect.Must(t, before, got, "changed on error")
			return
		}
		expect.Must(t, string(data), got.String(), "")
	})
}

// FuzzCompare: a store can hold anything, and whatever can be decoded can be compared.
func FuzzCompare(f *testing.F) {
	list := storedSeeds(f)
	for i, s := range list {
		for _, other := range []string{s, list[(i+1)%len(list)]} {
			one, _ := base64.StdEncoding.DecodeString(s)
			two, _ := base64.StdEncoding.DecodeString(other)
			f.Add(one, two)
		}
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a, err1 := decode(one)
		b, err2 := decode(two)
		if err1 != nil || err2 != nil {
			return
		}
		checkComparable(t, &a, &b)
		b.Scheme = a.Scheme // else hardly any two are comparable
		checkComparable(t, &a, &b)
		checkComparable(t, &a, &a)
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }

// checkComparable holds all that is made of two sketches to what must be so of any two.
func checkComparable(t *testing.T, a, b *Sketch) {
	t.Helper()
	e, ok := a.estimate(b)
	back, okBack := b.estimate(a)
	agreement, okAgreement := a.Agreement(b)
	if ok != okAgreement || ok != okBack || e.Value != agreement || !near(e.Value, back.Value) || !near(e.Error, back.Error) {
		t.Fatalf("estimate %v, %v; the other way round %v, %v; Agreement %v, %v", e, ok, back, okBack, agreement, okAgreement)
	}
	containment, okContainment := a.Containment(b)
	angle, okAngle := a.angle(b)
	if okContainment && !ok || okAngle && (!ok || a.Form != Sides && a.Form != VectorSides) {
		t.Fatalf("comparable %v, but containment %v, angle %v", ok, okContainment, okAngle)
	}
	for _, e := range []Estimate{e, containment, angle} {
		if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || !(e.Error >= 0) || math.IsInf(e.Error, 0) {
			t.Fatalf("estimate %v of\n%v\n%v", e, a, b)
		}
	}
	if e.Value > 1 || containment.Value > 1 || angle.Value > math.Pi {
		t.Fatalf("resemblance %v, containment %v, angle %v", e, containment, angle)
	}
	for _, k := range []*Sketch{a, b} {
		for _, c := range [][2]int{{16, 8}, {1, 1}, {0, 1}, {1, 0}, {1 << 30, 1 << 30}} {
			if keys, ok := k.AppendBands(nil, c[0], c[1]); ok != (len(keys) == c[0] && c[0] > 0) {
				t.Fatalf("%d keys of %d bands, %v", len(keys), c[0], ok)
			}
		}
	}
	if !slices.Contains([]Form{Sample, Ready, VectorSides}, a.Form) && a.SameWords(b) && a.WordsKey() != b.WordsKey() {
		t.Fatalf("the same words have different keys:\n%v\n%v", a, b)
	}
	if a.SameText(b) != b.SameText(a) {
		t.Fatal("SameText depends on the order")
	}
}

// TestLongestStoredForm: the longest form there can be is read, and one character more is refused.
func TestLongestStoredForm(t *testing.T) {
	want := Sketch{Scheme: 1, Form: Values, Bits: 64, Shingles: math.MaxUint32, Fingerprint: 1, Words: MostWords, Topics: make([]byte, topicBytes)}
	want.Vector = &Sketch{Form: VectorSides, Bits: 1, Shingles: math.MaxUint32, Words: MostWords, Topics: want.Topics, Payload: make([]byte, maxPositions/8)}
	for i := range uint64(maxPositions) {
		want.Payload = binary.BigEndian.AppendUint64(want.Payload, i+1)
	}
	text := expect.Value(want.MarshalText())(t)
	var got Sketch
	expect.OK(t, got.UnmarshalText(text))
	expect.Same(t, want, got, "")
	if err := got.UnmarshalText(append(text, 'A')); !errors.Is(err, ErrMalformed) {
		t.Errorf("a longer one: %v", err)
	}
}
