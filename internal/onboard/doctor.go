package onboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// Doctor checks a configuration and the engines in it, or only the one with the name. invalid is the error of loading the configuration. It prints a
// line for each check, or all of them as JSON.
func Doctor(ctx context.Context, c *config.Config, invalid error, engine string, asJSON bool, out io.Writer) error {
	d := report{out: out, text: !asJSON, Checks: []Check{}}
	for _, e := range config.Flatten(invalid) {
		text, hint := splitHint(e.Error())
		d.add(Check{stateFail, "", "configuration", text, cmp.Or(hint, "see: sidecar config check"), nil})
	}
	if invalid == nil {
		if err := d.engines(ctx, c, engine); err != nil {
			return err
		}
	}
	return d.finish()
}

// engines checks the engines of a valid configuration.
func (d *report) engines(ctx context.Context, c *config.Config, name string) error {
	if name != "" && !slices.ContainsFunc(c.Engines, func(e config.Engine) bool { return e.Name == name }) {
		_, err := upstream.OpenAll(c, name)
		return err
	}
	d.add(Check{stateOK, "", "configuration", fmt.Sprintf("%s is valid: %s, %s", c.File,
		terminal.Count(len(c.Engines), "engine"), terminal.Count(c.RuleCount(), "rule")), "", nil})
	if c.Unseeded() {
		d.add(Check{stateWarn, "", "configuration", "sketch.seed is empty: whoever can write documents can craft one that hides another",
			"set it before the first reindex, unless you trust all writers (docs/security.md)", nil})
	}
	for i := range c.Engines {
		if name != "" && c.Engines[i].Name != name {
			continue
		}
		p := engineChecks{report: d, engine: &c.Engines[i], key: fmt.Sprintf("engines[%d]", i), network: realNetwork{}}
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

// colours are the colours of the states.
var colours = map[string]string{stateOK: terminal.Green, stateWarn: terminal.Yellow, stateFail: terminal.Red}

// Check is the result of one check.
type Check struct {
	State string `json:"state"`
	// Engine is the engine's name, empty for the configuration as a whole.
	Engine string `json:"engine,omitempty"`
	// Check is what was checked: configuration, node, credentials, rule, index, sketches, fields, rights, cases, search, listener or
	// sniffing.
	Check string `json:"check"`
	Text  string `json:"text"`
	// Hint is what to do; empty if there is nothing to do.
	Hint string `json:"hint,omitempty"`
	// Indices are those that a problem of several indices is about. The text names a few.
	Indices []string `json:"indices,omitempty"`
}

// report collects the checks of one run. It prints each at once as a line, or at the end as JSON.
type report struct {
	out  io.Writer
	text bool

	Checks []Check `json:"checks"`
	OK     int     `json:"ok"`
	Warn   int     `json:"warn"`
	Fail   int     `json:"fail"`
}

// add adds a check, and prints its line.
func (d *report) add(c Check) {
	d.Checks = append(d.Checks, c)
	counts := map[string]*int{stateOK: &d.OK, stateWarn: &d.Warn, stateFail: &d.Fail}
	*counts[c.State]++
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

// splitHint splits an error of ours into its message and the hint at its end. The hint may be a command after another colon.
func splitHint(text string) (message, hint string) {
	at := strings.LastIndex(text, ": ")
	if at >= 0 && strings.HasPrefix(text[at:], ": sidecar ") {
		at = strings.LastIndex(text[:at], ": ")
	}
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+2:]
}

// finish prints the counts, or the report as JSON. It returns an error if a check has failed.
func (d *report) finish() (err error) {
	if d.text {
		_, err = fmt.Fprintf(d.out, "%d ok, %s, %d failed\n", d.OK, terminal.Count(d.Warn, "warning"), d.Fail)
	} else {
		err = terminal.WriteJSON(d.out, d)
	}
	if err == nil && d.Fail > 0 {
		return terminal.ErrFound
	}
	return err
}
