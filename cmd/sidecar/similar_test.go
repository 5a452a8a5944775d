package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// TestSimilarRefuses: what the command line asks for wrongly is refused with what to do, before any engine is asked.
func TestSimilarRefuses(t *testing.T) {
	for args, why := range map[string]string{
		"--index news":                      "takes the id of a document, or - for standard input",
		"--index news 1 2":                  "takes the id of a document, or - for standard input",
		"1":                                 "--index is missing",
		"--index news --threshold 0 1":      "--threshold: 0 is out of range",
		"--index news --threshold 1.01 1":   "--threshold: 1.01 is out of range",
		"--index news --threshold NaN 1":    "--threshold: NaN is out of range",
		"--index news --size 0 1":           "--size: 0 is out of range",
		"--index news --output yaml 1":      `--output: "yaml" is unknown`,
		"--index news --config none.yaml 1": "none.yaml",
	} {
		var out, complaint bytes.Buffer
		code := run(t.Context(), append([]string{"similar"}, strings.Fields(args)...), nil, &out, &complaint)
		if code != exitFailed || !strings.Contains(complaint.String(), why) || out.Len() > 0 {
			t.Errorf("%s: %d %s%s", args, code, out.String(), complaint.String())
		}
	}
}

// endless gives zero bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestTyped: an object on standard input is a document, anything else a text.
func TestTyped(t *testing.T) {
	for in, want := range map[string]string{
		` {"title":"a"} `: `{"title":"a"}`, `{"title":`: `{"text":"{\"title\":"}`, "plain <b>text</b>\n": `{"text":"plain \u003cb\u003etext\u003c/b\u003e\n"}`,
		"": `{"text":""}`, "[1]": `{"text":"[1]"}`,
	} {
		if got, err := typed(strings.NewReader(in)); err != nil || string(got) != want {
			t.Errorf("%q is read as %s, %v", in, got, err)
		}
	}
	if _, err := typed(io.LimitReader(endless{}, maxStdin+1)); err == nil {
		t.Error("too long a text is taken")
	}
}

// TestSimilarTable: people see what was compared and what was found.
func TestSimilarTable(t *testing.T) {
	share, exact := 0.9931, 0.912
	searched := []adapters.Searched{{Index: "news", Threshold: 0.64, Compared: 12, Recall: &share}}
	for _, c := range []struct {
		found adapters.Similar
		want  string
	}{
		{adapters.Similar{}, "nothing to look for"},
		{adapters.Similar{Searched: searched}, "news: threshold 0.64, compared with 12, finds 99.3 % of pairs at the threshold\nno near-duplicates\n"},
		{adapters.Similar{Searched: searched, Total: 3, Alike: []adapters.Alike{
			{Index: "news", ID: "a\tb", Agreement: 1, SameText: true}, {Index: "news", ID: "2", Agreement: 0.9, Error: 0.0264, Resemblance: &exact},
		}}, "INDEX  ID      AGREEMENT  ±      SAME TEXT  RESEMBLANCE\n" +
			"news   \"a\\tb\"  1.000      0.000  yes        \n" +
			"news   2       0.900      0.026             0.912\n" +
			"3 by their sketches in all: show more with --size\n"},
	} {
		var out bytes.Buffer
		if err := (&similarFlags{}).print(&out, c.found); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s, not %s: %v", out.String(), c.want, err)
		}
	}
}
