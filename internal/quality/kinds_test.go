package quality

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// loaded reads a set of these files.
func loaded(t *testing.T, files map[string]string) *Set {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		expect.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644))
	}
	return expect.Value(Load(folder))(t)
}

// TestKinds measures a set of four texts: two equal ones that must fold, and two short ones that differ in a number and must not.
func TestKinds(t *testing.T) {
	set := loaded(t, map[string]string{
		"meta.json": `{"gold": "pairs", "clusters": true}`,
		"docs.jsonl": `{"id": "a", "text": "Take one tablet of this in the morning"}
			{"id": "b", "text": "take one tablet of this in the morning"}
			{"id": "c", "text": "It is 5 degrees in Rome"}
			{"id": "d", "text": "It is 7 degrees in Rome"}`,
		"pairs.tsv": "id_a\tid_b\tlabel\tsubset\tkind\tlanguage\twords\n" +
			"a\tb\t1\tchoose\tmust_fold/case\ten\t8\nc\td\t0\tkept\tmust_not_fold/number\ten\t6\n",
		"clusters.tsv": "id\tcluster\tsubset\na\t1\tchoose-en\nb\t1\tchoose-en\nc\t2\tchoose-en\nd\t3\tchoose-en\n",
	})
	all := expect.Value(MeasureKinds(set, ""))(t)
	if len(all.verdicts) != 2 || len(all.groups) != 6 {
		t.Fatalf("%d pairs judged and %d in clusters, want 2 and 6", len(all.verdicts), len(all.groups))
	}
	kept := expect.Value(MeasureKinds(set, "kept"))(t)
	if len(kept.verdicts) != 1 || len(kept.groups) != 0 || kept.verdicts[0].kind != "must_not_fold/number" {
		t.Fatalf("of the side kept %v", kept.verdicts)
	}
	for way, name := range ways {
		if scores := scores(all.verdicts, [byShingles]float32{0.9, 0.9}); scores[way].F1() != 1 {
			t.Errorf("%s judges %s", name, scores[way])
		}
		expect.Same(t, 1.0, all.randIndex(way, [byShingles]float32{0.9, 0.9}), "%s: adjusted Rand index", name)
	}
	var report strings.Builder
	ReportKinds(&report, []*Kinds{all})
	for _, want := range []string{"must_not_fold/number", "must_fold, from    0 words", "must_fold, en", "adjusted Rand index"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("no %q in the report:\n%s", want, report.String())
		}
	}
}

// TestPresets measures a set of tags for the preset goods: it folds them in another order, which the default does not, and no other tags.
func TestPresets(t *testing.T) {
	files := map[string]string{
		"meta.json": `{"gold": "pairs", "clusters": true, "preset": "goods"}`,
		"docs.jsonl": `{"id": "a", "text": "red\nshirt\ncotton\nsize 40"}
			{"id": "b", "text": "cotton\nsize 40\nshirt\nred"}
			{"id": "c", "text": "blue\nshirt\nwool\nsize 40"}`,
		"pairs.tsv": "id_a\tid_b\tlabel\tsubset\tkind\tlanguage\twords\n" +
			"a\tb\t1\tchoose\tmust_fold/order\ttags\t5\na\tc\t0\tchoose\tmust_not_fold/two_other_values\ttags\t5\n",
		"clusters.tsv": "id\tcluster\tsubset\na\t1\tchoose-tags\nb\t1\tchoose-tags\nc\t2\tchoose-tags\n",
	}
	k := expect.Value(MeasureKinds(loaded(t, files), ""))(t)
	none := [byShingles]float32{}
	if own, standard := scoreOf(k.verdicts, byOwn, none), scoreOf(k.verdicts, 0, none); own.F1() != 1 || standard.Recall() != 0 {
		t.Errorf("goods judges %s, the default %s", own, standard)
	}
	if own, standard := k.randIndex(byOwn, none), k.randIndex(0, none); own != 1 || standard != 0 {
		t.Errorf("adjusted Rand index of goods %f, of the default %f", own, standard)
	}
	var report strings.Builder
	ReportKinds(&report, []*Kinds{k})
	expect.Same(t, 1, strings.Count(report.String(), "must_fold/order"), "lines of a kind, for the preset alone:\n%s", report.String())
	files["meta.json"] = `{"gold": "pairs", "preset": "goods", "for_default": true}`
	report.Reset()
	ReportKinds(&report, []*Kinds{expect.Value(MeasureKinds(loaded(t, files), ""))(t)})
	expect.Same(t, 2, strings.Count(report.String(), "must_fold/order"), "lines of a kind, for the preset and the default:\n%s", report.String())
}

// TestAdjustedRandIndex: equal partitions give 1, independent ones 0.
func TestAdjustedRandIndex(t *testing.T) {
	for _, c := range []struct {
		name                       string
		both, found, labelled, all float64
		want                       float64
	}{
		{"equal", 5, 5, 5, 20, 1},
		{"all apart", 0, 0, 0, 20, 1},
		{"by chance", 2, 10, 4, 20, 0},
		{"nothing joined", 0, 0, 5, 20, 0},
	} {
		if got := adjusted(c.both, c.found, c.labelled, c.all); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %f, want %f", c.name, got, c.want)
		}
	}
}
