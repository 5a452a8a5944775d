package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// texts are the fields of a document other than the sketch.
const texts = `"title":{"type":"text"},"text":{"type":"text"}`

// cost measures bytes, indexing and reading of documents of usual size.
func (e *engine) cost(o options, c *corpus) error {
	return e.costOf("small", "Documents of 1 to 2 kB", c.documents, o, c)
}

// costOfLarge measures the same of documents of 20 kB.
func (e *engine) costOfLarge(o options, c *corpus) error {
	return e.costOf("large", "Documents of 20 kB", c.large, o, c)
}

func (e *engine) costOf(kind, title string, documents []document, o options, c *corpus) error {
	took := make([][]float64, costly)
	for range o.rounds {
		if err := e.build(kind, documents, o.codec, took); err != nil {
			return err
		}
	}
	head(title+": bytes a document after a merge to one segment, and time of indexing", "variant", "all", "more than none",
		"stored fields", "doc values", "the field alone", "bulk, ms for 1,000", "ratio to none")
	var none float64
	for i, v := range variants[:costly] {
		size, err := e.size(v.index(kind), len(documents))
		if err != nil {
			return err
		}
		if i == 0 {
			none = size.all
		}
		row(v.name, one(size.all), one(size.all-none), one(size.stored), one(size.values), size.field,
			one(median(took[i])), ratio(took[i], took[0]))
	}
	if err := e.read(kind, title, o, c); err != nil {
		return err
	}
	e.dropAll()
	return nil
}

// build indexes the documents in blocks of 1,000 (or 10 MB); with each block the variants take turns in an order by chance. The
// first two blocks warm up. Times are milliseconds for 1,000 documents.
func (e *engine) build(kind string, documents []document, codec string, took [][]float64) error {
	for _, v := range variants[:costly] {
		if err := e.create(v.index(kind), codec, v.properties(texts)); err != nil {
			return err
		}
	}
	block := min(1000, 10_000_000/len(documents[0].text))
	rng := rand.New(rand.NewPCG(5, 6))
	for first, turn := 0, 0; first < len(documents); first, turn = first+block, turn+1 {
		part := documents[first:min(first+block, len(documents))]
		for _, i := range rng.Perm(costly) {
			spent, err := e.bulk(variants[i].index(kind), lines(part, first, i > 0))
			if err != nil {
				return err
			}
			if turn >= 2 {
				took[i] = append(took[i], milliseconds(spent)*1000/float64(len(part)))
			}
		}
	}
	for _, v := range variants[:costly] {
		if err := e.settle(v.index(kind)); err != nil {
			return err
		}
	}
	return nil
}

// size is bytes a document.
type size struct {
	all, stored, values float64
	field               string
}

// bytesOf is how the engines tell a size.
type bytesOf struct {
	Size float64 `json:"size_in_bytes"`
}

func (e *engine) size(index string, documents int) (size, error) {
	var s size
	var stats struct {
		All struct {
			Primaries struct {
				Docs     struct{ Count int }
				Store    bytesOf
				Segments struct {
					Count int
					Files map[string]bytesOf `json:"file_sizes"`
				}
			}
		} `json:"_all"`
	}
	if err := e.do("GET", index+"/_stats/store,docs,segments?include_segment_file_sizes=true", nil, &stats); err != nil {
		return s, err
	}
	all, n := stats.All.Primaries, float64(documents)
	if all.Docs.Count != documents || all.Segments.Count != 1 {
		return s, fmt.Errorf("%s has %d documents in %d segments, not %d in one", index, all.Docs.Count, all.Segments.Count, documents)
	}
	files := all.Segments.Files
	s = size{all: all.Store.Size / n, stored: files["fdt"].Size / n, values: files["dvd"].Size / n, field: "–"}
	var usage map[string]json.RawMessage
	if e.do("POST", index+"/_disk_usage?run_expensive_tasks=true", nil, &usage) != nil { // OpenSearch has none
		return s, nil
	}
	var inside struct {
		All struct {
			Stored float64 `json:"stored_fields_in_bytes"`
			Values float64 `json:"doc_values_in_bytes"`
		} `json:"all_fields"`
		Fields map[string]struct {
			Total float64 `json:"total_in_bytes"`
		}
	}
	if err := json.Unmarshal(usage[index], &inside); err != nil {
		return s, err
	}
	// Elasticsearch keeps the files of a segment in one, so their sizes say nothing.
	s.stored, s.values, s.field = inside.All.Stored/n, inside.All.Values/n, one(inside.Fields[field].Total/n)
	return s, nil
}

