package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/groups"
	"github.com/neardup/sidecar/internal/localpage"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/cleanup"
)

// cleanFlags are the flags of a clean-up.
type cleanFlags struct {
	plan, keep, hide, apply, undo, restore string
	yes, lossy, open                       bool
	port                                   int
}

func (f *cleanFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.plan, "plan", "", "write a plan of what to delete or hide to this `file`, and change nothing")
	flags.Var(choice{&f.keep, []string{string(rule.ByNewest), string(rule.ByOldest), string(rule.ByLongest), cleanup.First}}, "keep",
		"which `document` of a group stays: newest, oldest, longest, or first by id (default: the rule's representative; without one, newest if it has a date_field, else longest)")
	flags.BoolVar(&f.open, "open", false, "with --index: show the groups in a browser on this machine, and print the address")
	flags.IntVar(&f.port, "port", 0, "with --open: the page's port at 127.0.0.1 (default any free one)")
	flags.StringVar(&f.hide, "hide", "", "with --plan or --open: set this `field` to true instead of deleting")
	flags.StringVar(&f.apply, "apply", "", "carry out the plan in this `file`")
	flags.StringVar(&f.undo, "undo", "", "with --apply: the `file` that documents are written to before they are deleted or hidden")
	flags.StringVar(&f.restore, "restore", "", "put back the documents of this undo `file`")
	flags.BoolVar(&f.yes, "yes", false, "with --apply: do not ask")
	flags.BoolVar(&f.lossy, "accept-loss", false, "with --apply: delete even if a document could not be put back as it was")
}

// check returns what is wrong with the flags. file is the one that --output names.
func (f *cleanFlags) check(cmd *cobra.Command, file string) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	finds, carriesOut := f.plan != "" || f.open, f.apply != "" || f.restore != ""
	modes := 0
	for _, chosen := range []bool{f.plan != "", f.open, f.apply != "", f.restore != ""} {
		if chosen {
			modes++
		}
	}
	switch {
	case modes > 1:
		return errors.New("--plan, --open, --apply and --restore: give one of them")
	case !finds && (f.keep != "" || f.hide != ""):
		return errors.New("--keep and --hide go with --plan or --open")
	case !f.open && given("port"):
		return errors.New("--port goes with --open")
	case finds && (given("input") || given("write") || file != ""):
		return errors.New("--plan and --open need --index: leave out --input, --write and a file in --output")
	case f.plan != "" && !isFolder(filepath.Dir(f.plan)):
		return fmt.Errorf("--plan: there is no directory %s: name a file in one that you may write to", filepath.Dir(f.plan))
	case f.apply != "" && f.undo == "":
		return errors.New("--undo is missing: name a file that documents are written to before they are deleted, such as undo.jsonl")
	case f.apply == "" && (f.undo != "" || f.yes || f.lossy):
		return errors.New("--undo, --yes and --accept-loss go with --apply")
	case carriesOut && (given("index") || given("input") || given("engine") || given("write")):
		return errors.New("--apply and --restore take the index from the file: leave out --index, --engine, --input and --write")
	case f.hide != "":
		return cleanup.CheckHide(f.hide)
	}
	return nil
}

// groups returns the head of a plan, and the function that finds its groups. shown adds what the page shows.
func (s *indexSource) groups(ctx context.Context, shown bool) (p cleanup.Plan, find func(func(cleanup.Group) error) (cleanup.Counts, error), err error) {
	c := s.command
	o := cleanup.Options{Keep: c.clean.keep, Hide: c.clean.hide, Shown: shown}
	p = cleanup.Plan{Engine: s.Config.Name, Index: s.Index, Hide: c.clean.hide}
	if _, p.Keep, err = o.Choice(s.Rule); err != nil {
		return p, nil, err
	}
	p.Threshold = c.Rule.Profile.Threshold
	if p.Hide != "" {
		if err = cleanup.CheckField(ctx, s.Engine.Store, s.Job, p.Hide); err != nil {
			return p, nil, err
		}
	}
	if p.Identity, err = s.Job.Store.Identity(ctx, s.Index); err != nil {
		return p, nil, s.Explain(err)
	}
	o.PairIndex, o.Decided = placeOf(s.target).PairIndex(), decided.NewSet(c.Decided)
	return p, func(yield func(cleanup.Group) error) (cleanup.Counts, error) {
		meter := c.meter(s.Job)
		defer meter.clearBar()
		o.Report = func(read int) { meter.at(read, 0, "read with their texts") }
		job := s.Job
		job.Rule = c.Rule // it has the threshold of --threshold
		return cleanup.Find(ctx, c.corpus, job, o, yield)
	}, nil
}

