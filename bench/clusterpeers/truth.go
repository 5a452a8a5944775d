package main

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
)

// pair is two documents by their numbers, the smaller one first.
type pair [2]int32

var seed = maphash.MakeSeed()

// shingles are the hashes of the runs of n words of a text whose words have one blank between, each once.
func shingles(text string, n int) []uint64 {
	ends, starts := []int{}, []int{0}
	for i := 0; i < len(text); i++ {
		if text[i] == ' ' {
			ends, starts = append(ends, i), append(starts, i+1)
		}
	}
	ends = append(ends, len(text))
	if len(ends) < n {
		return []uint64{maphash.String(seed, text)}
	}
	set := make([]uint64, 0, len(ends)-n+1)
	for i := range len(ends) - n + 1 {
		set = append(set, maphash.String(seed, text[starts[i]:ends[i+n-1]]))
	}
	slices.Sort(set)
	return slices.Clip(slices.Compact(set))
}

// epsilon is more than the rounding of a product, and less than two resemblances of texts differ by.
const epsilon = 1e-9

// resemble reports whether two sets, in one order, have a Jaccard resemblance of at least this.
func resemble(a, b []uint64, threshold float64, before func(x, y uint64) int) bool {
	sum := len(a) + len(b)
	need := int(math.Ceil(threshold/(1+threshold)*float64(sum) - epsilon)) // common / (sum - common) is at least the threshold
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if common+min(len(a)-i, len(b)-j) < need {
			return false
		}
		switch c := before(a[i], b[j]); {
		case c == 0:
			common, i, j = common+1, i+1, j+1
		case c < 0:
			i++
		default:
			j++
		}
	}
	return common >= need
}

// exactPairs returns all pairs of sets whose Jaccard resemblance is at least the threshold. It compares those that share one of their rarest
// shingles (prefix filtering, Chaudhuri and others 2006; Bayardo and others 2007): any two sets that resemble each other this much have one in
// common among the first n - threshold·n + 1 of each. It misses no pair.
func exactPairs(sets [][]uint64, threshold float64) (pairs []pair) {
	const bits = 26
	often := make([]uint16, 1<<bits) // how often shingles are there that begin with these bits: at least as often as any one of them
	for _, set := range sets {
		for _, x := range set {
			if n := &often[x>>(64-bits)]; *n < math.MaxUint16 {
				*n++
			}
		}
	}
	before := func(x, y uint64) int {
		if c := cmp.Compare(often[x>>(64-bits)], often[y>>(64-bits)]); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	}
	order := make([]int32, len(sets))
	for i := range sets {
		order[i] = int32(i)
		slices.SortFunc(sets[i], before)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(len(sets[a]), len(sets[b])) })
	having := map[uint64][]int32{} // the sets before, by the shingles in their beginnings
	looked := make([]int32, len(sets))
	for n, i := range order {
		set := sets[i]
		least := int(math.Ceil(threshold*float64(len(set)) - epsilon))
		for _, x := range set[:len(set)-least+1] {
			if often[x>>(64-bits)] == 1 {
				continue // no other set has it
			}
			for _, j := range having[x] {
				if looked[j] == int32(n+1) || len(sets[j]) < least {
					continue
				}
				looked[j] = int32(n + 1)
				if resemble(set, sets[j], threshold, before) {
					pairs = append(pairs, pair{min(i, j), max(i, j)})
				}
			}
			having[x] = append(having[x], i)
		}
	}
	return pairs
}

// connected numbers the clusters that pairs make of n documents: each document gets the least number in its cluster.
func connected(n int, pairs []pair) []int32 {
	parent := make([]int32, n)
	for i := range parent {
		parent[i] = int32(i)
	}
	find := func(x int32) int32 {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	for _, p := range pairs {
		a, b := find(p[0]), find(p[1])
		parent[max(a, b)] = min(a, b)
	}
	for i := range parent {
		parent[i] = find(int32(i))
	}
	return parent
}

// setsOf are the shingles of texts.
func setsOf(texts []string, n int) [][]uint64 {
	sets := make([][]uint64, len(texts))
	for i, text := range texts {
		sets[i] = shingles(strings.TrimSpace(text), n)
	}
	return sets
}
