package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// patience is how long doctor waits for the answers that one check needs.
const patience = 15 * time.Second

// doctorFlags are what the command line asks of doctor.
type doctorFlags struct {
	engine, output string
}

func doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that the sidecar needs, and say what to do",
		Long: `Doctor looks at the configuration, at each node of each engine, at the indices of each rule and at the sidecar that
runs with this configuration, if there is one: whether it is valid, the engine's version, the credentials, the
mapping, how many documents have their sketches, and a search, directly and through the sidecar. It prints a line for
each check: ok, warn or fail, what it found, and what to do about it. It changes nothing: whether the credentials
suffice to write is found out with an update of a document that is not there. It reads up to 100 documents of each
index, chosen at random.

Exit code 0: no check failed. 1: some did.`,
		Example: `  sidecar doctor
  sidecar doctor --engine elasticsearch --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "only the engine with this `name`")
	addOutput(flags, &f.output)
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	if err := validOutput(f.output); err != nil {
		return err
	}
	d := doctor{out: cmd.OutOrStdout(), text: f.output == formText, checks: []check{}}
	c, err := configOf(cmd)
	for _, e := range config.Flatten(err) {
		text, hint := hintIn(e.Error())
		d.fail("", "configuration", text, cmp.Or(hint, "see: sidecar config check"))
	}
	if err == nil {
		if err := d.all(cmd.Context(), c, f.engine); err != nil {
			return err
		}
	}
	return d.end()
}

// all makes every check that a valid configuration allows.
func (d *doctor) all(ctx context.Context, c *config.Config, name string) error {
	rules, known := 0, name == ""
	for _, e := range c.Engines {
		rules += len(e.Indices)
		known = known || e.Name == name
	}
	if !known {
		_, err := upstream.OpenAll(c, name)
		return err
	}
	d.ok("", "configuration", fmt.Sprintf("%s is valid: %s, %s", c.File, terminal.Count(len(c.Engines), "engine"), terminal.Count(rules, "rule")))
	for i := range c.Engines {
		if name != "" && c.Engines[i].Name != name {
			continue
		}
		p := patient{
			doctor: d, engine: &c.Engines[i], key: fmt.Sprintf("engines[%d]", i), inspector: kind.Of(c.Engines[i].Kind), network: direct{},
		}
		p.examine(ctx)
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

// check is what one check found.
type check struct {
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

// String returns the check as a line for people.
func (c check) String() string { return c.line(fmt.Sprintf("%-4s", c.State)) }

// line returns it with its state as it is to be shown.
func (c check) line(state string) string {
	line := ""
	if c.Engine != "" {
		line += c.Engine + ": "
	}
	line += c.Text
	if c.Hint != "" {
		line += ": " + c.Hint
	}
	return state + "  " + terminal.Harmless(strings.ReplaceAll(line, "\n", "; ")) // of joined errors
}

// doctor collects the checks of one run, and prints each as it is made.
type doctor struct {
	out    io.Writer
	text   bool
	checks []check
}

func (d *doctor) ok(engine, what, text string) {
	d.add(check{State: stateOK, Engine: engine, Check: what, Text: text})
}

func (d *doctor) warn(engine, what, text, hint string) {
	d.add(check{State: stateWarn, Engine: engine, Check: what, Text: text, Hint: hint})
}

func (d *doctor) fail(engine, what, text, hint string) {
	d.add(check{State: stateFail, Engine: engine, Check: what, Text: text, Hint: hint})
}

func (d *doctor) add(c check) {
	d.checks = append(d.checks, c)
	if d.text {
		_, _ = fmt.Fprintln(d.out, c.line(terminal.Paint(d.out, colours[c.State], fmt.Sprintf("%-4s", c.State))))
	}
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
func (d *doctor) found(state string) (n int) {
	for _, c := range d.checks {
		if c.State == state {
			n++
		}
	}
	return n
}

// end prints what comes last, and returns how the command ends.
func (d *doctor) end() error {
	sum := struct {
		Checks []check `json:"checks"`
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
		return errFound
	}
	return nil
}

// within gives a check its time. What took longer says so.
func within(ctx context.Context, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := work(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", patience)
	}
	return err
}
