package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
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

// shop is an engine before which benchmarks run.
type shop struct {
	b *testing.B
	e *engines.Engine
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

// clerk is a sidecar in front of the shop's engine, in this process.
type clerk struct{ base string }

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
	transport := proxy.NewTransport()
	e := proxy.Engine{Rules: adapters.Rules{&rule}, URLs: []*url.URL{u}, Transport: transport, Limits: limits}
	if s.typesense() {
		e.Dialect, e.ErrorReply, e.Open = ts.Dialect{}, ts.Dialect{}.ErrorReply, ts.Open(transport, e.URLs, e.Rules)
	} else {
		d := es.Dialect{OpenSearch: s.e.Kind == engines.OpenSearch}
		e.Dialect, e.ErrorReply, e.Open = d, d.ErrorReply, es.Open(transport, e.URLs, e.Rules)
	}
	handler, err := proxy.New(e)
	if err != nil {
		s.b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	s.b.Cleanup(server.Close)
	return &clerk{server.URL}
}

// purchase is the page that a benchmark asks for.
type purchase struct {
	index string
	// from and size cut the page. control are parameters for the sidecar, members further members of the search or parameters of its URL.
	from, size       int
	control, members string
	wants            string // what the sidecar says of it
}

// buy asks for the n-th search's page, of the sidecar or of the engine.
func (s *shop) buy(base string, p purchase, n int, collapsed bool) {
	s.b.Helper()
	if !collapsed {
		p.control = ""
	}
	method, at := "POST", base+"/"+p.index+"/_search?"+p.control
	body := fmt.Sprintf(`{"query":{"match":{"body":%q}},"from":%d,"size":%d%s}`, benchQuery(n), p.from, p.size, p.members)
	if s.typesense() {
		method, body = "GET", ""
		at = fmt.Sprintf("%s/collections/%s/documents/search?query_by=title,body&drop_tokens_threshold=10000&q=%s&per_page=%d&page=%d%s&%s",
			base, p.index, url.QueryEscape(benchQuery(n)), p.size, 1+p.from/p.size, p.members, p.control)
	}
	if _, said := s.send(method, at, body); collapsed && !strings.HasPrefix(said, p.wants+";") {
		s.b.Fatalf("the sidecar says %q", said)
	}
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

// median returns the middle of some figures.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}
