package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestCluster clusters an index before and after its sketches and clusters are stored, and reads them back from the engine.
func TestCluster(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "clus-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)
		file, dir := nativeFile(t, e, "clus-*", "host_field: host"), t.TempDir()
		run := func(name string, args ...string) (out string, clusters []byte) {
			t.Helper()
			name = filepath.Join(dir, name)
			out = string(succeed(t, append([]string{"cluster", "--config", file, "--index", index, "--output", name}, args...)...))
			return out, must(os.ReadFile(name))(t)
		}
		rule, numbers := nativeRule(t), clustersOf(t).least
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
			plain, err := jsonedit.Cut(h.source, adapters.Our)
			if err != nil || !bytes.Equal(before[id].source, plain) {
				t.Fatalf("cluster changed %s otherwise: %s, %v", id, plain, err)
			}
		}
		for name, args := range map[string][]string{"by-sketch.jsonl": nil, "of-file.jsonl": {"--input", corpusFile(t, list)}} {
			if _, got := run(name, args...); !bytes.Equal(byText, got) {
				t.Errorf("%s: the clusters are others", name)
			}
		}
		out, _ = run("again.jsonl", "--write")
		if !strings.Contains(out, fmt.Sprintf("stored in the engine: 0 written, %d right already,", len(list))) {
			t.Errorf("a second run says: %s", out)
		}
		if out, code := sidecar(t, "reindex", "--config", file); code != 0 || number(t, out, "written") != 0 {
			t.Errorf("a reindex after it ended with %d and wrote: %s", code, out)
		}
		same(t, versions(after), versions(stored(t, direct, index)), "a second run wrote documents")
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
		check(t, json.Unmarshal(line, &l))
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
	direct.create(t, index)
	for _, test := range []struct {
		file string
		args []string
		want string
	}{
		{config(t, e, setup{match: "clus-*"}), nil, "error: --write: the rule of clus-refused stores no clusters: set native: true"},
		{nativeFile(t, e, "clus-*"), []string{"--threshold", "0.9"}, "error: --write: searches take stored clusters for"},
		{nativeFile(t, e, "other-*"), nil, "error: no index behind clus-refused that a rule matches"},
	} {
		out, code := sidecar(t, append([]string{"cluster", "--config", test.file, "--index", index, "--write"}, test.args...)...)
		if code != 1 || !strings.HasPrefix(out, test.want) {
			t.Errorf("ended with %d: %s", code, out)
		}
	}
}
