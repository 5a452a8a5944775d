// Package adaptertest is the contract that every dialect keeps, as a test: a new one is held to it by handing [Test] a [Subject].
//
// It is written in the port's own words. What a request, a reply or an error looks like the Subject says, and above all it brings a
// fake engine: a pure function from a request and a list of documents to the reply that the real engine would give.
package adaptertest

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Subject is a dialect and what the test has to know about its engine.
type Subject struct {
	Dialect adapters.Dialect
	// Pass are requests that are no write, read or search to us.
	Pass []adapters.Request
	// Writes are well-formed writes to the indices of [Rules] and to others, without a field of ours.
	Writes []Write
	// Reads are replies that hold fields of ours.
	Reads []Read
	// Targets are the indices that one search can be sent to, each a list of names that [Rules] or nothing matches.
	Targets [][]string
	// Search returns the request of one search, or of several at once; nil for several if the engine has no such request.
	Search func(searches ...Search) *adapters.Request
	// WithControl returns a copy of a search's request with a control of ours put into its body (into the first search of
	// several); nil if that request's body can hold none.
	WithControl func(r *adapters.Request, name, value string) *adapters.Request
	// Engine answers a request as the engine does whose ranked list behind a target is what list returns. It refuses what the
	// real engine refuses, above all a control of ours.
	Engine func(r *adapters.Request, list func(target []string) []Document) *adapters.Reply
	// Hits returns the hits in a reply as they stand there, by search.
	Hits func(reply []byte) [][]string
	// Reason returns the words of an error in the engine's shape, or nothing if it is not in that shape.
	Reason func(reply *adapters.Reply) string
}

// Search is one search for a page of the engine's list.
type Search struct {
	Target     []string
	From, Size int
}

// Write is a write and how many of its documents get a sketch under [Rules].
type Write struct {
	adapters.Request
	Enriched int
}

// Read is a request, the engine's reply to it, and what the client gets.
type Read struct {
	adapters.Request
	Reply, Clean string
}

// Document is one document of a fake engine's list: JSON with the string fields title and body, the number n and, where it is
// stored, our sketch.
type Document struct {
	Index, ID string
	Source    []byte
}

// Rules returns the rules of the contract: news-* sketches title and body and computes what lacks, shop-* sketches the title alone, at
// another threshold, and leaves what lacks alone.
func Rules(t testing.TB) adapters.Rules {
	t.Helper()
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	return adapters.Rules{
		{Match: "news-*", Fields: []string{"title", "body"}, Profile: rerank.Profile{Threshold: 0.7}, Window: 30, Compute: true, Sketcher: sketcher},
		{Match: "shop-*", Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.4}, Window: 12, Sketcher: sketcher},
	}
}

// Test holds the subject to the contract.
func Test(t *testing.T, s Subject) {
	t.Run("unknown requests pass", func(t *testing.T) { testPass(t, s) })
	t.Run("writes", func(t *testing.T) { testWrites(t, s) })
	t.Run("reads", func(t *testing.T) { testReads(t, s) })
	t.Run("pages", func(t *testing.T) { testPages(t, s) })
	t.Run("strange replies", func(t *testing.T) { testStrange(t, s) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, s) })
	t.Run("controls", func(t *testing.T) { testControls(t, s) })
	t.Run("at once", func(t *testing.T) { testAtOnce(t, s) })
}

func testPass(t *testing.T, s Subject) {
	odd := []adapters.Request{
		{Method: "GET"}, {Method: "GET", Path: "/"}, {Method: "GET", Path: "//"}, {Method: "BREW", Path: "/news-1"},
		{Method: "POST", Path: "/%zz/%"}, {Method: "OPTIONS", Path: "*"}, {Method: "GET", Path: "/favicon.ico/x/y/z", RawQuery: "%zz&=&&a"},
	}
	for _, r := range append(odd, s.Pass...) {
		if c := s.Dialect.Classify(&r); c.Kind != adapters.Pass {
			t.Errorf("%s %s is a %s", r.Method, r.Path, c.Kind)
		}
	}
}

