package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/time/rate"

	"github.com/neardup/sidecar/adapters"
)

const (
	// maxBatch is how many documents go to the engine in one request at most: a few hundred short strings, far below any limit
	// on a body.
	maxBatch = 500
	// grace is how long a batch that is under way when the run is cancelled may take to end, so that it is counted.
	grace = 10 * time.Second
)

// Options say how much a run may do. The zero value has no limits.
type Options struct {
	// DocumentsPerSecond bounds the documents written in a second; 0 is no bound. Reading is not throttled, so that a run that is
	// started again gets quickly past what is done.
	DocumentsPerSecond float64
	// MaxDocuments ends the run when so many documents were sent to be written; 0 is no bound. The next run goes on from there.
	MaxDocuments int
	// DryRun writes nothing. Written then counts what would have been written.
	DryRun bool
}

// Progress counts documents.
type Progress struct {
	// Total is how many there are as far as the engine says, else 0.
	Total int
	// Scanned were read. All that follow are among them; what was read and not yet sent when a run breaks off is counted
	// nowhere else.
	Scanned int
	// Written got their sketch; Skipped had it already; Textless have no word to sketch, or can't be read.
	Written, Skipped, Textless int
	// Changed and Gone were changed or deleted after they were read and were left alone; Refused the engine would not take.
	Changed, Gone, Refused int
	// Cut says that MaxDocuments ended the run.
	Cut bool
}

// Sent returns how many documents were sent to be written, or would have been in a dry run.
func (p Progress) Sent() int { return p.Written + p.Changed + p.Gone + p.Refused }

// Add returns the sum of the counts of two runs.
func (p Progress) Add(q Progress) Progress {
	return Progress{
		Total: p.Total + q.Total, Scanned: p.Scanned + q.Scanned,
		Written: p.Written + q.Written, Skipped: p.Skipped + q.Skipped, Textless: p.Textless + q.Textless,
		Changed: p.Changed + q.Changed, Gone: p.Gone + q.Gone, Refused: p.Refused + q.Refused,
		Cut: p.Cut || q.Cut,
	}
}

// Reindex brings the sketches of one concrete index up to date with the rule. The progress returned is right on an error too: a
// batch that is under way when ctx ends is waited for and counted. report, if not nil, is called from the same goroutine after
// every page and every batch.
func Reindex(ctx context.Context, store adapters.Store, index string, rule *adapters.Rule, o Options, report func(Progress)) (Progress, error) {
	r := reindex{store: store, index: index, rule: rule, options: o, report: report, batch: maxBatch}
	if r.report == nil {
		r.report = func(Progress) {}
	}
	if perSecond := o.DocumentsPerSecond; perSecond > 0 {
		// Batches of at most a second's worth, and none for free at the start: the rate holds over any stretch from the start.
		r.batch = min(maxBatch, max(1, int(perSecond)))
		r.limiter = rate.NewLimiter(rate.Limit(perSecond), r.batch)
		r.limiter.AllowN(time.Now(), r.batch)
	}
	err := store.Scan(ctx, index, rule, adapters.Selection{}, func(p adapters.Page) error { return r.page(ctx, p) })
	if err != nil && !errors.Is(err, errEnough) {
		return r.progress, fmt.Errorf("reindex %s: %w", index, err)
	}
	return r.progress, nil
}

// errEnough ends a scan when MaxDocuments is reached.
var errEnough = errors.New("enough documents")

type reindex struct {
	store    adapters.Store
	index    string
	rule     *adapters.Rule
	options  Options
	report   func(Progress)
	limiter  *rate.Limiter // nil without a throttle
	batch    int
	pending  []adapters.Patch
	progress Progress
}

// page handles one page of the scan. Nothing is pending afterwards: a version is never older than the page it came with.
func (r *reindex) page(ctx context.Context, p adapters.Page) error {
	r.progress.Total = p.Total
	for _, document := range p.Documents {
		r.look(document)
		if len(r.pending) == r.batch || r.enough() {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		if r.enough() {
			r.progress.Cut = true
			return errEnough
		}
	}
	err := r.flush(ctx)
	r.report(r.progress)
	return err
}

func (r *reindex) enough() bool {
	return r.options.MaxDocuments > 0 && r.progress.Sent()+len(r.pending) >= r.options.MaxDocuments
}

// look counts a document, or makes its patch pending.
func (r *reindex) look(document adapters.Stored) {
	r.progress.Scanned++
	wanted, right := r.rule.Wanted(document.Source, xxhash.Sum64String(document.ID))
	switch {
	case !right:
		r.pending = append(r.pending, adapters.Patch{Stored: document, Ours: wanted})
	case wanted.Sketch == "":
		r.progress.Textless++
	default:
		r.progress.Skipped++
	}
}

// flush sends what is pending, when the throttle allows.
func (r *reindex) flush(ctx context.Context) error {
	if len(r.pending) == 0 {
		return ctx.Err()
	}
	if r.options.DryRun {
		r.progress.Written += len(r.pending)
		r.pending = r.pending[:0]
		return ctx.Err()
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	patching, stop := afterwards(ctx)
	defer stop()
	results, err := r.store.Patch(patching, r.index, r.rule, r.pending)
	if err != nil {
		return fmt.Errorf("write sketches: %w", err)
	}
	if len(results) != len(r.pending) {
		return fmt.Errorf("write sketches: %d results for %d documents", len(results), len(r.pending))
	}
	r.count(results)
	r.pending = r.pending[:0]
	r.report(r.progress)
	return nil
}

func (r *reindex) count(results []adapters.Result) {
	for _, result := range results {
		switch result {
		case adapters.Patched:
			r.progress.Written++
		case adapters.Changed:
			r.progress.Changed++
		case adapters.Gone:
			r.progress.Gone++
		default:
			r.progress.Refused++
		}
	}
}

// wait blocks until the throttle lets the pending documents through. rate.Limiter.WaitN would fail ahead of time where ctx has a
// deadline; a run with a deadline does what it can until then.
func (r *reindex) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil || r.limiter == nil {
		return err
	}
	timer := time.NewTimer(r.limiter.ReserveN(time.Now(), len(r.pending)).Delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// afterwards returns a context that outlives ctx by the grace.
func afterwards(ctx context.Context) (patching context.Context, stop func()) {
	patching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-patching.Done():
		}
	})
	return patching, func() { unhook(); cancel() }
}
