package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-minhash"
	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/sketch"
)

const (
	shingleWords = 4
	positions    = 128
)

// corpus is a list of documents.
type corpus = corpora.Corpus

// contender is one line of the table.
type contender struct {
	name, madeOf string
	// notes says where its job differs from ours: raw text in, case and punctuation normalised, 128 positions over 4-word
	// shingles out.
	notes string
	// limit is how many bytes of a corpus it is given, so that a slow one does not hold up the run; 0 for all.
	limit int
	// pass sketches the first documents of a corpus and returns the seconds it took: the longer of wall and CPU time, so that
	// a second thread gains nothing.
	pass func(on corpus, documents int) (seconds float64, err error)
	// agree returns the mean agreement over the documents two by two; nil for what makes no sketch.
	agree func(pairs corpus) (float64, error)
	// absent says why it can't take part.
	absent error
}

// Names of lines that targets refer to.
const (
	ours     = "ours"
	oursCold = "ours, from memory"
	oursSet  = "ours, default scheme"
	copying  = "memcpy"
	hashing  = "xxhash64"
	hashCold = "xxhash64, from memory"
	idiom    = "idiomatic Go"
	exactly  = "exact resemblance"
	daft     = "daft"
	daftFull = "daft normalize"
	lshdedup = "lshdedup-core"
	lucene   = "Lucene 1x128"
)

// sink keeps results alive, so that no loop is optimised away.
var sink uint64

// goContenders returns those that run in this process, the ceiling first.
func goContenders() []contender {
	var memory copies
	return []contender{
		{name: copying, madeOf: "Go", notes: "copies the document: a ceiling", pass: timed(copyAll)},
		{name: hashing, madeOf: "Go", notes: "hashes the document as a whole: the 100 % line", pass: timed(hashAll)},
		{name: hashCold, madeOf: "Go", notes: "the same; no text lies in a cache", pass: timedFrom(memory.documents, hashAll)},
		ourContender(ours, ourNotes, jobScheme(), corpus.All),
		ourContender(oursCold, "the same; no text lies in a cache", jobScheme(), memory.documents),
		ourContender(oursSet, defaultNotes(), sketch.DefaultScheme(), corpus.All),
		{name: idiom, madeOf: "Go", limit: 8e6, notes: "lower case, `strings.Fields`, punctuation trimmed, " +
			"xxhash64 of each shingle string, 128 multiply-shift hashes", pass: timed(idiomaticAll), agree: agreeing(idiomaticSignature)},
		{name: "dgryski/go-minhash", madeOf: "Go", limit: 8e6, notes: "`MinWise`; has no tokeniser: shingles of idiomatic Go",
			pass: timed(minWiseAll), agree: agreeing(minWise)},
	}
}

const ourNotes = "one byte a position; besides: the fingerprint of the whole text, accents folded, a look for HTML, " +
	"shingles of 3 characters in scripts without spaces"

// jobScheme returns the scheme of the job that all contenders do. It is not the default one where that has other shingles.
func jobScheme() sketch.Scheme {
	scheme := sketch.DefaultScheme()
	scheme.Words, scheme.Positions = shingleWords, positions
	return scheme
}

func defaultNotes() string {
	scheme := sketch.DefaultScheme()
	return fmt.Sprintf("as the project comes: %d positions over %d-word shingles", scheme.Positions, scheme.Words)
}

// ourContender is the package under test, with what it does to a text in the proxy: the fingerprint of the whole text included.
func ourContender(name, notes string, scheme sketch.Scheme, source func(corpus) []string) contender {
	s, err := sketch.New(scheme)
	if err != nil {
		return contender{name: name, absent: err}
	}
	var into sketch.Sketch
	all := func(documents []string) {
		for _, d := range documents {
			if sketchOne(s, &into, d) {
				sink += uint64(into.Payload[0])
			}
		}
	}
	agree := func(pairs corpus) (float64, error) {
		sum := 0.0
		for i := 0; i+1 < len(pairs.Documents); i += 2 {
			a, _ := s.Sketch(pairs.Documents[i])
			b, _ := s.Sketch(pairs.Documents[i+1])
			agreement, comparable := a.Agreement(&b)
			if !comparable {
				return 0, fmt.Errorf("pair %d is not comparable", i/2)
			}
			sum += agreement
		}
		return sum / float64(len(pairs.Documents)/2), nil
	}
	return contender{name: name, madeOf: "Go", notes: notes, pass: timedFrom(source, all), agree: agree}
}

// sketchOne is the call of ours that is measured.
func sketchOne(s *sketch.Sketcher, into *sketch.Sketch, text string) bool {
	return s.SketchInto(into, text)
}

// timed makes a pass of a loop over documents.
func timed(all func(documents []string)) func(corpus, int) (float64, error) {
	return timedFrom(corpus.All, all)
}

// timedFrom is timed with the documents from elsewhere than the corpus itself.
func timedFrom(source func(corpus) []string, all func(documents []string)) func(corpus, int) (float64, error) {
	return func(on corpus, documents int) (float64, error) {
		list := source(on)[:documents]
		runtime.GC()
		wall, cpu := time.Now(), cpuTime()
		all(list)
		return max(time.Since(wall), cpuTime()-cpu).Seconds(), nil
	}
}

// cpuTime returns the time that all threads of the process have spent, in the program and in the kernel for it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// agreeing makes a check of agreement from a function that sketches one text.
func agreeing(signature func(text string) []uint64) func(corpus) (float64, error) {
	return func(pairs corpus) (float64, error) {
		equal := 0
		for i := 0; i+1 < len(pairs.Documents); i += 2 {
			equal += equalPositions(signature(pairs.Documents[i]), signature(pairs.Documents[i+1]))
		}
		return float64(equal) / positions / float64(len(pairs.Documents)/2), nil
	}
}

func equalPositions(a, b []uint64) int {
	equal := 0
	for i := range a {
		if a[i] == b[i] {
			equal++
		}
	}
	return equal
}

// meanResemblance is what the agreements estimate, computed from the shingle sets themselves.
func meanResemblance(pairs []string) (float64, error) {
	s, err := sketch.New(jobScheme())
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for i := 0; i+1 < len(pairs); i += 2 {
		sum += sketch.Resemblance(s.Shingles(pairs[i]), s.Shingles(pairs[i+1]))
	}
	return sum / float64(len(pairs)/2), nil
}

func copyAll(documents []string) {
	var to []byte
	for _, d := range documents {
		to = append(to[:0], d...)
		sink += uint64(len(to))
	}
}

func hashAll(documents []string) {
	for _, d := range documents {
		sink += xxhash.Sum64String(d)
	}
}

// minWise is go-minhash fed with the shingles of the idiomatic version; its two hashes are xxhash64 under two seeds.
func minWise(text string) []uint64 {
	m := minhash.NewMinWise(xxhash.Sum64, seededHash, positions)
	for _, shingle := range idiomaticShingles(text) {
		m.Push([]byte(shingle))
	}
	return m.Signature()
}

func seededHash(b []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(1)
	_, _ = d.Write(b)
	return d.Sum64()
}

func minWiseAll(documents []string) {
	for _, d := range documents {
		sink += minWise(d)[0]
	}
}
