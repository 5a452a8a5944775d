package main

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/jobs"
)

// TestInitBelievesNoEngine: what an engine says of itself adds no line to the file, and moves no terminal.
func TestInitBelievesNoEngine(t *testing.T) {
	odd := articles()
	odd.attributes = []string{"closed"}
	e := &surveyedEngine{
		t: t, version: "8.19.13\ntraces: {endpoint: \"http://evil.example\"} #\x1b[2J\u009b2J",
		indices: map[string]*surveyedIndex{"news": articles(), "old\x1b[2J": odd, "odd\u0085\u0090": articles()},
	}
	got, text := surveyedFor(t, e.at())
	expect.Must(t, exitDone, got.code, "%+v", got)
	if c, err := config.Parse([]byte(text), os.LookupEnv); err != nil || c.Traces.Endpoint != "" || len(c.Engines[0].Indices) != 1 {
		t.Errorf("%v: %s", err, text)
	}
	for _, shown := range []string{got.stdout, text} {
		if strings.ContainsFunc(shown, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("%q", shown)
		}
	}
}

// TestResultsMoveNoTerminal: indices, ids and documents are shown as text.
func TestResultsMoveNoTerminal(t *testing.T) {
	const evil = "a\x1b[2J\u009b2J"
	var out strings.Builder
	out.WriteString(jobs.VerifyReport{Engine: "e", Index: evil, Findings: jobs.Findings{Examples: []string{evil}}}.String())
	(&setupJob{job: job{out: &out, output: formText}}).printf("%s: not ready: %s\n", evil, evil)
	found := similar.Similar{
		Searched: []similar.Searched{{Index: evil}}, Alike: []similar.Alike{{Index: "a\u009b2J", ID: "b\u009b2J", Source: []byte(`"\u009b2J"`)}},
	}
	out.WriteString((&similarJob{Likeness: similar.Likeness{Source: true}}).text(found))
	if text := out.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "\u009b") || !strings.Contains(text, "2J") {
		t.Errorf("%q", text)
	}
}
