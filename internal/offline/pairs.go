package offline

import (
	"bytes"
	"context"
	"fmt"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// member is a document to compare.
type member struct {
	id string
	// sketch is nil if the document has no word.
	sketch *sketch.Sketch
	line   int // in the file
}

// judge compares pairs of documents. It is safe for concurrent use.
type judge struct {
	profile rerank.Profile
	members map[string]member
	pairs   string // the name of the pairs' file for messages
	json    bool
}

// Pairs prints a line for each pair.
func (g *Comparer) Pairs(ctx context.Context, f *Comparison) error {
	j := judge{profile: f.profile(g), json: f.JSON}
	src, name, err := Open(f.Pairs, g.In)
	if err != nil {
		return err
	}
	defer src.Close()
	j.pairs = name
	if err := j.load(ctx, g, f.Docs); err != nil {
		return err
	}
	if !j.json {
		if _, err := fmt.Fprintln(g.Out, "id_a\tid_b\tagreement\terror\tnear_duplicate"); err != nil {
			return err
		}
	}
	return eachBatch(ctx, src, 0, j.batch, g.write)
}

// load reads the documents.
func (j *judge) load(ctx context.Context, g *Comparer, file string) error {
	j.members = map[string]member{}
	return EachDocument(ctx, g, file, "id", func(list []member, line int, d *documents.Document) ([]member, error) {
		m := member{id: d.ID, line: line}
		if s, ok := g.Sketcher.Sketch(d.Texts...); ok {
			m.sketch = &s
		}
		return append(list, m), nil
	}, func(list []member) error {
		for _, m := range list {
			if before, taken := j.members[m.id]; taken {
				return atLine(NameOf(file), m.line, fmt.Errorf("id %s is in line %d too: give each document its own", m.id, before.line))
			}
			j.members[m.id] = m
		}
		return nil
	})
}

// batch returns the output lines for a batch of pairs. With an error it returns those before it.
func (j *judge) batch(b batch) (out []byte, err error) {
	for number, line := range b.Lines() {
		first, rest, tab := bytes.Cut(line, []byte("\t"))
		second, _, _ := bytes.Cut(rest, []byte("\t"))
		if number == 1 && string(first) == "id_a" && string(second) == "id_b" {
			continue
		}
		if !tab || len(first) == 0 || len(second) == 0 {
			return out, atLine(j.pairs, number, fmt.Errorf("%.60q is not a pair: write two ids with a tab between", line))
		}
		var sides [2]member
		for i, id := range [][]byte{first, second} {
			known := false
			if sides[i], known = j.members[string(id)]; !known {
				return out, atLine(j.pairs, number, fmt.Errorf("there is no document with the id %s: look for it in the file that --docs names", id))
			}
		}
		near, agreement, deviation := j.compare(sides[0], sides[1])
		if !j.json {
			out = fmt.Appendf(out, "%s\t%s\t%.4f\t%.4f\t%t\n", first, second, agreement, deviation, near)
			continue
		}
		first, second = jsonedit.AppendString(nil, string(first)), jsonedit.AppendString(nil, string(second))
		const form = `{"id_a":%s,"id_b":%s,"agreement":%.4f,"error":%.4f,"near_duplicate":%t}` + "\n"
		out = fmt.Appendf(out, form, first, second, agreement, deviation, near)
	}
	return out, nil
}

// compare reports whether two documents are near-duplicates, and returns their agreement, at least 0, with its standard error. A document
// without a word is a near-duplicate of none.
func (j *judge) compare(a, b member) (near bool, agreement, deviation float64) {
	if a.sketch == nil || b.sketch == nil {
		return false, 0, 0
	}
	near, agreement = j.profile.NearDuplicates(a.sketch, b.sketch)
	estimate, _ := j.profile.Estimate(a.sketch, b.sketch)
	return near, max(0, agreement), estimate.Error
}
