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
	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// indexSource is an index whose documents are clustered.
type indexSource struct {
	target
	hostField string
	passages  []boilerplate.Passage // of the rule
	command   *clusterJob
}

// readIndex adds the documents of the index that --index names.
func (c *clusterJob) readIndex(cmd *cobra.Command) (*indexSource, error) {
	from, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	s, err := c.find(cmd.Context(), from)
	if err != nil {
		return nil, err
	}
	if c.Decided, err = c.decidedIn(cmd.Context(), s.target, c.write || c.clean.plan != "" || c.clean.open); err == nil {
		err = c.begin(s.Rule)
	}
	if c.boilerplate != "" && err == nil {
		s.Rule = c.Rule // a stored sketch counts only if it is without boilerplate
	}
	if err == nil {
		err = s.read(cmd.Context())
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	return s, nil
}

// find returns the index that --index names.
func (c *clusterJob) find(ctx context.Context, from *config.Config) (*indexSource, error) {
	name := c.engine
	if name == onFlink {
		if name = ""; slices.ContainsFunc(from.Engines, func(e config.Engine) bool { return e.Name == onFlink }) {
			return nil, errors.New("--engine: the configuration calls an engine flink, the word for an Apache Flink: give it another name")
		}
	}
	var err error
	if c.engines, err = upstream.OpenAll(from, name); err != nil {
		return nil, err
	}
	found, err := c.matching(ctx)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		var names []string
		for _, t := range found {
			names = append(names, t.Title())
		}
		return nil, fmt.Errorf("--index: %s are %s: name one, and its engine with --engine", c.index, strings.Join(names, ", "))
	}
	s := &indexSource{target: found[0], command: c}
	entry := s.Config.Indices[slices.Index(s.Rules, s.Rule)]
	s.hostField, s.passages = cmp.Or(c.hostField, entry.HostField), entry.Passages
	if !c.write {
		return s, nil
	}
	if err := s.CheckVersion(ctx, c.untested); err != nil {
		return nil, err
	}
	return s, s.writable(ctx)
}

// writable returns why clusters can't be stored in the index.
func (s *indexSource) writable(ctx context.Context) error {
	if !s.Rule.Clusters {
		return fmt.Errorf("--write: the rule of %s stores no clusters: set native: true, or on_duplicate: tag", s.Index)
	}
	if threshold := s.command.threshold; threshold > 0 && threshold != s.Rule.Profile.Threshold {
		const other = "--write: searches take stored clusters for those of the rule's threshold, %v: leave --threshold out, or change the rule"
		return fmt.Errorf(other, s.Rule.Profile.Threshold)
	}
	prepared, err := s.FindOrPrepare(ctx, s.Index, true)
	for _, index := range prepared {
		if !index.Ready {
			return notReady(s.Engine, index)
		}
	}
	return err
}

// hostFields are the fields that may hold a document's host.
func (s *indexSource) hostFields() []string {
	if s.hostField == "" {
		return nil
	}
	if parent, has := documents.ParentOf(s.hostField); has {
		return []string{s.hostField, parent}
	}
	return []string{s.hostField}
}

// lackingBatch is how many documents without a sketch are read again together for their texts.
const lackingBatch = 500

// read adds all documents: by the sketches that are stored, or by their texts where these are needed or a sketch is not there.
func (s *indexSource) read(ctx context.Context) error {
	meter, corpus := s.command.meter(s.Job), s.command.corpus
	defer meter.clearBar()
	selection := adapters.Selection{Brief: !corpus.NeedsShingles(), Fields: s.hostFields()}
	return s.Job.Store.Scan(ctx, s.Index, s.Rule, selection, func(p adapters.Page) error {
		var lacking []string
		for _, d := range p.Documents {
			var err error
			if !selection.Brief {
				err = s.add(d)
			} else if stored := s.Rule.Decode(rule.OursOf(d.Source).Sketch); stored != nil {
				err = corpus.Add(s.document(d, stored))
			} else {
				lacking = append(lacking, d.ID)
			}
			if err != nil {
				return err
			}
		}
		meter.at(corpus.Documents(), p.Total, "read")
		meter.metrics.Count(map[string]int{"scanned": corpus.Documents()})
		return s.again(ctx, lacking)
	})
}

// again adds documents by their texts.
func (s *indexSource) again(ctx context.Context, ids []string) error {
	for batch := range slices.Chunk(ids, lackingBatch) {
		selection := adapters.Selection{IDs: batch, Fields: s.hostFields()}
		err := s.Job.Store.Scan(ctx, s.Index, s.Rule, selection, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if err := s.add(d); err != nil {
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
	made := cluster.Document{ID: d.ID, Sketch: k, Cluster: rule.OursOf(d.Source).Cluster}
	if s.hostField != "" {
		if members, err := jsonedit.Members(d.Source); err == nil {
			made.Host = documents.HostIn(members, s.hostField)
		}
	}
	return made
}

// add adds a document by its text.
func (s *indexSource) add(d adapters.Stored) error {
	computed, _ := s.Rule.SketchOf(d.Source)
	made := s.document(d, nil)
	if computed != nil {
		made.Sketch = &computed.Sketch
		if s.command.corpus.NeedsShingles() {
			made.Shingles = s.shingles(d.Source, computed.Fingerprint)
		}
	}
	return s.command.corpus.Add(made)
}

// shingles returns the set of a stored document, and nothing where its texts are not those that the sketch was made of.
func (s *indexSource) shingles(source []byte, fingerprint uint64) []uint64 {
	texts := s.Rule.Texts(source)
	if s.Rule.Sketcher.Fingerprint(texts...) != fingerprint {
		return nil
	}
	return s.Rule.Sketcher.Shingles(texts...)
}

// write stores the clusters.
func (s *indexSource) write(ctx context.Context) (cluster.Written, error) {
	meter, corpus := s.command.meter(s.Job), s.command.corpus
	defer meter.clearBar()
	written, err := corpus.Write(ctx, s.Job, func(w cluster.Written) {
		meter.at(w.Written+w.Right+w.Changed+w.Gone+w.Refused, corpus.Documents(), fmt.Sprintf("%d clusters written", w.Written))
		meter.metrics.Clustered(w)
	})
	meter.metrics.End(err)
	return written, err
}
