package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// decideJob is one run of the command.
type decideJob struct {
	job
	pairs        []decided.Pair // of the command line
	file, by     string
	list, forget bool
}

func decideCommand() *cobra.Command {
	d := &decideJob{}
	cmd := &cobra.Command{
		Use:   "decide --index NAME ID ID same|different",
		Short: "Decide that two documents are always, or never, near-duplicates",
		Long: `Decide stores your decision about two documents: same (always near-duplicates) or different (never). Whatever their texts and
the rule say, similar and cluster obey it. So do searches, if decided: {refresh: 10s} is set for the engine. A decision holds for the two
texts as they are now. Once one of them changes, the decision is ignored, and --list shows it as "ask again".

--file reads many decisions. Each line holds two ids, and same or different. For example:

  4711 4712 different  # two editions

If --index names several indices, put the name of one before the ids. A # begins a comment. Write an id with blanks as a JSON string.
Pairs with a missing document are skipped. --list prints its pairs in this format.

--forget takes decisions back. A later decision about the same two documents replaces the earlier one.

Decisions are stored in the engine, in the index or collection that also holds the progress of jobs. Each says who decided and when.
The command uses the credentials of the configuration.

Exit code 0: done. 1: failed.`,
		Example: `  sidecar decide --index news-2024 4711 4712 different
  sidecar decide --index news-2024 --file pairs.txt --by anna
  sidecar decide --index news-2024 --list > pairs.txt
  sidecar decide --index news-2024 --forget 4711 4712`,
		Args:              d.take,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return d.withEngines(cmd, d.run) },
	}
	d.bind(cmd, indexUsage)
	flags := cmd.Flags()
	flags.StringVar(&d.file, "file", "", "the `file` of the decisions, - for standard input")
	flags.BoolVar(&d.list, "list", false, "list what is decided")
	flags.BoolVar(&d.forget, "forget", false, "take back what was decided about two documents, or about those of --file")
	flags.StringVar(&d.by, "by", "", "the `name` of the person who decides (default: the user who runs the command)")
	return cmd
}

// take reads the arguments and checks the flags.
func (d *decideJob) take(_ *cobra.Command, args []string) error {
	const example = "as in: sidecar decide --index news-2024 4711 4712 different"
	switch {
	case d.list && (d.forget || d.file != "" || d.by != "" || len(args) > 0):
		return errors.New("--list takes neither ids nor --file, --forget or --by")
	case d.list:
		return nil
	case d.file != "" && len(args) > 0:
		return errors.New("--file holds the ids: leave them out of the command line")
	case d.file != "":
		return nil
	case d.index == "":
		return errors.New("--index is missing: name the index of the two documents")
	case d.forget && len(args) != 2:
		return errors.New("--forget takes the ids of two documents, as in: sidecar decide --index news-2024 --forget 4711 4712")
	case !d.forget && len(args) != 3:
		return errors.New("decide takes two ids and same or different, " + example)
	}
	p := decided.Pair{A: args[0], B: args[1]}
	if !d.forget {
		p.Verdict = decided.Verdict(args[2])
	}
	switch {
	case p.A == p.B || p.A == "" || p.B == "":
		return errors.New("decide takes the ids of two documents, " + example)
	case !d.forget && p.Verdict != decided.Same && p.Verdict != decided.Different:
		return fmt.Errorf("%q: write same or different, %s", args[2], example)
	}
	d.pairs = []decided.Pair{p}
	return nil
}

func (d *decideJob) run(ctx context.Context) error {
	if err := d.readFile(ctx); err != nil {
		return err
	}
	d.by = cmp.Or(d.by, userName())
	switch {
	case d.list:
		return d.print(ctx)
	case d.forget:
		return d.takeBack(ctx)
	}
	return d.decide(ctx)
}

// mostErrors is how many errors about pairs are printed at once.
const mostErrors = 20

