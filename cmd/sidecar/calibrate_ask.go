package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/neardup/sidecar/internal/cases"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/sketch"
)

// asking is what calibrate --ask needs beside the job.
type asking struct {
	ask, write    bool
	answers, file string // of answers, and the configuration
}

// checkAsk checks the flags that go with --ask.
func (r *calibrateJob) checkAsk() error {
	switch {
	case !r.ask && (r.write || r.answers != ""):
		return errors.New("--write and --answers go with --ask: add it, or leave them out")
	case r.ask && r.index == "":
		return errors.New("--ask is about the pairs of one index: name it with --index")
	case r.ask && r.html != "":
		return errors.New("--html: --ask writes no report: leave one of them out")
	case r.ask && r.output != formText:
		return errors.New("--output: --ask is a conversation: leave --output out, or run without --ask")
	}
	return nil
}

// runAsk asks about pairs of the index, and says which threshold follows.
func (r *calibrateJob) runAsk(ctx context.Context) error {
	targets, _, err := r.matching(ctx)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		return fmt.Errorf("--index: %s stands for %d indices: name one of them, such as %s, and the engine with --engine", r.index, len(targets), targets[0].Index)
	}
	t := targets[0]
	if t.Rule.Sketcher.Scheme().Features == sketch.Value64 {
		return valuesOnly(t.Index)
	}
	c := conversation{job: &r.job, target: t, typed: bufio.NewReader(terminal.UntilDone(ctx, r.in)), file: r.answers, judged: map[[2]string]ask.Judged{}}
	if c.file == "" {
		c.file = unsafeInNames.ReplaceAllString("answers-"+t.Job.Engine+"-"+t.Index, "_") + ".jsonl"
	}
	answers, err := readAnswers(c.file)
	if err != nil {
		return err
	}
	options, meter := r.Options, r.meter(t.Job)
	options.Progress = reading{meter}
	c.found, err = calibrate.Gather(ctx, t.Job.Store, t.Index, t.Rule, options, answers)
	meter.clearBar()
	if err != nil {
		return t.Explain(err)
	}
	c.session = ask.New(c.found.Pairs, c.found.Counts, t.Rule.Profile.Threshold)
	for _, a := range answers {
		if c.session.Answer(a) != nil {
			c.others = append(c.others, a)
		}
	}
	if err := c.talk(ctx); errors.Is(err, terminal.ErrInterrupted) {
		return fmt.Errorf("%w: the answers are in %s: run it again to go on", err, c.file)
	} else if err != nil {
		return err
	}
	return r.conclude(ctx, &c)
}

func valuesOnly(index string) error {
	return fmt.Errorf("index %s: its sketches are values made elsewhere, not of texts: there is nothing to calibrate by", index)
}

// unsafeInNames are characters of names that a file's name had better not have.
var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// readAnswers reads a file of answers, if it is there.
func readAnswers(file string) (answers []ask.Answer, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		var a ask.Answer
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &a); err != nil || !slices.Contains([]ask.Verdict{ask.Same, ask.Different, ask.Skip}, a.Verdict) {
			return nil, fmt.Errorf(`%s: line %d: %.80q is no answer such as {"a":"1","b":"2","verdict":"same","at":"2024-03-01T12:00:00Z"}: correct it or delete the line`,
				file, number, line)
		}
		answers = append(answers, a)
	}
	return answers, err
}

// conversation is one run of calibrate --ask.
type conversation struct {
	*job
	target
	found   *calibrate.Candidates
	session *ask.Session
	typed   *bufio.Reader // by the person
	file    string
	// others are answers in the file that do not count.
	others []ask.Answer
	// judged are the pairs whose documents were shown in this run.
	judged map[[2]string]ask.Judged
}

// save writes all answers to the file.
func (c *conversation) save() error {
	return terminal.WriteFile(c.file, func(w io.Writer) error {
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		for _, a := range slices.Concat(c.others, c.session.Answers()) {
			if err := lines.Encode(a); err != nil {
				return err
			}
		}
		return nil
	})
}

const howTo = "s: same, d: different, k: skip, u: take the last answer back, q: quit. Then press Enter.\n"

