package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/upstream"
)

// archive is a shelf with a journal.
type archive struct {
	shelf
	drawer
}

func (a *archive) Journal() adapters.Journal { return &a.drawer }

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
		d.index, d.output, d.out, d.err, d.by, d.engines = index, formText, &out, &out, "anna", []*upstream.Engine{e}
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
		{index: "news-1", args: "1 0 same", out: "0 pairs decided, 1 as before\n"},
		{index: "news-1", args: "2 1 different", out: "1 pair decided\n"},
		{index: "news-1", args: "0 9 same", err: "0 and 9: there is no document 9 beside the other one: check the id and the index"},
		{index: "books", args: "0 1 same", err: "0 and 1: document 1 has no text in the fields of its rule, and is compared with nothing"},
		{index: "private", args: "0 1 same", err: "no rule matches it"},
		{index: "*", flags: decideJob{list: true}, out: "news-1 0 1 same # AT, by anna\nnews-1 2 1 different # AT, by anna\n"},
		{index: "changed", flags: decideJob{list: true}, out: "news-1 0 1 same # AT, by anna; ask again: the text of 1 has changed\nnews-1 2 1 different # AT, by anna; ask again: the text of 1 has changed\n"},
		{index: "books", flags: decideJob{list: true}, out: "# nothing is decided\n"},
		{file: "books 0 1 same\nnews-1 0 1 different", err: "has no text"},
		{file: "news-1 0 1 different", out: "1 pair decided\n"},
		{index: "*", flags: decideJob{list: true}, out: "news-1 0 1 different # AT, by anna\nnews-1 2 1 different # AT, by anna; ask again: the text of 1 has changed\n"},
		{index: "news-1", args: "1 0", flags: decideJob{forget: true}, out: "1 pair forgotten\n"},
		{index: "news-2", args: "1 0", flags: decideJob{forget: true}, err: "nothing is decided about 1 and 0: see what is with --list"},
		{file: "news-1 0 1 different", flags: decideJob{forget: true}, err: "nothing is decided about 0 and 1"},
		{args: "0 1 same", err: "--index is missing"}, {index: "a", args: "0 0 same", err: "decide takes the ids of two documents"},
		{index: "a", args: "0 1 sane", err: `"sane": write same or different`}, {index: "a", args: "0 1", err: "decide takes two ids and same or different"},
	} {
		if step.index == "changed" {
			a.sources["news-1"][1], step.index = `{"title":"another"}`, "news-1"
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