// chunked are readers that hand out the same bytes in other pieces.
var chunked = map[string]func(io.Reader) io.Reader{"by byte": iotest.OneByteReader, "by half": iotest.HalfReader, "end with data": iotest.DataErrReader}

// enrich runs a write and returns the body for the engine and how many documents were enriched.
func enrich(t *testing.T, s Subject, r *adapters.Request, body io.Reader, rules adapters.Rules) (string, int) {
	t.Helper()
	enriched := 0
	e := &adapters.Enricher{
		Rule: func(index string, _ bool) (*adapters.Rule, bool) { return rules.For(index), true },
		Count: func(c adapters.Change) {
			if c == adapters.Enriched {
				enriched++
			}
		},
		Room: 1 << 30,
	}
	var out bytes.Buffer
	if err := s.Dialect.EnrichWrite(s.Dialect.Classify(r), &out, body, e); err != nil {
		t.Error(err)
	}
	return out.String(), enriched
}

func testWrites(t *testing.T, s Subject) {
	rules := Rules(t)
	for _, w := range s.Writes {
		r, body := &w.Request, string(w.Body)
		if c := s.Dialect.Classify(r); c.Kind != adapters.Write {
			t.Errorf("%s %s is a %s", r.Method, r.Path, c.Kind)
			continue
		}
		for end := range len(body) + 1 {
			if got, _ := enrich(t, s, r, strings.NewReader(body[:end]), nil); got != body[:end] {
				t.Fatalf("%s %s: enriching nothing changed\n%q to\n%q", r.Method, r.Path, body[:end], got)
			}
			enrich(t, s, r, strings.NewReader(body[:end]), rules)
		}
		whole, enriched := enrich(t, s, r, strings.NewReader(body), rules)
		if enriched != w.Enriched {
			t.Errorf("%s %s: enriched %d documents, want %d", r.Method, r.Path, enriched, w.Enriched)
		}
		if plain := clean(t, whole); plain != body {
			t.Errorf("%s %s: without our field it is\n%s\nwant\n%s", r.Method, r.Path, plain, body)
		}
		for name, by := range chunked {
			if got, _ := enrich(t, s, r, by(strings.NewReader(body)), rules); got != whole {
				t.Errorf("%s %s: read %s it is\n%s\nnot\n%s", r.Method, r.Path, name, got, whole)
			}
		}
		broken := io.MultiReader(strings.NewReader(body[:len(body)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
		e := &adapters.Enricher{Rule: func(string, bool) (*adapters.Rule, bool) { return nil, false }}
		if err := s.Dialect.EnrichWrite(s.Dialect.Classify(r), io.Discard, broken, e); err == nil {
			t.Errorf("%s %s: a body that breaks off looks whole", r.Method, r.Path)
		}
	}
}

// clean returns JSON, or several values of it, less our fields wherever they stand.
func clean(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := adapters.Clean(&out, strings.NewReader(text), func(_, key string) bool { return adapters.Our(key) }); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func testReads(t *testing.T, s Subject) {
	for _, r := range s.Reads {
		class := s.Dialect.Classify(&r.Request)
		if class.Kind == adapters.Pass || class.Kind == adapters.Write && !class.CleanWrite {
			t.Errorf("%s %s: the reply is not cleaned", r.Method, r.Path)
			continue
		}
		answer := func(src io.Reader) string {
			var out bytes.Buffer
			if err := s.Dialect.CleanReply(class, &out, src); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if got := answer(strings.NewReader(r.Reply)); got != r.Clean {
			t.Errorf("%s %s: got\n%s\nwant\n%s", r.Method, r.Path, got, r.Clean)
		}
		if got := answer(strings.NewReader(r.Clean)); got != r.Clean {
			t.Errorf("%s %s: a reply without our fields became\n%s", r.Method, r.Path, got)
		}
		for name, by := range chunked {
			if got := answer(by(strings.NewReader(r.Reply))); got != r.Clean {
				t.Errorf("%s %s: read %s it is\n%s", r.Method, r.Path, name, got)
			}
		}
		for end := range len(r.Reply) {
			answer(strings.NewReader(r.Reply[:end]))
		}
	}
}
