// Package adaptertest is the contract that every adapter keeps, as tests: a new dialect is held to it by handing [Test] a
// [Subject], and its store by handing [TestStore] a [StoreSubject]. [FuzzWrites], [FuzzReplies] and [FuzzSearches] are parts of
// it for any input.
//
// It is written in the port's own words. What a request, a reply or an error looks like the Subject says, and above all it
// brings a fake engine: a pure function from a request and a list of documents to the reply that the real engine would give. A
// store is tried on a real engine. To begin a new one, read the contract tests of another.
package adaptertest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
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
	// Write returns a write of the documents to an index in one request, whole ones or such as the engine merges into what is
	// stored; nil if it knows no such request. The documents hold no line end, and need not be well-formed.
	Write func(index string, partial bool, documents ...string) *adapters.Request
	// LastCounts says that a client's own value of our field is not cut out of a document but outdone by ours behind it; Clears,
	// that what stands in our field is cleared of whatever index.
	LastCounts, Clears bool
	// Doubts is what the dialect sets an Enricher's Doubts to; nil for nothing.
	Doubts func(text []byte) bool
	// Reads are replies that hold fields of ours.
	Reads []Read
	// Show returns requests, each with the engine's reply that shows the documents as they are stored, or the first of them where it
	// shows but one; Clean is of no account. The documents are objects without line ends, and each reply is the same but for them.
	Show func(documents ...string) []Read
	// Names are what stands above documents in such replies: a client's own documents may hold these names too.
	Names []string
	// Targets are the indices that one search can be sent to, each a list of names that [Rules] or nothing matches.
	Targets [][]string
	// Search returns the request of one search, or of several at once; nil if the engine has none such: it may know no several at
	// once, or only a From that is a multiple of Size.
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

// Rules returns the rules of the contract: news-* sketches title and body and computes what lacks, shop-* sketches the title
// alone, at another threshold, and leaves what lacks alone.
func Rules(t testing.TB) rule.Rules {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	return rule.Rules{
		{Match: "news-*", Fields: []string{"title", "body"}, Profile: rerank.Profile{Threshold: 0.7}, Window: 30, Compute: true, Sketcher: sketcher},
		{Match: "shop-*", Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.4}, Window: 12, Sketcher: sketcher},
	}
}

// Test holds a dialect to the contract, and to its part on searches once for each way in which a client can ask for hits. Ways have names;
// subject returns the dialect whose searches ask for this too, "" for nothing.
func Test(t *testing.T, subject func(way string) Subject, ways map[string]string) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subject(way)
			if way == "" {
				testWhole(t, s)
			}
			testSearches(t, s, newTrials(t, s))
		})
	}
}

func testWhole(t *testing.T, s Subject) {
	t.Run("unknown requests pass", func(t *testing.T) { testPass(t, s) })
	t.Run("writes", func(t *testing.T) { testWrites(t, s) })
	t.Run("changes", func(t *testing.T) { testChanges(t, s) })
	t.Run("documents", func(t *testing.T) { testDocuments(t, s) })
	t.Run("operations", func(t *testing.T) { testOperations(t, s) })
	t.Run("reads", func(t *testing.T) { testReads(t, s) })
	t.Run("errors", func(t *testing.T) { testErrors(t, s) })
}

func testSearches(t *testing.T, s Subject, trials []*trial) {
	t.Run("pages", func(t *testing.T) { testPages(t, s) })
	t.Run("groups", func(t *testing.T) { testGroups(t, s) })
	t.Run("strange replies", func(t *testing.T) { testStrange(t, trials) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, trials) })
	t.Run("controls", func(t *testing.T) { testControls(t, trials) })
}

func testPass(t *testing.T, s Subject) {
	odd := []adapters.Request{
		{Method: "GET"}, {Method: "GET", Path: "/"}, {Method: "GET", Path: "//"}, {Method: "BREW", Path: "/news-1"},
		{Method: "POST", Path: "/%zz/%"}, {Method: "OPTIONS", Path: "*"}, {Method: "GET", Path: "/favicon.ico/x/y/z", RawQuery: "%zz&=&&a"},
	}
	for _, r := range append(odd, s.Pass...) {
		if c := s.Dialect.Classify(&r); c.Kind != adapters.KindPass {
			t.Errorf("%s %s is a %s", r.Method, r.Path, c.Kind)
		}
	}
}

