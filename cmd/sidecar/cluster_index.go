package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// indexSource is an index whose documents are clustered.
type indexSource struct {
	*upstream.Engine
	index     adapters.Index
	rule      *adapters.Rule
	hostField string
}

// readIndex adds the documents of the index that --index names.
func (c *clustering) readIndex(cmd *cobra.Command) (*indexSource, error) {
	from, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	s, err := c.find(cmd.Context(), from)
	if err != nil {
		return nil, err
	}
	if err := s.readAll(cmd.Context(), c); err != nil {
		return nil, s.Explain(err)
	}
	return s, nil
}

// readAll adds all documents to a corpus: by their sketches, or by their texts where these are needed or most sketches are not
// there.
func (s *indexSource) readAll(ctx context.Context, c *clustering) error {
	if err := c.begin(s.rule); err != nil {
		return err
	}
	err := s.read(ctx, c, !c.corpus.NeedsShingles())
	if !errors.Is(err, errTexts) {
		return err
	}
	c.corpus.Close()
	if err := c.begin(s.rule); err != nil {
		return err
	}
	return s.read(ctx, c, false)
}

// find returns the index that --index names.
func (c *clustering) find(ctx context.Context, from *config.Config) (*indexSource, error) {
	name := c.flags.engine
	if name == onFlink {
		if name = ""; slices.ContainsFunc(from.Engines, func(e config.Engine) bool { return e.Name == onFlink }) {
			return nil, errors.New("--engine: the configuration calls an engine flink, the word for an Apache Flink: give it another name")
		}
	}
	engines, err := upstream.OpenAll(from, name)
	if err != nil {
		return nil, err
	}
	var found []*indexSource
	var names []string
	for _, e := range engines {
		indices, err := e.Matching(ctx, c.flags.index)
		if err != nil {
			return nil, e.Explain(err)
		}
		for _, index := range indices {
			if rule := e.Rules.Of(index); rule != nil {
				found, names = append(found, &indexSource{Engine: e, index: index, rule: rule}), append(names, e.Config.Name+": "+index.Name)
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no index behind %s that a rule matches: see the rules with: sidecar config check", c.flags.index)
	case len(found) > 1:
		return nil, fmt.Errorf("--index: %s are %s: name one, and its engine with --engine", c.flags.index, strings.Join(names, ", "))
	}
	s := found[0]
	if c.flags.write {
		if err := s.CheckVersion(ctx, c.flags.untested); err != nil {
			return nil, err
		}
	}
	s.hostField = cmp.Or(c.flags.hostField, s.Config.Indices[slices.Index(s.Rules, s.rule)].HostField)
	return s, s.writable(ctx, c.flags)
}

// writable returns why clusters can't be stored in the index, where they are to be.
func (s *indexSource) writable(ctx context.Context, f *clusterFlags) error {
	if !f.write {
		return nil
	}
	if !s.rule.Clusters {
		return fmt.Errorf("--write: the rule of %s stores no clusters: set native: true, or on_duplicate: tag", s.index.Name)
	}
	if f.threshold > 0 && f.threshold != s.rule.Profile.Threshold {
		const other = "--write: searches take stored clusters for those of the rule's threshold, %v: leave --threshold out, or change the rule"
		return fmt.Errorf(other, s.rule.Profile.Threshold)
	}
	prepared, err := s.Prepare(ctx, s.index.Name)
	if err != nil {
		return s.Explain(err)
	}
	for _, index := range prepared {
		if !index.Ready {
			return fmt.Errorf("engine %s: index %s is not ready: %s", s.Config.Name, index.Name, index.Why)
		}
	}
	return nil
}

// hostFields are the fields that a document's host may stand in.
func (s *indexSource) hostFields() []string {
	if s.hostField == "" {
		return nil
	}
	if parent, has := documents.ParentOf(s.hostField); has {
		return []string{s.hostField, parent}
	}
	return []string{s.hostField}
}

// errTexts ends a scan of sketches that are mostly not there.
var errTexts = errors.New("most documents lack a sketch")

const (
	// mostLacking is how many of the first documents may lack a sketch for those of all to be read alone.
	mostLacking = 1000
	// lackingBatch is how many documents are read again together for their texts.
	lackingBatch = 500
)

// read adds all documents: brief by the sketches that are stored, and by the texts of those that have none.
func (s *indexSource) read(ctx context.Context, c *clustering, brief bool) error {
	meter := newMeter(c.err, s.Config.Name+": "+s.index.Name)
	defer meter.end()
	shown := c.flags.metrics.Index(s.Config.Name)
	selection := adapters.Selection{Brief: brief, Fields: s.hostFields()}
	var lacking []string
	lacked := 0
	err := s.Store.Scan(ctx, s.index.Name, s.rule, selection, func(p adapters.Page) error {
		for _, d := range p.Documents {
			if brief {
				if stored := s.rule.Decode(adapters.OursOf(d.Source).Sketch); stored != nil {
					if err := c.corpus.Add(s.document(d, stored)); err != nil {
						return err
					}
					continue
				}
				lacking = append(lacking, d.ID)
				continue
			}
			if err := s.add(c, d); err != nil {
				return err
			}
		}
		meter.at(c.corpus.Documents(), p.Total, "read")
		shown.At(c.corpus.Documents(), p.Total)
		shown.Count(map[string]int{"scanned": c.corpus.Documents()})
		if lacked += len(lacking); lacked > mostLacking && 2*lacked > c.corpus.Documents() {
			return errTexts
		}
		err := s.again(ctx, c, lacking)
		lacking = lacking[:0]
		return err
	})
	return err
}

// again adds documents by their texts.
func (s *indexSource) again(ctx context.Context, c *clustering, ids []string) error {
	for batch := range slices.Chunk(ids, lackingBatch) {
		selection := adapters.Selection{IDs: batch, Fields: s.hostFields()}
		err := s.Store.Scan(ctx, s.index.Name, s.rule, selection, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if err := s.add(c, d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// document makes a document of a stored one.
func (s *indexSource) document(d adapters.Stored, k *sketch.Sketch) cluster.Document {
	made := cluster.Document{ID: d.ID, Sketch: k, Cluster: adapters.OursOf(d.Source).Cluster}
	if s.hostField != "" {
		if members, err := jsonedit.Members(d.Source); err == nil {
			made.Host = documents.HostIn(members, s.hostField)
		}
	}
	return made
}

// add adds a document by its text.
func (s *indexSource) add(c *clustering, d adapters.Stored) error {
	computed, _ := s.rule.SketchOf(d.Source)
	made := s.document(d, nil)
	if computed != nil {
		made.Sketch = &computed.Sketch
		if c.corpus.NeedsShingles() {
			made.Shingles = s.shingles(d.Source, computed.Fingerprint)
		}
	}
	return c.corpus.Add(made)
}

// shingles returns the set of a stored document, and nothing where its texts are not those that the sketch was made of.
func (s *indexSource) shingles(source []byte, fingerprint uint64) []uint64 {
	texts := documents.Texts(s.rule, source)
	if s.rule.Sketcher.Fingerprint(texts...) != fingerprint {
		return nil
	}
	return s.rule.Sketcher.Shingles(texts...)
}

// write stores the clusters.
func (s *indexSource) write(ctx context.Context, c *clustering) (cluster.Written, error) {
	meter := newMeter(c.err, s.Config.Name+": "+s.index.Name)
	defer meter.end()
	shown := c.flags.metrics.Index(s.Config.Name)
	written, err := c.corpus.Write(ctx, s.Store, s.index.Name, s.rule, func(w cluster.Written) {
		meter.at(w.Written+w.Right+w.Changed+w.Gone+w.Refused, c.corpus.Documents(), fmt.Sprintf("%d clusters written", w.Written))
		shown.At(w.Written+w.Right+w.Changed+w.Gone+w.Refused, c.corpus.Documents())
		shown.Clustered(w)
	})
	shown.End(err)
	return written, err
}
