package offline

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/sketch"
)

// Sketch prints the sketches of a file of documents.
func (g *Comparer) Sketch(ctx context.Context, file string, asJSON bool) error {
	src, name, err := g.open(file)
	if err != nil {
		return err
	}
	defer src.Close()
	p := printer{Comparer: g, name: name, json: asJSON, scheme: fmt.Sprintf("%08x", g.Sketcher.SchemeID())}
	err = EachBatch(ctx, src, p.batch, func(lines []byte) error {
		_, err := g.Out.Write(lines)
		return err
	})
	if err == nil && p.documents.Load() > 0 && p.held.Load() == 0 {
		g.NoteFields(name)
	}
	return err
}

// printer makes lines of sketches. It is safe for concurrent use.
type printer struct {
	*Comparer
	name, scheme    string
	json            bool
	documents, held atomic.Int64
}

// batch returns the lines of a batch of documents, and with an error those before it.
func (p *printer) batch(b Batch) ([]byte, error) {
	var out []byte
	var s sketch.Sketch
	count, held := int64(0), int64(0)
	defer func() {
		p.documents.Add(count)
		p.held.Add(held)
	}()
	for number, line := range b.Lines() {
		d, err := documents.Read(line, "id", p.Rule.Fields)
		if err == nil && !p.json {
			err = plainID(&d)
		}
		if err != nil {
			return out, AtLine(p.name, number, err)
		}
		count++
		if d.Held {
			held++
		}
		has := p.Sketcher.SketchInto(&s, d.Texts...)
		s.Source = p.Rule.Source()
		if out, err = p.line(out, &d, &s, has); err != nil {
			return out, AtLine(p.name, number, err)
		}
	}
	return out, nil
}

// line appends one document's line.
func (p *printer) line(out []byte, d *documents.Document, s *sketch.Sketch, has bool) (_ []byte, err error) {
	before := len(out)
	if p.json {
		out = append(append(append(out, `{"id":`...), d.RawID...), `,"scheme":"`...)
		out = append(append(out, p.scheme...), `","sketch":"`...)
	} else {
		out = append(append(append(append(out, d.ID...), '\t'), p.scheme...), '\t')
	}
	if has {
		if out, err = s.AppendText(out); err != nil {
			return out[:before], err
		}
	}
	if p.json {
		out = append(out, `"}`...)
	}
	return append(out, '\n'), nil
}
