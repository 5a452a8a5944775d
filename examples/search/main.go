// Search asks Elasticsearch a question through the sidecar, with the official client, and prints each hit with the versions of
// it that were folded:
//
//	go run -C examples/search . -url http://localhost:9281 -index news ferry crossing
//
// It is a program for Elasticsearch 9 like any other; one for Elasticsearch 8 takes go-elasticsearch/v8. What it knows of the
// sidecar is the address; the header Neardup-Control of a request, which an engine ignores; the header Neardup of the reply; and
// inner_hits.neardup of a hit.
//
// Credentials, where the engine asks for some, are the client's own: ELASTICSEARCH_API_KEY. The sidecar passes them on.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/elastic/go-elasticsearch/v9"
	"github.com/elastic/go-elasticsearch/v9/esutil"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	url := flags.String("url", "http://localhost:9281", "`address` of the sidecar")
	index := flags.String("index", "news", "`name` of the index")
	control := flags.String("control", "expand=source", "what the sidecar is `asked` for, such as threshold=0.9; keep=2 or off")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("say what to search for, as in: search -index news ferry crossing")
	}
	client, err := elasticsearch.NewClient(elasticsearch.Config{
		Addresses: []string{*url}, APIKey: os.Getenv("ELASTICSEARCH_API_KEY"),
	})
	if err != nil {
		return err
	}
	found, err := search(ctx, client, *index, *control, strings.Join(flags.Args(), " "))
	if err != nil {
		return fmt.Errorf("search %s at %s: %w", *index, *url, err)
	}
	return found.print(out)
}

// reply is what is read of a search's reply.
type reply struct {
	outcome string // of the header: what the sidecar did, and empty where there is none in between
	Hits    hits   `json:"hits"`
}

type hits struct {
	Total struct {
		Value int `json:"value"`
	} `json:"total"`
	Hits []hit `json:"hits"`
}

type hit struct {
	ID     string   `json:"_id"`
	Source struct { // empty of a folded hit, unless the sidecar is asked for expand=source

		Title string `json:"title"`
		Host  string `json:"host"`
	} `json:"_source"`
	// Fields holds, of a folded hit, how far it agrees with the one that is shown.
	Fields struct {
		Agreement []float64 `json:"neardup_agreement"`
	} `json:"fields"`
	InnerHits struct {
		Neardup struct {
			Hits hits `json:"hits"`
		} `json:"neardup"`
	} `json:"inner_hits"`
}

// search asks for the best ten hits, with what the sidecar is to do in a header.
func search(ctx context.Context, client *elasticsearch.Client, index, control, text string) (found reply, err error) {
	query := map[string]any{"multi_match": map[string]any{"query": text, "fields": []string{"title", "body"}}}
	res, err := client.Search(
		client.Search.WithContext(ctx),
		client.Search.WithIndex(index),
		client.Search.WithBody(esutil.NewJSONReader(map[string]any{"query": query, "size": 10, "_source": []string{"title", "host"}})),
		client.Search.WithHeader(map[string]string{"Neardup-Control": control}),
	)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.IsError() {
		text, err := io.ReadAll(res.Body)
		return found, errors.Join(fmt.Errorf("%s: %s", res.Status(), text), err)
	}
	found.outcome = res.Header.Get("Neardup")
	return found, json.NewDecoder(res.Body).Decode(&found)
}

// print writes the hits and, below each, the versions that were folded into it.
func (r reply) print(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%d hits in the engine. Neardup: %s\n\n", r.Hits.Total.Value, r.outcome)
	for i, h := range r.Hits.Hits {
		fmt.Fprintf(&text, "%2d. %s  (%s)\n", i+1, h.Source.Title, h.Source.Host)
		for _, version := range h.InnerHits.Neardup.Hits.Hits {
			agreement := 0.0
			if len(version.Fields.Agreement) > 0 {
				agreement = version.Fields.Agreement[0]
			}
			fmt.Fprintf(&text, "      %.2f  %s  %s\n", agreement, version.ID, version.Source.Title)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
