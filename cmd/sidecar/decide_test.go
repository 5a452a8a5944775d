package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
)

// archive is a shelf with a journal.
type archive struct {
	shelf
	jobs.Ledger
}

func (a *archive) Journal() adapters.Journal { return &a.Ledger }

var decidedAt = regexp.MustCompile(`# \d{4}-\d\d-\d\d \d\d:\d\d`)

// TestDecideCommand decides, lists, changes texts, imports what it listed, and takes back.
func TestDecideCommand(t *testing.T) {
	a := &archive{shelf: shelf{documents: map[string]int{"news-1": 3, "news-2": 1, "books": 2, "private": 1}, sources: map[string][]string{
		"news-1": {`{"title":"one two"}`, `{"title":"three"}`, `{"title":"four"}`}, "news-2": {`{"title":"one two"}`}, "books": {`{"title":"five"}`, `{"title":"…"}`},
	}}}
	e := openedShelf(t, &a.shelf)
	e.Store = a
	run := func(index string, flags decideJob, args ...string) (string, error) {
		var out bytes.Buffer
		d := &flags
		d.index, d.output, d.out, d.err, d.engines = index, formText, &out, &out, []*upstream.Engine{e}
		if !d.list {
			d.by = "anna"
		}
		if err := d.take(nil, args); err != nil {
			return "", err
		}
		err := d.run(t.Context())
		return decidedAt.ReplaceAllString(out.String(), "# AT"), err
	}
	file := filepath.Join(t.TempDir(), "pairs.txt")
	for _, step := range []struct {
		index, args, file string
		flags             decideJob
		out, err          string
	}{
		{index: "news-*", args: "0 1 same", out: "1 pair decided\n"},
		{index: "news-1", args: "1 0 same", out: "0 pairs decided, 1 unchanged\n"},
		{index: "news-1", args: "2 1 different", out: "1 pair decided\n"},
		{index: "news-1", args: "0 9 same", err: "0 and 9: no index holds both, 9 is missing: check the id and the index"},
		{index: "books", args: "0 1 same", err: "0 and 1: document 1 has no text in the fields of its rule"},
		{index: "private", args: "0 1 same", err: "no rule matches it"},
		{index: "*", flags: decideJob{list: true}, out: "news-1 0 1 same # AT, by anna\nnews-1 2 1 different # AT, by anna\n"},
		{index: "changed", flags: decideJob{list: true}, out: "# 0 1 same # AT, by anna; ask again: the text of 1 has changed\n# 2 1 different # AT, by anna; ask again: the text of 1 has changed\n"},
		{index: "books", flags: decideJob{list: true}, out: "# nothing is decided\n"},
		{file: "books 0 1 same\nnews-1 0 1 different", err: "has no text"},
		{file: "news-1 0 1 different", out: "1 pair decided\n"},
		{index: "*", flags: decideJob{list: true}, out: "news-1 0 1 different # AT, by anna\n# news-1 2 1 different # AT, by anna; ask again: the text of 1 has changed\n"},
		{file: "news-1 0 1 same\nnews-1 0 9 same", out: "skipped: 0 and 9: no index holds both, 9 is missing: check the id and the index\n1 pair decided, 1 skipped because a document is missing\n"},
		{file: "news-1 0 9 same", err: "9 is missing"}, {file: "# none", err: "holds no pairs"},
		{index: "news-1", file: "0 1 same\nnews-1 1 0 different", err: "0 of news-1 have both verdicts, same and different"},
		{index: "renamed", flags: decideJob{list: true}, out: "0 1 same # AT, by anna; no rule matches this index, or it does not exist\n2 1 different # AT, by anna; no rule matches this index, or it does not exist\n"},
		{index: "news-1", args: "1 0", flags: decideJob{forget: true}, out: "1 pair forgotten\n"},
		{index: "news-2", args: "1 0", flags: decideJob{forget: true}, err: `nothing is decided about "1" and "0": --list shows the decided pairs`},
		{file: "news-1 0 1 different", flags: decideJob{forget: true}, err: `nothing is decided about "0" and "1"`},
		{args: "0 1 same", err: "--index is missing"}, {index: "a", args: "0 0 same", err: "decide takes the ids of two documents"},
		{index: "a", args: "0 1 sane", err: `"sane": write same or different`}, {index: "a", args: "0 1", err: "decide takes two ids and same or different"},
	} {
		if step.index == "changed" {
			a.sources["news-1"][1], step.index = `{"title":"another"}`, "news-1"
		}
		if step.index == "renamed" {
			delete(a.documents, "news-1")
			step.index = "news-1"
		}
		if step.file != "" {
			step.flags.file = file
			expect.OK(t, os.WriteFile(file, []byte(step.file), 0o600))
		}
		out, err := run(step.index, step.flags, strings.Fields(step.args)...)
		expect.Same(t, step.out, out, "%s %s %s", step.index, step.args, step.file)
		if step.err == "" && err != nil || err != nil && !strings.Contains(err.Error(), step.err) || step.err != "" && err == nil {
			t.Errorf("%s %s: %v, want %q", step.index, step.args, err, step.err)
		}
	}
}