// search is a kind of search that is timed.
type search struct {
	name string
	body func(words []string) map[string]any
	only bool
}

func match(size int) func([]string) map[string]any {
	return func(words []string) map[string]any {
		return map[string]any{"size": size, "query": map[string]any{"match": map[string]any{"text": words[0] + " " + words[1]}}}
	}
}

func everywhere(pattern string) func([]string) map[string]any {
	return func(words []string) map[string]any {
		query := map[string]any{"query": fmt.Sprintf(pattern, words[2])}
		return map[string]any{"size": 10, "query": map[string]any{"query_string": query}}
	}
}

// searches are timed; the last ones are a client's own over all fields, which ask for no sketch.
var searches = []search{
	{"13 with source", match(13), false}, {"50 with source", match(50), false}, {"1,000 sketches alone", match(1000), true},
	{"`word` in `*`", everywhere("%s"), false}, {"`word*` in `*`", everywhere("%s*"), false},
	{"`*word*` in `*`", everywhere("*%s*"), false}, {"`word~` in `*`", everywhere("%s~"), false},
}

// asking is how many of the searches ask for the sketch.
const asking = 3

func (s search) of(v variant, words []string, asks bool) ([]byte, error) {
	body := s.body(words)
	switch {
	case s.only:
		maps.Copy(body, v.only)
	case asks:
		maps.Copy(body, v.ask)
	}
	return json.Marshal(body)
}

// read times the searches over many queries, variants taking turns, and prints the medians and the medians of the ratios to none.
func (e *engine) read(kind, title string, o options, c *corpus) error {
	took := make([][][]float64, len(searches))
	for i := range took {
		took[i] = make([][]float64, costly)
	}
	rng, warm := rand.New(rand.NewPCG(3, 4)), max(10, o.queries/10)
	slices.Sort(c.common) // maps have no order, queries should
	slices.Sort(c.rare)
	for n := range o.queries + warm {
		words := []string{c.common[rng.IntN(len(c.common))], c.common[rng.IntN(len(c.common))], c.rare[rng.IntN(len(c.rare))]}
		for i, s := range searches {
			for _, at := range rng.Perm(costly) { // by chance, so that none always follows the slowest
				body, err := s.of(variants[at], words, i < asking)
				if err != nil {
					return err
				}
				start := time.Now()
				if err := e.do("POST", variants[at].index(kind)+"/_search", body, nil); err != nil {
					return err
				}
				if n >= warm {
					took[i][at] = append(took[i][at], milliseconds(time.Since(start)))
				}
			}
		}
	}
	columns := []string{"variant"}
	for _, s := range searches {
		columns = append(columns, s.name)
	}
	head(title+": median time of a search in ms, and median ratio to none", columns...)
	for at, v := range variants[:costly] {
		cells := []string{v.name}
		for i := range searches {
			cells = append(cells, fmt.Sprintf("%.2f (%s)", median(took[i][at]), ratio(took[i][at], took[i][0])))
		}
		row(cells...)
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
func one(x float64) string                 { return fmt.Sprintf("%.1f", x) }

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// ratio returns the median of a/b taken pair by pair.
func ratio(a, b []float64) string {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = a[i] / b[i]
	}
	return fmt.Sprintf("%.2f", median(list))
}
