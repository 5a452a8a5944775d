package sketch

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// BenchmarkText measures text to sketch over the documents of a file, one a line, beside the hash of the same documents:
//
//	NEARDUP_CORPUS=docs.txt go test -run '^$' -bench Text ./sketch
//
// Real text matters: what a sketch costs goes with the distinct shingles. make bench brings corpora and other libraries.
func BenchmarkText(b *testing.B) {
	path := os.Getenv("NEARDUP_CORPUS")
	if path == "" {
		b.Skip("NEARDUP_CORPUS names no file of documents, one a line")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	docs := strings.Split(strings.TrimSpace(string(data)), "\n")
	s := newSketcher(b, nil)
	var k Sketch
	for name, f := range map[string]func(doc string){
		"xxhash64": func(doc string) { xxhash.Sum64String(doc) },
		"sketch":   func(doc string) { s.SketchInto(&k, doc) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data) - len(docs)))
			b.ReportAllocs()
			for b.Loop() {
				for _, doc := range docs {
					f(doc)
				}
			}
		})
	}
}

// BenchmarkKernel measures 295 ready hashes to 128 positions: a text of about 300 words.
func BenchmarkKernel(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	sets := make([][]uint64, 64) // one alone would teach the processor its branches
	for i := range sets {
		for range 295 {
			sets[i] = append(sets[i], r.Uint64())
		}
	}
	slots := new(slotArray)
	for i := 0; b.Loop(); i++ {
		slots.fill(DefaultPositions, sets[i%len(sets)])
	}
}

// BenchmarkAgreement measures one comparison of two sketches of 128 positions by 8 bits.
func BenchmarkAgreement(b *testing.B) {
	s, r := newSketcher(b, nil), rand.New(rand.NewPCG(3, 4))
	list := make([]*Sketch, 64)
	for i := range list {
		x, _ := pair(r, 300, 0)
		list[i] = sketchOf(s, x)
	}
	for i := 0; b.Loop(); i++ {
		list[i%64].Agreement(list[i/64%64])
	}
}
