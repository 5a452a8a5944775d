package onboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// ServeTo serves in front of the engine at an address without a configuration: with the rules that init would write, and one more for all other
// indices. Clients use their own credentials; those in the environment are for the survey. It prints three lines to out, and notes and the log
// to errOut.
func ServeTo(ctx context.Context, at string, o InitOptions, serve server.Options, out, errOut io.Writer) error {
	n := survey{options: &o, talk: newTalk(ctx, strings.NewReader(""), errOut), command: "sidecar serve --to", passing: true}
	if o.Listen != "" {
		if err := canListen(o.Listen); err != nil {
			return err
		}
	}
	if err := n.connect(ctx, at); err != nil {
		return err
	}
	n.engine.Listen = cmp.Or(o.Listen, net.JoinHostPort("127.0.0.1", strconv.Itoa(kind.Of(n.engine.Kind).Port+1)))
	if err := canListen(n.engine.Listen); err != nil {
		return err
	}
	if err := n.surveyed(ctx); err != nil {
		return err
	}
	n.admin = n.free(config.DefaultAdmin, "its admin page")
	n.notes = append(n.notes, n.untested())
	for _, note := range n.notes {
		if note != "" {
			n.talk.say("note: %s", note)
		}
	}
	c := config.Default()
	n.engine.Credentials = config.Credentials{} // the survey is done
	n.engine.Indices = n.rules()
	c.Admin, c.Engines = n.admin, []config.Engine{n.engine}
	for _, wrong := range c.Validate() {
		return fmt.Errorf("the rules are not valid: please report this bug: %w", wrong)
	}
	serve.Greet, serve.Greeting = out, n.greeting()
	return server.Serve(ctx, &c, errOut, serve)
}

// canListen checks an address for clients.
func canListen(address string) error {
	if err := config.CheckAddress(address); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if server.FreeNear(address) != address {
		return fmt.Errorf("%s is taken: name another address with --listen, or stop the program that uses it", address)
	}
	return nil
}

// surveyed inspects the indices. If the engine does not show them it adds a note, and there are no candidates.
func (n *survey) surveyed(ctx context.Context) error {
	if n.recognized.Locked {
		n.notes = append(n.notes, fmt.Sprintf("%s shows its indices only with credentials, so fields are chosen by their names: to look at them, %s",
			n.displayName(), toExport(n.engine.Kind)))
		return nil
	}
	err := n.inspect(ctx)
	if ctx.Err() != nil {
		return terminal.ErrInterrupted
	}
	if err != nil {
		why, _ := splitHint(err.Error()) // the hint is for init
		n.notes = append(n.notes, "fields are chosen by their names, since the indices can't be listed: "+why)
	}
	n.candidates = ordered(n.candidates)
	return nil
}

// rules returns a rule for each candidate, and the one for all other indices.
func (n *survey) rules() (list []config.Index) {
	for _, c := range n.candidates {
		list = append(list, c.rule())
	}
	others := config.DefaultIndex()
	others.Match, others.Fields = "*", slices.Concat(titles, bodies)
	return append(list, others)
}

// rule returns the rule that init writes for the candidate.
func (c *candidate) rule() config.Index {
	index := config.DefaultIndex()
	index.Match, index.Fields, index.DryRun = c.Match, c.Chosen, c.DryRun
	index.DateField, index.HostField = c.Date, c.Host // for presets that the page shows
	return index
}

// greeting says what is served.
func (n *survey) greeting() string {
	var rules []string
	for _, c := range n.candidates {
		fields := strings.Join(c.Chosen, ", ")
		if c.DryRun {
			fields += "; only counted, as many look like variants"
		}
		rules = append(rules, fmt.Sprintf("%s (%s)", c.Match, fields))
	}
	compares := "compares hits by fields named title, body, text and the like"
	if len(rules) > 0 {
		compares = "compares hits of " + few(rules) + ", and of all other indices by fields named title, body, text and the like"
	}
	return terminal.Harmless(fmt.Sprintf(`In front of %s at %s: %s.
Send clients to http://%s instead: they keep their credentials, and near-duplicate hits fold. The page to try it: http://%s/
It writes no file. Documents that are written through it get the field neardup_sketch. To have these rules in a file that you can change: sidecar init %s
`, n.product(), n.engine.URLs[0], compares, n.engine.Listen, n.admin, shellWord(n.engine.URLs[0])))
}
