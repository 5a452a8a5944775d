package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/jobs/cluster"
)

// readFile adds the documents of the file that --input names.
func (c *clusterJob) readFile(cmd *cobra.Command) error {
	if c.engine != "" && c.engine != onFlink {
		return errors.New("--engine: a file is on no engine: use --index without --input, or --engine flink")
	}
	g, err := newComparer(cmd, offline.Options{Index: c.index, Fields: c.fields})
	if err != nil {
		return err
	}
	entry := config.DefaultIndex()
	if g.Index != nil {
		entry = *g.Index
	}
	entry.Fields = g.Rule.Fields
	if err := c.begin(entry.Rule(g.Sketcher)); err != nil {
		return err
	}
	hostField := cmp.Or(c.hostField, entry.HostField)
	meter := newMeter(c.err, offline.NameOf(c.input), c.metrics.Index(""))
	defer meter.clearBar()
	add := func(list []cluster.Document, _ int, read *documents.Document) ([]cluster.Document, error) {
		d := cluster.Document{ID: read.ID, Host: documents.HostIn(read.Members, hostField)}
		c.document(&d, read.Texts)
		return append(list, d), nil
	}
	err = offline.EachDocument(cmd.Context(), g, c.input, c.id, add, func(list []cluster.Document) error {
		for _, d := range list {
			if err := c.corpus.Add(d); err != nil {
				return err
			}
		}
		meter.at(c.corpus.Documents(), 0, "read")
		meter.metrics.Count(map[string]int{"scanned": c.corpus.Documents()})
		return nil
	})
	if errors.Is(err, documents.ErrNoID) {
		return fmt.Errorf("%w, or name the field that holds it with --id", err)
	}
	return err
}

// document gives a document of the corpus its sketch, and its shingles where the corpus needs them.
func (c *clusterJob) document(d *cluster.Document, texts []string) {
	s, has := c.Rule.Sketcher.Sketch(texts...)
	if !has {
		return
	}
	s.Source, d.Sketch = c.Rule.Source(), &s
	if c.corpus.NeedsShingles() {
		d.Shingles = c.Rule.Sketcher.Shingles(texts...)
	}
}