// TestDecideListIsAFile: whatever ids hold, a list is read as the pairs that it lists, and those that are to be asked again are comments.
func TestDecideListIsAFile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a := &archive{shelf: shelf{documents: map[string]int{"news-1": 1}}}
	e := openedShelf(t, &a.shelf)
	e.Store = a
	parts := []string{"\n", "\r", "#", " ", "\"", "a", "news-1 x y same #", "\x7f", "\u0085", "\u2028", "\u202e", "\ufffd", "\x00", "é", "\U000e0001"}
	id := func() (text string) {
		for range 1 + r.IntN(4) {
			text += parts[r.IntN(len(parts))]
		}
		return text
	}
	var pairs []decided.Pair
	for range 300 {
		pairs = append(pairs, decided.Pair{Index: []string{"news-1", "gone"}[r.IntN(2)], A: "1" + id(), B: "2" + id(), Verdict: decided.Same, TextA: 1, TextB: 2})
	}
	log := decided.Open(a.Journal())
	expect.Value(log.Add(t.Context(), "ann\na", pairs...))(t)
	for _, index := range []string{"", "gone"} {
		var out bytes.Buffer
		d := &decideJob{list: true, job: job{index: index, output: formText, out: &out, engines: []*upstream.Engine{e}}}
		expect.OK(t, d.run(t.Context()))
		got, err := decided.Parse(&out, "list", "gone")
		expect.OK(t, err)
		var want []decided.Pair
		for _, p := range log.Pairs() {
			if p.Index == "gone" { // no document of the other index is there
				want = append(want, decided.Pair{Index: p.Index, A: p.A, B: p.B, Verdict: p.Verdict})
			}
		}
		expect.Same(t, want, got, "index %q", index)
	}
}

// refusing is an archive whose journal may not be read.
type refusing struct {
	*archive
	status int
}

func (r refusing) Journal() adapters.Journal { return r }
func (r refusing) JournalIndex() string      { return "neardup-jobs" }
func (r refusing) Append(context.Context, string, adapters.Entry) (bool, error) {
	return false, refusal(r.status)
}
func (r refusing) Entries(context.Context, string) ([]adapters.Entry, error) {
	return nil, refusal(r.status)
}
func (r refusing) Since(context.Context, string, int, int) ([]adapters.Entry, error) {
	return nil, refusal(r.status)
}
func (r refusing) Drop(context.Context, string, int, int) error { return refusal(r.status) }

type refusal int

func (r refusal) Error() string   { return fmt.Sprintf("the engine answered %d", int(r)) }
func (r refusal) HTTPStatus() int { return int(r) }

// TestDecidedPairsOutOfReach: without the right to read decisions reports come with a warning, and what changes documents needs --ignore-decided.
func TestDecidedPairsOutOfReach(t *testing.T) {
	a := &archive{shelf: shelf{documents: map[string]int{"news-1": 1}}}
	e := openedShelf(t, &a.shelf)
	target := targetOf(e, adapters.Index{Name: "news-1"})
	for status, refused := range map[int]bool{401: true, 403: true, 503: false} {
		e.Store = refusing{a, status}
		var out bytes.Buffer
		j := job{err: &out}
		_, err := j.decidedIn(t.Context(), target, false)
		if refused != (err == nil) || refused != strings.Contains(out.String(), "warning: decided pairs are not obeyed") {
			t.Errorf("%d, a report: %v %s", status, err, out.String())
		}
		if _, err := j.decidedIn(t.Context(), target, true); err == nil || refused != strings.Contains(err.Error(), "--ignore-decided") {
			t.Errorf("%d, needed: %v", status, err)
		}
		j.undecided = true
		if pairs, err := j.decidedIn(t.Context(), target, true); err != nil || pairs != nil {
			t.Errorf("%d, ignored: %v", status, err)
		}
	}
}
