package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/conversation"
	"github.com/neardup/sidecar/internal/localpage"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs/ask"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/sketch"
)

// asking is what calibrate --ask needs beside the job.
type asking struct {
	ask, write, open bool
	port             int
	answers, file    string // of answers, and the configuration
	sketch           config.Sketch
}

// checkAsk checks the flags that go with --ask.
func (r *calibrateJob) checkAsk(flags *pflag.FlagSet) error {
	if !r.ask {
		for _, name := range []string{"write", "answers", "open", "port"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s goes with --ask: add --ask, or leave --%s out", name, name)
			}
		}
	}
	switch {
	case r.ask && r.index == "":
		return errors.New("--ask is about the pairs of one index: name it with --index")
	case r.ask && r.html != "":
		return errors.New("--html: --ask writes no report: leave one of them out")
	case r.ask && r.output != formText:
		return errors.New("--output: --ask is a conversation: leave --output out, or run without --ask")
	case r.open && r.write:
		return errors.New("--write: the page of --open has a button for it: leave --write out")
	case flags.Changed("port") && !r.open:
		return errors.New("--port is the port of the page: add --open, or leave --port out")
	}
	return nil
}

// runAsk asks about pairs of the index, and says which threshold follows.
func (r *calibrateJob) runAsk(ctx context.Context) error {
	targets, err := r.matching(ctx)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		return fmt.Errorf("--index: %s stands for %d indices: name one of them, such as %s, and the engine with --engine", r.index, len(targets), targets[0].Index)
	}
	t := targets[0]
	if !t.Rule.Sketcher.Scheme().Features.Sets() {
		return valuesOnly(t.Index)
	}
	options, meter := r.Options, r.meter(t.Job)
	options.Progress = reading{meter}
	begun, err := conversation.Begin(ctx, conversation.Options{
		Options: options, Engine: t.Engine, Index: t.found, Sketch: r.sketch, File: r.file, Answers: r.answers, By: userName(),
	})
	meter.clearBar()
	if err != nil {
		return err
	}
	c := talk{job: &r.job, Conversation: begun, typed: bufio.NewReader(terminal.UntilDone(ctx, r.in))}
	c.greet(t.Title())
	if r.open {
		return r.servePage(ctx, &c)
	}
	if err := c.run(ctx); errors.Is(err, terminal.ErrInterrupted) {
		return fmt.Errorf("%w: the answers are in %s: run it again to go on", err, c.Answers)
	} else if err != nil {
		return err
	}
	if err := c.conclude(ctx); err != nil || !r.write || c.Finding().Judged() == 0 {
		return err
	}
	if err := c.Write(ctx); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	c.printf("\nWritten to %s.\n", c.File)
	return nil
}

// servePage asks on a page instead, until the person or the command ends it.
func (r *calibrateJob) servePage(ctx context.Context, c *talk) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	page := conversation.Page(c.Conversation, end)
	page.Browse = terminal.IsTerminal(r.out)
	err := localpage.Serve(serving, r.port, page, func(address string) {
		c.printf("Open this address in a browser on this machine:\n\n  %s\n\nCtrl-C ends the page. The answers are kept.\n", address)
	})
	if err != nil {
		return err
	}
	return c.conclude(context.WithoutCancel(ctx))
}

func valuesOnly(index string) error {
	return fmt.Errorf("index %s: its sketches are of values or vectors made elsewhere, not of texts: there is nothing to calibrate by", index)
}

// talk is a conversation in the terminal.
type talk struct {
	*job
	*conversation.Conversation
	typed *bufio.Reader // by the person
}

const howTo = "s: same, d: different, k: skip, u: take the last answer back, q: quit. Then press Enter.\n"

// greet says what there is to ask about.
func (c *talk) greet(title string) {
	c.printf("%s: %d documents, %d read, %d pairs to ask about. Twenty answers are enough for most indices.\n",
		title, c.Found.Documents, c.Found.Read, len(c.Found.Pairs))
	if c.Earlier > 0 {
		c.printf("%s there from earlier runs, in %s.\n", conversation.Counted(c.Earlier), c.Answers)
	}
	if c.Useless > 0 {
		c.printf("%s of no use: their documents are gone, or the threshold does not decide about them.\n", conversation.Counted(c.Useless))
	}
}

// run asks until the threshold is settled, no pair is left or the person ends it.
func (c *talk) run(ctx context.Context) error {
	c.printf("Would your users see these two texts as the same, so that a page needs only one?\n%s", howTo)
	further := false // after it was settled
	for {
		question, err := c.Next(ctx)
		if err != nil {
			return err
		}
		settled := c.Finding().Settled && !further
		switch {
		case question == nil:
			c.printf("\nNo pair is left to ask about.\n")
			return nil
		case settled:
			c.printf("\n%s Enter: end, m: more pairs, u: take the last answer back? ", c.Finding().Progress())
		default:
			c.show(question)
		}
		line, err := c.typed.ReadString('\n')
		if ctx.Err() != nil || errors.Is(err, terminal.ErrInterrupted) {
			return terminal.ErrInterrupted
		}
		letter := strings.ToLower(strings.TrimSpace(line))
		switch {
		case err != nil && letter == "": // the input ended
			c.printf("\n")
			return nil
		case letter == "q" || settled && letter == "":
			return nil
		case letter == "u":
			ok, err := c.TakeBack(ctx)
			if err != nil {
				return err
			}
			if !ok {
				c.printf("There is no answer to take back.\n")
			}
			further = false
		case settled:
			further = letter == "m"
			continue
		default:
			verdict, known := letters[letter]
			if !known {
				c.printf("%s", howTo)
				continue
			}
			if err := c.Answer(ctx, verdict, false); err != nil {
				return err
			}
		}
		c.printf("%s\n", inShort(c.Finding()))
	}
}

