package main

import (
	"strconv"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// quality is how the clusters compare with what was planted.
type quality struct {
	// Planted documents agree with the first of their planted cluster at or above the threshold; Found of them are in one cluster with it.
	Planted int `json:"planted"`
	Found   int `json:"found"`
	// Joined documents are in clusters of several texts and have another text than the first; Right of them are near-duplicates of another
	// member by their sketches, all pairs compared.
	Joined int `json:"joined"`
	Right  int `json:"right"`
}

// checker holds clusters to the sketches, which it makes again.
type checker struct {
	m    *maker
	rule *rule.Rule
	q    quality
	of   []uint32 // the output's cluster of each document
	next uint32
}

func newChecker(m *maker, r *rule.Rule) *checker {
	return &checker{m: m, rule: r, of: make([]uint32, m.n)}
}

// cluster looks at one cluster of the output.
func (c *checker) cluster(members []cluster.Member) {
	sketches := make([]sketch.Sketch, len(members))
	for i, m := range members {
		document, _ := strconv.Atoi(m.ID[1:])
		c.of[document] = c.next
		c.m.document(document, &sketches[i])
	}
	c.next++
	first := 0
	for i := range members {
		if members[i].First {
			first = i
		}
	}
	for i := range members {
		if members[i].Text == members[first].Text {
			continue
		}
		c.q.Joined++
		for j := range members {
			near, _ := c.rule.Profile.NearDuplicates(&sketches[i], &sketches[j])
			if near && i != j && members[i].Text != members[j].Text {
				c.q.Right++
				break
			}
		}
	}
}

// done looks for what was planted, and returns what was found.
func (c *checker) done() *quality {
	firsts := map[uint64]uint32{} // the document that is first in a planted cluster
	var k, first sketch.Sketch
	for i := range c.m.n {
		if cluster, is := c.m.planted(i); is {
			firsts[cluster] = uint32(i)
		}
	}
	for i := range c.m.n {
		cluster, is := c.m.planted(i)
		if is {
			continue
		}
		other, there := firsts[cluster]
		if !there {
			continue
		}
		c.m.document(i, &k)
		c.m.document(int(other), &first)
		if near, _ := c.rule.Profile.NearDuplicates(&k, &first); near {
			c.q.Planted++
			if c.of[i] == c.of[other] {
				c.q.Found++
			}
		}
	}
	return &c.q
}