// decide stores the decisions about the pairs. It skips pairs with a missing document, and fails if that leaves none.
func (d *decideJob) decide(ctx context.Context) error {
	e, indices, err := d.engineOf(ctx)
	if err != nil {
		return err
	}
	var places []decided.Place
	for _, index := range indices {
		places = append(places, placeOf(targetOf(e, index)))
	}
	pairs, missing, err := decided.Find(ctx, e.Store, places, d.pairs...)
	if err == nil && len(pairs) == 0 {
		err = errors.Join(missing[:min(len(missing), mostErrors)]...)
	}
	if err != nil {
		return e.Explain(err)
	}
	for _, err := range missing {
		_, _ = fmt.Fprintf(d.err, "skipped: %s\n", terminal.Harmless(err.Error()))
	}
	return d.store(ctx, e, decided.Open(e.Store.Journal()), pairs, len(missing))
}

// store stores decisions, and prints how many. skipped is how many pairs have a missing document.
func (d *decideJob) store(ctx context.Context, e *upstream.Engine, log *decided.Log, pairs []decided.Pair, skipped int) error {
	stored, err := log.Add(ctx, d.by, pairs...)
	if err != nil {
		return e.Explain(fmt.Errorf("%w (%d of %d pairs were stored)", err, stored, len(pairs)))
	}
	done, unchanged := "decided", len(pairs)-stored
	if d.forget {
		done = "forgotten"
	}
	text := terminal.Count(stored, "pair") + " " + done
	if unchanged > 0 {
		text += fmt.Sprintf(", %d unchanged", unchanged)
	}
	if skipped > 0 {
		text += fmt.Sprintf(", %d skipped because a document is missing", skipped)
	}
	return show(d.out, d.output, map[string]int{done: stored, "unchanged": unchanged, "skipped": skipped}, text+"\n")
}

// readFile reads the file of --file.
func (d *decideJob) readFile(ctx context.Context) (err error) {
	if d.file == "" {
		return nil
	}
	d.pairs, err = parseDecided(ctx, d.file, d.in)
	if err == nil && len(d.pairs) == 0 {
		return fmt.Errorf("--file: %s holds no pairs", d.file)
	}
	if d.forget {
		for i := range d.pairs {
			d.pairs[i].Verdict = decided.Forgotten
		}
	}
	return err
}

// placeOf returns a target as the place to look up pairs in.
func placeOf(t target) decided.Place { return decided.Place{Index: t.found, Rule: t.Rule} }

// chosen returns the decided pairs of the indices that --index names, or of all, and the places of their documents. Pairs of an index that no longer
// exists, or that no rule matches, are matched by its name.
func (d *decideJob) chosen(ctx context.Context, e *upstream.Engine) (log *decided.Log, pairs []decided.Pair, places []decided.Place, err error) {
	indices, err := e.FindOrPrepare(ctx, d.index, false)
	if err != nil {
		return nil, nil, nil, err
	}
	names := map[string]bool{}
	for _, index := range indices {
		if t := targetOf(e, index); t.Rule != nil && !index.Absent {
			places = append(places, placeOf(t))
			names[placeOf(t).PairIndex()] = true
		}
	}
	log = decided.Open(e.Store.Journal())
	if err := log.Read(ctx); err != nil {
		return nil, nil, nil, e.Explain(err)
	}
	pairs = slices.DeleteFunc(log.Pairs(), func(p decided.Pair) bool {
		return d.index != "" && !names[p.Index] && !rule.Globbed(d.index, p.Index)
	})
	return log, pairs, places, nil
}

// takeBack takes back what was decided about the pairs. All of them must be decided on one engine, each in one index.
func (d *decideJob) takeBack(ctx context.Context) error {
	var from *upstream.Engine
	var log *decided.Log
	var errs []error
	stored := make([]decided.Pair, len(d.pairs)) // those of the engine, by their place in d.pairs
	for _, e := range d.engines {
		its, all, _, err := d.chosen(ctx, e)
		if err != nil {
			return err
		}
		named := byName(all)
		for i := range d.pairs {
			found := named[d.pairs[i].Name()]
			if len(found) == 0 {
				continue
			}
			if from != nil && from != e {
				return fmt.Errorf("the engines %s and %s both have such pairs: choose one with --engine", from.Config.Name, e.Config.Name)
			}
			if p := &d.pairs[i]; len(found) > 1 {
				errs = append(errs, fmt.Errorf("%q and %q are decided in both %s and %s: name one index", p.A, p.B, found[0].Index, found[1].Index))
			}
			from, log, stored[i] = e, its, found[0]
			stored[i].Verdict = decided.Forgotten
		}
	}
	for i, p := range stored {
		if p.Index == "" {
			errs = append(errs, fmt.Errorf("nothing is decided about %q and %q: --list shows the decided pairs", d.pairs[i].A, d.pairs[i].B))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs[:min(len(errs), mostErrors)]...)
	}
	return d.store(ctx, from, log, stored, 0)
}

