package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	es "github.com/neardup/sidecar/adapters/elastic"
	ts "github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// The corpus of the benchmarks: invented words by Zipf's law, about 2 kB a text, of which three in ten are near-duplicates of one
// before.
const (
	benchDocuments  = 12_000
	benchDuplicates = 0.3
	benchWords      = 290
	benchVocabulary = 30_000
)

// benchDocument is one of them.
type benchDocument struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
	At    int64  `json:"at"` // Unix seconds
}

// benchWord is the word of a rank in the vocabulary.
func benchWord(rank int) string {
	const onsets, vowels = "bdfghklmnprstvwz", "aeiou"
	word := []byte{onsets[rank%16], vowels[rank/16%5]}
	for rest := rank / 80; ; rest /= 80 {
		word = append(word, onsets[(rest+7)%16], vowels[(rest/16+rank)%5])
		if rest < 80 {
			return string(word)
		}
	}
}

// benchCorpus makes up the documents, always the same.
func benchCorpus() []benchDocument {
	r := rand.New(rand.NewPCG(7, 7))
	weights, sum := make([]float64, benchVocabulary), 0.0
	for i := range weights {
		sum += 1 / float64(i+1)
		weights[i] = sum
	}
	word := func() string {
		at, _ := slices.BinarySearch(weights, r.Float64()*sum)
		return benchWord(min(at, benchVocabulary-1))
	}
	bodies := make([][]string, benchDocuments)
	list := make([]benchDocument, benchDocuments)
	for i := range list {
		if i > 0 && r.Float64() < benchDuplicates {
			bodies[i] = slices.Clone(bodies[r.IntN(i)])
			for range r.IntN(12) {
				bodies[i][r.IntN(len(bodies[i]))] = word()
			}
		} else {
			for range benchWords/2 + r.IntN(benchWords) {
				bodies[i] = append(bodies[i], word())
			}
		}
		at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix() + int64(r.IntN(1<<24))
		list[i] = benchDocument{fmt.Sprintf("d%05d", i), word() + " " + word() + " " + word(), strings.Join(bodies[i], " "), at}
	}
	return list
}

// benchQuery is what the n-th search looks for: two words that together some thousands of documents have.
func benchQuery(n int) string { return benchWord(40+n%17) + " " + benchWord(60+n%23) }

// shop is an engine with the indices of the benchmarks: with sketches, with those for excerpts, and without any.
type shop struct {
	b                     *testing.B
	e                     *engines.Engine
	sketched, parts, bare string
}

func (s *shop) typesense() bool { return s.e.Kind == engines.Typesense }

// benchRule is the rule that the benchmarks begin with: what the configuration has where it says nothing.
func benchRule(b *testing.B, family sketch.Family) adapters.Rule {
	b.Helper()
	sketcher, err := sketch.New(sketch.Scheme{Family: family})
	if err != nil {
		b.Fatal(err)
	}
	return adapters.Rule{
		Fields: []string{"title", "body"}, Profile: rerank.Default, Window: 1000, VectorWindow: 100, Compute: true, Sketcher: sketcher,
	}
}

// excerptRule is that of the preset for plagiarism.
func excerptRule(b *testing.B, window int) adapters.Rule {
	b.Helper()
	rule := benchRule(b, sketch.MSmallest)
	rule.Profile.Measure, rule.Profile.Threshold, rule.Profile.MinShingles = rerank.Containment, 0.6, 24
	rule.Choice, rule.Expand, rule.Window = adapters.Choice{By: adapters.ByLongest}, adapters.ExpandIDs, window
	return rule
}

// watched measures how long the engine takes for requests, up to the last byte of each reply.
type watched struct {
	next  http.RoundTripper
	spent atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	resp.Body = &watchedBody{resp.Body, func() { w.spent.Add(int64(time.Since(began))) }}
	return resp, nil
}

type watchedBody struct {
	io.ReadCloser
	ended func()
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.ended != nil {
		b.ended()
		b.ended = nil
	}
	return n, err
}

// clerk is a sidecar in front of the shop's engine, in this process.
type clerk struct {
	base   string
	engine *watched
}

