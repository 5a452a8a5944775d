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

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Job is one concrete index to work on under one rule.
type Job struct {
	Store adapters.JobStore
	Index string
	Rule  *rule.Rule
}

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
	return r.end(r.untilDone(ctx, o.Resume))
}

// run is a reindex, or a watch, under way.
type run struct {
	Job
	options Options
	board   *board
	start   time.Time
	// reading is closed once the first page was read, or none comes: then the other slices begin.
	reading  chan struct{}
	begun    sync.Once
	progress func(Progress)

	mu     sync.Mutex
	report Report
	left   int // how many documents may still be sent, where that is bounded
}

// newRun returns a run that has not begun. A dry run gets a store that drops writes, and a journal in memory.
func newRun(job Job, o Options, progress func(Progress)) *run {
	o.Slices = max(1, o.Slices)
	if o.DryRun {
		job.Store, o.Pace = dry{job.Store}, nil
	}
	if o.Pace == nil {
		o.Pace = NewPace(0)
	}
	host, _ := os.Hostname()
	return &run{
		Job: job, options: o, start: time.Now(), progress: progress, left: o.MaxDocs, reading: make(chan struct{}),
		report: Report{Index: job.Index, DryRun: o.DryRun, Slices: o.Slices},
		board:  newBoard(job.Store.Journal(), jobName(job, o.Query), cmp.Or(o.Worker, host)+"/"+token()),
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
func (r *run) join(ctx context.Context, resume bool) error {
	identity, err := r.identity(ctx)
	if err != nil {
		return err
	}
	r.board.identity = identity
	split := func() (plan, error) {
		parts, documents, err := r.Store.Split(ctx, r.Index, r.options.Query, r.options.Slices)
		if n := len(parts); err == nil && (n == 0 || n > maxParts-2) {
			err = fmt.Errorf("split: %d parts", n)
		}
		return plan{Parts: parts, Total: documents}, err
	}
	err = r.options.Pace.Retry(ctx, func() error { return r.board.joinPlan(ctx, resume, split) })
	if errors.Is(err, errJournal) && ctx.Err() == nil && !r.options.Resume {
		r.report.Unkept = err.Error()
		r.board.journal = &ledger{}
		err = r.board.joinPlan(ctx, false, split)
	}
	r.report.Resumed = r.report.Resumed || err == nil && r.board.plan.ID != r.board.worker
	r.report.Total = r.board.plan.Total
	return err
}

// workInSlices has each slice claim one part after the other and work on it, until there are none left. The first slice begins alone,
// with the open part if that is free: what the others write belongs to it, and need not be read again when it was read before.
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
			for {
				l, err := r.claim(ctx, false)
				if l == nil || err != nil {
					return err
				}
				if err = r.workOn(ctx, l, r.readSketchWrite); err != nil && !errors.Is(err, errLost) {
					return err
				}
				r.startOthers()
			}
		})
	}
	return group.Wait()
}

// startOthers lets the other slices begin.
func (r *run) startOthers() { r.begun.Do(func() { close(r.reading) }) }

// claim returns a part, or the watch, for this worker to hold, and waits while other processes hold all that are left. It returns nil
// where this process holds them all.
func (r *run) claim(ctx context.Context, watch bool) (l *lease, err error) {
	for wait := time.Duration(0); ; {
		err = r.options.Pace.Retry(ctx, func() (err error) {
			l, wait, err = r.board.take(ctx, watch)
			return err
		})
		if l != nil || wait == 0 || err != nil {
			return l, err
		}
		r.add(Progress{}, 0) // what the others did
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// workOn does the work on a part and renews its lease meanwhile. Then it marks the part as done, or after an error gives it back. Where an
// engine without room ended the work, and it can't go on after its last page, it is done once more.
func (r *run) workOn(ctx context.Context, l *lease, work func(context.Context, *lease) error) error {
	defer l.forget()
	held, lose := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { l.keep(held, lose) })
	err := r.options.Pace.Retry(held, func() error { return work(held, l) })
	lose(nil)
	renewing.Wait()
	if cause := context.Cause(held); errors.Is(cause, errLost) || errors.Is(cause, errSuperseded) {
		err = cause
	}
	if err == nil {
		err = r.options.Pace.Retry(ctx, func() error { return l.finish(ctx) })
	}
	if err != nil && !errors.Is(err, errLost) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		_ = l.release(last) // else the lease ends by itself
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.report.PartsDone++
	} else {
		r.report.Lost++
	}
	return err
}