// talk asks until the threshold is settled, no pair is left or the person ends it.
func (c *conversation) talk(ctx context.Context) error {
	c.printf("%s: %d documents, %d read, %d pairs to ask about. Twenty answers are enough for most indices.\n",
		c.Title(), c.found.Documents, c.found.Read, len(c.found.Pairs))
	if n := len(c.session.Answers()); n > 0 {
		c.printf("%s there from earlier runs, in %s.\n", counted(n), c.file)
	}
	if n := len(c.others); n > 0 {
		c.printf("%s of no use: their documents are gone, or the threshold does not decide about them.\n", counted(n))
	}
	c.printf("Are the two texts the same to your users, so that one is enough on a page?\n%s", howTo)
	further := false // after it was settled
	for {
		pair, left := c.session.Next()
		settled := c.session.Finding().Settled
		switch {
		case !left:
			c.printf("\nNo pair is left to ask about.\n")
			return nil
		case settled && !further:
			c.printf("\nMore answers would hardly change the threshold. Enter: end, m: more pairs, u: take the last answer back? ")
		default:
			shown, err := c.show(ctx, pair)
			if err != nil {
				return c.Explain(err)
			}
			if !shown {
				continue
			}
		}
		line, err := c.typed.ReadString('\n')
		if ctx.Err() != nil || errors.Is(err, terminal.ErrInterrupted) {
			return terminal.ErrInterrupted
		}
		letter := strings.ToLower(strings.TrimSpace(line))
		verdict := ask.Verdict("")
		switch {
		case err != nil && letter == "": // the input ended
			c.printf("\n")
			return nil
		case letter == "q" || settled && !further && letter == "":
			return nil
		case letter == "u":
			if _, ok := c.session.TakeBack(); !ok {
				c.printf("There is no answer to take back.\n")
			}
			further = false
		case settled && !further:
			further = letter == "m"
			continue
		case letter == "s":
			verdict = ask.Same
		case letter == "d":
			verdict = ask.Different
		case letter == "k":
			verdict = ask.Skip
		default:
			c.printf("%s", howTo)
			continue
		}
		if verdict != "" {
			if err := c.session.Answer(ask.Answer{A: pair.A, B: pair.B, Verdict: verdict, At: time.Now().UTC().Truncate(time.Second)}); err != nil {
				return err
			}
		}
		if err := c.save(); err != nil {
			return err
		}
		c.printf("%s\n", inShort(c.session.Finding()))
	}
}

// counted returns a number of answers with its verb.
func counted(answers int) string {
	if answers == 1 {
		return "1 answer is"
	}
	return fmt.Sprintf("%d answers are", answers)
}

// inShort is what follows from the answers, on a line.
func inShort(f ask.Finding) string {
	return fmt.Sprintf("threshold %.2f (%.2f to %.2f), precision %.2f, recall %.2f, after %d same, %d different", f.Threshold, f.Low, f.High, f.Precision, f.Recall, f.Same, f.Different)
}

// shownWords is how many words of a text are shown at most, around how many beside those that differ.
const shownWords, around = 160, 8

// show shows a pair. If one of its documents is gone it passes the pair over, and reports false.
func (c *conversation) show(ctx context.Context, p ask.Pair) (bool, error) {
	documents, err := c.found.Show(ctx, p.A, p.B)
	if err != nil {
		return false, err
	}
	a, hasA := documents[p.A]
	b, hasB := documents[p.B]
	if !hasA || !hasB {
		c.session.Pass(p)
		return false, nil
	}
	c.judged[[2]string{p.A, p.B}] = ask.Judged{A: a.Values, B: b.Values}
	x, y := ask.Mark(a.Text, b.Text, func(word string) string { return strings.Join(sketch.Words(word), " ") })
	left := c.lines(ask.Excerpt(x, around, shownWords), c.column())
	right := c.lines(ask.Excerpt(y, around, shownWords), c.column())
	c.printf("\nPair %d\n", len(c.session.Answers())+1)
	if c.column() < c.width() {
		left = append([]line{{text: "A  " + calibrate.Plain(c.column()-3, p.A)}}, left...)
		right = append([]line{{text: "B  " + calibrate.Plain(c.column()-3, p.B)}}, right...)
		for i := range max(len(left), len(right)) {
			var l, r line
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				r = right[i]
			}
			c.raw(strings.TrimRight(l.text+strings.Repeat(" ", max(0, c.column()-cells(l.bare())))+" | "+r.text, " ") + "\n")
		}
	} else {
		for i, side := range [][]line{left, right} {
			c.printf("%c  %s\n", 'A'+i, calibrate.Plain(c.width()-3, []string{p.A, p.B}[i]))
			for _, l := range side {
				c.raw(l.text + "\n")
			}
		}
	}
	for _, name := range ask.Differing(a.Values, b.Values) {
		c.printf("%s: %s | %s\n", calibrate.Plain(40, name), calibrate.Plain(60, a.Values[name]), calibrate.Plain(60, b.Values[name]))
	}
	c.printf("s/d/k/u/q? ")
	return true, nil
}

// raw prints what was made harmless before it was painted.
func (c *conversation) raw(text string) { _, _ = io.WriteString(c.out, text) } // as above

// width is that of the terminal, or 80.
func (c *conversation) width() int {
	if file, ok := c.out.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= 40 {
			return min(width, 200)
		}
	}
	return 80
}

// column is how wide one of two columns is, or the whole width where that is too narrow for two.
func (c *conversation) column() int {
	width := c.width()
	if width < 100 {
		return width
	}
	return (width - 3) / 2
}

// line is a line of a text, painted or with brackets.
type line struct{ text, unpainted string }

// bare is the line without paint.
func (l line) bare() string {
	if l.unpainted != "" {
		return l.unpainted
	}
	return l.text
}

// reverse is the ANSI code of black on white, or the other way round.
const reverse = "7"

