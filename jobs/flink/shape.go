package flink

import (
	"github.com/neardup/sidecar/sketch"
)

// shape is how the sketches of a job are compared in SQL. The zero value compares none.
type shape struct {
	positions, width int // a sketch has that many positions of that many bits
	least            int // equal ones that make the agreement
}

// mostCompared is how many positions are compared in SQL at most. Flink compiles each: 128 take a second or two, 512 a minute.
const mostCompared = 256

// shapeOf returns the shape of a job over sketches like this one.
func shapeOf(s *sketch.Sketch, threshold float64) shape {
	if s.Form != sketch.Positions || threshold <= 0 || 8*len(s.Payload)/int(s.Bits) > mostCompared {
		return shape{}
	}
	h := shape{positions: 8 * len(s.Payload) / int(s.Bits), width: int(s.Bits)}
	if h.least = h.leastEqual(s, threshold); h.least == 0 {
		return shape{}
	}
	return h
}

// takes reports whether the sketch is one that the job can compare.
func (h shape) takes(s *sketch.Sketch) bool {
	return h.least == 0 || s.Form == sketch.Positions && int(s.Bits) == h.width && 8*len(s.Payload) == h.positions*h.width
}

// leastEqual returns in how many positions two sketches are equal at least where they agree at the threshold: asked of the very
// function that compares sketches, so that no rounding differs.
func (h shape) leastEqual(like *sketch.Sketch, threshold float64) int {
	a, b := *like, *like
	a.Payload, b.Payload = make([]byte, len(like.Payload)), make([]byte, len(like.Payload))
	for i := range b.Payload {
		b.Payload[i] = 0xff
	}
	for equal := 0; ; equal++ {
		if agreement, _ := a.Agreement(&b); agreement >= threshold || equal == h.positions {
			return equal
		}
		at := equal * h.width
		b.Payload[at/8] &^= (1<<h.width - 1) << (at % 8)
	}
}

// perWord is how many positions are packed into a number of 63 bits.
func (h shape) perWord() int { return 63 / h.width }

// words is how many numbers hold a sketch.
func (h shape) words() int {
	if h.positions == 0 {
		return 0
	}
	return (h.positions + h.perWord() - 1) / h.perWord()
}

// appendWords appends the numbers that hold a sketch's positions, the first in the low digits of the first.
func (h shape) appendWords(words []int64, payload []byte) []int64 {
	for first := 0; first < h.positions; first += h.perWord() {
		word := int64(0)
		for i := min(first+h.perWord(), h.positions) - 1; i >= first; i-- {
			at := i * h.width
			word = word<<h.width | int64(payload[at/8]>>(at%8))&(1<<h.width-1)
		}
		words = append(words, word)
	}
	return words
}
