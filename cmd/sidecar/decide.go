package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
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
texts as they are now. Once one of them changes, it is not obeyed any more, and --list says: ask again.

--file reads many decisions: on each line two ids and same or different. The name of an index in front is needed only if --index names
several. A # begins a comment. An id that holds blanks is a JSON string. What --list prints is such a file.

--forget takes decisions back. A later decision about the same two documents replaces the earlier one.

Decisions are kept in the engine, in the index or collection that also holds the progress of jobs, with who decided and when. This
takes the credentials of the configuration.

Exit code 0: done. 1: failed, and of several decisions none is stored if a document is missing.`,
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
	flags.StringVar(&d.by, "by", "", "the `name` of who decides (by default of the user who runs the command)")
	return cmd
}

// take takes the arguments and checks the flags.
func (d *decideJob) take(_ *cobra.Command, args []string) error {
	const example = "as in: sidecar decide --index news-2024 4711 4712 different"
	switch {
	case d.list && (d.forget || d.file != "" || len(args) > 0):
		return errors.New("--list takes neither ids nor --file nor --forget")
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
	targets, _, err := d.matching(ctx)
	if err != nil {
		return err
	}
	if d.list {
		return d.print(ctx, targets)
	}
	e := targets[0].Engine
	if at := slices.IndexFunc(targets, func(t target) bool { return t.Engine != e }); at >= 0 {
		return fmt.Errorf("--index: both the engines %s and %s have such indices: choose one with --engine", e.Config.Name, targets[at].Config.Name)
	}
	if d.by == "" {
		if u, err := user.Current(); err == nil {
			d.by = u.Username
		}
	}
	log, pairs := decided.Open(e.Store.Journal()), d.pairs
	if d.forget {
		pairs, err = d.forgotten(ctx, log, placesOf(targets))
	} else {
		pairs, err = decided.Find(ctx, e.Store, placesOf(targets), pairs...)
	}
	if err != nil {
		return e.Explain(err)
	}
	stored, err := log.Add(ctx, d.by, pairs...)
	if err != nil {
		return e.Explain(fmt.Errorf("%w (%d of %d are stored)", err, stored, len(pairs)))
	}
	done := "decided"
	if d.forget {
		done = "forgotten"
	}
	text := fmt.Sprintf("%s %s\n", terminal.Count(stored, "pair"), done)
	if unchanged := len(pairs) - stored; unchanged > 0 {
		text = fmt.Sprintf("%s %s, %d as before\n", terminal.Count(stored, "pair"), done, unchanged)
	}
	return show(d.out, d.output, map[string]int{done: stored, "unchanged": len(pairs) - stored}, text)
}

// readFile reads the file of --file.
func (d *decideJob) readFile(ctx context.Context) (err error) {
	if d.file == "" {
		return nil
	}
	d.pairs, err = parseDecided(ctx, d.file, d.in)
	if d.forget {
		for i := range d.pairs {
			d.pairs[i].Verdict = decided.Forgotten
		}
	}
	return err
}

// placesOf returns the indices as pairs are looked up in them.
func placesOf(targets []target) (places []decided.Place) {
	for _, t := range targets {
		places = append(places, decided.Place{Index: t.found, Rule: t.Rule})
	}
	return places
}

// forgotten returns the pairs with their index, as they were decided.
func (d *decideJob) forgotten(ctx context.Context, log *decided.Log, places []decided.Place) ([]decided.Pair, error) {
	if err := log.Read(ctx); err != nil {
		return nil, err
	}
	var errs []error
	for i := range d.pairs {
		p, found := &d.pairs[i], ""
		for _, place := range places {
			if _, is := log.Pair(place.PairIndex(), p.A, p.B); is && (p.Index == "" || p.Index == place.PairIndex()) {
				found = place.PairIndex()
			}
		}
		if found == "" {
			errs = append(errs, fmt.Errorf("nothing is decided about %s and %s: see what is with --list", p.A, p.B))
		}
		p.Index = found
	}
	return d.pairs, errors.Join(errs...)
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
	// AskAgain says why the pair is not obeyed, empty if it is.
	AskAgain string `json:"ask_again,omitempty"`
}

// print lists what is decided in the indices.
func (d *decideJob) print(ctx context.Context, targets []target) error {
	list, text := []decidedPair{}, strings.Builder{}
	var engines []*upstream.Engine
	for _, t := range targets {
		if !slices.Contains(engines, t.Engine) {
			engines = append(engines, t.Engine)
		}
	}
	for _, e := range engines {
		places := placesOf(slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return t.Engine != e }))
		log := decided.Open(e.Store.Journal())
		err := log.Read(ctx)
		if err != nil {
			return e.Explain(err)
		}
		ids := map[string][]string{}
		pairs := slices.DeleteFunc(log.Pairs(), func(p decided.Pair) bool {
			return !slices.ContainsFunc(places, func(place decided.Place) bool { return place.PairIndex() == p.Index })
		})
		for _, p := range pairs {
			ids[p.Index] = append(ids[p.Index], p.A, p.B)
		}
		texts, err := decided.ReadTexts(ctx, e.Store, places, ids)
		if err != nil {
			return e.Explain(err)
		}
		for _, p := range pairs {
			again := texts.Again(&p)
			list = append(list, decidedPair{e.Config.Name, p.Index, p.A, p.B, p.Verdict, p.By, p.At, again})
			fmt.Fprintf(&text, "%s # %s", p, p.At.Format("2006-01-02 15:04"))
			if p.By != "" {
				text.WriteString(", by " + strings.Join(strings.Fields(p.By), " ")) // on one line
			}
			if again != "" {
				text.WriteString("; ask again: " + again)
			}
			text.WriteByte('\n')
		}
	}
	return show(d.out, d.output, map[string][]decidedPair{"pairs": list}, cmp.Or(terminal.Harmless(text.String()), "# nothing is decided\n"))
}

// decidedIn returns what is decided about the documents of an index. If the credentials may not read that, it warns: they may read the index alone.
func (j *job) decidedIn(ctx context.Context, t target) ([]decided.Pair, error) {
	log := decided.Open(t.Engine.Store.Journal())
	err := log.Read(ctx)
	if adapters.StatusOf(err) == http.StatusForbidden {
		_, _ = fmt.Fprintf(j.err, "decided pairs are not obeyed: %s\n", terminal.Harmless(t.Explain(err).Error()))
		return nil, nil
	}
	name := placesOf([]target{t})[0].PairIndex()
	return slices.DeleteFunc(log.Pairs(), func(p decided.Pair) bool { return p.Index != name }), err
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
