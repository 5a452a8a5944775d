package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
)

// Job is what a reindex works on: one concrete index under one rule.
type Job struct {
	Store adapters.Store
	Index string
	Rule  *adapters.Rule
	// Engine splits the index. Nil works on it as one part, and takes it for the same index whenever it has the name.
	Engine Splitter
	// Journal keeps the checkpoint and the leases. Nil keeps them in this process alone.
	Journal adapters.Journal
}

// Splitter is what an engine knows of an index beyond its documents.
type Splitter interface {
	// Split names at least n parts of the index, in which together each document is once, if it has as many; the last takes in what
	// is written later.
	Split(ctx context.Context, index string, n int) ([]string, error)
	// Identity returns what tells the index from another that was made under its name: a checkpoint of that one is not used.
	Identity(ctx context.Context, index string) (string, error)
}

// Options say how a run goes about it. The zero value has no limits.
type Options struct {
	// Slices is how many parts are worked on at once; 0 is one.
	Slices int
	// Pace bounds what is written; nil has no rate. Runs may share one.
	Pace *Pace
	// MaxDocs ends the run when so many documents were sent to be written; 0 is no bound.
	MaxDocs int
	// Query, in the engine's own words, narrows the documents down.
	Query string
	// DryRun writes nothing. Written then counts what would have been written.
	DryRun bool
	// Resume goes on with the newest run there is, finished or broken off. Otherwise only one that others are at work on is joined.
	Resume bool
	// Worker is the name of this process among all workers; empty is one that says where it runs.
	Worker string
}

// Report is what a run, or a watch, came to.
type Report struct {
	Progress
	// Whole says that it came to its end.
	Whole bool `json:"whole"`
	// Parts is how many the index was worked through in, PartsDone how many of them by this worker; Workers are the slices of it.
	Parts     int `json:"parts"`
	PartsDone int `json:"parts_done"`
	Workers   int `json:"slices"`
	// Resumed says that the parts are those of an earlier run, or of one that others are at work on.
	Resumed bool `json:"resumed"`
	// Anew says that the run to go on with was of an index in whose place there is another now, and that all was begun anew.
	Anew bool `json:"index_made_anew"`
	// Taken counts leases that were taken over from workers that had ended, Lost those that others took over from this one.
	Taken int `json:"leases_taken_over"`
	Lost  int `json:"leases_lost"`
	// Retries counts documents and requests that were sent again because the engine had no room; Waited is how long nothing was sent
	// for that. Both are of all that shares the pace.
	Retries int           `json:"retries"`
	Waited  time.Duration `json:"-"`
	// Took is how long it took.
	Took time.Duration `json:"-"`
	// Unkept says why no checkpoint is kept in the engine, if none is.
	Unkept error `json:"-"`
}

// PerSecond returns how many documents were read in a second.
func (r Report) PerSecond() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Scanned) / r.Took.Seconds()
}

// Reindex brings our fields of the documents of one concrete index up to date with the rule. It returns when all parts of the
// index are done, those of other workers too. The report is right on an error too: a batch that is under way when ctx ends is
// waited for and counted. progress, if not nil, is called after every batch, by one goroutine at a time.
func Reindex(ctx context.Context, job Job, o Options, progress func(Progress)) (Report, error) {
	r := newRun(job, o, progress)
	defer adapters.Release(ctx, job.Store, job.Index)
	err := r.pass(ctx, o.Resume)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return r.end(err)
}

// run is a reindex, or a watch, under way.
type run struct {
	Job
	options Options
	pace    *Pace
	board   *board
	start   time.Time
	// begun is closed once a page of what is to be read first is there, or none comes: then the other slices begin.
	begun    chan struct{}
	progress func(Progress)

	mu     sync.Mutex
	report Report
	seen   int // what this process had read when the others were looked at
	left   int // how many documents may still be sent, where that is bounded
}

