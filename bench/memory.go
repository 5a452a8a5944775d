package main

import "strings"

// memorySize is how many bytes the copies of a corpus take together: more than a processor's caches keep for one core.
const memorySize = 256 << 20

// copies are copies of one corpus at different addresses, so that a pass over the next one finds none of its text in a cache. A
// corpus of 20 MB stays in a large cache from pass to pass, which the ceiling is fast enough to feel and nothing else is.
type copies struct {
	name  string
	texts [][]string
	next  int
}

// documents returns the documents of the copy that was read longest ago.
func (c *copies) documents(of corpus) []string {
	if c.name != of.Name {
		*c = copies{name: of.Name}
		for range memorySize/len(of.Text) + 1 {
			text := strings.Clone(of.Text)
			c.texts = append(c.texts, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
		}
	}
	c.next = (c.next + 1) % len(c.texts)
	return c.texts[c.next]
}