// openPage shows the groups on a page until the command is interrupted.
func (s *indexSource) openPage(ctx context.Context) error {
	c := s.command
	p, find, err := s.groups(ctx, true)
	if err != nil {
		return err
	}
	options := groups.Options{Job: s.Job, Place: placeOf(s.target), By: userName(), Dir: c.Dir, Plan: p, Decided: len(c.Decided), Passages: s.passages}
	if c.learned != nil {
		options.Passages = c.learned.Passages
	}
	options.Job.Rule = c.Rule
	found, err := groups.New(options, find)
	if err != nil {
		return s.Explain(err)
	}
	defer found.Close()
	c.corpus.Close() // frees its memory and files
	c.corpus = nil
	page := found.Page()
	page.Browse = terminal.IsTerminal(c.out)
	return localpage.Serve(ctx, c.clean.port, page, func(address string) {
		_, _ = fmt.Fprintf(c.out, "Open this address in a browser on this machine:\n\n  %s\n\nCtrl-C ends the page.\n", address)
	})
}

// makePlan writes a plan of the clusters that were found.
func (s *indexSource) makePlan(ctx context.Context) error {
	c := s.command
	p, find, err := s.groups(ctx, false)
	if err != nil {
		return err
	}
	if p, err = cleanup.WritePlan(c.clean.plan, p, find); err != nil {
		return s.Explain(err)
	}
	if lossy := s.Engine.Store.Lossless(ctx, s.Index, p.Hide); lossy != nil {
		_, _ = fmt.Fprintf(c.err, "note: --apply will refuse this plan: %v\n", terminal.Harmless(lossy.Error()))
	}
	text := fmt.Sprintf("%s%s is written, and nothing was changed. Review it, then run: sidecar cluster --apply %[2]s --undo undo.jsonl\n", p, c.clean.plan)
	if p.Hide != "" {
		text += fmt.Sprintf("Filter hidden documents out of your searches: must_not term %s: true (Typesense: filter_by %[1]s:!=true)\n", p.Hide)
	}
	return show(c.out, c.report, p, terminal.Harmless(text))
}

// place opens the index of a plan or an undo file.
func (c *clusterJob) place(cmd *cobra.Command, engine, index string) (target, error) {
	from, err := configOf(cmd)
	if err != nil {
		return target{}, err
	}
	if c.engines, err = upstream.OpenAll(from, engine); err != nil {
		return target{}, err
	}
	c.index = index
	found, err := c.matching(cmd.Context())
	if err != nil {
		return target{}, err
	}
	if len(found) != 1 || found[0].Index != index {
		return target{}, fmt.Errorf("%s is not an index any more, but an alias or a pattern", index)
	}
	return found[0], found[0].CheckVersion(cmd.Context(), c.untested)
}