// serve starts a sidecar with a rule for an index.
func (s *shop) serve(index string, rule adapters.Rule, limits proxy.Limits) *clerk {
	s.b.Helper()
	rule.Match = index
	if err := rule.Validate(); err != nil {
		s.b.Fatal(err)
	}
	u, err := url.Parse(s.e.URL)
	if err != nil {
		s.b.Fatal(err)
	}
	c := &clerk{engine: &watched{next: proxy.NewTransport()}}
	e := proxy.Engine{Rules: adapters.Rules{&rule}, URLs: []*url.URL{u}, Transport: c.engine, Limits: limits}
	if s.typesense() {
		e.Dialect, e.ErrorReply = ts.Dialect{}, ts.Dialect{}.ErrorReply
		e.Open = ts.Open(c.engine, e.URLs, e.Rules)
	} else {
		d := es.Dialect{OpenSearch: s.e.Kind == engines.OpenSearch}
		e.Dialect, e.ErrorReply, e.Open = d, d.ErrorReply, es.Open(c.engine, e.URLs, e.Rules)
	}
	handler, err := proxy.New(e)
	if err != nil {
		s.b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	s.b.Cleanup(server.Close)
	c.base = server.URL
	return c
}

// send sends a request and returns the reply's body and what the sidecar says of it.
func (s *shop) send(method, url, body string) (reply []byte, said string) {
	s.b.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		s.b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.e.Key != "" {
		r.Header.Set("X-Typesense-Api-Key", s.e.Key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.b.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 && method != "DELETE" {
		s.b.Fatalf("%s %s: status %d, %v: %.500s", method, url, resp.StatusCode, err, reply)
	}
	return reply, resp.Header.Get("Neardup")
}

// openShop makes the indices, which are gone when the benchmark ends.
func openShop(b *testing.B, kind string) *shop {
	b.Helper()
	s := &shop{b: b, e: engines.Shared(b, kind)}
	name := func(what string) string { return fmt.Sprintf("bench-%d-%s", os.Getpid(), what) }
	s.sketched, s.parts, s.bare = name("sketched"), name("parts"), name("bare")
	documents := benchCorpus()
	s.fill(s.serve(s.sketched, benchRule(b, ""), proxy.Limits{}).base, s.sketched, documents)
	s.fill(s.serve(s.parts, excerptRule(b, 1000), proxy.Limits{}).base, s.parts, documents)
	s.fill(s.e.URL, s.bare, documents)
	return s
}

// fill makes one index, writing through an address.
func (s *shop) fill(base, index string, documents []benchDocument) {
	s.b.Helper()
	at, drop := base+"/"+index, s.e.URL+"/"+index
	if s.typesense() {
		at, drop = base+"/collections/"+index+"/documents", s.e.URL+"/collections/"+index
	}
	s.b.Cleanup(func() { s.send("DELETE", drop, "") })
	if s.typesense() {
		s.send("POST", base+"/collections", fmt.Sprintf(`{"name":%q,"fields":[{"name":"title","type":"string"},`+
			`{"name":"body","type":"string"},{"name":"at","type":"int64"}]}`, index))
	} else {
		s.send("PUT", at, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1"},"mappings":{"properties":`+
			`{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"at":{"type":"date","format":"epoch_second"}}}}`)
	}
	for part := range slices.Chunk(documents, 1000) {
		var lines bytes.Buffer
		for _, d := range part {
			line, err := json.Marshal(d)
			if err != nil {
				s.b.Fatal(err)
			}
			if !s.typesense() {
				fmt.Fprintf(&lines, "{\"index\":{\"_id\":%q}}\n", d.ID)
			}
			lines.Write(append(line, '\n'))
		}
		path := "/_bulk"
		if s.typesense() {
			path = "/import?action=create"
		}
		s.send("POST", at+path, lines.String())
	}
	if !s.typesense() {
		s.send("POST", s.e.URL+"/"+index+"/_forcemerge?max_num_segments=1", "")
		s.send("POST", s.e.URL+"/"+index+"/_refresh", "")
	}
}

// median returns the middle of some figures.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}