func newRun(job Job, o Options, progress func(Progress)) *run {
	o.Slices = max(1, o.Slices)
	r := &run{Job: job, options: o, pace: o.Pace, start: time.Now(), progress: progress, left: o.MaxDocs}
	if r.pace == nil {
		r.pace = NewPace(0)
	}
	r.pace.serve(o.Slices)
	if r.Journal == nil || o.DryRun {
		r.Journal = &ledger{}
	}
	r.board = newBoard(r.Journal, jobName(job, o.Query), cmp.Or(o.Worker, thisWorker())+"/"+token())
	r.report.Workers = o.Slices
	return r
}

// end completes the report.
func (r *run) end(err error) (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.report
	out.Progress = r.estimate()
	out.Whole, out.Took = err == nil && !out.Cut, time.Since(r.start)
	out.Retries, out.Waited = r.pace.waits()
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	out.Parts, out.Taken, out.Lost, out.Anew = len(r.board.plan.Parts), r.board.taken, r.board.lost, r.board.anew
	if err != nil {
		err = fmt.Errorf("reindex %s: %w", r.Index, err)
	}
	return out, err
}

// pass works through the parts until all are done.
func (r *run) pass(ctx context.Context, resume bool) error {
	for {
		if err := r.join(ctx, resume); err != nil {
			return err
		}
		err := r.work(ctx)
		if err == nil {
			err = r.same(ctx)
		}
		if !anew(err) {
			return err
		}
		resume = true
	}
}

// anew reports whether a run has to begin anew: because another worker has begun it anew, or the index was created again.
func anew(err error) bool {
	return errors.Is(err, errSuperseded) || errors.Is(err, adapters.ErrRecreated)
}

// identify asks for the index's identity.
func (r *run) identify(ctx context.Context) (identity string, err error) {
	if r.Engine == nil {
		return "", nil
	}
	err = r.retry(ctx, func() (err error) {
		identity, err = r.Engine.Identity(ctx, r.Index)
		return err
	})
	return identity, err
}

// same fails if the index is another one than when the run was joined.
func (r *run) same(ctx context.Context) error {
	identity, err := r.identify(ctx)
	if err == nil && identity != r.board.identity {
		return errSuperseded
	}
	return err
}

// join joins or begins a run. Where the engine keeps no journal for these credentials the run has none: the sketches that are
// stored are a checkpoint too, if a slow one.
func (r *run) join(ctx context.Context, resume bool) error {
	identity, err := r.identify(ctx)
	if err != nil {
		return err
	}
	r.board.identity = identity
	parts := func() (plan, error) { return r.plan(ctx) }
	err = r.retry(ctx, func() error { return r.board.join(ctx, resume, parts) })
	if unkept, ok := errors.AsType[*journalError](err); ok && ctx.Err() == nil && !r.options.Resume {
		r.report.Unkept = unkept
		r.board.journal = &ledger{}
		err = r.board.join(ctx, false, parts)
	}
	if err != nil {
		return err
	}
	r.report.Resumed = r.report.Resumed || r.board.plan.ID != r.board.worker
	r.report.Total = r.board.plan.Total
	return nil
}

// plan splits the index.
func (r *run) plan(ctx context.Context) (p plan, err error) {
	first := adapters.Selection{Query: r.options.Query, Brief: true, Limit: 1}
	err = r.Store.Scan(ctx, r.Index, r.Rule, first, func(page adapters.Page) error {
		p.Total = page.Total
		return nil
	})
	if err != nil {
		return p, err
	}
	p.Parts = []string{""}
	if r.Engine != nil {
		if p.Parts, err = r.Engine.Split(ctx, r.Index, r.options.Slices); err != nil {
			return p, fmt.Errorf("split: %w", err)
		}
	}
	if n := len(p.Parts); n == 0 || n > maxParts-2 {
		return p, fmt.Errorf("split: %d parts", n)
	}
	return p, nil
}

// work has the slices work on parts until there are none left. The first one begins alone, with the open part if that is free:
// what the others write comes to lie there, and is not read once more when it was looked at before.
func (r *run) work(ctx context.Context) error {
	slices, ctx := errgroup.WithContext(ctx)
	looking, stop := context.WithCancel(ctx)
	defer stop()
	r.begun = make(chan struct{})
	var working sync.WaitGroup
	for i := range r.options.Slices {
		working.Add(1)
		slices.Go(func() error {
			defer working.Done()
			if i > 0 {
				select {
				case <-r.begun:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			defer r.begin()
			return r.slice(ctx)
		})
	}
	slices.Go(func() error { return r.look(looking) })
	working.Wait()
	stop()
	return slices.Wait()
}

// begin lets the other slices begin.
func (r *run) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.begun:
	default:
		close(r.begun)
	}
}