// byName returns each pair under its name, and under its name without the index, since a person may leave the index out.
func byName(pairs []decided.Pair) map[decided.Name][]decided.Pair {
	named := map[decided.Name][]decided.Pair{}
	for _, p := range pairs {
		name := p.Name()
		named[name] = append(named[name], p)
		name.Index = ""
		named[name] = append(named[name], p)
	}
	return named
}

// decidedPair is a pair as it is listed.
type decidedPair struct {
	Engine  string          `json:"engine"`
	Index   string          `json:"index"`
	A       string          `json:"a"`
	B       string          `json:"b"`
	Verdict decided.Verdict `json:"verdict"`
	By      string          `json:"by"`
	At      time.Time       `json:"at"`
	// AskAgain says why the pair is ignored; empty if it holds.
	AskAgain string `json:"ask_again,omitempty"`
}

// print lists the decided pairs. A pair to ask again is printed as a comment, so that --file does not decide about texts that nobody has read. If --index
// is the exact name of an index, its pairs come without that name, so that --file can read them for another index.
func (d *decideJob) print(ctx context.Context) error {
	list, text := []decidedPair{}, strings.Builder{}
	for _, e := range d.engines {
		_, pairs, places, err := d.chosen(ctx, e)
		if err != nil {
			return err
		}
		ids := map[string][]string{}
		for _, p := range pairs {
			ids[p.Index] = append(ids[p.Index], p.A, p.B)
		}
		texts, err := decided.ReadTexts(ctx, e.Store, places, ids)
		if err != nil {
			return e.Explain(err)
		}
		for _, p := range pairs {
			again, note := "", "; no rule matches this index, or it does not exist"
			if texts[p.Index] != nil {
				again, note = texts.Again(&p), ""
			}
			list = append(list, decidedPair{e.Config.Name, p.Index, p.A, p.B, p.Verdict, p.By, p.At, again})
			if again != "" {
				text.WriteString("# ")
				note = "; ask again: " + again
			}
			if p.By != "" {
				note = ", by " + strings.Join(strings.Fields(p.By), " ") + note // on one line
			}
			if p.Index == d.index {
				p.Index = ""
			}
			fmt.Fprintf(&text, "%s # %s%s\n", p, p.At.Format("2006-01-02 15:04"), note)
		}
	}
	return show(d.out, d.output, map[string][]decidedPair{"pairs": list}, cmp.Or(terminal.Harmless(text.String()), "# nothing is decided\n"))
}

// decidedIn returns the decided pairs of an index. Credentials that are limited to the index may not let it read them. Then it fails if the pairs are
// needed, and else prints a warning.
func (j *job) decidedIn(ctx context.Context, t target, needed bool) ([]decided.Pair, error) {
	if j.undecided {
		return nil, nil
	}
	log := decided.Open(t.Engine.Store.Journal())
	err := log.Read(ctx)
	switch {
	case upstream.Forbidden(err) && needed:
		return nil, fmt.Errorf("the decided pairs can't be read, so nothing is changed: let the credentials read %s, or add --ignore-decided: %w",
			t.Engine.Store.JournalIndex(), err)
	case upstream.Forbidden(err):
		_, _ = fmt.Fprintf(j.err, "warning: decided pairs are not obeyed: %s\n", terminal.Harmless(t.Explain(err).Error()))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the decided pairs: %w", err)
	}
	name := placeOf(t).PairIndex()
	return slices.DeleteFunc(log.Pairs(), func(p decided.Pair) bool { return p.Index != name }), nil
}

// parseDecided reads a file of decided pairs, - for standard input.
func parseDecided(ctx context.Context, file string, stdin io.Reader) ([]decided.Pair, error) {
	if file == "-" {
		return decided.Parse(terminal.UntilDone(ctx, stdin), "standard input", "")
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return decided.Parse(in, file, "")
}
