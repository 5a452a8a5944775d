package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Job is one concrete index to work on under one rule.
type Job struct {
	// Engine is what the engine is called in reports.
	Engine string
	Store  adapters.JobStore
	Index  string
	Rule   *rule.Rule
}

// Title is what the index is called in lines for people.
func (j Job) Title() string { return j.Engine + ": " + j.Index }

// Options say how a run goes about it. The zero value has no limits.
type Options struct {
	// Slices is how many parts are worked on at once; 0 is one.
	Slices int
	// Pace bounds what is written, for as many senders as there are slices; nil has no rate. Runs may share one.
	Pace *Pace
	// MaxDocs ends the run when that many documents were sent to be written; 0 is no bound.
	MaxDocs int
	// Query, in the engine's own words, narrows the documents down.
	Query string
	// DryRun writes nothing. Written then counts what would have been written.
	DryRun bool
	// Resume goes on with the newest plan there is, finished or broken off. Otherwise only one that others are at work on is joined.
	Resume bool
	// Worker is the name of this process among all workers; empty is one that says where it runs.
	Worker string
}

// Reindex brings our fields of the documents of one concrete index up to date with the rule. It returns when all parts of the
// index are done, those of other workers too. The report is right on an error too: a batch that is under way when ctx ends is
// waited for and counted. progress, if not nil, is called after every batch, by one goroutine at a time.
func Reindex(ctx context.Context, job Job, o Options, progress func(Progress)) (Report, error) {
	r := newRun(job, o, progress)
	defer job.Store.Release(ctx, job.Index)
	return r.report(r.untilDone(ctx, o.Resume))
}

// run is a reindex, or a watch, under way.
type run struct {
	Job
	options  Options
	board    *board
	identity string // of the index when the plan was joined
	start    time.Time
	// reading is closed once the first page was read, or none comes: then the other slices begin.
	reading  chan struct{}
	begun    sync.Once
	progress func(Progress)

	mu      sync.Mutex
	counts  Progress
	maySend int // how many more documents, where MaxDocs bounds that
}

// newRun returns a run that has not begun. Its store waits while the engine has no room for a read. A dry run gets one that drops writes, and a
// journal in memory.
func newRun(job Job, o Options, progress func(Progress)) *run {
	o.Slices = max(1, o.Slices)
	if o.DryRun {
		job.Store, o.Pace = dryStore{job.Store}, nil
	}
	if o.Pace == nil {
		o.Pace = NewPace(0)
	}
	host, _ := os.Hostname()
	job.Store = patientStore{job.Store, o.Pace}
	return &run{
		Job: job, options: o, start: time.Now(), progress: progress, maySend: o.MaxDocs, reading: make(chan struct{}),
		board: newBoard(job.Store.Journal(), o.Pace, jobName(job, o.Query), cmp.Or(o.Worker, host)+"/"+token()),
	}
}

// untilDone joins the job and works on its parts until all are done. It starts over where another worker has made a new plan, or the
// index was created again.
func (r *run) untilDone(ctx context.Context, resume bool) error {
	for {
		if err := r.join(ctx, resume); err != nil {
			return err
		}
		err := r.workInSlices(ctx)
		if err == nil {
			err = r.sameIndex(ctx)
		}
		if !begunAnew(err) {
			return err
		}
		resume = true
	}
}

// join joins the plan that others are at work on, or splits the index into parts and makes one. Where these credentials may keep no
// journal in the engine, the journal is in memory: a later run then finds by the stored sketches alone what is done.
func (r *run) join(ctx context.Context, resume bool) (err error) {
	if r.identity, err = r.Store.Identity(ctx, r.Index); err != nil {
		return err
	}
	split := func() (parts []string, documents int, err error) {
		return r.Store.Split(ctx, r.Index, r.options.Query, r.options.Slices)
	}
	r.counts.Total, err = r.board.joinPlan(ctx, r.identity, resume, split)
	if errors.Is(err, errJournal) && ctx.Err() == nil && !r.options.Resume {
		r.board.keepInMemory(err)
		r.counts.Total, err = r.board.joinPlan(ctx, r.identity, false, split)
	}
	return err
}

