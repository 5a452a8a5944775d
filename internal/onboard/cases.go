package onboard

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/neardup/sidecar/internal/cases"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// Tested is what [Test] prints as JSON.
type Tested struct {
	File   string       `json:"file"`
	Cases  []testedCase `json:"cases"`
	OK     int          `json:"ok"`
	Failed int          `json:"failed"`
}

type testedCase struct {
	Engine string `json:"engine"`
	cases.Result
}

// Test runs the cases of a configuration, or with textsOnly those without stored documents. It prints a line for each, or all of them as JSON.
func Test(ctx context.Context, c *config.Config, textsOnly, asJSON bool, out io.Writer) error {
	all := Tested{File: c.File, Cases: []testedCase{}}
	for i := range c.Engines {
		e := &c.Engines[i]
		var opened *upstream.Engine
		if !textsOnly && e.Kind != kind.Embedded {
			var err error
			if opened, err = upstream.Open(e); err != nil {
				return fmt.Errorf("engine %s: %w", e.Name, err)
			}
		}
		results, err := cases.Run(ctx, e, opened)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return terminal.ErrInterrupted
		}
		failing := len(cases.Failing(results))
		all.OK, all.Failed = all.OK+len(results)-failing, all.Failed+failing
		for _, r := range results {
			all.Cases = append(all.Cases, testedCase{e.Name, r})
		}
	}
	if err := all.print(asJSON, out); err != nil {
		return err
	}
	if all.Failed > 0 {
		return terminal.ErrFound
	}
	return nil
}

func (t *Tested) print(asJSON bool, out io.Writer) error {
	if asJSON {
		return terminal.WriteJSON(out, t)
	}
	for _, r := range t.Cases {
		state := stateOK
		if !r.OK {
			state = stateFail
		}
		painted := terminal.Paint(out, colours[state], fmt.Sprintf("%-4s", state))
		line := strings.ReplaceAll(r.In(t.File), "\n", "; ") // of joined errors
		if _, err := fmt.Fprintf(out, "%s  %s\n", painted, terminal.Harmless(line)); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d ok, %d failed", t.OK, t.Failed)
	if len(t.Cases) == 0 {
		summary = t.File + `: no case to run: write some into a rule, as in cases: [{same: ["one text", "another"]}]`
	}
	_, err := fmt.Fprintln(out, summary)
	return err
}

// cases runs the cases of the engine's rules, those of stored documents only if it is open.
func (p *engineChecks) cases(ctx context.Context) {
	results, err := cases.Run(ctx, p.engine, p.Engine)
	if err != nil {
		p.fail("cases", "correct what it says in "+p.key, "%v", err)
		return
	}
	failing := cases.Failing(results)
	for _, r := range failing {
		p.fail("cases", "change the rule, or the case", "line %d: %s", r.Line, r)
	}
	if done := len(results) - len(failing); done > 0 {
		p.ok("cases", "%s of the rules: as they must be", terminal.Count(done, "case"))
	}
}
