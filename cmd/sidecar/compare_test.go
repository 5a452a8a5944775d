package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// numbered returns a text of so many different words, every so many of which (0: none) is another one than in other texts.
func numbered(words, every int) string {
	var b strings.Builder
	for i := range words {
		if every > 0 && i%every == every-1 {
			fmt.Fprintf(&b, "changed%dby%d ", i, every)
			continue
		}
		fmt.Fprintf(&b, "word%d ", i)
	}
	return b.String()
}

// docLines returns the lines of documents with ids and texts in turn.
func docLines(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		line, err := json.Marshal(map[string]string{"id": pairs[i], "text": pairs[i+1]})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// Fifth differs from whole in every fifth word: three of seven shingles are in both.
var comparedDocuments = docLines(
	"whole", numbered(600, 0), "same", strings.ToUpper(numbered(600, 0)), "fifth", numbered(600, 5), "other", numbered(600, 1),
	"short", "a few words", "SHORT", "A FEW  WORDS", "shorter", "a few", "empty", "…", "EMPTY", "…", "html", "<p>"+numbered(600, 0)+"</p>")

// row returns the line of a pair by the package's own functions.
func row(t testing.TB, a, b, textA, textB string, near bool) string {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	first, _ := sketcher.Sketch(textA)
	second, _ := sketcher.Sketch(textB)
	agreement, ok := first.Agreement(&second)
	if !ok {
		t.Fatalf("%s and %s are not comparable", a, b)
	}
	return fmt.Sprintf("%s\t%s\t%.4f\t%.4f\t%t\n", a, b, max(0, agreement), first.StandardError(&second), near)
}

func TestComparePairs(t *testing.T) {
	const header = "id_a\tid_b\tagreement\terror\tnear_duplicate\n"
	docs := file(t, comparedDocuments)
	pairs := "id_a\tid_b\tlabel\nwhole\tfifth\t1\tmore\r\n\nwhole\tother\nsame\twhole\nhtml\twhole\nshort\tSHORT\nshort\tshorter\nempty\tEMPTY\nempty\twhole\nwhole\tempty\nwhole\twhole\n"
	want := func(fifth bool) string {
		return header + row(t, "whole", "fifth", numbered(600, 0), numbered(600, 5), fifth) +
			row(t, "whole", "other", numbered(600, 0), numbered(600, 1), false) +
			"same\twhole\t1.0000\t0.0073\ttrue\nhtml\twhole\t1.0000\t0.0073\ttrue\n" +
			"short\tSHORT\t1.0000\t0.0073\ttrue\n" + row(t, "short", "shorter", "a few words", "a few", false) +
			"empty\tEMPTY\t0.0000\t0.0000\tfalse\nempty\twhole\t0.0000\t0.0000\tfalse\nwhole\tempty\t0.0000\t0.0000\tfalse\nwhole\twhole\t1.0000\t0.0073\ttrue\n"
	}
	rule := write(t, `engines: [{indices: [{match: a, fields: [text], threshold: 0.41}, {match: b, fields: [text], preset: safe}]}]`)
	for _, c := range []struct {
		flags string
		fifth bool
	}{
		{"", false},
		{"--preset thorough", false},
		{"--preset safe", false},
		{"--threshold 0.41", true},
		{"--threshold 0.3", true},
		{"--index a --config " + rule, true},
		{"--index b --config " + rule, false},
		{"--index b --preset default --config " + rule, false},
	} {
		args := append([]string{"compare", "--docs", docs, "--pairs", "-"}, strings.Fields(c.flags)...)
		got := piped(t, pairs, args...)
		byAll.Same(t, result{stdout: want(c.fifth)}, got, "%s", c.flags)
	}
	got := piped(t, comparedDocuments, "compare", "--docs", "-", "--pairs", file(t, "whole\tsame\nempty\tshort\n"), "--output", "json")
	wantJSON := `{"id_a":"whole","id_b":"same","agreement":1.0000,"error":0.0073,"near_duplicate":true}
{"id_a":"empty","id_b":"short","agreement":0.0000,"error":0.0000,"near_duplicate":false}
`
	byAll.Same(t, result{stdout: wantJSON}, got, "")
}

// TestCompareWithoutPassages: a preset changes what folds, and not which passages of a rule are left out.
func TestCompareWithoutPassages(t *testing.T) {
	passage := numbered(600, 0)
	docs := file(t, docLines("a", numbered(30, 1)+" "+passage, "b", numbered(30, 2)+" "+passage))
	footers := file(t, `{"passage":"`+passage+`"}`)
	rule := write(t, `engines: [{indices: [{match: a, fields: [text], boilerplate: `+footers+`}]}]`)
	for flags, fold := range map[string]bool{"": true, "--preset thorough": true, "--config " + rule: false, "--preset thorough --config " + rule: false} {
		got := piped(t, "a\tb\n", append([]string{"compare", "--docs", docs, "--pairs", "-", "--output", "json"}, strings.Fields(flags)...)...)
		if want := fmt.Sprintf(`"near_duplicate":%v`, fold); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %s", flags, got, want)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	docs := file(t, docLines("a", "some words", "b", "other words"))
	twice := file(t, docLines("a", "x", "b", "y", "a", "z"))
	for _, c := range []struct{ args, stdin, want string }{
		{"--docs D --pairs -", "id_a\tid_b\na\tb\na\tc\n", "error: standard input:3: there is no document with the id c: look for it in the file that --docs names"},
		{"--docs D --pairs -", "a\tb\nab\n", `error: standard input:2: "ab" is not a pair: write two ids with a tab between`},
		{"--docs TWICE --pairs -", "a\tb\n", "error: TWICE:3: id a is in line 1 too: give each document its own"},
		{"--docs - --pairs D", "{\n", "error: standard input:1: is no JSON object"},
		{"--docs nowhere --pairs -", "", "error: open nowhere: no such file or directory: name a file, or - for standard input"},
		{"--docs - --pairs -", "", "error: --docs and --pairs can't both be standard input"},
		{"", "", "error: compare takes two files, as in: sidecar compare old.txt new.txt, or --docs and --pairs"},
		{"D D --preset careful", "", `error: invalid argument "careful" for "--preset" flag: use default, safe, thorough, mirrors, news, `},
		{"D D --threshold 0", "", `error: invalid argument "0" for "--threshold" flag: use a number above 0, at most 1: see sidecar compare --help`},
	} {
		names := strings.NewReplacer("TWICE", twice, "D", docs)
		got := piped(t, c.stdin, append([]string{"compare"}, strings.Fields(names.Replace(c.args))...)...)
		if want := strings.ReplaceAll(c.want, "TWICE", twice); got.code != exitFailed || !strings.HasPrefix(got.stderr, want) {
			t.Errorf("sidecar compare %s on %q: code %d, %s", c.args, c.stdin, got.code, got.stderr)
		}
	}
}