// workInSlices has each slice work on one part after the other, until none is left. The first slice takes the open part, which holds what is written from
// now on. The others wait until its first page is read: its scan shows nothing that is written after that, and so none of what they write.
func (r *run) workInSlices(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range r.options.Slices {
		group.Go(func() error {
			if i > 0 {
				select {
				case <-r.reading:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			defer r.startOthers()
			return r.board.eachPart(ctx, r.readSketchWrite, r.show)
		})
	}
	return group.Wait()
}

// startOthers lets the other slices begin.
func (r *run) startOthers() { r.begun.Do(func() { close(r.reading) }) }

// readSketchWrite works through the rest of a part in three steps at once: a page is read while one is sketched and one is written.
func (r *run) readSketchWrite(ctx context.Context, l *lease) error {
	defer r.startOthers() // if the part has no page
	steps, ctx := errgroup.WithContext(ctx)
	read, sketched := make(chan adapters.Page), make(chan adapters.Page)
	part, after := l.position()
	steps.Go(func() error {
		defer close(read)
		s := adapters.Selection{Part: part, After: after, Query: r.options.Query}
		return r.Store.Scan(ctx, r.Index, r.Rule, s, func(p adapters.Page) error {
			r.startOthers()
			return handOn(ctx, read, p)
		})
	})
	steps.Go(func() error {
		defer close(sketched)
		for p := range read {
			for i, d := range p.Documents {
				wanted, right := r.Rule.OursFor(d.Source, d.ID)
				p.Documents[i].Wanted, p.Documents[i].Right = &wanted, right
			}
			if err := handOn(ctx, sketched, p); err != nil {
				return err
			}
		}
		return nil
	})
	steps.Go(func() error {
		for p := range sketched {
			if err := r.write(ctx, l, p); err != nil {
				return err
			}
		}
		return nil
	})
	return steps.Wait()
}

// handOn hands a page to the next step.
func handOn(ctx context.Context, to chan<- adapters.Page, p adapters.Page) error {
	select {
	case to <- p:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write writes those documents of a page that are not right, as fast as the pace allows, and notes in the lease that the page is done.
func (r *run) write(ctx context.Context, l *lease, p adapters.Page) error {
	var wrong []adapters.Stored
	var counts Progress // of those that are right
	for _, d := range p.Documents {
		switch {
		case !d.Right:
			wrong = append(wrong, d)
			continue
		case d.Wanted.Sketch == "":
			counts.Textless++
		default:
			counts.Skipped++
		}
		counts.Scanned++
	}
	r.add(counts, 0)
	allow := func(n int) (int, error) { // called before each request
		if err := l.certain(ctx); err != nil {
			return 0, err
		}
		return r.spend(ctx, n) // what it has granted is sent, even if another slice meanwhile ends the run
	}
	scanned := counts.Scanned
	written := func(documents []adapters.Stored, results []adapters.Result) { // called after each request
		sent := Count(results)
		scanned += sent.Scanned
		r.add(sent, len(documents)-sent.Scanned)
	}
	err := r.options.Pace.Patch(ctx, r.Job, wrong, allow, written)
	if err != nil {
		p.After = "" // no mark: the lease stays where it was, so the page is read again
	}
	l.advance(p.After, scanned)
	return cmp.Or(err, context.Cause(ctx))
}

// errMaxDocs ends a run when MaxDocs is reached. It is not adapters.ErrEnough, with which a part would count as read to its end.
var errMaxDocs = errors.New("MaxDocs is reached")

// spend returns how many of n documents may be sent.
func (r *run) spend(ctx context.Context, n int) (int, error) {
	if r.options.MaxDocs == 0 || n == 0 {
		return n, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.maySend)
	r.maySend -= n
	if n == 0 {
		r.counts.Cut = true
		return 0, errMaxDocs
	}
	return n, nil
}

// show reports the progress, with what others did.
func (r *run) show() { r.add(Progress{}, 0) }

// add adds counts and reports the progress. Documents that were not sent after all, for lack of room in the engine, no longer count for MaxDocs.
func (r *run) add(p Progress, unsent int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.maySend += unsent
	r.counts = r.counts.Add(p)
	if r.progress != nil {
		r.progress(r.estimate())
	}
}

// estimate returns the progress, with what all workers had read when the journal was looked at.
func (r *run) estimate() Progress {
	p := r.counts
	p.All = max(p.Scanned, r.board.scannedByAll())
	if p.Total > 0 {
		p.All = min(p.All, max(p.Total, p.Scanned))
	}
	return p
}

// sameIndex fails if the index is another one than when the plan was joined.
func (r *run) sameIndex(ctx context.Context) error {
	identity, err := r.Store.Identity(ctx, r.Index)
	if err == nil && identity != r.identity {
		return errSuperseded
	}
	return err
}

func begunAnew(err error) bool {
	return errors.Is(err, errSuperseded) || errors.Is(err, adapters.ErrRecreated)
}

// report returns the report on a run that ended with err. It is no error that MaxDocs was reached.
func (r *run) report(err error) (Report, error) {
	if errors.Is(err, errMaxDocs) {
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.board.leaseReport()
	out.Engine, out.Index, out.DryRun, out.Slices = r.Engine, r.Index, r.options.DryRun, r.options.Slices
	out.Progress = r.estimate()
	out.Whole = err == nil && !out.Cut
	if took := time.Since(r.start); took > 0 {
		out.Seconds, out.PerSecond = seconds(took), math.Round(float64(out.Scanned)/took.Seconds())
	}
	out.Retries, out.Waited = r.options.Pace.waits()
	if err != nil {
		err = fmt.Errorf("reindex %s: %w", r.Index, err)
	}
	return out, err
}

// dryStore is a store that nothing is written to.
type dryStore struct{ adapters.JobStore }

func (dryStore) Patch(_ context.Context, _ string, _ *rule.Rule, documents []adapters.Stored) ([]adapters.Result, error) {
	return make([]adapters.Result, len(documents)), nil
}

func (dryStore) Journal() adapters.Journal { return &Ledger{} }
