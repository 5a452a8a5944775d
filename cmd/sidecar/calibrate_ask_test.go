package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/jobs/calibrate"
)

// openedPairs returns a stock of 80 pairs of texts that share more and more words. From the 46th on a pair is one city's.
func openedPairs(t *testing.T) *upstream.Engine {
	t.Helper()
	l := &stocked{shelf{documents: map[string]int{"news-1": 160}, sources: map[string][]string{}}}
	for i := range 160 {
		text, city := "", fmt.Sprint("Rome", i*min(1, max(0, 90-i)))
		for w := range 80 {
			word := fmt.Sprintf("w%dx%d\x1b", i/2, w)
			if i%2 == 1 && w < 80-i/2 {
				word = "changed" + word
			}
			text += " " + word
		}
		l.sources["news-1"] = append(l.sources["news-1"], string(expect.Value(json.Marshal(map[string]string{"title": text, "city": city}))(t)))
	}
	e := openedShelf(t, &l.shelf)
	e.Store, e.Kind = l, kind.Of("elasticsearch")
	e.Transport, e.Config.URLs = http.DefaultTransport, []string{"http://127.0.0.1:1"} // where presets are tried in vain
	return e
}

// TestAsk holds a conversation: it judges by the share of words, errs, takes back, quits, goes on in a second run, and writes the configuration.
func TestAsk(t *testing.T) {
	folder := t.TempDir()
	file, answers := filepath.Join(folder, "config.yaml"), filepath.Join(folder, "answers.jsonl")
	const head = "engines:\n- name: shelf\n  kind: elasticsearch\n  listen: 127.0.0.1:9201\n  urls: [\"http://localhost:9200\"]\n  indices:\n  - match: news-*\n    fields: [title]\n"
	const tail = "    # as it was\n    threshold: 0.64 # for now\n"
	expect.OK(t, os.WriteFile(file, []byte(head+tail), 0o640))
	talk := func(write bool, p *person) error {
		r := calibrateJob{Options: calibrate.DefaultOptions, asking: asking{ask: true, write: write, answers: answers, file: file}, job: job{
			index: "news-1", output: formText, in: p, out: p, err: io.Discard, engines: []*upstream.Engine{openedPairs(t)},
		}}
		return r.runAsk(t.Context())
	}

	first := &person{says: []string{"x", "s", "d", "u", "k", "q"}}
	if err := talk(true, first); err == nil || err.Error() != "--write: 1 answer is too few to write a threshold: judge at least 10 pairs" {
		t.Errorf("written after one answer: %v", err)
	}
	kept := func() (verdicts []ask.Verdict) {
		for line := range strings.Lines(string(expect.Value(os.ReadFile(answers))(t))) {
			var a ask.Answer
			expect.OK(t, json.Unmarshal([]byte(line), &a))
			if a.At.IsZero() {
				t.Errorf("kept without a time: %s", line)
			}
			verdicts = append(verdicts, a.Verdict)
		}
		return verdicts
	}
	expect.Same(t, []ask.Verdict{ask.Same, ask.Different, ask.Undo, ask.Skip}, kept(), "kept")
	for line := range strings.Lines(first.seen.String()) {
		if utf8.RuneCountInString(line) > 130 || strings.Contains(line, "\x1b") {
			t.Errorf("a line of the terminal is %q", line)
		}
	}
	for _, part := range []string{"[changedw", "\nA  ", "\nB  ", "s/d/k/u/q? ", "after 1 same, 0 different", "after 1 same, 1 different", "  threshold: 0."} {
		if !strings.Contains(first.seen.String(), part) {
			t.Errorf("%q is missing in:\n%s", part, first.seen.String())
		}
	}

	// Another person takes the first answer back too, goes on to the end and a pair further, and has the threshold written.
	expect.OK(t, os.WriteFile(answers, append(expect.Value(os.ReadFile(answers))(t), `{"a":"gone","b":"1","verdict":"same","at":"2024-03-01T12:00:00Z"}`...), 0o600))
	second := &person{says: []string{"u", "u"}, sameFrom: 90}
	expect.OK(t, talk(true, second))
	seen := second.seen.String()
	for _, part := range []string{
		"\n2 answers are there from earlier runs", "\n1 answer is of no use: ", " pairs: more answers help little. Enter: end,",
		"different differ in city; 0 of ", "\n  # same: [city]\n", "\nWritten to " + file,
	} {
		if !strings.Contains(seen, part) {
			t.Errorf("%q is missing in:\n%s", part, seen)
		}
	}
	list := kept()
	expect.Same(t, []ask.Verdict{ask.Same, ask.Different, ask.Undo, ask.Skip, ask.Same, ask.Undo, ask.Undo}, list[:7], "kept")
	if len(list) < 7+11 || len(list) > 7+31 {
		t.Errorf("kept are %d: %v", len(list), list)
	}
	var threshold float64
	written := string(expect.Value(os.ReadFile(file))(t))
	if _, err := fmt.Sscanf(written[strings.LastIndex(written, "threshold:"):], "threshold: %f # for now", &threshold); err != nil || written[:len(head)] != head ||
		threshold < 0.3 || threshold > 0.5 { // where pair 45 of 80 lies
		t.Errorf("written is %v, %s", err, written)
	}
	if info := expect.Value(os.Stat(file))(t); info.Mode() != 0o640 {
		t.Errorf("the mode is %v", info.Mode())
	}
	expect.OK(t, os.WriteFile(answers, []byte("{}\n"), 0o600))
	if err := talk(false, &person{}); err == nil || !strings.Contains(err.Error(), "answers.jsonl: line 1: \"{}\" is not an answer such as ") {
		t.Errorf("a file that holds no answer: %v", err)
	}
}

// person reads what is printed and answers it: what they say first, then by the ids of the documents shown.
type person struct {
	seen     strings.Builder
	says     []string
	sameFrom int
}

func (p *person) Write(text []byte) (int, error) { return p.seen.Write(text) }

func (p *person) Read(into []byte) (int, error) {
	var say string
	seen := p.seen.String()
	switch id := 0; {
	case len(p.says) > 0:
		say, p.says = p.says[0], p.says[1:]
	case strings.HasSuffix(seen, "back? "): // it is settled
	default:
		_, _ = fmt.Sscanf(seen[strings.LastIndex(seen, "\nA  ")+1:], "A  %d", &id)
		if say = "d"; id >= p.sameFrom {
			say = "s"
		}
	}
	return copy(into, say+"\n"), nil
}

// TestAskNeedsItsFlags refuses what does not go together, and says what to do.
func TestAskNeedsItsFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--write --index news", "--write goes with --ask: add --ask, or leave --write out"},
		{"--answers x --index news", "--answers goes with --ask: add --ask, or leave --answers out"},
		{"--open --index news", "--open goes with --ask"},
		{"--ask --index news --port 7000", "--port is the port of the page: add --open"},
		{"--ask --index news --open --write", "--write: the page of --open has a button for it"},
		{"--ask", "--ask is about the pairs of one index: name it with --index"},
		{"--ask --index news --html x", "--html: --ask writes no report"},
		{"--ask --index news --output json", "--output: --ask is a conversation"},
	} {
		cmd := calibrateCommand()
		cmd.SetArgs(strings.Fields(c.args))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
