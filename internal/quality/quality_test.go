package quality

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestQuality holds what is reached on the project's own set against the golden file.
func TestQuality(t *testing.T) {
	set := expect.Value(Own())(t)
	compare(t, set)
}

// TestPractice measures labelled sets from elsewhere, which are no part of the repository: NEARDUP_PRACTICE names the folder that holds
// their folders. Sets that have a golden file are held to it; with -update every one gets its own.
func TestPractice(t *testing.T) {
	folder := os.Getenv("NEARDUP_PRACTICE")
	if folder == "" {
		t.Skip("NEARDUP_PRACTICE names no folder: run make quality PRACTICE=<folder>")
	}
	folders, err := filepath.Glob(filepath.Join(folder, "*", "meta.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no labelled set in %s: each is a folder with docs.jsonl, meta.json and pairs.tsv or clusters.tsv", folder)
	}
	var results []*Result
	for _, f := range folders {
		set := expect.Value(Load(filepath.Dir(f)))(t)
		results = append(results, compare(t, set))
	}
	var means bytes.Buffer
	Means(&means, results)
	t.Logf("\n%s", means.String())
}

// TestSets measures the sets that `make sets` makes. NEARDUP_SETS names their folder, NEARDUP_SUBSET the side of the split: choose, kept or nothing for both.
func TestSets(t *testing.T) {
	folder := os.Getenv("NEARDUP_SETS")
	folders, _ := filepath.Glob(filepath.Join(folder, "*", "meta.json"))
	if folder == "" || len(folders) == 0 {
		t.Skipf("no sets in NEARDUP_SETS=%s: make sets", folder)
	}
	var list []*Kinds
	for _, f := range folders {
		set := expect.Value(Load(filepath.Dir(f)))(t)
		list = append(list, expect.Value(MeasureKinds(set, os.Getenv("NEARDUP_SUBSET")))(t))
	}
	var report bytes.Buffer
	ReportKinds(&report, list)
	t.Logf("\n%s", report.String())
}

// compare measures a set and holds the report against its golden file, if it has one.
func compare(t *testing.T, set *Set) *Result {
	t.Helper()
	result := expect.Value(Measure(set))(t)
	var got bytes.Buffer
	result.Report(&got)
	t.Logf("\n%s", got.String())
	path := filepath.Join("testdata", set.Name+".txt")
	if *update {
		expect.OK(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && set.Name != ownName {
		return result // another's set
	}
	expect.OK(t, err)
	expect.Same(t, string(want), got.String(), "judges otherwise than in %s; if that is better, write it anew with -update", path)
	return result
}
