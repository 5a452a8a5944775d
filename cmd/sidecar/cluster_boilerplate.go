package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// checkBoilerplate returns what is wrong with --boilerplate beside the other flags.
func (c *clusterJob) checkBoilerplate() error {
	switch {
	case c.write || c.clean.plan != "" || c.clean.apply != "" || c.clean.restore != "":
		return errors.New("--boilerplate: its clusters are those of texts with all their boilerplate: leave out --write, --plan, --apply and --restore")
	case c.engine == onFlink || c.Algorithm != "":
		return errors.New("--boilerplate: leave out --engine flink and --algorithm")
	case c.input == "-":
		return errors.New("--boilerplate reads the texts four times, standard input can be read once: name a file with --input")
	case !isFolder(filepath.Dir(c.boilerplate)):
		return fmt.Errorf("--boilerplate: there is no directory %s: name a file in one that you may write to", filepath.Dir(c.boilerplate))
	}
	return nil
}

// withoutBoilerplate returns a sketcher that leaves nothing out.
func withoutBoilerplate(s *sketch.Sketcher) (*sketch.Sketcher, error) {
	scheme := s.Scheme()
	if f := scheme.Features; !f.Boilerplate() {
		return nil, fmt.Errorf("--boilerplate: passages are runs of words, and the rule has features: %s", f)
	}
	scheme.Boilerplate = ""
	return sketch.New(scheme)
}

// learn learns the boilerplate of the documents, and writes it to the file.
func (c *clusterJob) learn(ctx context.Context, source *indexSource) (err error) {
	read := c.fileTexts(ctx)
	if source != nil {
		read = source.texts(ctx)
	}
	if c.learned, err = c.corpus.Learn(ctx, read); err != nil {
		return err
	}
	if c.learned.Found == 0 {
		return nil
	}
	return terminal.WriteFile(c.boilerplate, func(w io.Writer) error { return boilerplate.Write(w, c.learned.Passages) })
}

// fileTexts reads the texts of the file that --input names.
func (c *clusterJob) fileTexts(ctx context.Context) cluster.ReadTexts {
	type document struct {
		id string
		cluster.Prepared
	}
	return func(prepare func([]string) cluster.Prepared, use func(string, cluster.Prepared) error) error {
		add := func(list []document, _ int, read *documents.Document) ([]document, error) {
			return append(list, document{read.ID, prepare(read.Texts)}), nil
		}
		return offline.EachDocument(ctx, c.comparer, c.input, c.id, add, func(list []document) error {
			for _, d := range list {
				if err := use(d.id, d.Prepared); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// texts reads the texts of the index.
func (s *indexSource) texts(ctx context.Context) cluster.ReadTexts {
	return func(prepare func([]string) cluster.Prepared, use func(string, cluster.Prepared) error) error {
		err := s.Job.Store.Scan(ctx, s.Index, s.Rule, adapters.Selection{}, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if err := use(d.ID, prepare(s.Rule.Texts(d.Source))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return s.Explain(err)
		}
		return nil
	}
}