// tell reports the progress, while r.mu is held.
func (r *run) tell() {
	if r.progress != nil {
		r.progress(r.estimate())
	}
}

// look keeps an eye on the others: on how far they are, and on whether the job was begun anew.
func (r *run) look(ctx context.Context) error {
	for {
		scanned, err := r.board.elsewhere(ctx)
		if errors.Is(err, errSuperseded) {
			return err
		}
		if err == nil { // else it is tried again
			r.mu.Lock()
			r.report.All, r.seen = max(r.report.All, scanned), r.report.Scanned
			r.tell()
			r.mu.Unlock()
		}
		if sleep(ctx, r.board.lease/2) != nil {
			return nil
		}
	}
}

// slice works on one part after the other.
func (r *run) slice(ctx context.Context) error {
	for {
		var h *holding
		err := r.retry(ctx, func() (err error) {
			h, err = r.board.claim(ctx)
			return err
		})
		if err != nil || h == nil {
			return err
		}
		err = r.part(ctx, h, func(ctx context.Context) error { return r.scan(ctx, h) })
		r.begin()
		switch {
		case errors.Is(err, errLost):
			r.board.lose()
		case err != nil:
			return err
		default:
			r.mu.Lock()
			r.report.PartsDone++
			r.mu.Unlock()
		}
	}
}

// part does the work on a part while it is held, and gives it back. The ctx of the work ends when the part is lost.
func (r *run) part(ctx context.Context, h *holding, do func(context.Context) error) error {
	held, lose := context.WithCancelCause(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { h.keep(held, lose) })
	err := do(held)
	if err == nil {
		err = r.retry(held, func() error { return h.release(held, true) })
	}
	if errors.Is(context.Cause(held), errLost) {
		err = errLost
	}
	lose(nil)
	keeping.Wait()
	if err != nil && !errors.Is(err, errLost) {
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		_ = h.release(leave, false) // else the lease ends by itself
	}
	return err
}

// retry does something again while the engine is busy.
func (r *run) retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			r.pace.served()
		}
		if !errors.Is(err, adapters.ErrBusy) || ctx.Err() != nil {
			return err
		}
		if err := r.pace.refused(ctx, err); err != nil {
			return err
		}
	}
}

// scan works through what is left of a part. What was written when the engine broke off is not read again, where it can go on.
func (r *run) scan(ctx context.Context, h *holding) error {
	return r.retry(ctx, func() error {
		part, after := h.begin()
		return r.pipe(ctx, h, adapters.Selection{Part: part, After: after, Query: r.options.Query})
	})
}

// batch is a page of documents that was looked through.
type batch struct {
	patches []adapters.Patch
	// right counts the documents that need no patch.
	right Progress
	// after is where a scan goes on behind it.
	after string
}

// pipe works through a selection in three steps at once: a page is read while one is sketched and one is written.
func (r *run) pipe(ctx context.Context, h *holding, s adapters.Selection) error {
	steps, ctx := errgroup.WithContext(ctx)
	pages, batches := make(chan adapters.Page), make(chan batch)
	var busy error // what was read before is written all the same
	steps.Go(func() error {
		defer close(pages)
		err := r.Store.Scan(ctx, r.Index, r.Rule, s, func(p adapters.Page) error {
			r.pace.served()
			r.begin()
			return hand(ctx, pages, p)
		})
		if errors.Is(err, adapters.ErrBusy) {
			busy, err = err, nil
		}
		return err
	})
	steps.Go(func() error {
		defer close(batches)
		for p := range pages {
			if err := hand(ctx, batches, r.sketch(p)); err != nil {
				return err
			}
		}
		return nil
	})
	steps.Go(func() error {
		for b := range batches {
			if err := r.write(ctx, h, b); err != nil {
				return err
			}
		}
		return nil
	})
	if err := steps.Wait(); err != nil {
		return err
	}
	return busy
}

