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
// is one, and gives way to an engine that has no room: the number of documents under way is halved whenever the engine refuses
// some for the time being, and grows by a fixed step with each round that it takes (additive increase, multiplicative decrease).
type Pace struct {
	limiter *rate.Limiter // nil without a rate
	batch   int           // documents in one request at most

	mu       sync.Mutex
	window   float64 // documents that may be under way
	most     int     // the largest window
	underway int
	// round counts the halvings, so that of all requests that were under way together one alone halves.
	round   int
	pause   time.Duration
	resume  time.Time // nothing is sent before
	dry     time.Time // since when the engine took nothing; zero while it does
	changed chan struct{}
	retries int
	waited  time.Duration
}

// NewPace returns a pace of so many documents in a second, 0 for no bound, for so many senders at once. Nothing is free at the start: the
// rate holds over any stretch from there.
func NewPace(perSecond float64, senders int) *Pace {
	p := &Pace{batch: maxBatch, changed: make(chan struct{})}
	if perSecond > 0 {
		p.batch = min(maxBatch, max(1, int(perSecond)))
		p.limiter = rate.NewLimiter(rate.Limit(perSecond), p.batch)
		p.limiter.AllowN(time.Now(), p.batch)
	}
	p.most = p.batch * max(1, senders)
	p.window = float64(p.most)
	return p
}

// Retry does something again while the engine is busy.
func (p *Pace) Retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			p.served()
		}
		if !errors.Is(err, adapters.ErrBusy) || ctx.Err() != nil {
			return err
		}
		if err := p.refused(ctx, err); err != nil {
			return err
		}
	}
}

// ticket is leave to send some documents.
type ticket struct{ documents, round int }

// admit blocks until some of n documents may be sent, and says how many. Each ticket has to be settled.
func (p *Pace) admit(ctx context.Context, n int) (ticket, error) {
	for {
		if err := ctx.Err(); err != nil {
			return ticket{}, context.Cause(ctx)
		}
		t, changed, wait := p.enter(n)
		if t.documents > 0 {
			if p.limiter == nil {
				return t, nil
			}
			// rate.Limiter.WaitN would fail ahead of time where ctx has a deadline; a run with a deadline does what it can until then.
			if err := sleep(ctx, p.limiter.ReserveN(time.Now(), t.documents).Delay()); err != nil {
				p.leave(t.documents)
				return ticket{}, err
			}
			return t, nil
		}
		if err := pause(ctx, changed, wait); err != nil {
			return ticket{}, err
		}
	}
}

// enter takes what may be sent now, or says what to wait for: a change, or an end of the pause.
func (p *Pace) enter(n int) (t ticket, changed <-chan struct{}, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait = time.Until(p.resume); wait > 0 {
		return ticket{}, p.changed, wait
	}
	if room := int(p.window) - p.underway; room > 0 {
		t = ticket{min(n, room, p.batch), p.round}
		p.underway += t.documents
		return t, nil, 0
	}
	return ticket{}, p.changed, lastPause
}

func (p *Pace) leave(documents int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underway -= documents
	p.wake()
}

// wake tells those who wait in admit to look again.
func (p *Pace) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// settle ends a ticket. busy is how many of its documents the engine had no room for; all other are dealt with.
func (p *Pace) settle(t ticket, busy int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.wake()
	p.underway -= t.documents
	p.retries += busy
	if busy < t.documents {
		p.dry, p.pause = time.Time{}, 0
	}
	if busy == 0 {
		p.window = min(float64(p.most), p.window+max(1, float64(p.most)/steps*float64(t.documents)/max(1, p.window)))
		return nil
	}
	return p.yield(t.round, busy == t.documents)
}

// yield gives way, once for all that was sent in a round.
func (p *Pace) yield(round int, nothing bool) error {
	now := time.Now()
	if nothing && p.dry.IsZero() {
		p.dry = now
	}
	if nothing && now.Sub(p.dry) > patience {
		return fmt.Errorf("the engine has had no room for anything for %v: see to it, and go on with --resume", patience)
	}
	if round != p.round {
		return nil
	}
	p.round++
	p.window = max(1, p.window/2)
	p.pause = min(lastPause, max(firstPause, p.pause*2))
	pause := p.pause + rand.N(p.pause/2) // not all workers at once
	p.resume = now.Add(pause)
	p.waited += pause
	return nil
}

// refused gives way to an engine that had no room for a request of another kind, and waits. It returns the error where that went on for
// too long.
func (p *Pace) refused(ctx context.Context, err error) error {
	p.mu.Lock()
	p.retries++
	tired := p.yield(p.round, true)
	wait := time.Until(p.resume)
	p.wake()
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
	p.dry, p.pause = time.Time{}, 0
}

// waits returns how many documents and requests were sent again, and for how long nothing was sent for that.
func (p *Pace) waits() (retries int, waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retries, p.waited
}

// sleep waits, and returns why ctx ended if it did.
func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return context.Cause(ctx)
	}
	return pause(ctx, nil, wait)
}

// pause waits, or until something has changed.
func pause(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Patch writes documents as the pace allows, and sends again what the engine had no room for. allow, if not nil, says before each
// request how many of n documents may be sent. done is told the results of each request, one for each document of it.
func (p *Pace) Patch(
	ctx context.Context, job Job, list []adapters.Patch, allow func(n int) (int, error), done func([]adapters.Patch, []adapters.Result),
) error {
	for len(list) > 0 {
		ticket, err := p.admit(ctx, len(list))
		if err != nil {
			return err
		}
		n := ticket.documents
		if allow != nil {
			if n, err = allow(n); err != nil {
				p.leave(ticket.documents)
				return err
			}
		}
		sent, rest := list[:n], list[n:]
		results, err := writeOnce(ctx, job, sent)
		if err == nil {
			done(sent, results)
		}
		list = nil
		for i, result := range results {
			if result == adapters.Busy {
				list = append(list, sent[i])
			}
		}
		if tired := p.settle(ticket, len(list)); err == nil {
			err = tired
		}
		if err != nil {
			return err
		}
		list = append(list, rest...)
	}
	return nil
}

// writeOnce writes documents in one request. One that is under way when ctx ends is waited for, unless the part was lost: then nothing more
// is to be written.
func writeOnce(ctx context.Context, job Job, list []adapters.Patch) ([]adapters.Result, error) {
	patching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), errLost) {
			_ = sleep(patching, grace)
		}
		cancel()
	})()
	results, err := job.Store.Patch(patching, job.Index, job.Rule, list)
	switch {
	case errors.Is(err, adapters.ErrBusy) && len(results) == 0:
		return slices.Repeat([]adapters.Result{adapters.Busy}, len(list)), nil
	case err != nil:
		return nil, cmp.Or(context.Cause(ctx), fmt.Errorf("write documents: %w", err))
	case len(results) != len(list):
		return nil, fmt.Errorf("write documents: %d results for %d documents", len(results), len(list))
	}
	return results, nil
}
