package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// stocked is a shelf to which nothing may be written.
type stocked struct{ shelf }

func (s *stocked) Patch(context.Context, string, *rule.Rule, []adapters.Stored) ([]adapters.Result, error) {
	panic("verify must not write")
}

func (s *stocked) Prepare(context.Context, string, bool) ([]adapters.Index, error) {
	panic("verify must not prepare")
}

// openedStock returns a store with a right and an absent sketch in news-1, a stale one in news-2, and in books three that are
// emptied, incomparable and textless.
func openedStock(t *testing.T) (*upstream.Engine, *stocked) {
	t.Helper()
	s := &stocked{shelf: shelf{documents: map[string]int{"news-1": 2, "news-2": 1, "books": 3, "private": 1}}}
	e := openedShelf(t, &s.shelf)
	e.Store = s
	computed, _ := e.Rules[0].SketchOf([]byte(`{"title":"one two three"}`))
	s.sources = map[string][]string{
		"news-1": {`{"title":"one two three","neardup_sketch":"` + computed.Text + `"}`, `{"title":"one two"}`},
		"news-2": {`{"title":"four five six","neardup_sketch":"` + computed.Text + `"}`},
		"books":  {`{"title":"","neardup_sketch":"` + computed.Text + `"}`, `{"title":"one","neardup_sketch":"x"}`, `{"title":"…"}`},
	}
	return e, s
}

var tookSeconds = regexp.MustCompile(`, in [\d.]+m?s\n`)

func TestVerifyCommand(t *testing.T) {
	for _, c := range []struct {
		name   string
		index  string
		breaks string
		out    string
		err    string
	}{
		{
			name: "every rule", err: terminal.ErrFound.Error(),
			out: `shelf: news-1: 2 scanned, 1 right, 1 absent, 0 incomparable, 0 stale, 0 textless with a sketch, 0 without text
shelf: news-2: 1 scanned, 0 right, 0 absent, 0 incomparable, 1 stale, 0 textless with a sketch, 0 without text
shelf: news-2: stale, for example: 0
shelf: books: 3 scanned, 0 right, 0 absent, 1 incomparable, 0 stale, 1 textless with a sketch, 1 without text
shelf: books: stale, for example: 0
`,
		},
		{
			name: "an index that breaks does not hide the others", index: "news-*", breaks: "news-1",
			err: "engine shelf: verify news-1: the engine answered 503",
			out: `shelf: news-1: 0 scanned, 0 right, 0 absent, 0 incomparable, 0 stale, 0 textless with a sketch, 0 without text
shelf: news-2: 1 scanned, 0 right, 0 absent, 0 incomparable, 1 stale, 0 textless with a sketch, 0 without text
shelf: news-2: stale, for example: 0
`,
		},
		{
			name: "no such index", index: "none",
			err: "no index behind none: see the names of your indices, and the rules with: sidecar config check",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, s := openedStock(t)
			s.breaks = c.breaks
			var out strings.Builder
			v := verifyJob{job: job{index: c.index, output: formText, out: &out, err: io.Discard, engines: []*upstream.Engine{e}}}
			err := v.run(t.Context())
			expect.Same(t, c.out, tookSeconds.ReplaceAllString(out.String(), "\n"), "the output")
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("error: %s, want %s", got, c.err)
			}
		})
	}
}

// TestVerifyExitCodes: 1 is kept for stale sketches, so that whatever else goes wrong is a 2.
func TestVerifyExitCodes(t *testing.T) {
	embedded := write(t, `engines: [{kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t]}]}]`)
	dead := write(t, `
engines:
  - {kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], indices: [{match: a, fields: [t]}]}
`)
	for _, c := range []struct{ args, want string }{
		{"verify --fast", "error: unknown flag: --fast"},
		{"verify now", `error: unknown command "now" for "sidecar verify"`},
		{"verify -c " + embedded, "error: an embedded engine runs inside serve alone"},
		{"verify -c " + dead, "error: engine opensearch: resolve a: dial tcp 127.0.0.1:1: connect: connection refused: " +
			"check that it runs and that its urls in the configuration are right, or run sidecar doctor\n"},
	} {
		got := sidecar(t, strings.Fields(c.args)...)
		if got.code != exitTrouble || !strings.HasPrefix(got.stderr, c.want) {
			t.Errorf("sidecar %s: code %d, %s", c.args, got.code, got.stderr)
		}
	}
}

func TestVerifyInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, _ := openedStock(t)
	v := verifyJob{job: job{output: formText, out: io.Discard, err: io.Discard, engines: []*upstream.Engine{e}}}
	if err := v.run(ctx); !errors.Is(err, terminal.ErrInterrupted) || exitCode(verifyCommand(), err) != exitTrouble {
		t.Errorf("error: %v", err)
	}
}

// mending is a stock that may be written to.
type mending struct {
	*stocked
	result adapters.Result
}

func (m *mending) Patch(_ context.Context, _ string, _ *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(patches))
	for i := range results {
		results[i] = m.result
	}
	return results, nil
}

func (m *mending) Prepare(ctx context.Context, name string, create bool) ([]adapters.Index, error) {
	return m.shelf.Prepare(ctx, name, create)
}

// TestVerifyRepairEnds: what was mended is no longer found, and what could not be mended is.
func TestVerifyRepairEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		result adapters.Result
		unfit  string
		out    string
		err    string
	}{
		{name: "mended", out: "shelf: books: 2 mended, 0 changed meanwhile, 0 gone, 0 refused\n"},
		{
			name: "refused", result: adapters.Refused, err: terminal.ErrFound.Error(),
			out: "shelf: books: 0 mended, 0 changed meanwhile, 0 gone, 2 refused\n",
		},
		{name: "an index that is not ready", unfit: "it is full", err: "engine shelf: index books is not ready: it is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, s := openedStock(t)
			s.unready = map[string]string{}
			if c.unfit != "" {
				s.unready["books"] = c.unfit
			}
			e.Store = &mending{s, c.result}
			var out strings.Builder
			v := verifyJob{job: job{index: "books", output: formText, out: &out, err: io.Discard, engines: []*upstream.Engine{e}}}
			v.Repair = true
			err := v.run(t.Context())
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("error: %s, want %s", got, c.err)
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("printed %s, want %s", out.String(), c.out)
			}
		})
	}
}
