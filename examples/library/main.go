// Library collapses a file of documents, best first, without any engine: with the packages sketch and rerank alone.
//
//	go run ./examples/library examples/articles.jsonl
//
// The file holds one JSON object in each line, with a title and a body. Each document is compared with the leaders before it, so
// a file of many different documents takes long: for a whole index, or millions of documents, there is `sidecar cluster`.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	flags := flag.NewFlagSet("library", flag.ContinueOnError)
	threshold := flags.Float64("threshold", rerank.Default().Threshold, "the least `agreement` of near-duplicates")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name one file of documents, one JSON object in each line")
	}
	documents, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	profile := rerank.Default()
	profile.Threshold = *threshold
	return collapse(out, documents, &profile)
}

type document struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

func read(path string) (list []document, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for decoder := json.NewDecoder(file); ; {
		var d document
		if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: document %d: %w", path, len(list)+1, err)
		}
		list = append(list, d)
	}
}

// collapse prints the documents that stay, each with those that fold into it.
func collapse(out io.Writer, documents []document, profile *rerank.Profile) error {
	sketcher, err := sketch.New(sketch.DefaultScheme()) // set a Seed where strangers write documents
	if err != nil {
		return err
	}
	hits := make([]rerank.Hit, len(documents))
	for i, d := range documents {
		hits[i].ID = d.ID
		if s, ok := sketcher.Sketch(d.Title, d.Body); ok { // a document without a word has none, and folds with nothing
			hits[i].Sketch, hits[i].Profile = &s, profile
		}
	}
	collapsed := rerank.Collapse(hits, len(hits))
	for _, group := range collapsed.Groups {
		if _, err := fmt.Fprintf(out, "%-12s %s\n", documents[group.Leader].ID, documents[group.Leader].Title); err != nil {
			return err
		}
		for _, i := range group.Folded {
			agreement, _ := hits[group.Leader].Sketch.Agreement(hits[i].Sketch)
			if _, err := fmt.Fprintf(out, "  %-10s %.2f  %s\n", documents[i].ID, agreement, documents[i].Title); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(out, "%d documents, %d of them stay.\n", len(documents), len(collapsed.Shown))
	return err
}
