package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// clustered is an index whose documents carry ids of clusters, written into them without the sidecar's help.
type clustered struct {
	*oracle
	e       *engines.Engine
	index   string
	list    []corpus.Document
	ids     map[string]string // the cluster's id of each document
	through api               // native
}

// nativeRule is the rule of the tests' configuration, as far as ids of clusters follow from it.
func nativeRule(t testing.TB) *rule.Rule {
	t.Helper()
	return &rule.Rule{Fields: []string{"title", "body"}, Sketcher: sketcherOf(t, seed), Profile: rerank.Profile{
		Threshold: 0.7, MinShingles: int(minShingles), MinWords: int(minWords), Numbers: rerank.CountNumbers, Measure: rerank.Resemblance, Keep: 1,
	}}
}

// clusters is what the corpus's clusters are by the definition: connected components of near-duplicates.
type clusters struct {
	least   map[string]uint64 // of each document, the least fingerprint among its cluster's members
	cliques map[uint64]bool   // of each cluster, whether all its members are near-duplicates of one another
}

var corpusClusters struct {
	sync.Once
	clusters
}

// clustersOf returns the clusters of the whole corpus. None of them is cut in two by what tests leave out of it.
func clustersOf(t *testing.T) clusters {
	t.Helper()
	corpusClusters.Do(func() {
		list := documents(t)
		o := newOracle(t, api{}, list)
		parent := make([]int, len(list))
		find := func(i int) int {
			for parent[i] != i {
				i = parent[i]
			}
			return i
		}
		near := map[[2]int]bool{}
		for i, a := range list {
			parent[i] = i
			for j, b := range list[:i] {
				if o.near(o.sketches[a.ID], o.sketches[b.ID]) {
					near[[2]int{j, i}], parent[find(i)] = true, find(j)
				}
			}
		}
		least := map[int]uint64{}
		for i, d := range list {
			if number, seen := least[find(i)]; !seen || o.sketches[d.ID].Fingerprint < number {
				least[find(i)] = o.sketches[d.ID].Fingerprint
			}
		}
		corpusClusters.least, corpusClusters.cliques = map[string]uint64{}, map[uint64]bool{}
		for i, d := range list {
			number := least[find(i)]
			corpusClusters.least[d.ID] = number
			if _, seen := corpusClusters.cliques[number]; !seen {
				corpusClusters.cliques[number] = true
			}
			for j := range i {
				if find(j) == find(i) && !near[[2]int{j, i}] {
					corpusClusters.cliques[number] = false
				}
			}
		}
	})
	return corpusClusters.clusters
}

// newClustered fills an index with the documents and their clusters' ids, and starts a sidecar in front of it.
func newClustered(t *testing.T, e *engines.Engine, index string, list []corpus.Document) *clustered {
	t.Helper()
	c := &clustered{oracle: newOracle(t, api{e, e.URL}, list), e: e, index: index, list: list, ids: map[string]string{}}
	rule := nativeRule(t)
	for id, number := range clustersOf(t).least {
		c.ids[id] = rule.ClusterID(number)
	}
	c.direct.drop(t, index)
	c.create(t)
	c.write(t, list)
	c.through = api{e, serve(t, e, setup{match: index, rule: "native: true"})}
	return c
}

// create makes the index, with the fields of ours declared.
func (c *clustered) create(t *testing.T) {
	t.Helper()
	if c.direct.typesense() {
		call(t, c.e, "POST", c.e.URL+"/collections", `{"name":"`+c.index+`","fields":[{"name":"title","type":"string"},`+
			`{"name":"body","type":"string"},{"name":"host","type":"string","facet":true},{"name":"url","type":"string","facet":true},`+
			`{"name":"at","type":"int32"},{"name":"published_at","type":"string","optional":true},`+
			`{"name":"neardup_sketch","type":"string","index":false,"optional":true},`+
			`{"name":"neardup_cluster","type":"string","facet":true,"optional":true}]}`).want(t, 201)
		return
	}
	call(t, c.e, "PUT", c.e.URL+"/"+c.index, `{"settings":{"number_of_shards":3},"mappings":{"properties":{"id":{"type":"keyword"},`+
		`"title":{"type":"text"},"body":{"type":"text"},"url":{"type":"keyword"},"host":{"type":"keyword"},"at":{"type":"integer"},`+
		`"published_at":{"type":"date"},"neardup_sketch":{"type":"binary","doc_values":true},"neardup_cluster":{"type":"keyword"}}}}`).want(t, 200)
}

// write writes documents with the ids that c.ids holds, past the sidecar.
func (c *clustered) write(t *testing.T, list []corpus.Document) {
	t.Helper()
	var lines bytes.Buffer
	for i, d := range list {
		document, err := json.Marshal(d)
		if err == nil {
			document, err = jsonedit.Set(document, "at", fmt.Appendf(nil, "%d", i%13))
		}
		if err == nil {
			document, err = rule.WithOurs(document, rule.Ours{Cluster: c.ids[d.ID]})
		}
		check(t, err)
		if !c.direct.typesense() {
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", c.index, d.ID)
		}
		lines.Write(append(document, '\n'))
	}
	c.direct.loadLines(t, c.index, lines.String())
}

// byCluster returns the first of each cluster in the engine's list.
func (c *clustered) byCluster(raw []string) (list []string) {
	seen := map[string]bool{}
	for _, id := range raw {
		if !seen[c.ids[id]] {
			seen[c.ids[id]] = true
			list = append(list, id)
		}
	}
	return list
}

// cliquesOnly returns the documents of the clusters whose members are all near-duplicates of one another: there the first of a cluster
// and the leader of a group are the same.
func cliquesOnly(t *testing.T) []corpus.Document {
	t.Helper()
	all := clustersOf(t)
	kept := slices.DeleteFunc(documents(t), func(d corpus.Document) bool { return !all.cliques[all.least[d.ID]] })
	if len(kept) < 150 {
		t.Fatalf("only %d documents are of clusters without chains", len(kept))
	}
	return kept
}

// isNative fails the test unless the header says that the engine collapsed.
func isNative(t *testing.T, header string) {
	t.Helper()
	if !strings.HasPrefix(header, "collapsed; raw=") || !strings.Contains(header, "; native; ") {
		t.Errorf("Neardup: %s, want a native search", header)
	}
}

// isntNative fails the test unless the header says that the search was collapsed at query time, for the reason if there is one.
func isntNative(t *testing.T, header, reason string) {
	t.Helper()
	want := "collapsed; "
	if reason != "" {
		want += "reason=" + reason + "; "
	}
	if !strings.HasPrefix(header, want+"raw=") || strings.Contains(header, "native;") {
		t.Errorf("Neardup: %s, want %q and no native search", header, want)
	}
}
