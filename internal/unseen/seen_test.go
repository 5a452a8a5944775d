package unseen

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// ruleFor returns a rule under the scheme.
func ruleFor(t testing.TB, scheme sketch.Scheme) *rule.Rule {
	return &rule.Rule{Fields: []string{"text"}, Sketcher: expect.Value(sketch.New(scheme))(t), Profile: rerank.Profile{Threshold: 0.64, MinShingles: 8, MinWords: 50}}
}

// words returns a text of n random words.
func words(random *rand.Rand, n int) string {
	var text strings.Builder
	for range n {
		fmt.Fprintf(&text, "%x ", random.Uint64())
	}
	return text.String()
}

// TestBands: the bands are those that datasketch 2.0.0 chooses (lsh._optimal_param(threshold, positions, 0.5, 0.5)).
func TestBands(t *testing.T) {
	for _, c := range []struct {
		threshold              float64
		positions, bands, rows int
	}{
		{0.52, 96, 19, 5}, {0.64, 96, 13, 7}, {0.8, 96, 8, 12}, {0.88, 96, 5, 19},
		{0.52, 128, 22, 5}, {0.64, 128, 16, 8}, {0.8, 128, 9, 13}, {0.64, 256, 28, 9}, {0.8, 256, 17, 15},
	} {
		scheme := sketch.DefaultScheme()
		scheme.Positions = c.positions
		bands, rows := chooseBands(scheme, c.threshold, 1000, 0.001)
		expect.Same(t, [2]int{c.bands, c.rows}, [2]int{bands, rows}, "%v of %d", c.threshold, c.positions)
	}
	small := sketch.DefaultScheme()
	small.Bits = 1
	if bands, rows := chooseBands(small, 0.64, 1e6, 0.0001); math.Exp2(-float64(rows))*float64(bands)*1e6 > 0.0001 {
		t.Errorf("%d bands of %d bits are equal by chance too often", bands, rows)
	}
	small.Positions = 8
	if bands, _ := chooseBands(small, 0.64, 1e6, 0.0001); bands != 0 {
		t.Error("8 bits tell a million documents apart")
	}
}

// TestFilter: each key that was added is found, and of others the share that was asked for, within four standard errors.
func TestFilter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []float64{0.1, 0.01, 0.0005} {
		const keys, others = 50_000, 400_000
		size, probes := sizeOf(keys, rate)
		f, added := filter{make([]uint64, size), probes}, make([]uint64, keys)
		for i := range added {
			added[i] = random.Uint64()
			f.add(added[i])
		}
		for _, key := range added {
			if !f.has(key) {
				t.Fatalf("%x is lost", key)
			}
		}
		found := 0
		for range others {
			if f.has(random.Uint64()) {
				found++
			}
		}
		want := f.rate()
		if got := float64(found) / others; math.Abs(got-want) > 4*math.Sqrt(want/others) || want > 1.1*rate || want < rate/1.5 {
			t.Errorf("%v: %v of the others are found, and %v is stated", rate, got, want)
		}
	}
}

// TestNew: a document is seen if it is equal to one that was there, in any order; unlike ones are new. Of documents of a known agreement as many are
// seen as the curve of the bands says.
func TestNew(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	s := expect.Value(Open("", &Options{Rule: ruleFor(t, sketch.Scheme{})}))(t)
	var texts []string
	for i := range 2000 {
		texts = append(texts, words(random, 5+i%200))
	}
	for _, text := range texts {
		if !s.New(s.Keys(nil, []string{text})) {
			t.Fatalf("an unlike document is seen: %s", text)
		}
	}
	random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	for _, text := range texts {
		if s.New(s.Keys(nil, []string{"  " + strings.ToUpper(text)})) {
			t.Fatalf("the same text is new: %s", text)
		}
	}
	expect.Same(t, 2000, s.Remembered, "")
	for range 2 {
		if !s.New(s.Keys(nil, []string{"…", ""})) {
			t.Error("a text without words is seen")
		}
	}

	const pairs, shared, own = 1500, 160, 45 // of 160 + 2·45 words: the resemblance of the shingles is about 0.64
	found, wanted := 0.0, 0.0
	for range pairs {
		common := words(random, shared)
		a, b := common+words(random, own), common+words(random, own)
		n := float64(shared - 1)
		wanted += sketch.Candidate(n/(n+2*float64(own)), s.Bands, s.Rows)
		s.New(s.Keys(nil, []string{a}))
		if !s.New(s.Keys(nil, []string{b})) {
			found++
		}
	}
	if math.Abs(found-wanted) > 4*math.Sqrt(wanted*(1-wanted/pairs)) {
		t.Errorf("%v of %d pairs at the threshold are found, and the curve says %v", found, pairs, wanted)
	}
}

