package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// clusterConfig writes a configuration whose rule stores clusters.
func clusterConfig(t *testing.T, e *engines.Engine, match string) string {
	t.Helper()
	file := config(t, e, setup{match: match})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "        native: true\n        host_field: host\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// clusterProfile says which documents share a cluster by the configuration.
var clusterProfile = rerank.Profile{Threshold: 0.7, MinShingles: rerank.Default.MinShingles, Measure: rerank.Resemblance}

func clusterSketcher(t *testing.T) *sketch.Sketcher {
	t.Helper()
	sketcher, err := sketch.New(sketch.Scheme{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return sketcher
}

// clusterOracle returns the number of each document's cluster, the least fingerprint in it, by looking at all pairs; with exact
// by their sets, else by their sketches.
func clusterOracle(t *testing.T, list []corpus.Document, exact bool) map[string]uint64 {
	t.Helper()
	sketcher, profile := clusterSketcher(t), clusterProfile
	of := make([]uint64, len(list))
	sketches, sets := make([]sketch.Sketch, len(list)), make([][]uint64, len(list))
	for i, d := range list {
		sketches[i], _ = sketcher.Sketch(d.Title, d.Body)
		sets[i] = sketcher.Shingles(d.Title, d.Body)
		of[i] = sketches[i].Fingerprint
	}
	near := func(i, j int) bool {
		a, b := &sketches[i], &sketches[j]
		if exact && !a.SameText(b) {
			return min(len(sets[i]), len(sets[j])) >= profile.MinShingles && sketch.Resemblance(sets[i], sets[j]) >= profile.Threshold
		}
		is, _ := profile.NearDuplicates(a, b)
		return is
	}
	for again := true; again; {
		again = false
		for i := range list {
			for j := range i {
				if of[i] != of[j] && near(i, j) {
					of[i], of[j], again = min(of[i], of[j]), min(of[i], of[j]), true
				}
			}
		}
	}
	numbers := map[string]uint64{}
	for i, d := range list {
		numbers[d.ID] = of[i]
	}
	return numbers
}

// TestCluster clusters an index before and after its sketches and clusters are stored, and reads them back from the engine.
func TestCluster(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "clus-1", documents(t)
		direct := api{e, e.URL}
		direct.drop(t, index)
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)
		file, dir := clusterConfig(t, e, "clus-*"), t.TempDir()
		run := func(name string, args ...string) (out string, clusters []byte) {
			t.Helper()
			name = filepath.Join(dir, name)
			out, code := sidecar(t, append([]string{"cluster", "--config", file, "--index", index, "--output", name}, args...)...)
			if code != 0 {
				t.Fatalf("cluster ended with %d: %s", code, out)
			}
			clusters, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			return out, clusters
		}
		rule, numbers := &adapters.Rule{Fields: []string{"title", "body"}, Sketcher: clusterSketcher(t), Profile: clusterProfile},
			clusterOracle(t, list, false)
		_, byText := run("by-text.jsonl")
		checkClusters(t, rule, numbers, byText)

		out, _ := run("written.jsonl", "--write")
		const said = "stored in the engine: %d written, 0 right already, 0 changed meanwhile, 0 gone, 0 refused"
		if !strings.Contains(out, fmt.Sprintf(said, len(list))) {
			t.Errorf("the first run says: %s", out)
		}
		after := stored(t, direct, index)
		for id, h := range after {
			if got, want := adapters.OursOf(h.source).Cluster, rule.ClusterID(numbers[id]); got != want {
				t.Errorf("%s has the cluster %s, want %s", id, got, want)
			}
			plain, err := adapters.Cut(h.source, adapters.Our)
			if err != nil || !bytes.Equal(before[id].source, plain) {
				t.Fatalf("cluster changed %s otherwise: %s, %v", id, plain, err)
			}
		}
		for name, args := range map[string][]string{"by-sketch.jsonl": nil, "of-file.jsonl": {"--input", corpusFile(t, list)}} {
			if _, got := run(name, args...); !bytes.Equal(byText, got) {
				t.Errorf("%s: the clusters are others", name)
			}
		}
		_, bySets := run("by-sets.jsonl", "--algorithm", "broder")
		checkClusters(t, rule, clusterOracle(t, list, true), bySets)

		out, _ = run("again.jsonl", "--write")
		if !strings.Contains(out, fmt.Sprintf("stored in the engine: 0 written, %d right already,", len(list))) {
			t.Errorf("a second run says: %s", out)
		}
		if out, code := sidecar(t, "reindex", "--config", file); code != 0 || number(t, out, "written") != 0 {
			t.Errorf("a reindex after it ended with %d and wrote: %s", code, out)
		}
		if diff := cmp.Diff(versions(after), versions(stored(t, direct, index))); diff != "" {
			t.Errorf("a second run wrote documents: %s", diff)
		}
		direct.drop(t, index)
	})
}

// checkClusters holds a file of clusters to the oracle.
func checkClusters(t *testing.T, rule *adapters.Rule, numbers map[string]uint64, file []byte) {
	t.Helper()
	sizes := map[uint64]int{}
	for _, number := range numbers {
		sizes[number]++
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(file) {
		var l struct {
			ID, Cluster string
			Size        int
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		number, known := numbers[l.ID]
		if !known || seen[l.ID] || l.Cluster != rule.ClusterID(number) || l.Size != sizes[number] {
			t.Errorf("%s, want %s of %d", line, rule.ClusterID(number), sizes[number])
		}
		seen[l.ID] = true
	}
	if len(seen) != len(numbers) || len(sizes) == len(numbers) {
		t.Errorf("%d documents in %d clusters, %d lines", len(numbers), len(sizes), len(seen))
	}
}

// TestClusterRefusesToWrite holds that clusters are stored only where searches make use of them.
func TestClusterRefusesToWrite(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "clus-refused"
	direct := api{e, e.URL}
	direct.drop(t, index)
	direct.create(t, index)
	defer direct.drop(t, index)
	for _, test := range []struct {
		file string
		args []string
		want string
	}{
		{config(t, e, setup{match: "clus-*"}), nil, "error: --write: the rule of clus-refused stores no clusters: set native: true"},
		{clusterConfig(t, e, "clus-*"), []string{"--threshold", "0.9"}, "error: --write: searches take stored clusters for"},
		{clusterConfig(t, e, "other-*"), nil, "error: no index behind clus-refused that a rule matches"},
	} {
		out, code := sidecar(t, append([]string{"cluster", "--config", test.file, "--index", index, "--write"}, test.args...)...)
		if code != 1 || !strings.HasPrefix(out, test.want) {
			t.Errorf("ended with %d: %s", code, out)
		}
	}
}