// letters are what a person types.
var letters = map[string]ask.Verdict{"s": ask.Same, "d": ask.Different, "k": ask.Skip}

// inShort is what follows from the answers, on a line.
func inShort(f ask.Finding) string {
	return fmt.Sprintf("threshold %.2f (%.2f to %.2f), precision %.2f, recall %.2f, after %d same, %d different", f.Threshold, f.Low, f.High, f.Precision, f.Recall, f.Same, f.Different)
}

// shownWords is how many words of a text are shown at most, around how many beside those that differ.
const shownWords, around = 160, 8

// show shows a pair.
func (c *talk) show(q *conversation.Question) {
	a, b := q.X, q.Y
	x, y := ask.Mark(a.Text, b.Text, func(word string) string { return strings.Join(sketch.Words(word), " ") })
	side := func(letter, id string, pieces []ask.Piece) []line {
		head := letter + "  " + calibrate.Plain(c.column()-3, id)
		return append([]line{{head, head}}, c.lines(ask.Excerpt(pieces, around, shownWords), c.column())...)
	}
	left, right := side("A", q.A, x), side("B", q.B, y)
	c.printf("\n%s\n", ask.Place(q.Number))
	if c.column() == c.width() {
		for _, l := range append(left, right...) {
			c.raw(l.text + "\n")
		}
	} else {
		for i := range max(len(left), len(right)) {
			var l, r line
			if i < len(left) {
				l = left[i]
			}
			if i < len(right) {
				r = right[i]
			}
			c.raw(strings.TrimRight(l.text+strings.Repeat(" ", max(0, c.column()-cells(l.unpainted)))+" | "+r.text, " ") + "\n")
		}
	}
	for _, name := range ask.Differing(a.Values, b.Values) {
		c.printf("%s: %s | %s\n", calibrate.Plain(40, name), calibrate.Plain(60, a.Values[name]), calibrate.Plain(60, b.Values[name]))
	}
	c.printf("s/d/k/u/q? ")
}

// raw prints what was made harmless before it was painted.
func (c *talk) raw(text string) { _, _ = io.WriteString(c.out, text) } // as in printf

// width is that of the terminal, or 80.
func (c *talk) width() int {
	if file, ok := c.out.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width >= 40 {
			return min(width, 200)
		}
	}
	return 80
}

// column is how wide one of two columns is, or the whole width where that is too narrow for two.
func (c *talk) column() int {
	width := c.width()
	if width < 100 {
		return width
	}
	return (width - 3) / 2
}

// line is a line of a text, painted or with brackets, and the same without paint.
type line struct{ text, unpainted string }

// reverse is the ANSI code of black on white, or the other way round.
const reverse = "7"

// lines breaks pieces into lines. Words that differ are painted, or stand in brackets where nothing can be.
func (c *talk) lines(pieces []ask.Piece, width int) (list []line) {
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

// conclude prints what follows.
func (c *talk) conclude(ctx context.Context) error {
	f, present := c.Finding(), c.Present()
	if f.Judged() == 0 {
		c.printf("No pair was judged: the threshold stays %.2f.\n", present)
		return nil
	}
	advice, err := c.Advice(ctx)
	if err != nil {
		return err
	}
	c.printf("\nThreshold %.2f, after %d same, %d different, %d skipped. The present one is %.2f.\n", f.Threshold, f.Same, f.Different, f.Skipped, present)
	c.printf("With a probability of 90 %% the best threshold lies from %.2f to %.2f.\n", f.Low, f.High)
	c.printf("Expected on this index: %s\n", strings.TrimSpace(f.Expected()+" "+f.Change()))
	if text := f.Contradictions(); text != "" {
		c.printf("%s\n", text)
	}
	for _, a := range advice {
		c.printf("Another rule would help: %s.\n", a.Reason)
	}
	c.printf("The answers are kept in %s. Run the same command again to go on or to take answers back.\n", c.Answers)
	if f.Judged() < ask.Fewest {
		c.printf("That is little to go by: judge at least %d pairs.\n", ask.Fewest)
	}
	c.printf("\nIn the rule for %s:\n\n%s", c.Match(), c.YAML(advice))
	if len(advice) > 0 {
		c.printf("\nTake away the # of a line that you want. A text field must be named by the keyword under it, such as city.keyword. A preset has a threshold of its own.\n")
	}
	return nil
}
