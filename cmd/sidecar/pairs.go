package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// member is a document as it is kept to be compared.
type member struct {
	// sketch is nil where the document has no word.
	sketch *sketch.Sketch
	// text prepares the texts when they are asked for the first time; nil where they are never asked for.
	text func() *sketch.Text
}

// judge compares pairs of documents. It is safe for concurrent use.
type judge struct {
	profile rerank.Profile
	members map[string]member
	pairs   string // what the pairs are called in messages
	json    bool
}

// comparePairs prints a line for each pair.
func (g *ground) comparePairs(cmd *cobra.Command, f *compareFlags) error {
	j := judge{profile: f.profile(g), json: f.output == formJSON}
	src, name, err := open(cmd, f.pairs)
	if err != nil {
		return err
	}
	defer src.Close()
	j.pairs = name
	if err := j.load(cmd, g, f.docs); err != nil {
		return err
	}
	if !j.json {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), "id_a\tid_b\tagreement\terror\tnear_duplicate"); err != nil {
			return err
		}
	}
	return eachBatch(cmd.Context(), src, j.batch, func(lines []byte) error {
		_, err := cmd.OutOrStdout().Write(lines)
		return err
	})
}

// loaded is a document that was read, and the line it stands in.
type loaded struct {
	member
	id   string
	line int
	held bool
}

// load reads the documents.
func (j *judge) load(cmd *cobra.Command, g *ground, file string) error {
	src, name, err := open(cmd, file)
	if err != nil {
		return err
	}
	defer src.Close()
	j.members = map[string]member{}
	lines, held := map[string]int{}, false
	work := func(b batch) (list []loaded, err error) {
		for number, line := range b.lines() {
			d, err := readDocument(line, g.rule.Fields)
			if err != nil {
				return list, inLine(name, number, err)
			}
			list = append(list, loaded{g.member(d.texts, j.profile.Check != rerank.Check{}), d.id, number, d.held})
		}
		return list, nil
	}
	err = eachBatch(cmd.Context(), src, work, func(list []loaded) error {
		for _, l := range list {
			if before, taken := lines[l.id]; taken {
				return inLine(name, l.line, fmt.Errorf("id %s stands in line %d too: give each document its own", l.id, before))
			}
			lines[l.id], j.members[l.id] = l.line, l.member
			held = held || l.held
		}
		return nil
	})
	if err == nil && len(lines) > 0 && !held {
		g.noteFields(cmd.ErrOrStderr(), name)
	}
	return err
}

// member makes what is kept of a document.
func (g *ground) member(texts []string, withTexts bool) member {
	var m member
	if s, ok := g.sketcher.Sketch(texts...); ok {
		m.sketch = &s
	}
	if withTexts && m.sketch != nil {
		m.text = sync.OnceValue(func() *sketch.Text {
			t := g.sketcher.Text(texts...)
			texts = nil // not needed again
			return t
		})
	}
	return m
}

// batch returns the lines of a batch of pairs, and with an error those before it.
func (j *judge) batch(b batch) (out []byte, err error) {
	for number, line := range b.lines() {
		first, rest, tab := bytes.Cut(line, []byte("\t"))
		second, _, _ := bytes.Cut(rest, []byte("\t"))
		if number == 1 && string(first) == "id_a" && string(second) == "id_b" {
			continue
		}
		if !tab || len(first) == 0 || len(second) == 0 {
			return out, inLine(j.pairs, number, fmt.Errorf("%.60q is no pair: write two ids with a tab between", line))
		}
		a, err := j.member(first)
		if err != nil {
			return out, inLine(j.pairs, number, err)
		}
		c, err := j.member(second)
		if err != nil {
			return out, inLine(j.pairs, number, err)
		}
		near, agreement, deviation := j.compare(a, c)
		out = j.line(out, first, second, near, agreement, deviation)
	}
	return out, nil
}

func (j *judge) member(id []byte) (member, error) {
	m, known := j.members[string(id)]
	if !known {
		return m, fmt.Errorf("there is no document with the id %s: look for it in the file that --docs names", id)
	}
	return m, nil
}

// compare returns the verdict on two documents, their agreement, never below 0, and its standard error. A document without a
// word is a near-duplicate of none.
func (j *judge) compare(a, b member) (near bool, agreement, deviation float64) {
	if a.sketch == nil || b.sketch == nil {
		return false, 0, 0
	}
	near, agreement = j.profile.NearDuplicateTexts(a.sketch, b.sketch, func() (float64, float64) {
		return a.text().Compare(b.text())
	})
	estimate, _ := a.sketch.Resemblance(b.sketch)
	if j.profile.Measure == rerank.Containment {
		smaller, larger := a.sketch, b.sketch
		if larger.Shingles < smaller.Shingles {
			smaller, larger = larger, smaller
		}
		estimate, _ = smaller.Containment(larger)
	}
	return near, max(0, agreement), estimate.Error
}

// line appends a pair's line.
func (j *judge) line(out, a, b []byte, near bool, agreement, deviation float64) []byte {
	between := [...]string{"", "\t", "\t", "\t", "\t", "\n"}
	if j.json {
		between = [...]string{`{"id_a":`, `,"id_b":`, `,"agreement":`, `,"error":`, `,"near_duplicate":`, "}\n"}
		a, b = adapters.AppendString(nil, string(a)), adapters.AppendString(nil, string(b))
	}
	out = append(append(out, between[0]...), a...)
	out = append(append(out, between[1]...), b...)
	out = strconv.AppendFloat(append(out, between[2]...), agreement, 'f', 4, 64)
	out = strconv.AppendFloat(append(out, between[3]...), deviation, 'f', 4, 64)
	out = strconv.AppendBool(append(out, between[4]...), near)
	return append(out, between[5]...)
}
