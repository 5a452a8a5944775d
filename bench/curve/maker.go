package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/sketch"
)

// maker makes the sketches of a corpus of n documents, any of them at any time, by the statistics of real texts. Nothing of them is stored.
//
// A layout of slots, drawn once from the statistics, is repeated as often as it takes: each slot is a document, of a cluster, of a family of unlike
// clusters that share a frame. The documents come in an order in which a cluster is all over the corpus.
type maker struct {
	n      int
	seed   uint64
	s      Statistics
	scheme uint32
	slots  []slot
	half   uint // bits of each half of a number that is permuted
}

// slot is a document of the layout: its cluster and family, by their first slots, and which member it is.
type slot struct {
	cluster, family, copyOf uint32
	first                   bool
	alike                   float32 // how much of the cluster's first it has
	frame                   float32 // how much of the family's frame the cluster has; 0 for none
	short                   bool
}

const (
	positions = 96
	// inLayout is how many documents the layout has.
	inLayout = 1 << 16
	// duplicates is the share of documents that are no first of their cluster: three in ten, as in crawls of the Web.
	duplicates = 0.3
)

func newMaker(n int, seed uint64, scheme uint32, s Statistics) *maker {
	m := &maker{n: n, seed: seed, s: s, scheme: scheme}
	for m.half = 1; 1<<(2*m.half) < n; m.half++ {
	}
	r := rand.New(rand.NewPCG(seed, 1))
	sizes := newDrawing(s.Clusters)
	families := newDrawing(s.Families)
	// Clusters of several are as many as it takes for the share of duplicates.
	extra := 0.0
	for size, weight := range s.Clusters {
		if size > 1 {
			extra += float64(size-1) * float64(weight)
		}
	}
	several := 0
	for size, weight := range s.Clusters {
		if size > 1 {
			several += weight
		}
	}
	mean := extra / float64(several) // duplicates in a cluster of several
	chance := duplicates / ((1 - duplicates) * mean)
	for len(m.slots) < inLayout {
		family := uint32(len(m.slots))
		clusters := families.draw(r, 1)
		for range clusters {
			frame := float32(0)
			if clusters > 1 {
				frame = float32(math.Sqrt(pick(r, s.Strangers)))
			}
			first, size := uint32(len(m.slots)), 1
			if r.Float64() < chance {
				size = sizes.draw(r, 2)
			}
			short := r.Float64() < s.Short
			for i := range size {
				d := slot{cluster: first, family: family, copyOf: uint32(len(m.slots)), first: i == 0, frame: frame, alike: 1, short: short}
				if i > 0 {
					if r.Float64() < s.Copies {
						d.copyOf = first + uint32(r.IntN(i))
						d.copyOf = m.slots[d.copyOf].copyOf
						d.alike = m.slots[d.copyOf].alike
					} else {
						d.alike = float32(pick(r, s.Near))
					}
				}
				m.slots = append(m.slots, d)
			}
		}
	}
	return m
}

// document returns the cluster, by the place of its first document in the layout's repetitions, and the sketch of a document. The sketch is
// good until the next one.
func (m *maker) document(i int, k *sketch.Sketch) (cluster uint64) {
	at := m.permuted(uint64(i))
	turn, d := at/uint64(len(m.slots)), m.slots[at%uint64(len(m.slots))]
	base := turn * uint64(len(m.slots))
	cluster = base + uint64(d.cluster)
	payload := k.Payload[:0]
	text := base + uint64(d.copyOf)
	own := rand.NewPCG(m.seed^cluster, 2)
	payload = m.fresh(payload, own)
	if d.frame > 0 {
		frame := m.fresh(make([]byte, 0, positions), rand.NewPCG(m.seed^(base+uint64(d.family)), 3))
		mix(payload, frame, float64(d.frame), own)
	}
	k.Topics = topics(k.Topics[:0], own)
	if text != cluster {
		mine := rand.NewPCG(m.seed^text, 4)
		var noise [positions]byte
		mix(payload, m.fresh(noise[:0], mine), 1-float64(d.alike), mine)
	}
	*k = sketch.Sketch{
		Scheme: m.scheme, Form: sketch.Positions, Bits: 8, Fingerprint: hashed(m.seed^text, 5), Payload: payload, Topics: k.Topics,
		Shingles: 200, Words: 260, Numbers: uint32(hashed(m.seed^text, 6)) & (1<<24 - 1),
	}
	if d.short {
		k.Shingles, k.Words, k.Topics = 20, 22, k.Topics[:0]
	}
	return cluster
}