// TestNumbersDecide: documents with other numbers are new where numbers decide.
func TestNumbersDecide(t *testing.T) {
	text := words(rand.New(rand.NewPCG(5, 6)), 300)
	for _, numbers := range []rerank.Numbers{"", rerank.DecideByNumbers} {
		r := ruleFor(t, sketch.Scheme{})
		r.Profile.Numbers = numbers
		s := expect.Value(Open("", &Options{Rule: r}))(t)
		s.New(s.Keys(nil, []string{text + "costs 5"}))
		expect.Same(t, numbers != "", s.New(s.Keys(nil, []string{text + "costs 6"})), "%s", numbers)
	}
}

// TestUnfit: sketches without bands are refused, and containment.
func TestUnfit(t *testing.T) {
	contained := ruleFor(t, sketch.Scheme{})
	contained.Profile.Measure = rerank.Containment
	for want, r := range map[string]*rule.Rule{
		"family m_smallest": ruleFor(t, sketch.Scheme{Family: sketch.MSmallest}), "family simhash": ruleFor(t, sketch.Scheme{Family: sketch.SimHash}),
		"measure: resemblance": contained, "too small to tell": ruleFor(t, sketch.Scheme{Positions: 8, Bits: 1}),
	} {
		if _, err := Open("", &Options{Rule: r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// options are those of the tests of files: the filter has 3 kB, so that it is replaced now and then.
func options(t testing.TB) *Options {
	return &Options{Rule: ruleFor(t, sketch.Scheme{}), Expected: 100, FalsePositives: 0.01}
}

// TestFileKeepsAll: what was saved is there the next time, whenever it was closed, and no more; and the file does not grow without end.
func TestFileKeepsAll(t *testing.T) {
	name, random := filepath.Join(t.TempDir(), "seen"), rand.New(rand.NewPCG(7, 8))
	var saved [][]uint64
	for round := range 30 {
		s := expect.Value(Open(name, options(t)))(t)
		expect.Same(t, len(saved), s.Remembered, "round %d", round)
		for _, keys := range saved {
			if s.New(keys) {
				t.Fatalf("round %d: a document is lost", round)
			}
		}
		for range random.IntN(10) {
			keys := make([]uint64, 1+random.IntN(s.Bands))
			for i := range keys {
				keys[i] = random.Uint64()
			}
			if s.New(keys) {
				saved = append(saved, keys)
			}
			if random.IntN(2) == 0 {
				expect.OK(t, s.Save())
			}
		}
		expect.OK(t, s.Save())
		before := slices.Clone(s.bits)
		s.Close()
		s = expect.Value(Open(name, options(t)))(t)
		expect.Same(t, before, s.bits, "round %d", round)
		s.New([]uint64{random.Uint64()}) // it is not saved
		s.Close()
		if info := expect.Value(os.Stat(name))(t); info.Size() > 3*8*int64(len(before)) {
			t.Fatalf("the file has %d bytes, the filter %d", info.Size(), 8*len(before))
		}
	}
}

// TestCutFile: of a file that ends anywhere in its log, what is whole counts; one that ends before is refused. So is one with a wrong byte in its filter.
func TestCutFile(t *testing.T) {
	name, random := filepath.Join(t.TempDir(), "seen"), rand.New(rand.NewPCG(9, 10))
	s := expect.Value(Open(name, options(t)))(t)
	log := expect.Value(os.Stat(name))(t).Size()
	ends := []int64{log}
	for range 5 {
		s.New([]uint64{random.Uint64(), random.Uint64()})
		expect.OK(t, s.Save())
		ends = append(ends, log+s.logged)
	}
	s.Close()
	whole := expect.Value(os.ReadFile(name))(t)
	for size := log - 20; size <= int64(len(whole)); size += 1 + random.Int64N(6) {
		expect.OK(t, os.WriteFile(name, whole[:size], 0o600))
		s, err := Open(name, options(t))
		if (err != nil) != (size < log) {
			t.Fatalf("%d of %d bytes: %v", size, len(whole), err)
		}
		if err != nil {
			continue
		}
		records := 0
		for records+1 < len(ends) && ends[records+1] <= size {
			records++
		}
		expect.Same(t, [2]int64{int64(records), size - ends[records]}, [2]int64{int64(s.Remembered), s.Dropped}, "%d bytes", size)
		s.New([]uint64{1}) // what comes next is behind the last whole record
		expect.OK(t, s.Save())
		s.Close()
		again := expect.Value(Open(name, options(t)))(t)
		expect.Same(t, records+1, again.Remembered, "%d bytes", size)
		again.Close()
	}
	for range 200 {
		damaged := bytes.Clone(whole)
		at := random.IntN(int(log))
		damaged[at] ^= 1 << random.IntN(8)
		expect.OK(t, os.WriteFile(name, damaged, 0o600))
		if s, err := Open(name, options(t)); err == nil {
			s.Close()
			t.Errorf("a wrong bit at byte %d is not noticed", at)
		}
	}
}

// TestOtherRule: a file is continued by the same rule alone. Without a number of documents it is continued with its own.
func TestOtherRule(t *testing.T) {
	name := filepath.Join(t.TempDir(), "seen")
	expect.Value(Open(name, options(t)))(t).Close()
	for want, change := range map[string]func(o *Options){
		"":                  func(o *Options) { o.Expected, o.FalsePositives = 0, 0 },
		"--expect":          func(o *Options) { o.Expected = 7 },
		"--false-positives": func(o *Options) { o.FalsePositives = 0.001 },
		"threshold":         func(o *Options) { o.Rule.Profile.Threshold = 0.8 },
		"min_words":         func(o *Options) { o.Rule.Profile.MinWords = 0 },
		"fields":            func(o *Options) { o.Rule.Fields = []string{"text", "title"} },
		"sketch or seed":    func(o *Options) { o.Rule = ruleFor(t, sketch.Scheme{Seed: "secret"}) },
	} {
		o := options(t)
		change(o)
		s, err := Open(name, o)
		if want == "" {
			expect.OK(t, err)
			expect.Same(t, 100, s.Expected, "")
			s.Close()
		} else if err == nil || !strings.Contains(err.Error(), "with another "+want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", want, err)
		}
	}
	expect.OK(t, os.WriteFile(name, []byte("{}\n"), 0o600))
	if _, err := Open(name, options(t)); err == nil || !strings.Contains(err.Error(), "is no file of seen documents") {
		t.Error(err)
	}
}

// TestOneProcess: a file that is open can't be opened again, before or after it was replaced.
func TestOneProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "seen")
	s := expect.Value(Open(name, options(t)))(t)
	defer s.Close()
	for range 2 {
		if _, err := Open(name, options(t)); err == nil || !strings.Contains(err.Error(), "another process uses it") {
			t.Error(err)
		}
		expect.OK(t, s.replace())
	}
}

// FuzzFile reads any bytes for a file: they are refused, or what they remember is kept the next time too.
func FuzzFile(f *testing.F) {
	name := filepath.Join(f.TempDir(), "seen")
	o := &Options{Rule: ruleFor(f, sketch.Scheme{}), Expected: 1, FalsePositives: 0.1}
	s := expect.Value(Open(name, o))(f)
	s.New([]uint64{1, 2, 3})
	expect.OK(f, s.Save())
	s.Close()
	whole := expect.Value(os.ReadFile(name))(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(bytes.Replace(whole, []byte(`"expected":1,`), []byte(`"expected":1000000000000,`), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range []Options{*o, {Rule: o.Rule}} {
			s := Seen{rule: o.Rule}
			whole, err := s.read(bytes.NewReader(data), int64(len(data)), &o)
			if err != nil {
				continue
			}
			if whole > int64(len(data)) || s.logged > whole {
				t.Fatalf("%d of %d bytes are whole", whole, len(data))
			}
			again := Seen{rule: o.Rule}
			if n, err := again.read(bytes.NewReader(data[:whole]), whole, &o); err != nil || n != whole || !slices.Equal(s.bits, again.bits) {
				t.Fatalf("what is whole reads as %d bytes: %v", n, err)
			}
		}
	})
}
