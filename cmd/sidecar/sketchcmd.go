package main

import (
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/sketch"
)

func sketchCommand() *cobra.Command {
	var flags offline
	cmd := &cobra.Command{
		Use:   "sketch [docs.jsonl]",
		Short: "Print the sketches of documents in a file, without an engine",
		Long: `Sketch reads documents, one JSON object in each line, and prints a line for each in the same order: its id, the scheme
(8 hexadecimal digits) and its sketch, with tabs between. A document without a word has no sketch and an empty last column.
Without a file, or for -, it reads standard input. However many documents there are, it takes the same memory.

A document has its id, a text or a number, in the field id. The fields that are compared hold texts or lists of texts; a dot
leads into an object. A sketch is the one that the sidecar stores for the same fields under the same configuration.

The defaults apply, not the file config.yaml, unless --config names one. Of that file only the section sketch counts, and the
fields and the sketch of its rule if there is one alone or --index names it.

A line that can't be read ends it: what was printed before is whole.

Exit code 0: done. 1: failed or interrupted.`,
		Example: `  sidecar sketch docs.jsonl > sketches.tsv
  sidecar sketch --fields headline,body.text --output json docs.jsonl
  zcat docs.jsonl.gz | sidecar sketch --config config.yaml --index news-2024`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("sketch takes one file, and got %d: run it for each, or join them as in: cat *.jsonl | sidecar sketch", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := flags.ground(cmd)
			if err != nil {
				return err
			}
			file := "-"
			if len(args) > 0 {
				file = args[0]
			}
			return g.sketch(cmd, file, flags.output == formJSON)
		},
	}
	flags.bind(cmd)
	return cmd
}

// sketch prints the sketches of a file of documents.
func (g *ground) sketch(cmd *cobra.Command, file string, asJSON bool) error {
	src, name, err := open(cmd, file)
	if err != nil {
		return err
	}
	defer src.Close()
	p := printer{ground: g, name: name, json: asJSON, scheme: fmt.Sprintf("%08x", g.sketcher.SchemeID())}
	err = eachBatch(cmd.Context(), src, p.batch, func(lines []byte) error {
		_, err := cmd.OutOrStdout().Write(lines)
		return err
	})
	if err == nil && p.documents.Load() > 0 && p.held.Load() == 0 {
		g.noteFields(cmd.ErrOrStderr(), name)
	}
	return err
}

// printer makes lines of sketches. It is safe for concurrent use.
type printer struct {
	*ground
	name, scheme    string
	json            bool
	documents, held atomic.Int64
}

// batch returns the lines of a batch of documents, and with an error those before it.
func (p *printer) batch(b batch) ([]byte, error) {
	var out []byte
	var s sketch.Sketch
	documents, held := int64(0), int64(0)
	defer func() {
		p.documents.Add(documents)
		p.held.Add(held)
	}()
	for number, line := range b.lines() {
		d, err := readDocument(line, p.rule.Fields)
		if err == nil && !p.json {
			err = d.plainID()
		}
		if err != nil {
			return out, inLine(p.name, number, err)
		}
		documents++
		if d.held {
			held++
		}
		has := p.sketcher.SketchInto(&s, d.texts...)
		s.Source = p.rule.Source()
		if out, err = p.line(out, &d, &s, has); err != nil {
			return out, inLine(p.name, number, err)
		}
	}
	return out, nil
}

// line appends one document's line.
func (p *printer) line(out []byte, d *document, s *sketch.Sketch, has bool) (_ []byte, err error) {
	before := len(out)
	if p.json {
		out = append(append(append(out, `{"id":`...), d.rawID...), `,"scheme":"`...)
		out = append(append(out, p.scheme...), `","sketch":"`...)
	} else {
		out = append(append(append(append(out, d.id...), '\t'), p.scheme...), '\t')
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
