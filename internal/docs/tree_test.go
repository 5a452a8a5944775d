package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func load(t *testing.T) *Tree {
	t.Helper()
	tree := expect.Value(Load(filepath.Join("..", "..")))(t)
	if len(tree.Pages) < 40 {
		t.Fatalf("only %d pages found", len(tree.Pages))
	}
	return tree
}

// TestPages checks every page of the tree.
func TestPages(t *testing.T) {
	tree, g := load(t), program(t)
	for _, name := range tree.Names() {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			p := tree.Pages[name]
			faults := slices.Concat(p.Faults, tree.CheckLinks(p), tree.CheckNames(p), g.CheckBlocks(p))
			for _, f := range faults {
				t.Errorf("%s, line %d: %s", name, f.Line, f.What)
			}
			if _, err := p.Steps(); err != nil && len(faults) == 0 {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestQueriesNameMetrics holds the names in queries to Prometheus to those that docs/metrics.md explains.
func TestQueriesNameMetrics(t *testing.T) {
	tree := load(t)
	explained := map[string]bool{}
	for _, s := range tree.Pages["docs/metrics.md"].Spans {
		explained[s.Text] = true
	}
	queries, suffix := 0, regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, name := range tree.Names() {
		for _, b := range tree.Pages[name].Blocks {
			if b.Language != "promql" {
				continue
			}
			queries++
			for _, metric := range regexp.MustCompile(`\bneardup_\w+`).FindAllString(b.Text, -1) {
				if !explained[metric] && !explained[suffix.ReplaceAllString(metric, "")] {
					t.Errorf("%s, line %d: %s is none of docs/metrics.md", name, b.Line, metric)
				}
			}
		}
	}
	if queries == 0 {
		t.Error("no page has a query")
	}
}
