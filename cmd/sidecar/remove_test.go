package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// marked is a shelf whose documents hold our fields until they are taken out.
type marked struct {
	shelf
	patched    int
	notes      map[string]string
	undeclared []string // the indices whose declarations were removed
}

func newMarked() *marked {
	const source = `{"title":"one two","neardup_sketch":"x"}`
	m := &marked{shelf: shelf{documents: map[string]int{"news-1": 2, "news-2": 1, "private": 1}, sources: map[string][]string{}}}
	for index, n := range m.documents {
		m.sources[index] = slices.Repeat([]string{source}, n)
	}
	return m
}

func (m *marked) Patch(ctx context.Context, index string, r *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	for _, p := range patches {
		if r != nil || !p.Wanted.Equal(rule.Ours{}) {
			return nil, errors.New("a removal writes nothing of ours")
		}
		m.patched++
		if n, err := strconv.Atoi(p.ID); err == nil && index != m.refuses {
			m.sources[index][n] = `{"title":"one two"}`
		}
	}
	return m.shelf.Patch(ctx, index, r, patches)
}

func (m *marked) Remove(_ context.Context, index string) (string, error) {
	m.undeclared = append(m.undeclared, index)
	return m.notes[index], nil
}

func (m *marked) JournalIndex() string { return "jobs" }

func TestRemoveCommand(t *testing.T) {
	const news1 = "shelf: news-1: 2 scanned, 2 held something of ours, 2 cleaned, 0 gone, 0 refused, 0 left\n"
	const note = "shelf: news-1: the mapping keeps it\n"
	for _, c := range []struct {
		name, index, refuses, breaks string
		dry                          bool
		out, err                     string
		patched                      int
		undeclared                   []string
	}{
		{name: "one index", index: "news-1", out: news1 + note, patched: 2, undeclared: []string{"news-1"}},
		{name: "a dry run", index: "news-1", dry: true, out: "shelf: news-1: 2 scanned, 2 hold something of ours\n"},
		{
			name: "what is refused keeps its declaration", index: "news-*", refuses: "news-2", err: errRefused.Error(), patched: 3,
			undeclared: []string{"news-1"},
			out:        news1 + note + "shelf: news-2: 1 scanned, 1 held something of ours, 0 cleaned, 0 gone, 1 refused, 0 left\n",
		},
		{
			name: "an index that breaks does not hide the others", index: "news-*", breaks: "news-1", patched: 1,
			undeclared: []string{"news-2"},
			err:        "engine shelf: remove from news-1: the engine answered 503",
			out: "shelf: news-1: 0 scanned, 0 held something of ours, 0 cleaned, 0 gone, 0 refused, 0 left\n" +
				"shelf: news-2: 1 scanned, 1 held something of ours, 1 cleaned, 0 gone, 0 refused, 0 left\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMarked()
			m.refuses, m.breaks = c.refuses, c.breaks
			e := openedShelf(t, &m.shelf)
			e.Store = m
			var out strings.Builder
			m.notes = map[string]string{"news-1": "the mapping keeps it"}
			r := removeJob{yes: true, job: job{
				index: c.index, output: formText, in: strings.NewReader(""), out: &out, err: io.Discard, engines: []*upstream.Engine{e},
			}}
			r.DryRun = c.dry
			err := r.run(t.Context())
			expect.Same(t, c.out, tookSeconds.ReplaceAllString(out.String(), "\n"), "the output")
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("error: %s, want %s", got, c.err)
			}
			expect.Same(t, c.undeclared, m.undeclared, "what was undeclared")
			expect.Same(t, c.patched, m.patched, "documents that were patched")
		})
	}
}

// TestRemoveAsks writes nothing where nobody said that it may.
func TestRemoveAsks(t *testing.T) {
	m := newMarked()
	e := openedShelf(t, &m.shelf)
	e.Store = m
	r := removeJob{job: job{
		index: "news-1", output: formText, in: strings.NewReader("y\n"), out: io.Discard, err: io.Discard, engines: []*upstream.Engine{e},
	}}
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--yes") || m.patched > 0 {
		t.Errorf("%v, %d patched", err, m.patched)
	}
}

// TestRemoveDropsJournals keeps the journals of what it did not work on, and what they are kept in.
func TestRemoveDropsJournals(t *testing.T) {
	for _, c := range []struct {
		name, others string
		undeclared   int
	}{{"none but ours", "", 1}, {"another index", "reindex:books:01", 0}, {"another kind of job", "cluster:news-1", 0}, {"decided pairs", "", 1}, {"decided pairs of others, too", "decided", 0}} {
		t.Run(c.name, func(t *testing.T) {
			d, m := &jobs.Ledger{}, newMarked()
			for part := range 3 {
				expect.Value(d.Append(t.Context(), "reindex:news-1:0a", adapters.Entry{Slot: part}))(t)
				expect.Value(d.Append(t.Context(), "reindex:news-1:0b", adapters.Entry{Slot: part}))(t)
			}
			pair := func(index string) decided.Pair {
				return decided.Pair{Index: index, A: "a", B: "b", Verdict: decided.Same, TextA: 1, TextB: 2}
			}
			switch {
			case strings.HasPrefix(c.name, "decided"):
				pairs := []decided.Pair{pair("news-1")}
				if c.others != "" {
					pairs = append(pairs, pair("books"))
				}
				expect.Value(decided.Open(d).Add(t.Context(), "", pairs...))(t)
			case c.others != "":
				expect.Value(d.Append(t.Context(), c.others, adapters.Entry{}))(t)
			}
			e := openedShelf(t, &m.shelf)
			e.Store = m
			var out strings.Builder
			r := removeJob{job: job{output: formText, out: &out}, list: []jobs.Removal{{Engine: "shelf", Index: "news-1"}}}
			expect.OK(t, r.dropJournals(t.Context(), e, d))
			log, left := decided.Open(d), 0
			expect.OK(t, log.Read(t.Context()))
			if c.others != "" {
				left = 1
			}
			if c.others == "decided" {
				left = 2 // one that takes the other back
				if _, there := log.Pair("books", "a", "b"); !there || len(log.Pairs()) != 1 {
					t.Errorf("pairs left: %v", log.Pairs())
				}
			}
			entries := expect.Value(d.Entries(t.Context(), ""))(t)
			if len(m.undeclared) != c.undeclared || len(entries) != left || !strings.Contains(out.String(), c.others) {
				t.Errorf("%v undeclared, %v left: %s", m.undeclared, entries, out.String())
			}
		})
	}
}