// hand hands something to the next step.
func hand[T any](ctx context.Context, to chan<- T, what T) error {
	select {
	case to <- what:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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

// write writes a batch, as fast as the pace allows, and remembers that it is done.
func (r *run) write(ctx context.Context, h *holding, b batch) error {
	scanned := b.right.Scanned
	r.add(b.right)
	counted := func(patches []adapters.Patch, results []adapters.Result) {
		var counts Progress
		for _, result := range results {
			counts.count(result)
		}
		r.give(len(patches) - counts.Scanned)
		scanned += counts.Scanned
		r.add(counts)
	}
	var err error
	if r.options.DryRun {
		for n, left := 0, len(b.patches); left > 0 && err == nil; left -= n {
			n, err = r.take(ctx, left)
			scanned += n
			r.add(Progress{Scanned: n, Written: n})
		}
	} else {
		allow := func(n int) (int, error) {
			if err := h.held(ctx); err != nil {
				return 0, err
			}
			return r.take(ctx, n) // what is taken is sent, though others find nothing left and end the run
		}
		err = patchAll(ctx, r.Job, r.pace, b.patches, allow, counted)
	}
	if err != nil {
		h.note("", scanned)
		return err
	}
	h.note(b.after, scanned)
	return context.Cause(ctx)
}

// errEnough ends a run when MaxDocs is reached.
var errEnough = errors.New("enough documents")

// take returns how many of n documents may be sent.
func (r *run) take(ctx context.Context, n int) (int, error) {
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

// give gives back what was not taken by the engine.
func (r *run) give(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
}

// add adds counts.
func (r *run) add(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Progress = r.report.Add(p)
	r.tell()
}

// estimate returns the progress, with what was read since the others were looked at.
func (r *run) estimate() Progress {
	p := r.report.Progress
	p.All = max(p.Scanned, p.All+p.Scanned-r.seen)
	if p.Total > 0 {
		p.All = min(p.All, max(p.Total, p.Scanned))
	}
	return p
}

// Progress counts documents.
type Progress struct {
	// Scanned were read, and what follows was found or done.
	Scanned int `json:"scanned"`
	// Written got their fields, or would have in a dry run; Skipped had them already; Textless have no word to sketch, or can't be read,
	// and hold what they should.
	Written  int `json:"written"`
	Skipped  int `json:"right"`
	Textless int `json:"textless"`
	// Changed and Gone were changed or deleted after they were read and were left alone; Refused the engine would not take.
	Changed int `json:"changed_meanwhile"`
	Gone    int `json:"gone"`
	Refused int `json:"refused"`
	// Cut says that MaxDocs ended the run.
	Cut bool `json:"cut"`
	// Total is how many there are as far as the engine says, else 0. All is how many of them were read by all workers of the job, as
	// far as is known.
	Total int `json:"documents"`
	All   int `json:"scanned_by_all"`
}

// Sent returns how many documents were sent to be written, or would have been in a dry run.
func (p Progress) Sent() int { return p.Written + p.Changed + p.Gone + p.Refused }

// Add returns the sum of the counts of two runs.
func (p Progress) Add(q Progress) Progress {
	return Progress{
		Total: p.Total + q.Total, All: p.All + q.All, Scanned: p.Scanned + q.Scanned,
		Written: p.Written + q.Written, Skipped: p.Skipped + q.Skipped, Textless: p.Textless + q.Textless,
		Changed: p.Changed + q.Changed, Gone: p.Gone + q.Gone, Refused: p.Refused + q.Refused,
		Cut: p.Cut || q.Cut,
	}
}

// count adds what became of a document, unless it is to be sent again.
func (p *Progress) count(result adapters.Result) {
	switch result {
	case adapters.Busy:
		return
	case adapters.Patched:
		p.Written++
	case adapters.Changed:
		p.Changed++
	case adapters.Gone:
		p.Gone++
	default:
		p.Refused++
	}
	p.Scanned++
}

// numberOf is what a document without a text takes for its cluster.
func numberOf(id string) uint64 { return xxhash.Sum64String(id) }
