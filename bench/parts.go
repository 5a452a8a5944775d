package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// part is a measured piece of the work: the kernel alone, comparing two sketches, collapsing a list of hits.
type part struct {
	what, who   string
	nanoseconds float64
	per         string
	absent      string
}

const (
	comparing  = "compare two sketches"
	collapsing = "collapse 100 hits"
	kernel     = "ready hashes to positions"

	partHits   = 100
	partHashes = 295 // shingles of a document of 2 kB
)

// measureParts measures the pieces on the sketches of the first 100 documents, none of which is a near-duplicate of another
// often enough to matter: the worst case of collapsing.
func measureParts(documents []string) ([]part, error) {
	s, err := sketch.New(jobScheme())
	if err != nil {
		return nil, err
	}
	if len(documents) < partHits {
		return nil, fmt.Errorf("%d documents, want %d at least", len(documents), partHits)
	}
	hits := make([]rerank.Hit, partHits)
	signatures := make([][]uint64, partHits)
	profile := rerank.Profile{Threshold: 0.8, MinShingles: 8}
	for i := range hits {
		made, ok := s.Sketch(documents[i])
		if !ok {
			return nil, errors.New("a document without a word")
		}
		hits[i] = rerank.Hit{ID: strconv.Itoa(i), Sketch: &made, Profile: &profile}
		signatures[i] = idiomaticSignature(documents[i])
	}
	pairs := float64(partHits * (partHits - 1) / 2)
	parts := []part{
		{what: comparing, who: ours, per: "pair", nanoseconds: bestOf(func() { compareAll(hits) }) / pairs},
		{what: comparing, who: idiom + ", 128 × 64 bits", per: "pair",
			nanoseconds: bestOf(func() { compareSignatures(signatures) }) / pairs},
		{what: collapsing, who: ours, per: "list",
			nanoseconds: bestOf(func() { sink += uint64(len(rerank.Collapse(hits, partHits).Groups)) })},
	}
	return append(parts, measureKernels()...), nil
}

func compareAll(hits []rerank.Hit) {
	sum := 0.0
	for i := range hits {
		for j := range i {
			agreement, _ := hits[i].Sketch.Agreement(hits[j].Sketch)
			sum += agreement
		}
	}
	sink += uint64(sum)
}

func compareSignatures(signatures [][]uint64) {
	for i := range signatures {
		for j := range i {
			sink += uint64(equalPositions(signatures[i], signatures[j]))
		}
	}
}

// measureKernels compares what is left when tokenising and hashing are done. Our kernel is not exported: its own benchmark in the
// package is run.
func measureKernels() []part {
	r := rand.New(rand.NewPCG(3, 4))
	hashes := make([]uint64, partHashes)
	var signature [positions]uint64
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	nanoseconds := bestOf(func() { multiplyShift(&signature, hashes); sink += signature[0] })
	who := fmt.Sprintf("%s, %d hashes", idiom, partHashes)
	return append(ownKernel(), part{what: kernel, who: who, per: "document", nanoseconds: nanoseconds})
}

var benchmarkLine = regexp.MustCompile(`(?m)^(Benchmark\S+)\s+\d+\s+([0-9.]+) ns/op`)

func ownKernel() []part {
	c := exec.Command("go", "test", "-run", "^$", "-bench", "Kernel|Positions", "-benchtime", "200ms", "-count", "3", "-cpu", "1",
		"./sketch")
	c.Dir = ".."
	out, err := c.Output()
	if err != nil {
		return []part{{what: kernel, who: ours, absent: "go test in ../sketch: " + err.Error()}}
	}
	var parts []part
	for _, m := range benchmarkLine.FindAllStringSubmatch(string(out), -1) {
		nanoseconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		who := ours + ", " + m[1]
		if last := len(parts) - 1; last >= 0 && parts[last].who == who {
			parts[last].nanoseconds = min(parts[last].nanoseconds, nanoseconds)
			continue
		}
		parts = append(parts, part{what: kernel, who: who, per: "document", nanoseconds: nanoseconds})
	}
	if parts == nil {
		return []part{{what: kernel, who: ours, absent: "package sketch has no benchmark named Kernel or Positions"}}
	}
	return parts
}

// bestOf returns the nanoseconds of one call: the best of 20 measurements of 20 ms each.
func bestOf(f func()) float64 {
	best := 0.0
	for range 20 {
		runtime.GC()
		calls, start := 0, time.Now()
		for time.Since(start) < 20*time.Millisecond {
			for range 10 {
				f()
			}
			calls += 10
		}
		if each := float64(time.Since(start).Nanoseconds()) / float64(calls); best == 0 || each < best {
			best = each
		}
	}
	return best
}
