package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// maxBatch is how many documents go to the engine in one request at most: as many as engines send in jobs of their own.
	maxBatch = 1000
	// firstPause and lastPause bound how long is waited before what the engine had no room for is sent again.
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	// patience is how long the engine may have no room for anything at all before a run ends with an error.
	patience = 10 * time.Minute
	// grace is how long a batch that is under way when the run is cancelled may take to end, so that it is counted.
	grace = 10 * time.Second
	// steps is how many undisturbed rounds lead from nothing to the full pace again.
	steps = 20
)

// Pace says when how many documents may be written. All slices of all runs of a process may share one. It holds a rate, if there
// is one, and gives way to an engine that has no room: whenever the engine refuses some documents for the time being, all wait, and requests
// are half as large from then on; each one that it takes lets them grow by a fixed step (additive increase, multiplicative decrease).
type Pace struct {
	limiter *rate.Limiter // nil without a rate
	most    int           // documents in one request

	mu     sync.Mutex
	size   float64 // documents in one request now
	slowed time.Time
	pause  time.Duration
	resume time.Time // nothing is sent before
	// nothingSince is since when the engine took nothing; zero while it does.
	nothingSince time.Time
	retries      int
	waited       time.Duration
}

// NewPace returns a pace of that many documents in a second, 0 for no bound. It begins without a burst: the rate holds over any stretch from
// the start.
func NewPace(perSecond float64) *Pace {
	p := &Pace{most: maxBatch}
	if perSecond > 0 {
		p.most = min(maxBatch, max(1, int(perSecond)))
		p.limiter = rate.NewLimiter(rate.Limit(perSecond), p.most)
		p.limiter.AllowN(time.Now(), p.most)
	}
	p.size = float64(p.most)
	return p
}

// Retry calls do, and calls it again while it says that the engine is busy.
func (p *Pace) Retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			p.served()
		}
		if !errors.Is(err, adapters.ErrBusy) || ctx.Err() != nil {
			return err
		}
		if err := p.waitWhileBusy(ctx, err); err != nil {
			return err
		}
	}
}

// patientStore is a store whose Identity and Scan wait while the engine is busy, and then ask again. Patches wait by [Pace.Patch], Split and the
// journal by [Pace.Retry].
type patientStore struct {
	adapters.JobStore
	pace *Pace
}

// Identity implements adapters.JobStore.
func (s patientStore) Identity(ctx context.Context, index string) (identity string, err error) {
	err = s.pace.Retry(ctx, func() (err error) {
		identity, err = s.JobStore.Identity(ctx, index)
		return err
	})
	return identity, err
}

// Scan implements adapters.Store. After a wait it goes on after the last page, where the engine can.
func (s patientStore) Scan(ctx context.Context, index string, rule *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	for begun := false; ; {
		err := s.JobStore.Scan(ctx, index, rule, sel, func(page adapters.Page) error {
			begun, sel.After = true, page.After
			s.pace.served()
			return yield(page)
		})
		if !errors.Is(err, adapters.ErrBusy) || begun && (sel.After == "" || sel.Limit > 0) {
			return err
		}
		if err := s.pace.waitWhileBusy(ctx, err); err != nil {
			return err
		}
	}
}

// Patch writes documents as the pace allows, and sends again what the engine had no room for. allow, if not nil, says before each
// request how many of n documents may be sent. done is called after each request with its documents and their results.
func (p *Pace) Patch(
	ctx context.Context, job Job, list []adapters.Stored, allow func(n int) (int, error), done func([]adapters.Stored, []adapters.Result),
) error {
	outlasting, cancel := Outlast(ctx, grace)
	defer cancel()
	for len(list) > 0 {
		n, err := p.admit(ctx, len(list))
		if err == nil && allow != nil {
			n, err = allow(n)
		}
		if err != nil {
			return err
		}
		some, rest, began := list[:n], list[n:], time.Now()
		results, err := job.Store.Patch(outlasting, job.Index, job.Rule, some)
		switch {
		case errors.Is(err, adapters.ErrBusy) && len(results) == 0:
			results = slices.Repeat([]adapters.Result{adapters.Busy}, n)
		case err != nil:
			return cmp.Or(context.Cause(ctx), fmt.Errorf("write documents: %w", err))
		case len(results) != n:
			return fmt.Errorf("write documents: %d results for %d documents", len(results), n)
		}
		done(some, results)
		list = nil
		for i, result := range results {
			if result == adapters.Busy {
				list = append(list, some[i])
			}
		}
		if err := p.sent(began, n, len(list)); err != nil {
			return err
		}
		list = append(list, rest...)
	}
	return nil
}

// Outlast returns a context for requests that write. It ends some time after ctx, so that a request under way is answered and its documents are
// counted. If ctx ends because another worker took the part over, it ends at once.
func Outlast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	outlasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), errLost) {
			_ = sleep(outlasting, grace)
		}
		cancel()
	})
	return outlasting, func() { stop(); cancel() }
}

// admit waits until some of n documents may be sent, and returns how many.
func (p *Pace) admit(ctx context.Context, n int) (int, error) {
	for {
		p.mu.Lock()
		n, wait := min(n, int(p.size)), time.Until(p.resume)
		p.mu.Unlock()
		if wait <= 0 && p.limiter != nil {
			// rate.Limiter.WaitN would fail ahead of time where ctx has a deadline; a run with a deadline does what it can until then.
			return n, sleep(ctx, p.limiter.ReserveN(time.Now(), n).Delay())
		}
		if err := sleep(ctx, wait); err != nil || wait <= 0 {
			return n, err
		}
	}
}

// sent adapts the pace to the result of a request: of n documents, sent at some time, the engine had no room for busy.
func (p *Pace) sent(at time.Time, n, busy int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retries += busy
	if busy < n {
		p.nothingSince, p.pause = time.Time{}, 0
	}
	if busy == 0 {
		p.size = min(float64(p.most), p.size+max(1, float64(p.most)/steps))
		return nil
	}
	return p.backOff(at, busy == n)
}

// backOff gives way, once for all that was sent before it last did.
func (p *Pace) backOff(sent time.Time, nothing bool) error {
	now := time.Now()
	if nothing && p.nothingSince.IsZero() {
		p.nothingSince = now
	}
	if nothing && now.Sub(p.nothingSince) > patience {
		return fmt.Errorf("the engine has had no room for anything for %v: see to it, and run the command again (reindex: with --resume)", patience)
	}
	if !sent.After(p.slowed) {
		return nil
	}
	p.slowed = now
	p.size = max(1, p.size/2)
	p.pause = min(lastPause, max(firstPause, p.pause*2))
	pause := p.pause + rand.N(p.pause/2) // not all workers at once
	p.resume = now.Add(pause)
	p.waited += pause
	return nil
}

// waitWhileBusy waits after the engine had no room for a request of another kind. It returns the error where that went on for too long.
func (p *Pace) waitWhileBusy(ctx context.Context, err error) error {
	p.mu.Lock()
	p.retries++
	tired := p.backOff(time.Now(), true)
	wait := time.Until(p.resume)
	p.mu.Unlock()
	if tired != nil {
		return fmt.Errorf("%w: %w", tired, err)
	}
	return sleep(ctx, wait)
}

// served says that the engine has done a request of another kind: what it refuses from now on is a new lack of room.
func (p *Pace) served() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nothingSince, p.pause = time.Time{}, 0
}

// waits returns how many documents and requests were sent again, and for how many seconds nothing was sent for that.
func (p *Pace) waits() (retries int, waited float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retries, seconds(p.waited)
}

// sleep waits, and returns why ctx ended if it did.
func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
