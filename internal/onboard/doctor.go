package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// checkTimeout is how long doctor waits for the answers that one check needs.
const checkTimeout = 15 * time.Second

// Doctor checks a configuration, which wrong may say is no good, and the engines in it, or the one with the name. It prints a line for each check, or
// all of them as JSON.
func Doctor(ctx context.Context, c *config.Config, wrong error, engine string, asJSON bool, out io.Writer) error {
	d := report{out: out, text: !asJSON, checks: []Check{}}
	for _, e := range config.Flatten(wrong) {
		text, hint := hintIn(e.Error())
		d.add(Check{stateFail, "", "configuration", text, cmp.Or(hint, "see: sidecar config check")})
	}
	if wrong == nil {
		if err := d.all(ctx, c, engine); err != nil {
			return err
		}
	}
	return d.end()
}

// all makes every check that a valid configuration allows.
func (d *report) all(ctx context.Context, c *config.Config, name string) error {
	rules, known := 0, name == ""
	for _, e := range c.Engines {
		rules += len(e.Indices)
		known = known || e.Name == name
	}
	if !known {
		_, err := upstream.OpenAll(c, name)
		return err
	}
	valid := fmt.Sprintf("%s is valid: %s, %s", c.File, terminal.Count(len(c.Engines), "engine"), terminal.Count(rules, "rule"))
	d.add(Check{State: stateOK, Check: "configuration", Text: valid})
	for i := range c.Engines {
		if name != "" && c.Engines[i].Name != name {
			continue
		}
		p := engineChecks{
			report: d, engine: &c.Engines[i], key: fmt.Sprintf("engines[%d]", i), network: realNetwork{},
		}
		p.check(ctx)
		if ctx.Err() != nil {
			return terminal.ErrInterrupted
		}
	}
	return nil
}

// The states of a check.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// colours are those of the states.
var colours = map[string]string{stateOK: terminal.Green, stateWarn: terminal.Yellow, stateFail: terminal.Red}

// Check is what one check found.
type Check struct {
	State string `json:"state"`
	// Engine is its name, empty for what is common to all.
	Engine string `json:"engine,omitempty"`
	// Check is what was looked at: configuration, node, credentials, rule, index, sketches, fields, rights, search, listener or
	// sniffing.
	Check string `json:"check"`
	Text  string `json:"text"`
	// Hint is what to do; empty where all is well.
	Hint string `json:"hint,omitempty"`
}

// report collects the checks of one run, and prints each as it is made.
type report struct {
	out    io.Writer
	text   bool
	checks []Check
}

// add adds a check, and prints it as a line for people.
func (d *report) add(c Check) {
	d.checks = append(d.checks, c)
	if !d.text {
		return
	}
	line := c.Text
	if c.Engine != "" {
		line = c.Engine + ": " + line
	}
	if c.Hint != "" {
		line += ": " + c.Hint
	}
	line = terminal.Harmless(strings.ReplaceAll(line, "\n", "; ")) // of joined errors
	_, _ = fmt.Fprintf(d.out, "%s  %s\n", terminal.Paint(d.out, colours[c.State], fmt.Sprintf("%-4s", c.State)), line)
}

// hintIn takes an error apart that says at its end what to do, as ours do; a hint may be a command behind a colon of its own.
func hintIn(text string) (what, hint string) {
	at := strings.LastIndex(text, ": ")
	if at >= 0 && strings.HasPrefix(text[at:], ": sidecar ") {
		at = strings.LastIndex(text[:at], ": ")
	}
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+2:]
}

// found returns how many checks ended in the state.
func (d *report) found(state string) (n int) {
	for _, c := range d.checks {
		if c.State == state {
			n++
		}
	}
	return n
}

// end prints what comes last, and returns how the command ends.
func (d *report) end() error {
	sum := struct {
		Checks []Check `json:"checks"`
		OK     int     `json:"ok"`
		Warn   int     `json:"warn"`
		Fail   int     `json:"fail"`
	}{d.checks, d.found(stateOK), d.found(stateWarn), d.found(stateFail)}
	var err error
	if d.text {
		_, err = fmt.Fprintf(d.out, "%d ok, %s, %d failed\n", sum.OK, terminal.Count(sum.Warn, "warning"), sum.Fail)
	} else {
		err = terminal.WriteJSON(d.out, sum)
	}
	if err != nil {
		return err
	}
	if sum.Fail > 0 {
		return terminal.ErrFound
	}
	return nil
}

// within gives a question to an engine its time. What took longer says so.
func within[Answer any](ctx context.Context, ask func(context.Context) (Answer, error)) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answer, err := ask(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", checkTimeout)
	}
	return answer, err
}
