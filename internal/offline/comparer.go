// Package offline sketches and compares the documents of files, without an engine.
package offline

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// defaultFields are the default of --fields. A document may have both, or one of them.
var defaultFields = []string{"title", "text"}

// Options say how documents are compared without an engine.
type Options struct {
	// Config is the file of the configuration; empty for the defaults.
	Config string
	// Index names a rule of the configuration.
	Index string
	// Fields are compared, instead of the rule's.
	Fields []string
	// Preset, if not empty, decides the scheme.
	Preset string
}

// Streams are where to read the file - from, and where to write results and notes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Comparer sketches and compares the documents of files.
type Comparer struct {
	Streams
	Sketcher *sketch.Sketcher
	// Rule makes the sketches; it matches no index.
	Rule *rule.Rule
	// Index is the chosen rule of the configuration, or nil. entry is that rule, or else the preset, or else the defaults.
	Index *config.Index
	entry config.Index
}

// Open returns a comparer with these options.
func (o *Options) Open(io Streams) (*Comparer, error) {
	g, fields := Comparer{Streams: io, entry: config.DefaultIndex()}, defaultFields
	if o.Config != "" {
		c, err := config.LoadOffline(o.Config, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		g.entry.Sketch = c.Sketch
		if g.Index, err = c.IndexFor(o.Index); err != nil {
			return nil, err
		}
		if g.Index != nil {
			g.entry, fields = *g.Index, g.Index.Fields
			if g.entry.Vector.Field != "" {
				return nil, fmt.Errorf("the rule of %s compares vectors beside words, and documents of files are compared by words alone: leave vector out of a copy of the configuration", g.entry.Match)
			}
		}
	} else if o.Index != "" {
		return nil, errors.New("--index names a rule of a configuration: name its file with --config")
	}
	if o.Preset != "" {
		rule := g.entry
		g.entry = config.PresetOf(o.Preset).Start(rule.Sketch)
		g.entry.Boilerplate, g.entry.Passages = rule.Boilerplate, rule.Passages
	}
	sketcher, err := sketch.New(g.entry.Scheme())
	if err != nil {
		return nil, err
	}
	if len(o.Fields) > 0 {
		fields = o.Fields
	}
	g.Sketcher = sketcher
	g.Rule = &rule.Rule{Match: "-", Fields: fields, Window: 1, Sketcher: sketcher}
	g.Rule.Profile.Threshold = 1
	var errs []error
	for _, wrong := range config.Flatten(g.Rule.Validate()) {
		errs = append(errs, fmt.Errorf("--fields: %s", strings.TrimPrefix(wrong.Error(), "fields: ")))
	}
	return &g, errors.Join(errs...)
}

// RuleAt returns the rule of the configuration, or of the defaults, with the fields that are compared, at the threshold; at its own if that is 0.
func (g *Comparer) RuleAt(threshold float64) *rule.Rule {
	entry := g.entry
	entry.Fields = g.Rule.Fields
	if threshold > 0 {
		entry.Threshold = threshold
	}
	return entry.Rule(g.Sketcher)
}

// NameOf returns the name of a file for messages.
func NameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// Open opens a file for reading, "-" for standard input, and returns its name for messages. It unpacks a file whose name ends in .gz.
func Open(file string, stdin io.Reader) (io.ReadCloser, string, error) {
	name := NameOf(file)
	if file == "-" {
		return io.NopCloser(stdin), name, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, name, fmt.Errorf("%w: name a file, or - for standard input", err)
	}
	if !strings.HasSuffix(file, ".gz") {
		return f, name, nil
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		_ = f.Close()
		return nil, name, fmt.Errorf("%s: is not gzipped, although its name ends in .gz: %w", name, err)
	}
	return gzipped{unpacked, f}, name, nil
}

// gzipped is a gzipped file, read decompressed.
type gzipped struct {
	*gzip.Reader
	file *os.File
}

func (g gzipped) Stat() (fs.FileInfo, error) { return g.file.Stat() }

func (g gzipped) Close() error { return g.file.Close() }

// write prints lines.
func (g *Comparer) write(lines []byte) error {
	_, err := g.Out.Write(lines)
	return err
}

// atLine adds a file and line to an error.
func atLine(name string, line int, err error) error { return fmt.Errorf("%s:%d: %w", name, line, err) }

// Sketch prints the sketches of a file of documents.
func (g *Comparer) Sketch(ctx context.Context, file string, asJSON bool) error {
	scheme := fmt.Sprintf("%08x", g.Sketcher.SchemeID())
	return EachDocument(ctx, g, file, "id", func(out []byte, _ int, d *documents.Document) ([]byte, error) {
		text := "" // for a document without a word
		if s, has := g.Sketcher.Sketch(d.Texts...); has {
			s.Source = g.Rule.Source()
			text = s.String()
		}
		switch {
		case asJSON:
			return fmt.Appendf(out, "{\"id\":%s,\"scheme\":%q,\"sketch\":%q}\n", d.RawID, scheme, text), nil
		case strings.ContainsAny(d.ID, "\t\n\r"):
			return out, errors.New("id: contains a tab or a line break, which a table can't show: use --output json")
		}
		return fmt.Appendf(out, "%s\t%s\t%s\n", d.ID, scheme, text), nil
	}, g.write)
}

// Comparison says how documents are compared.
type Comparison struct {
	// Docs and Pairs are files of documents and of pairs of their ids, - for standard input.
	Docs, Pairs string
	// Preset and Threshold override those of the rule; empty and 0 keep them.
	Preset    string
	Threshold float64
	// JSON prints JSON.
	JSON bool
}

// profile returns the profile to judge by: that of the rule, with the values of the flags. A search decides by it too.
func (f *Comparison) profile(g *Comparer) rerank.Profile {
	i := g.entry
	if f.Threshold > 0 {
		i.Threshold = f.Threshold
	}
	return i.Rule(g.Sketcher).Profile
}
