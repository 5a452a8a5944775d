package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"html"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/sketch"
)

// document is one that is indexed. Its sketch is that of its text, and no other document has it.
type document struct{ title, text, sketch string }

// source returns the document as JSON, the sketch added after the last member as the sidecar does it.
func (d document) source(withSketch bool) []byte {
	title, _ := json.Marshal(d.title) // strings always marshal
	text, _ := json.Marshal(d.text)
	b := append(append(append([]byte(`{"title":`), title...), `,"text":`...), text...)
	if withSketch {
		b = append(append(append(b, `,"`+field+`":"`...), d.sketch...), '"')
	}
	return append(b, '}')
}

// corpus is what is indexed, and words to ask for.
type corpus struct {
	documents, large []document
	// common are words in 2 to 20 % of the documents, rare ones in 0.05 to 0.5 %.
	common, rare []string
}

// copies is the share of near-duplicates.
const copies = .3

var (
	macros = regexp.MustCompile(`(?m)^[.'].*$`)
	marks  = regexp.MustCompile(`\\(f[A-Z]|f\([A-Z]+|f\[[A-Z]*\]|[&|^%/c]|\([a-z]{2}|s[+-]?\d)|<[^<>]{0,300}>`)
)

// readCorpus cuts the text files below the folders into passages of 150 to 350 words; what is not distinct is left out.
func readCorpus(folders []string, count, large int) (*corpus, error) {
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		return nil, err
	}
	m := maker{
		sketcher: sketcher, rng: rand.New(rand.NewPCG(1, 2)),
		seen: map[string]bool{}, read: map[uint64]bool{}, seed: maphash.MakeSeed(),
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || len(m.documents) >= count {
				return err
			}
			if entry.Type().IsRegular() {
				m.file(path, count)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(m.documents) < count {
		return nil, fmt.Errorf("%s have text for %d documents of %d: name more folders by -text",
			strings.Join(folders, ", "), len(m.documents), count)
	}
	c := &corpus{documents: m.documents}
	m.rng.Shuffle(count, func(i, j int) { c.documents[i], c.documents[j] = c.documents[j], c.documents[i] })
	m.documents = nil
	for len(m.documents) < large {
		var text []string
		for size := 0; size < 20000; {
			d := c.documents[m.rng.IntN(count)]
			text, size = append(text, d.text), size+len(d.text)
		}
		m.add(strings.Join(text, " "))
	}
	c.large = m.documents
	c.count()
	bytes := 0
	for _, d := range c.documents {
		bytes += len(d.source(false))
	}
	fmt.Printf("%d documents of %d bytes on average, %.0f %% of them near-duplicates, sketches of %d characters.\n",
		count, bytes/count, 100*float64(m.copied)/float64(count), len(c.documents[0].sketch))
	return c, nil
}

type maker struct {
	sketcher  *sketch.Sketcher
	rng       *rand.Rand
	documents []document
	seen      map[string]bool
	read      map[uint64]bool
	seed      maphash.Seed
	copied    int
}

// file cuts one file into documents. A file that can't be read, is no text or was met under another name gives none.
func (m *maker) file(path string, count int) {
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 4<<20 {
		return
	}
	if strings.HasSuffix(path, ".gz") {
		zipped, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		if data, err = io.ReadAll(io.LimitReader(zipped, 8<<20)); err != nil {
			return
		}
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 || m.read[maphash.Bytes(m.seed, data)] {
		return
	}
	m.read[maphash.Bytes(m.seed, data)] = true
	words := strings.Fields(html.UnescapeString(marks.ReplaceAllString(macros.ReplaceAllString(string(data), ""), "")))
	for len(words) >= 150 && len(m.documents) < count {
		n := min(150+m.rng.IntN(200), len(words))
		passage := words[:n]
		words = words[n:]
		if size := len(strings.Join(passage, " ")); size > 3000 || !m.add(strings.Join(passage, " ")) {
			continue
		}
		for m.rng.Float64() < copies/(1-copies)*.7 && len(m.documents) < count {
			if m.add(strings.Join(m.edit(passage), " ")) {
				m.copied++
			}
		}
	}
}

// edit exchanges 1 to 10 % of the words for others of the passage.
func (m *maker) edit(passage []string) []string {
	edited := append([]string(nil), passage...)
	rate := .01 + .09*m.rng.Float64()
	for i := range edited {
		if m.rng.Float64() < rate {
			edited[i] = passage[m.rng.IntN(len(passage))]
		}
	}
	return edited
}

// add appends a document unless another has its sketch.
func (m *maker) add(text string) bool {
	k, ok := m.sketcher.Sketch(text)
	stored := k.String()
	if !ok || m.seen[stored] {
		return false
	}
	m.seen[stored] = true
	words := strings.SplitN(text, " ", 7)
	m.documents = append(m.documents, document{strings.Join(words[:min(6, len(words))], " "), text, stored})
	return true
}

// count finds the words to ask for.
func (c *corpus) count() {
	found := map[string]int{}
	for _, d := range c.documents {
		once := map[string]bool{}
		for _, word := range strings.Fields(d.text) {
			if len(word) >= 4 && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" && !once[word] {
				once[word] = true
				found[word]++
			}
		}
	}
	for word, n := range found {
		switch share := float64(n) / float64(len(c.documents)); {
		case share >= .02 && share <= .2:
			c.common = append(c.common, word)
		case share >= .0005 && share <= .005:
			c.rare = append(c.rare, word)
		}
	}
}
