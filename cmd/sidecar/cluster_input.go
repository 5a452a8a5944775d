package main

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
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
	o := offline{index: f.index, fields: f.fields, output: formText}
	g, err := o.ground(cmd)
	if err != nil {
		return err
	}
	entry := config.DefaultIndex()
	if g.index != nil {
		entry = *g.index
	}
	entry.Fields = g.rule.Fields
	if err := c.begin(entry.Rule(g.sketcher)); err != nil {
		return err
	}
	src, name, err := openPacked(cmd, f.input)
	if err != nil {
		return err
	}
	defer src.Close()
	scheme := g.sketcher.Scheme()
	s := fileSource{
		clustering: c, name: name, id: f.id, hostField: cmp.Or(f.hostField, entry.HostField), fields: entry.Fields,
		payload: scheme.Positions * scheme.Bits / 8,
	}
	meter := terminal.NewMeter(c.err, name)
	defer meter.End()
	shown := c.flags.metrics.Index("")
	err = eachBatch(cmd.Context(), src, s.batch, func(list []cluster.Document) error {
		for _, d := range list {
			if err := c.corpus.Add(d); err != nil {
				return err
			}
		}
		meter.At(c.corpus.Documents(), 0, "read")
		shown.At(c.corpus.Documents(), 0)
		shown.Count(map[string]int{"scanned": c.corpus.Documents()})
		return nil
	})
	if err == nil && c.corpus.Documents() > 0 && !s.held.Load() {
		g.noteFields(c.err, name)
	}
	return err
}

// openPacked opens a file, and unpacks it where its name says that it is gzipped.
func openPacked(cmd *cobra.Command, file string) (io.ReadCloser, string, error) {
	src, name, err := open(cmd, file)
	if err != nil || !strings.HasSuffix(file, ".gz") {
		return src, name, err
	}
	unpacked, err := gzip.NewReader(src)
	if err != nil {
		_ = src.Close()
		return nil, name, fmt.Errorf("%s: is not gzipped, as its name says: %w", name, err)
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, src}, name, nil
}

// batch makes documents of lines, and with an error those before it.
func (s *fileSource) batch(b batch) ([]cluster.Document, error) {
	var list []cluster.Document
	var room []byte // for the sketches' payloads
	var sketches []sketch.Sketch
	held := false
	defer func() {
		if held {
			s.held.Store(true)
		}
	}()
	for number, line := range b.lines() {
		read, host, err := s.read(line)
		if err != nil {
			return list, inLine(s.name, number, err)
		}
		held = held || read.held
		if len(sketches) == cap(sketches) { // those handed out stay where they are
			sketches = make([]sketch.Sketch, 0, 256)
			room = make([]byte, 256*s.payload)
		}
		sketches = append(sketches, sketch.Sketch{Payload: room[:0:s.payload]})
		room = room[s.payload:]
		d := cluster.Document{ID: read.id, Host: host}
		s.document(&d, &sketches[len(sketches)-1], read.texts)
		list = append(list, d)
	}
	return list, nil
}

// read takes what is needed from one line.
func (s *fileSource) read(line []byte) (d document, host string, err error) {
	members, err := adapters.Members(line)
	if err != nil {
		return d, "", errors.New(`is no JSON object: write one document in each line, such as {"id": "a", "text": "some words"}`)
	}
	var id document
	id.rawID = adapters.Get(members, s.id)
	switch {
	case id.rawID == nil:
		return d, "", fmt.Errorf("has no field %q: name the field that holds the id with --id", s.id)
	case id.rawID[0] == '"':
		d.id, _ = adapters.Text(id.rawID)
	case strings.IndexByte("-0123456789", id.rawID[0]) >= 0:
		d.id = string(id.rawID)
	default:
		return d, "", fmt.Errorf("%s: %.40s is no id: give a text or a number", s.id, id.rawID)
	}
	for _, field := range s.fields {
		if err := d.descend(members, field, field); err != nil {
			return d, "", err
		}
	}
	return d, hostIn(members, s.hostField), nil
}

// hostIn returns the host that stands in a field of a document, or the one of the URL there; nothing where there is none. A field
// such as host.keyword, which an engine indexes beside the one that documents have, is found under the name of that one.
func hostIn(members []adapters.Member, field string) string {
	var d document
	if field == "" || d.descend(members, field, field) != nil {
		return ""
	}
	if parent, has := parentOf(field); len(d.texts) == 0 && (!has || d.descend(members, parent, parent) != nil || len(d.texts) == 0) {
		return ""
	}
	text := strings.TrimSpace(d.texts[0])
	if strings.Contains(text, "//") {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		text = u.Host
	}
	text, _, _ = strings.Cut(text, "/")
	return strings.ToLower(text)
}

// parentOf returns the path without its last step.
func parentOf(field string) (string, bool) {
	last := strings.LastIndexByte(field, '.')
	return field[:max(last, 0)], last > 0
}