// lines breaks pieces into lines. Words that differ are painted, or stand in brackets where nothing can be.
func (c *conversation) lines(pieces []ask.Piece, width int) (list []line) {
	painted := terminal.Paint(c.out, reverse, "x") != "x"
	var l line
	for i, p := range pieces {
		text := strings.TrimSpace(calibrate.Plain(width-2, p.Text))
		switch {
		case p.Text == "":
			text = "…"
		case p.Own && !painted && (i == 0 || !pieces[i-1].Own):
			text = "[" + text
		}
		if p.Own && !painted && (i == len(pieces)-1 || !pieces[i+1].Own) {
			text += "]"
		}
		space := ""
		if l.unpainted != "" && !p.Joined {
			space = " "
		}
		if l.unpainted != "" && cells(l.unpainted)+len(space)+cells(text) > width {
			list, l, space = append(list, l), line{}, ""
		}
		l.unpainted += space + text
		if p.Own && painted {
			text = terminal.Paint(c.out, reverse, text)
		}
		l.text += space + text
	}
	return append(list, l)
}

// cells is how many columns of a terminal a text takes.
func cells(text string) (n int) {
	for _, r := range text {
		if n++; unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// conclude prints what follows, and writes it into the configuration if that is asked for.
func (r *calibrateJob) conclude(ctx context.Context, c *conversation) error {
	f, present := c.session.Finding(), c.Rule.Profile.Threshold
	if f.Same+f.Different == 0 {
		c.printf("No pair was judged: the threshold stays %.2f.\n", present)
		return nil
	}
	c.printf("\nThreshold %.2f, after %d same, %d different, %d skipped. The present one is %.2f.\n", f.Threshold, f.Same, f.Different, f.Skipped, present)
	c.printf("With a probability of 90 %% the best threshold lies from %.2f to %.2f.\n", f.Low, f.High)
	c.printf("Expected on this index: %.0f %% of the pairs that fold should fold, and %.0f %% of the pairs that should fold do.\n", 100*f.Precision, 100*f.Recall)
	rule := c.Rule.Together
	advice := ask.Advise(c.judgedPairs(), append(slices.Concat(rule.Same, rule.Different), rule.WithinField))
	for _, a := range advice {
		c.printf("A condition would help: %s.\n", a.Reason)
	}
	c.printf("The answers are kept in %s. Run the same command again to go on or to take answers back.\n", c.file)
	judged := f.Same + f.Different
	if judged < ask.Fewest {
		c.printf("That is little to go by: judge at least %d pairs.\n", ask.Fewest)
	}
	entry := slices.Index(c.Engine.Rules, c.Rule)
	match := c.Engine.Config.Indices[entry].Match
	c.printf("\nIn the rule for %s:\n\n  threshold: %v\n", match, f.Threshold)
	for _, a := range advice {
		c.printf("  # %s\n", a.Rule)
	}
	if len(advice) > 0 {
		c.printf("\nTake away the # of a condition that you want. A text field must be named by the keyword under it, such as city.keyword.\n")
	}
	if !r.write {
		return nil
	}
	if judged < ask.Fewest {
		return fmt.Errorf("--write: %s too few to write a threshold: judge at least %d pairs", counted(judged), ask.Fewest)
	}
	if _, left := c.session.Next(); left && !f.Settled {
		return errors.New("--write: more answers may change the threshold, so it is not written: run it again to go on, or write it into the rule yourself")
	}
	if err := r.writeThreshold(ctx, c.Engine.Config.Name, entry, match, f.Threshold); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	c.printf("\nWritten to %s.\n", r.file)
	return nil
}

// writeThreshold writes a threshold into the configuration, unless a case of texts would fail then.
func (r *calibrateJob) writeThreshold(ctx context.Context, engine string, entry int, match string, threshold float64) error {
	text, err := os.ReadFile(r.file)
	if err != nil {
		return err
	}
	changed, err := config.SetThreshold(text, os.LookupEnv, engine, entry, match, threshold)
	if err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	c, err := config.Parse(changed, os.LookupEnv)
	if err != nil {
		return err
	}
	for i := range c.Engines {
		results, err := cases.Run(ctx, &c.Engines[i], nil)
		if err != nil {
			return err
		}
		if failing := cases.Failing(results); len(failing) > 0 {
			return fmt.Errorf("with threshold: %v a case fails, so it is not written: %s: change the case, or judge more pairs", threshold, failing[0].In(r.file))
		}
	}
	// Written in place, the file keeps its mode and owner. The copy is there in case the program ends meanwhile.
	whole := r.file + ".new"
	if err := os.WriteFile(whole, changed, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(r.file, changed, 0o600); err != nil {
		return fmt.Errorf("%w: all of the new file is in %s", err, whole)
	}
	return os.Remove(whole)
}

// judgedPairs returns the pairs judged in this run, with what else their documents say.
func (c *conversation) judgedPairs() (list []ask.Judged) {
	for _, a := range c.session.Answers() {
		if pair, known := c.judged[[2]string{a.A, a.B}]; known && a.Verdict != ask.Skip {
			pair.Same = a.Verdict == ask.Same
			list = append(list, pair)
		}
	}
	return list
}
