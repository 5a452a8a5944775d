// Command fieldtypes measures how the sketch is best stored on Elasticsearch and OpenSearch: what each type of field costs in
// bytes, in indexing and in reading, what a client can see of it, and what the engine gives back. It makes and deletes indices
// whose names begin with "fieldtypes-", and prints Markdown on the standard output. Times want engines that nobody else uses.
//
//	cd bench && go run ./fieldtypes -elasticsearch http://localhost:9200 -opensearch http://localhost:9201
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fieldtypes:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	text             string
	documents, large int
	queries          int
	rounds           int
	parts            string
	codec            string
}

func run() error {
	var o options
	elasticsearch := flag.String("elasticsearch", "", "URL of an Elasticsearch node")
	opensearch := flag.String("opensearch", "", "URL of an OpenSearch node")
	flag.StringVar(&o.text, "text", "/usr/share/doc,/usr/share/man", "folders with real text, .gz or plain")
	flag.IntVar(&o.documents, "documents", 100000, "how many documents of 1 to 2 kB")
	flag.IntVar(&o.large, "large", 5000, "how many documents of 20 kB")
	flag.IntVar(&o.queries, "queries", 200, "how many queries time each kind of search")
	flag.IntVar(&o.rounds, "rounds", 1, "how often the indices are built")
	flag.StringVar(&o.parts, "parts", "cost,large,seen,given", "what to measure")
	flag.StringVar(&o.codec, "codec", "default", "index.codec: default or best_compression")
	flag.Parse()

	var engines []*engine
	for _, e := range []*engine{{name: "Elasticsearch", url: *elasticsearch}, {name: "OpenSearch", url: *opensearch}} {
		if e.url != "" {
			engines = append(engines, e)
		}
	}
	if len(engines) == 0 {
		return errors.New("no engine given: set -elasticsearch, -opensearch or both")
	}
	start := time.Now()
	corpus, err := readCorpus(strings.Split(o.text, ","), o.documents, o.large)
	if err != nil {
		return fmt.Errorf("corpus: %w", err)
	}
	for _, e := range engines {
		if err := e.measure(o, corpus); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	note("all in %.0f s", time.Since(start).Seconds())
	return nil
}

// measure runs the chosen parts on one engine and prints each as soon as it is there.
func (e *engine) measure(o options, c *corpus) error {
	version, err := e.version()
	if err != nil {
		return err
	}
	fmt.Printf("\n## %s %s\n", e.name, version)
	defer e.dropAll()
	for _, part := range []struct {
		name string
		run  func(options, *corpus) error
	}{{"cost", e.cost}, {"large", e.costOfLarge}, {"seen", e.seen}, {"given", e.given}} {
		if !strings.Contains(","+o.parts+",", ","+part.name+",") {
			continue
		}
		note("%s: %s", e.name, part.name)
		if err := part.run(o, c); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func note(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

func row(cells ...string) {
	fmt.Printf("| %s |\n", strings.Join(cells, " | "))
}

// head prints the first two lines of a table.
func head(title string, cells ...string) {
	fmt.Printf("\n%s\n\n", title)
	row(cells...)
	rule := make([]string, len(cells))
	for i := range rule {
		rule[i] = "---"
	}
	row(rule...)
}