// through returns what a copier makes of the text, and holds it to making the same of it in other pieces, and to ending well on
// every beginning of it.
func through(t *testing.T, what, text string, copied func(dst io.Writer, src io.Reader) error) string {
	t.Helper()
	one := func(src io.Reader) string {
		var out bytes.Buffer
		if err := copied(&out, src); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return out.String()
	}
	whole := one(strings.NewReader(text))
	for _, pieces := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		if got := one(pieces(strings.NewReader(text))); got != whole {
			t.Errorf("%s: read in other pieces it is\n%s\nnot\n%s", what, got, whole)
		}
	}
	for end := range text {
		one(strings.NewReader(text[:end]))
	}
	broken := io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := copied(io.Discard, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s: a body that breaks off looks whole", what)
	}
	return whole
}

// enrich returns what a write is enriched by, and counts the documents that get a sketch.
func enrich(s Subject, r *adapters.Request, rules rule.Rules, enriched *int) func(dst io.Writer, src io.Reader) error {
	return func(dst io.Writer, src io.Reader) error {
		*enriched = 0
		w := By(rules)
		w.Counts = func(c rule.Change) {
			if c == rule.Enriched {
				*enriched++
			}
		}
		_, err := s.Dialect.EnrichWrite(s.Dialect.Classify(r), dst, src, w, 1<<30)
		return err
	}
}

func testWrites(t *testing.T, s Subject) {
	for _, w := range s.Writes {
		what, body := w.Method+" "+w.Path, string(w.Body)
		if c := s.Dialect.Classify(&w.Request); c.Kind != adapters.KindWrite {
			t.Errorf("%s is a %s", what, c.Kind)
			continue
		}
		var enriched int
		for end := range len(body) + 1 {
			var out bytes.Buffer
			err := enrich(s, &w.Request, nil, &enriched)(&out, strings.NewReader(body[:end]))
			if out.String() != body[:end] || err != nil {
				t.Fatalf("%s: enriching nothing changed\n%q to\n%q (%v)", what, body[:end], out.String(), err)
			}
		}
		by := enrich(s, &w.Request, Rules(t), &enriched)
		whole := through(t, what, body, by)
		if err := by(io.Discard, strings.NewReader(body)); err != nil || enriched != w.Enriched {
			t.Errorf("%s: enriched %d documents, want %d (%v)", what, enriched, w.Enriched, err)
		}
		ours := jsonedit.Cuts{Drop: func(path []string) bool { return rule.Our(path[len(path)-1]) }}
		if plain := jsonedit.Cleaned([]byte(whole), ours); string(plain) != body {
			t.Errorf("%s: without our field it is\n%s\nwant\n%s", what, plain, body)
		}
	}
}

// testErrors holds errors of our own to the engine's shape, whatever they say and whatever was asked.
func testErrors(t *testing.T, s Subject) {
	requests := []adapters.Request{{Method: "GET", Path: "/"}}
	requests = append(requests, adapters.Request{Method: "POST", Path: "/%zz", RawQuery: "%zz&pretty&format=yaml", Body: []byte("x")})
	requests = append(requests, *s.Search(Search{Target: s.Targets[0], Size: 1}), s.Writes[0].Request, s.Reads[0].Request)
	for _, r := range requests {
		for _, reason := range []string{"no", "\"quoted\" \\ and\nmore \x00 \u2028 é", strings.Repeat("long ", 1000)} {
			for _, status := range []int{400, 403, 413, 502, 503, 504} {
				reply := s.Dialect.ErrorReply(&r, status, reason)
				if reply.Status != status || s.Reason(reply) != reason || len(reply.Header["Content-Type"]) != 1 {
					t.Errorf("%s %s: %d %q is told as %+v", r.Method, r.Path, status, reason, reply)
				}
			}
		}
	}
}

func testReads(t *testing.T, s Subject) {
	for _, r := range s.Reads {
		what, class := r.Method+" "+r.Path, s.Dialect.Classify(&r.Request)
		if class.Kind == adapters.KindPass || class.Kind == adapters.KindWrite && !class.ReplyMayHoldOurs {
			t.Errorf("%s: the reply is not cleaned", what)
			continue
		}
		by := func(dst io.Writer, src io.Reader) error { return s.Dialect.CleanReply(class, dst, src) }
		for _, reply := range []string{r.Reply, r.Clean} {
			if got := through(t, what, reply, by); got != r.Clean {
				t.Errorf("%s: %s\nbecame\n%s\nwant\n%s", what, reply, got, r.Clean)
			}
		}
	}
}
