package main

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// fileSource reads the documents of a file.
type fileSource struct {
	*clustering
	name, id, hostField string
	fields              []string
	payload             int // bytes of a sketch, about
	held                atomic.Bool
}

// readFile adds the documents of the file that --input names.
func (c *clustering) readFile(cmd *cobra.Command) error {
	f := c.flags
	if f.engine != "" && f.engine != onFlink {
		return errors.New("--engine: a file is on no engine: use --index without --input, or --engine flink")
	}
	g, err := newComparer(cmd, offline.Options{Index: f.index, Fields: f.fields})
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
	src, name, err := g.OpenPacked(f.input)
	if err != nil {
		return err
	}
	defer src.Close()
	scheme := g.Sketcher.Scheme()
	s := fileSource{
		clustering: c, name: name, id: f.id, hostField: cmp.Or(f.hostField, entry.HostField), fields: entry.Fields,
		payload: scheme.Positions * scheme.Bits / 8,
	}
	meter := newMeter(c.err, name)
	defer meter.end()
	shown := c.flags.metrics.Index("")
	err = offline.EachBatch(cmd.Context(), src, s.batch, func(list []cluster.Document) error {
		for _, d := range list {
			if err := c.corpus.Add(d); err != nil {
				return err
			}
		}
		meter.at(c.corpus.Documents(), 0, "read")
		shown.At(c.corpus.Documents(), 0)
		shown.Count(map[string]int{"scanned": c.corpus.Documents()})
		return nil
	})
	if err == nil && c.corpus.Documents() > 0 && !s.held.Load() {
		g.NoteFields(name)
	}
	return err
}

// batch makes documents of lines, and with an error those before it.
func (s *fileSource) batch(b offline.Batch) ([]cluster.Document, error) {
	var list []cluster.Document
	var room []byte // for the sketches' payloads
	var sketches []sketch.Sketch
	held := false
	defer func() {
		if held {
			s.held.Store(true)
		}
	}()
	for number, line := range b.Lines() {
		read, err := documents.Read(line, s.id, s.fields)
		if errors.Is(err, documents.ErrNoID) {
			err = fmt.Errorf("has no field %q: name the field that holds the id with --id", s.id)
		}
		if err != nil {
			return list, offline.AtLine(s.name, number, err)
		}
		held = held || read.Held
		if len(sketches) == cap(sketches) { // those handed out stay where they are
			sketches = make([]sketch.Sketch, 0, 256)
			room = make([]byte, 256*s.payload)
		}
		sketches = append(sketches, sketch.Sketch{Payload: room[:0:s.payload]})
		room = room[s.payload:]
		d := cluster.Document{ID: read.ID, Host: documents.HostIn(read.Members, s.hostField)}
		s.document(&d, &sketches[len(sketches)-1], read.Texts)
		list = append(list, d)
	}
	return list, nil
}