// readSketchWrite works through the rest of a part in three steps at once: a page is read while one is sketched and one is written.
func (r *run) readSketchWrite(ctx context.Context, l *lease) error {
	steps, ctx := errgroup.WithContext(ctx)
	pages, batches := make(chan adapters.Page), make(chan batch)
	part, after := l.position()
	steps.Go(func() error {
		defer close(pages)
		s := adapters.Selection{Part: part, After: after, Query: r.options.Query}
		return r.options.Pace.scan(ctx, r.Job, s, func(p adapters.Page) error {
			r.startOthers()
			return send(ctx, pages, p)
		})
	})
	steps.Go(func() error {
		defer close(batches)
		for p := range pages {
			if err := send(ctx, batches, r.sketch(p)); err != nil {
				return err
			}
		}
		return nil
	})
	steps.Go(func() error {
		for b := range batches {
			if err := r.write(ctx, l, b); err != nil {
				return err
			}
		}
		return nil
	})
	return steps.Wait()
}

// send hands something to the next step.
func send[T any](ctx context.Context, to chan<- T, what T) error {
	select {
	case to <- what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// batch is what is to be written of a page.
type batch struct {
	patches []adapters.Patch
	// right counts the documents that need no patch.
	right Progress
	// after is where a scan goes on after the page.
	after string
}

// sketch returns what is to be written of a page.
func (r *run) sketch(p adapters.Page) batch {
	b := batch{after: p.After}
	for _, document := range p.Documents {
		wanted, right := r.Rule.Wanted(document.Source, numberOf(document.ID))
		switch {
		case !right:
			b.patches = append(b.patches, adapters.Patch{Stored: document, Ours: wanted})
			continue
		case wanted.Sketch == "":
			b.right.Textless++
		default:
			b.right.Skipped++
		}
		b.right.Scanned++
	}
	return b
}

// numberOf is what a document without a text takes for its cluster.
func numberOf(id string) uint64 { return xxhash.Sum64String(id) }

// write writes a batch, as fast as the pace allows, and notes in the lease that it is done.
func (r *run) write(ctx context.Context, l *lease, b batch) error {
	scanned := b.right.Scanned
	r.add(b.right, 0)
	allow := func(n int) (int, error) {
		if err := l.certain(ctx); err != nil {
			return 0, err
		}
		return r.spend(ctx, n) // what is taken is sent, though others find nothing left and end the run
	}
	err := r.options.Pace.Patch(ctx, r.Job, b.patches, allow, func(patches []adapters.Patch, results []adapters.Result) {
		counts := Count(results)
		scanned += counts.Scanned
		r.add(counts, len(patches)-counts.Scanned)
	})
	if err != nil {
		b.after = ""
	}
	l.advance(b.after, scanned)
	return cmp.Or(err, context.Cause(ctx))
}

// errEnough ends a run when MaxDocs is reached.
var errEnough = errors.New("enough documents")

// spend returns how many of n documents may be sent.
func (r *run) spend(ctx context.Context, n int) (int, error) {
	if r.options.MaxDocs == 0 || n == 0 {
		return n, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.left)
	r.left -= n
	if n == 0 {
		r.report.Cut = true
		return 0, errEnough
	}
	return n, nil
}

// add adds counts, and documents that the engine had no room for to those that may be sent, and reports the progress.
func (r *run) add(p Progress, unsent int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += unsent
	r.report.Progress = r.report.Add(p)
	if r.progress != nil {
		r.progress(r.estimate())
	}
}

// estimate returns the progress, with what all workers had read when the journal was looked at.
func (r *run) estimate() Progress {
	p := r.report.Progress
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	p.All = max(p.Scanned, r.board.scanned)
	if p.Total > 0 {
		p.All = min(p.All, max(p.Total, p.Scanned))
	}
	return p
}

// sameIndex fails if the index is another one than when the plan was joined.
func (r *run) sameIndex(ctx context.Context) error {
	identity, err := r.identity(ctx)
	if err == nil && identity != r.board.identity {
		return errSuperseded
	}
	return err
}

// identity returns what another index of the same name would not have.
func (r *run) identity(ctx context.Context) (identity string, err error) {
	err = r.options.Pace.Retry(ctx, func() (err error) {
		identity, err = r.Store.Identity(ctx, r.Index)
		return err
	})
	return identity, err
}

func begunAnew(err error) bool {
	return errors.Is(err, errSuperseded) || errors.Is(err, adapters.ErrRecreated)
}

// end returns the report on a run that ended with err. It is no error that MaxDocs was reached.
func (r *run) end(err error) (Report, error) {
	if errors.Is(err, errEnough) {
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.report
	out.Progress = r.estimate()
	out.Whole = err == nil && !out.Cut
	if took := time.Since(r.start); took > 0 {
		out.Seconds, out.PerSecond = seconds(took), math.Round(float64(out.Scanned)/took.Seconds())
	}
	out.Retries, out.Waited = r.options.Pace.waits()
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	out.Parts, out.Taken, out.Anew = len(r.board.plan.Parts), r.board.taken, r.board.anew
	if err != nil {
		err = fmt.Errorf("reindex %s: %w", r.Index, err)
	}
	return out, err
}

// dry is a store that nothing is written to.
type dry struct{ adapters.JobStore }

func (dry) Patch(_ context.Context, _ string, _ *rule.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	return make([]adapters.Result, len(patches)), nil
}

func (dry) Journal() adapters.Journal { return &ledger{} }
