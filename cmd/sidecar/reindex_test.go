package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// shelf is a store of some indices with a number of documents each, which are all written anew by every run.
type shelf struct {
	adapters.EngineStore // what a test has no use for is not there
	documents            map[string]int
	aliases              map[string][]string
	unready              map[string]string   // why an index can't be prepared
	refuses              string              // an index that refuses every patch
	breaks               string              // an index that can't be read
	sources              map[string][]string // the documents of each index, where it matters what they are
	prepared             []string
}

// Split, Identity and Journal are of an index in one piece, of which nothing is remembered.
func (s *shelf) Split(_ context.Context, index, _ string, _ int) ([]string, int, error) {
	if index == s.breaks {
		return nil, 0, errors.New("the engine answered 503")
	}
	return []string{""}, s.documents[index], nil
}
func (s *shelf) Identity(context.Context, string) (string, error) { return "", nil }
func (s *shelf) Journal() adapters.Journal                        { return &jobs.Ledger{} }
func (s *shelf) Release(context.Context, string)                  {}

func (s *shelf) Resolve(_ context.Context, name string) ([]adapters.Index, error) {
	var found []adapters.Index
	for index := range s.documents {
		if rule.Matches(name, index) || slices.Contains(s.aliases[name], index) {
			found = append(found, adapters.Index{Name: index})
		}
	}
	slices.SortFunc(found, func(a, b adapters.Index) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (s *shelf) Prepare(_ context.Context, name string, create bool) ([]adapters.Index, error) {
	if create {
		return nil, errors.New("a job must not make an index")
	}
	s.prepared = append(s.prepared, name)
	why := s.unready[name]
	return []adapters.Index{{Name: name, Ready: why == "", Why: why}}, nil
}

func (s *shelf) Scan(_ context.Context, index string, _ *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	if index == s.breaks {
		return errors.New("the engine answered 503")
	}
	sources := s.sources[index]
	if s.sources == nil {
		sources = slices.Repeat([]string{`{"title":"one two"}`}, s.documents[index])
	}
	page := adapters.Page{Total: len(sources)}
	for i, source := range sources {
		if id := fmt.Sprint(i); sel.IDs == nil || slices.Contains(sel.IDs, id) {
			page.Documents = append(page.Documents, adapters.Stored{ID: id, Source: []byte(source)})
		}
	}
	return yield(page)
}

func (s *shelf) Patch(_ context.Context, index string, _ *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(patches))
	for i := range results {
		if index == s.refuses {
			results[i] = adapters.Refused
		}
	}
	return results, nil
}

// openedShelf returns the store as an engine with rules for news-* and books.
func openedShelf(t *testing.T, s *shelf) *upstream.Engine {
	t.Helper()
	e := &config.Engine{Name: "shelf"} // of no kind that is known
	for _, match := range []string{"news-*", "books"} {
		index := config.DefaultIndex()
		index.Match, index.Fields = match, []string{"title"}
		e.Indices = append(e.Indices, index)
	}
	return &upstream.Engine{Config: e, Rules: expect.Value(e.Rules())(t), Store: s}
}

// took is the part of a summary that differs between runs.
var took = regexp.MustCompile(`, 0 changed meanwhile, 0 gone(, \d+ refused), in [\d.]+[mµ]?s \([^)]*\)`)

var fullShelf = map[string]int{"news-1": 3, "news-2": 2, "books": 4, "private": 5, ".news-3": 1}

var reindexCases = []struct {
	name     string
	shelf    shelf
	run      reindexJob
	out      string
	err      string
	prepared []string
}{
	{
		name: "every rule", shelf: shelf{documents: fullShelf},
		out: `shelf: news-1: 3 scanned, 3 written, 0 right already, 0 without text, 0 refused
shelf: news-2: 2 scanned, 2 written, 0 right already, 0 without text, 0 refused
shelf: books: 4 scanned, 4 written, 0 right already, 0 without text, 0 refused
`,
		prepared: []string{"news-1", "news-2", "books"},
	},
	{
		name: "dry run", shelf: shelf{documents: fullShelf}, run: reindexJob{job: job{index: "books"}, Options: jobs.Options{DryRun: true}},
		out: "shelf: books: 4 scanned, 4 to be written, 0 right already, 0 without text, 0 refused\n",
	},
	{
		name: "max documents over several indices", shelf: shelf{documents: fullShelf}, run: reindexJob{Options: jobs.Options{MaxDocs: 4}},
		out: `shelf: news-1: 3 scanned, 3 written, 0 right already, 0 without text, 0 refused
shelf: news-2: 1 scanned, 1 written, 0 right already, 0 without text, 0 refused, stopped at --max-docs
`,
		prepared: []string{"news-1", "news-2", "books"},
	},
	{
		name:  "an index that is not ready or breaks does not keep the others back",
		shelf: shelf{documents: fullShelf, unready: map[string]string{"news-1": "it is read-only"}, breaks: "news-2"},
		out: `shelf: news-2: 0 scanned, 0 written, 0 right already, 0 without text, 0 refused
shelf: books: 4 scanned, 4 written, 0 right already, 0 without text, 0 refused
`,
		err:      "engine shelf: index news-1 is not ready: it is read-only\nengine shelf: reindex news-2: the engine answered 503",
		prepared: []string{"news-1", "news-2", "books"},
	},
	{
		name: "an alias of a configured index", shelf: shelf{documents: fullShelf, aliases: map[string][]string{"today": {"news-2", "private"}}},
		run: reindexJob{job: job{index: "today"}},
		out: "shelf: news-2: 2 scanned, 2 written, 0 right already, 0 without text, 0 refused\n", prepared: []string{"news-2"},
	},
	{
		name: "no such index", shelf: shelf{documents: fullShelf}, run: reindexJob{job: job{index: "none"}},
		err: "no index behind none: see the names of your indices, and the rules with: sidecar config check",
	},
}

func TestReindexCommand(t *testing.T) {
	for _, c := range reindexCases {
		t.Run(c.name, func(t *testing.T) {
			var out, stderr strings.Builder
			r := c.run
			r.output, r.out, r.err, r.engines = formText, &out, &stderr, []*upstream.Engine{openedShelf(t, &c.shelf)}
			err := r.run(t.Context())
			expect.Same(t, c.out, took.ReplaceAllString(out.String(), "$1"), "the output")
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("error: %s, want %s", got, c.err)
			}
			expect.Same(t, c.prepared, c.shelf.prepared, "what was prepared")
		})
	}
}

func TestSetupCommand(t *testing.T) {
	s := &shelf{
		documents: map[string]int{"news-1": 1, "news-2": 1, "books-v1": 1},
		aliases:   map[string][]string{"books": {"books-v1"}},
		unready:   map[string]string{"news-2": "it is read-only"},
	}
	var out strings.Builder
	r := setupJob{job: job{out: &out, output: formText, engines: []*upstream.Engine{openedShelf(t, s)}}}
	err := r.run(t.Context())
	want := `shelf: news-1: ready
shelf: news-2: not ready: it is read-only
shelf: books-v1: not ready: no rule matches it: a rule's match is compared with the names of indices, not with aliases
`
	expect.Same(t, want, out.String(), "the output")
	expect.Same(t, 2, len(config.Flatten(err)), "errors: %v", err)
}