// applyPlan carries out the plan of --apply.
func (c *clusterJob) applyPlan(cmd *cobra.Command) error {
	ctx := cmd.Context()
	plan, goes, sum, err := cleanup.OpenPlan(c.clean.apply)
	if err != nil {
		return fmt.Errorf("--apply: %w", err)
	}
	t, err := c.place(cmd, plan.Engine, plan.Index)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, plan, goes); err != nil {
		return err
	}
	order := cleanup.Order{Plan: c.clean.apply, Undo: c.clean.undo, Sum: sum, Lossy: c.clean.lossy}
	pairs, err := c.decidedIn(ctx, t, true)
	if err != nil {
		return err
	}
	order.PairIndex, order.Decided = placeOf(t).PairIndex(), decided.NewSet(pairs)
	meter := c.meter(t.Job)
	order.Report = func(a cleanup.Applied) { meter.at(a.All(), goes, fmt.Sprintf("%d done", a.Done)) }
	done, err := cleanup.Apply(ctx, t.Job, t.Engine.Store, order)
	meter.clearBar()
	text := fmt.Sprintf("%s: %s", plan.Index, done.Describe(plan.Hide))
	if done.Done > 0 || holdsDocuments(c.clean.undo, sum) {
		text += fmt.Sprintf("To undo this: sidecar cluster --restore %s\n", c.clean.undo)
	}
	shown := show(c.out, c.report, done, terminal.Harmless(text))
	switch {
	case errors.Is(err, adapters.ErrLossy) && plan.Hide == "":
		advice := "Add --accept-loss if you can do without these documents"
		if t.Engine.Store.Lossless(ctx, plan.Index, "x") == nil {
			advice += ", or make a plan with --hide"
		}
		return fmt.Errorf("%w. %s", err, advice)
	case ctx.Err() != nil:
		return errors.New("interrupted: run the same command again to go on, or --restore to undo what was done")
	case err != nil:
		return t.Explain(err)
	case shown == nil && done.Orphans > 0:
		return fmt.Errorf("%d documents were deleted or hidden before, but the document that stays is now gone or changed: put them back with --restore %s", done.Orphans, c.clean.undo)
	case shown == nil && done.Refused > 0:
		return errRefused
	}
	return shown
}

// holdsDocuments reports whether an undo file is of the plan with this hash and holds any documents.
func holdsDocuments(undo, plan string) bool {
	head, documents, err := cleanup.OpenUndo(undo)
	return err == nil && documents > 0 && head.Plan == plan
}

// confirm asks the person at the terminal to type how many documents go.
func (c *clusterJob) confirm(ctx context.Context, plan cleanup.Plan, goes int) error {
	if c.clean.yes || goes == 0 {
		return nil
	}
	if !terminal.IsTerminal(c.in) {
		return errors.New("--yes is needed where there is no terminal to ask on")
	}
	does := "deletes"
	if plan.Hide != "" {
		does = "sets " + plan.Hide + " to true in"
	}
	_, _ = fmt.Fprintf(c.err, "This %s %s of %s. To go on, type that number: ",
		does, terminal.Count(goes, "document"), terminal.Harmless(plan.Engine+": "+plan.Index))
	answer, err := bufio.NewReader(terminal.UntilDone(ctx, c.in)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != strconv.Itoa(goes) {
		return fmt.Errorf("the answer is not %d: nothing was changed", goes)
	}
	return nil
}

// restore puts back the documents of --restore.
func (c *clusterJob) restore(cmd *cobra.Command) error {
	ctx := cmd.Context()
	head, lines, err := cleanup.OpenUndo(c.clean.restore)
	if err != nil {
		return fmt.Errorf("--restore: %w", err)
	}
	t, err := c.place(cmd, head.Engine, head.Index)
	if err != nil {
		return err
	}
	meter := c.meter(t.Job)
	done, err := cleanup.Restore(ctx, t.Job, t.Engine.Store, c.clean.restore, func(r cleanup.Restored) {
		meter.at(r.All(), lines, fmt.Sprintf("%d put back", r.Restored))
	})
	meter.clearBar()
	shown := show(c.out, c.report, done, terminal.Harmless(fmt.Sprintf("%s: %s", head.Index, done)))
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: run the same command again")
	case err != nil:
		return t.Explain(err)
	case shown == nil && len(done.Damaged) > 0:
		return fmt.Errorf("%d lines of %s can't be read, the first is line %d. All others are done", len(done.Damaged), c.clean.restore, done.Damaged[0])
	case shown == nil && done.Refused > 0:
		return errRefused
	}
	return shown
}
