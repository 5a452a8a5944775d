package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// scanned is a Store whose one index can be read.
type scanned struct {
	adapters.Store
	ids     []string
	sources map[string]string
	// texts counts the documents that were read whole.
	texts int
}

func (s *scanned) Scan(_ context.Context, _ string, _ *adapters.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	for ids := range slices.Chunk(s.ids, 300) {
		p := adapters.Page{Total: len(s.ids)}
		for _, id := range ids {
			source := []byte(s.sources[id])
			if sel.IDs != nil && !slices.Contains(sel.IDs, id) {
				continue
			}
			if sel.Brief {
				members, err := adapters.Members(source)
				if err != nil {
					return err
				}
				source = fmt.Appendf(nil, `{%s,"host":%s}`, adapters.OursOf(source).Fields(true), adapters.Get(members, "host"))
			} else {
				s.texts++
			}
			p.Documents = append(p.Documents, adapters.Stored{ID: id, Source: source})
		}
		if err := yield(p); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	return nil
}

// TestClusterOfIndex reads an index in which all, some or no sketches are stored: the clusters are the same, and so few texts are
// read as can be.
func TestClusterOfIndex(t *testing.T) {
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	i := DefaultIndex()
	i.Fields = []string{"text"}
	rule := i.rule(sketcher)
	documents, want := 3000, ""
	if testing.Short() {
		documents = 1200
	}
	for _, test := range []struct {
		every     string
		texts     int
		algorithm string
	}{
		{"none lack theirs", 0, "bands"}, {"one in ten lacks its own", documents / 10, "bands"}, {"all lack theirs", documents, "bands"},
		{"none lack theirs", documents, "broder"},
	} {
		t.Run(test.every+", "+test.algorithm, func(t *testing.T) {
			s := &scanned{sources: map[string]string{}}
			for n := range documents {
				id := fmt.Sprintf("d%04d", n)
				const form = `{"host":"h%d","text":"number %d of the many texts of which each tenth is told once more in this place"}`
				source := fmt.Sprintf(form, n%5, n%1000*n%1000)
				lacks := test.every[:3] == "all" || test.every[:3] == "one" && n%10 == 3
				if computed, _ := rule.SketchOf([]byte(source)); !lacks {
					with, err := adapters.WithOurs([]byte(source), adapters.Ours{Sketch: computed.Text})
					if err != nil {
						t.Fatal(err)
					}
					source = string(with)
				}
				s.ids, s.sources[id] = append(s.ids, id), source
			}
			f := clusterFlags{algorithm: test.algorithm, memory: 1 << 20, common: 5000, tempDir: t.TempDir()}
			c := &clustering{flags: &f, err: io.Discard, began: time.Now()}
			source := indexSource{
				opened: &opened{config: &EngineConfig{Name: "e"}, store: s}, index: adapters.Index{Name: "x"}, rule: rule, hostField: "host.keyword",
			}
			if err := source.readAll(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			defer c.corpus.Close()
			if err := c.corpus.Cluster(t.Context()); err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			err := c.corpus.Each(t.Context(), func(m *cluster.Member) error {
				_, err := fmt.Fprintln(&lines, m.ID, m.Host, m.Cluster, m.Size)
				return err
			})
			if err != nil || strings.Count(lines.String(), "\n") != documents {
				t.Fatal(err, lines.Len())
			}
			read := s.texts
			if test.every[:3] == "all" { // the first page was read twice
				read -= read % documents
			}
			if read != test.texts {
				t.Errorf("%d texts were read, want %d", s.texts, test.texts)
			}
			if want == "" {
				want = lines.String()
			}
			if diff := cmp.Diff(want, lines.String()); diff != "" && test.algorithm == "bands" {
				t.Errorf("%.2000s", diff)
			}
		})
	}
}
