package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
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
	c.comparer = g
	if c.decidedFile != "" {
		if c.Decided, err = parseDecided(cmd.Context(), c.decidedFile, cmd.InOrStdin()); err != nil {
			return err
		}
	}
	if err := c.begin(g.RuleAt(0)); err != nil {
		return err
	}
	hostField := c.hostField
	if g.Index != nil {
		hostField = cmp.Or(hostField, g.Index.HostField)
	}
	src, name, err := offline.Open(c.input, g.In)
	if err != nil {
		return err
	}
	defer src.Close()
	done, unchanged, err := c.resume(cmd.Context(), src, g.Rule.Fields, hostField)
	if err != nil {
		return err
	}
	meter := newMeter(c.err, name, c.metrics.Index(""))
	defer meter.clearBar()
	fields := fieldNames{names: map[string]bool{}}
	for _, name := range done.Fields {
		fields.names[name] = true
	}
	add := func(list []cluster.Document, _ int, read *documents.Document) ([]cluster.Document, error) {
		fields.add(read.Members)
		d := cluster.Document{ID: read.ID, Host: documents.HostIn(read.Members, hostField)}
		c.document(&d, read.Texts)
		return append(list, d), nil
	}
	use := func(list []cluster.Document, at offline.Place) error {
		for _, d := range list {
			if err := c.corpus.Add(d); err != nil {
				return err
			}
		}
		meter.at(c.corpus.Documents(), 0, "read")
		meter.metrics.Count(map[string]int{"scanned": c.corpus.Documents()})
		done.Place = at
		return c.corpus.Save(func() any { return done.with(&fields) }, false)
	}
	if !done.Whole {
		err = offline.EachDocumentFrom(cmd.Context(), g, src, name, c.id, done.Place, add, use)
	}
	if errors.Is(err, documents.ErrNoID) {
		return fmt.Errorf("%w, or name the field that holds it with --id", err)
	}
	if err == nil {
		err = unchanged()
	}
	if err == nil {
		done.Whole = true
		err = c.corpus.Save(func() any { return done.with(&fields) }, true)
	}
	if err == nil {
		meter.clearBar()
		_, _ = fmt.Fprintf(c.err, "%s: %s\n", name, fields.describe(g.Rule.Fields, c.id, hostField))
	}
	return err
}

// fieldNames are the names of the fields that the documents of a file have. It is safe for concurrent use.
type fieldNames struct {
	mu    sync.Mutex
	names map[string]bool
}

// maxNames is how many names are kept.
const maxNames = 1000

func (f *fieldNames) add(members []jsonedit.Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range members {
		if len(f.names) < maxNames {
			f.names[m.Key] = true
		}
	}
}

// list returns the names in order.
func (f *fieldNames) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.names))
}

// describe says which of the fields were compared, and which were not used at all. used are fields that were used otherwise.
func (f *fieldNames) describe(compared []string, used ...string) string {
	var ignored, missing, found []string
	for _, field := range compared {
		if f.has(field) {
			found = append(found, field)
		} else {
			missing = append(missing, field)
		}
	}
	all := slices.Concat(compared, used)
	for _, name := range slices.Sorted(maps.Keys(f.names)) {
		if !slices.ContainsFunc(all, func(field string) bool { return field == name || strings.HasPrefix(field, name+".") }) {
			ignored = append(ignored, name)
		}
	}
	text := "compared by " + cmp.Or(strings.Join(found, ", "), "no field")
	if len(missing) > 0 {
		text += "; no document has " + strings.Join(missing, ", ")
	}
	if more := len(ignored) - mostNamed; more > 0 {
		ignored = append(ignored[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	if len(ignored) > 0 {
		text += "; ignored: " + strings.Join(ignored, ", ")
	}
	return text + ": choose others with --fields"
}

// mostNamed is how many ignored fields are named.
const mostNamed = 10

// has reports whether any document has a field, or the object that it is in.
func (f *fieldNames) has(field string) bool {
	outer, _, _ := strings.Cut(field, ".")
	return f.names[field] || f.names[outer]
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
