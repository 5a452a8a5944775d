package quality

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestQuality holds what is reached on the project's own set against the golden file.
func TestQuality(t *testing.T) {
	set, err := Own()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "own.txt", []*Set{set})
}

// TestPractice does the same on labelled sets from elsewhere, which are no part of the repository: NEARDUP_PRACTICE names the folder
// that holds their folders.
func TestPractice(t *testing.T) {
	folder := os.Getenv("NEARDUP_PRACTICE")
	if folder == "" {
		t.Skip("NEARDUP_PRACTICE names no folder: run make quality PRACTICE=<folder>")
	}
	folders, err := filepath.Glob(filepath.Join(folder, "*", "meta.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no labelled set in %s: each is a folder with docs.jsonl, meta.json and pairs.tsv or clusters.tsv", folder)
	}
	var list []*Set
	for _, f := range folders {
		set, err := Load(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, set)
	}
	compare(t, "practice.txt", list)
}

func compare(t *testing.T, golden string, list []*Set) {
	t.Helper()
	var results []*Result
	for _, set := range list {
		r, err := Measure(set)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	var got bytes.Buffer
	Report(&got, results)
	t.Logf("\n%s", got.String())
	path := filepath.Join("testdata", golden)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("judges otherwise than in %s; if that is better, write it anew with -update (-want +got):\n%s", path, diff)
	}
}
