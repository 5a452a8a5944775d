// Command clusterpeers measures `sidecar cluster` beside programs and libraries of others that find the near-duplicates in a file: the same
// documents, the same shingles, the same threshold, and the exact Jaccard resemblance of all pairs to judge by. See README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/internal/measured"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clusterpeers:", err)
		os.Exit(1)
	}
}

// passages is how many passages of real text there are to take sentences from: all.
const passages = 200_000

// columns are the figures of each contender.
var columns = []measured.Column{
	{Name: "wall", Unit: "s"}, {Name: "processor", Unit: "s"}, {Name: "per core", Unit: "MB/s"}, {Name: "memory", Unit: "MB"},
	{Name: "F1"}, {Name: "precision"}, {Name: "recall"}, {Name: "F1 of pairs"}, {Name: "F1 of copies"},
}

func run(ctx context.Context) error {
	began := time.Now()
	sidecar := flag.String("sidecar", "../bin/sidecar", "the sidecar to measure")
	sizes := flag.String("documents", "20000,100000,real", "how many documents, `sizes` with commas between; real is passages as they are")
	only := flag.String("only", "", "measure these contenders only, `names` with semicolons between")
	n := flag.Int("words", 3, "how many words a shingle has")
	threshold := flag.Float64("threshold", 0.7, "the least resemblance of near-duplicates")
	out := flag.String("out", "", "write the figures to this `file` as well")
	into := flag.String("add", "", "take the other figures from this `file`")
	patience := flag.Duration("patience", 9*time.Minute, "how long a contender may take")
	temporary := flag.String("dir", "", "the `folder` for files (by default the system's for temporary ones)")
	flag.Parse()
	cache, err := corpora.Cache()
	if err != nil {
		return err
	}
	texts, err := corpora.LoadTexts(passages)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(*temporary, "neardup-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	report := measured.Report{Tables: []measured.Table{{Name: "peers", Title: "Clusters beside other programs", Columns: columns}}}
	if *into != "" {
		if report, err = measured.Read(*into); err != nil {
			return err
		}
	}
	report.Date, report.Command = time.Now().UTC().Format(time.DateOnly), "make bench-clusters-peers"
	report.Machine = fmt.Sprintf("%d cores, %s/%s, with other work", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	all := contendersOf(*sidecar, cache)
	for _, size := range strings.Split(*sizes, ",") {
		set, err := setOf(cache, texts, size)
		if err != nil {
			return err
		}
		t := task{folder: folder, input: filepath.Join(folder, "documents.jsonl"), documents: len(set), words: *n, threshold: *threshold}
		row, err := compare(ctx, all, t, set, size, strings.Split(*only, ";"), *patience)
		if err != nil {
			return err
		}
		rows := &report.Tables[0].Rows
		if at := slices.IndexFunc(*rows, func(r measured.Row) bool { return r.What == row.What }); at < 0 {
			*rows = append(*rows, row)
		} else {
			(*rows)[at].Contenders = merged((*rows)[at].Contenders, row.Contenders)
		}
	}
	report.Minutes += time.Since(began).Minutes()
	if *out == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(*out, append(text, '\n'), 0o644)
}

// setOf makes the texts of a size.
func setOf(cache string, t *corpora.Texts, size string) ([]string, error) {
	if size == "real" {
		real, err := corpora.Real(cache, passages)
		if err != nil {
			return nil, err
		}
		set := make([]string, 0, len(real.Documents))
		for _, d := range real.Documents {
			set = append(set, strings.Join(words(d), " "))
		}
		return set, nil
	}
	count, err := strconv.Atoi(size)
	if err != nil {
		return nil, err
	}
	shelf := corpora.Shelf{Count: count, Bytes: 1250, Duplicates: .3}
	set := make([]string, count)
	for i := range set {
		set[i] = planted(t, shelf, i)
	}
	return set, nil
}

// merged replaces contenders by newer ones of the same name.
func merged(old, newer []measured.Contender) []measured.Contender {
	for _, c := range newer {
		if at := slices.IndexFunc(old, func(o measured.Contender) bool { return o.Name == c.Name }); at >= 0 {
			old[at] = c
		} else {
			old = append(old, c)
		}
	}
	return old
}

// compare has the contenders do one task, one after the other, and judges what they find.
func compare(ctx context.Context, all []contender, t task, set []string, size string, only []string, patience time.Duration) (row measured.Row, err error) {
	bytes, err := writeDocuments(t.input, set)
	if err != nil {
		return row, err
	}
	began := time.Now()
	pairs := exactPairs(setsOf(set, t.words), t.threshold)
	clusters := connected(t.documents, pairs)
	wanted := copies(clusters)
	runtime.GC()
	what := fmt.Sprintf("%d documents", t.documents)
	if size == "real" {
		what = fmt.Sprintf("%d passages of manuals", t.documents)
	}
	row.What = what
	fmt.Fprintf(os.Stderr, "%s: %.0f MB, %d pairs of a resemblance of %v, in %.0f s\n", what, float64(bytes)/1e6, len(pairs), t.threshold, time.Since(began).Seconds())
	fmt.Printf("\n%s of %d bytes: %d pairs of a resemblance of %v or more\n\n| contender | wall, s | processor, s | MB/s per core | memory, MB | F1 | precision | recall | F1 of pairs | F1 of copies |\n"+
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", what, bytes/int64(t.documents), len(pairs), t.threshold)
	for _, c := range all {
		if only[0] != "" && !slices.Contains(only, c.name) || c.most > 0 && t.documents > c.most {
			continue
		}
		limited, stop := context.WithTimeout(ctx, patience)
		took, found, err := c.run(limited, t)
		stop()
		if ctx.Err() != nil {
			return row, ctx.Err()
		}
		who := measured.Contender{Name: c.name}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.name, err)
			who.Absent = "failed"
			row.Contenders = append(row.Contenders, who)
			continue
		}
		who.Figures = map[string]float64{
			"wall": took.Wall.Seconds(), "processor": took.Processor.Seconds(), "memory": float64(took.Memory) / 1e6,
			"per core": float64(bytes) / 1e6 / took.Processor.Seconds(), "F1 of copies": sameCopies(found.copies, wanted).f1(),
		}
		if found.clusters != nil {
			s := sameClusters(found.clusters, clusters)
			who.Figures["F1"], who.Figures["precision"], who.Figures["recall"] = s.f1(), s.Precision, s.Recall
		}
		if found.pairs != nil {
			who.Figures["F1 of pairs"] = samePairs(found.pairs, pairs).f1()
		}
		row.Contenders = append(row.Contenders, who)
		cells := []string{c.name}
		for _, column := range columns {
			cell := "–"
			if v, ok := who.Figures[column.Name]; ok {
				cell = strconv.FormatFloat(v, 'f', 3, 64)
			}
			cells = append(cells, cell)
		}
		fmt.Printf("| %s |\n", strings.Join(cells, " | "))
	}
	return row, nil
}