// planted returns the cluster of a document, and whether it is its first.
func (m *maker) planted(i int) (cluster uint64, first bool) {
	at := m.permuted(uint64(i))
	d := m.slots[at%uint64(len(m.slots))]
	return at/uint64(len(m.slots))*uint64(len(m.slots)) + uint64(d.cluster), d.first
}

// fresh appends the positions of a text that is like no other one: values of its own, but for those of phrases that many texts have.
func (m *maker) fresh(room []byte, r *rand.PCG) []byte {
	var word uint64
	for i := range positions {
		if i%8 == 0 {
			word = r.Uint64()
		}
		room = append(room, byte(word>>(8*(i%8))))
	}
	for i := 0; i < positions; i += 4 {
		draw := r.Uint64()
		for j := range 4 {
			if x := uint16(draw >> (16 * j)); x < commonShare {
				room[i+j] = phrase(i+j, x)
			}
		}
	}
	return room
}

// commonShare of 65536 positions are those of common phrases, and Zipf's law says of which.
const commonShare = 65536 * 0.25

const phrases = 16

var zipf = func() (list []uint16) { // the share of commonShare up to each phrase
	sum, total := 0.0, 0.0
	for k := 1; k <= phrases; k++ {
		total += 1 / float64(k)
	}
	for k := 1; k <= phrases; k++ {
		sum += 1 / float64(k)
		list = append(list, uint16(sum/total*commonShare))
	}
	return list
}()

func phrase(position int, x uint16) byte {
	k, _ := slices.BinarySearch(zipf, x)
	return byte(hashed(uint64(position)<<16|uint64(k), 7))
}

// mix takes a share of the positions from another text.
func mix(to, from []byte, share float64, r *rand.PCG) {
	limit := uint32(share * 65536)
	for i := 0; i < positions; i += 4 {
		draw := r.Uint64()
		for j := range 4 {
			if uint32(uint16(draw>>(16*j))) < limit {
				to[i+j] = from[i+j]
			}
		}
	}
}

// topics appends a table of a few words that occur often, and some more that are repeated.
func topics(room []byte, r *rand.PCG) []byte {
	room = append(room, make([]byte, 28)...)
	for i := range 10 {
		x := r.Uint64() % 112
		room[14+x/8] |= 1 << (x % 8)
		if i < 3 {
			room[x/8] |= 1 << (x % 8)
		}
	}
	return room
}

// permuted returns the place of a document in the layout's repetitions: a permutation of the numbers below n (a Feistel network, walked until it is
// below n).
func (m *maker) permuted(i uint64) uint64 {
	mask := uint64(1)<<m.half - 1
	for {
		left, right := i>>m.half, i&mask
		for round := range uint64(4) {
			left, right = right, left^hashed(right^m.seed, 8+round)&mask
		}
		if i = left<<m.half | right; i < uint64(m.n) {
			return i
		}
	}
}

// hashed is a hash of a number for one purpose.
func hashed(x, purpose uint64) uint64 {
	x += purpose * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// id is the id of a document.
func id(i int) string { return "d" + strconv.Itoa(i) }

// pick draws from quantiles.
func pick(r *rand.Rand, quantiles []float64) float64 {
	at := r.Float64() * float64(len(quantiles)-1)
	low := int(at)
	return max(0, quantiles[low]+(quantiles[min(low+1, len(quantiles)-1)]-quantiles[low])*(at-float64(low)))
}

// drawing draws sizes by how frequent they are.
type drawing struct{ sizes, sums []int }

func newDrawing(counts map[int]int) (d drawing) {
	sum := 0
	for size := 1; len(d.sizes) < len(counts); size++ {
		if n, has := counts[size]; has {
			sum += n
			d.sizes, d.sums = append(d.sizes, size), append(d.sums, sum)
		}
	}
	return d
}

// draw draws a size of at least so much.
func (d drawing) draw(r *rand.Rand, least int) int {
	for {
		at, _ := slices.BinarySearch(d.sums, 1+r.IntN(d.sums[len(d.sums)-1]))
		if d.sizes[at] >= least {
			return d.sizes[at]
		}
	}
}
