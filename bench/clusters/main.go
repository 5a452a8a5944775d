// Command clusters measures how fast `sidecar cluster` turns a file of texts into clusters: it makes the file, runs the program, and prints a table.
// See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/sketch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

// passages is how many passages of real text the documents are made of at most: all that there are.
const passages = 200_000

func run(ctx context.Context) error {
	b := bench{}
	programs := flag.String("sidecar", "../bin/sidecar", "the `programs` to measure, with commas between: they take turns, and must write the same clusters")
	documents := flag.String("documents", "2000000", "how many documents, `sizes` with commas between")
	bytes := flag.String("bytes", "1250", "about how many bytes a record has, `sizes` with commas between")
	zipped := flag.Bool("gzip", false, "measure each file gzipped as well")
	flag.IntVar(&b.rounds, "rounds", 1, "how often each program reads each file; the least processor time counts")
	flag.StringVar(&b.folder, "dir", "", "the `folder` for files of gigabytes (by default the system's for temporary ones)")
	keep := flag.Bool("keep", false, "keep the files of documents")
	arguments := flag.String("with", "", "more `flags` for sidecar cluster, with blanks between")
	flag.Parse()
	b.programs, b.arguments = strings.Split(*programs, ","), strings.Fields(*arguments)
	folder, err := os.MkdirTemp(b.folder, "neardup-clusters-")
	if err != nil {
		return err
	}
	if b.folder = folder; !*keep {
		defer os.RemoveAll(folder)
	}
	texts, err := corpora.LoadTexts(passages)
	if err != nil {
		return err
	}
	fmt.Printf("Texts: %s. %d cores. MB/s per core is bytes by processor time; sketching alone is its part of that on one core.\n\n", texts.Source, cores())
	fmt.Println(head)
	for _, each := range strings.Split(*bytes, ",") {
		for _, count := range strings.Split(*documents, ",") {
			n, err := strconv.Atoi(count)
			if err != nil {
				return err
			}
			size, err := strconv.Atoi(each)
			if err != nil {
				return err
			}
			if err := b.measure(ctx, texts, shelfOf(n, size), *zipped); err != nil {
				return err
			}
		}
	}
	if *keep {
		fmt.Println("\nFiles:", folder)
	}
	return nil
}

// measure makes the documents of a shelf, has all programs read them, and prints a line for each.
func (b *bench) measure(ctx context.Context, texts *corpora.Texts, s corpora.Shelf, zipped bool) error {
	file := filepath.Join(b.folder, fmt.Sprintf("%d-%d.jsonl", s.Count, s.Bytes))
	size, err := writeCorpus(ctx, file, texts, s)
	if err != nil {
		return err
	}
	sketching, err := sketchingAlone(texts, s)
	if err != nil {
		return err
	}
	files := []string{file}
	if zipped {
		files = append(files, file+".gz")
		if err := pack(file, file+".gz"); err != nil {
			return err
		}
	}
	for _, f := range files {
		best, err := b.takeTurns(ctx, f)
		if err != nil {
			return err
		}
		for i, r := range best {
			fmt.Println(r.line(b.programs[i], filepath.Ext(f) == ".gz", s.Count, size, sketching))
		}
	}
	return nil
}

// sketchingAlone returns the processor time that the sketch of one document takes on the mean, without reading it.
func sketchingAlone(texts *corpora.Texts, s corpora.Shelf) (time.Duration, error) {
	const sample, rounds = 5000, 4
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		return 0, err
	}
	list := make([][]string, min(sample, s.Count))
	for i := range list {
		r := recordOf(texts, s, i)
		list[i] = []string{r.Title, r.Text}
	}
	least, made := time.Duration(0), sketch.Sketch{}
	for range rounds {
		before := processorTime()
		for _, texts := range list {
			sketcher.SketchInto(&made, texts...)
		}
		if took := processorTime() - before; least == 0 || took < least {
			least = took
		}
	}
	return least / time.Duration(len(list)), nil
}
