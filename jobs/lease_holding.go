package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// holding is a part that this worker holds.
type holding struct {
	board  *board
	part   int
	lease  time.Duration
	worker string
	turn   chan struct{} // holds the one who appends
	number int           // of the newest entry of ours, for who has the turn
	over   bool          // the last entry is there, likewise

	mu   sync.Mutex
	ends time.Time
	record
}

// position returns where a scan of the part goes on, or begins anew.
func (h *holding) position() (part, after string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.After == "" {
		h.Scanned = 0
	}
	return h.Part, h.After
}

// advance remembers, for the next entry, how far the part is done.
func (h *holding) advance(after string, scanned int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after != "" {
		h.After = after
	}
	h.Scanned += scanned
}

// renew appends an entry that holds the part for a further while. With errLost it is another's, or may be.
func (h *holding) renew(ctx context.Context) error {
	began := time.Now()
	ends := began.Add(h.lease)
	return h.appendEntry(ctx, ends, func(r *record) { r.Until, r.For = ends.Round(0), h.lease })
}

// release appends the last entry: that the part is done, or free.
func (h *holding) release(ctx context.Context, done bool) error {
	err := h.appendEntry(ctx, time.Time{}, func(r *record) { r.Until, r.For, r.Done = time.Time{}, 0, done })
	b := h.board
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
	return err
}

// appendEntry appends an entry of what is known now, changed in some way, behind the newest of ours, and removes those before. The part is ours
// until ends if it comes through.
func (h *holding) appendEntry(ctx context.Context, ends time.Time, change func(*record)) error {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	if h.over {
		return nil
	}
	h.mu.Lock()
	r := h.record
	h.mu.Unlock()
	change(&r)
	r.Worker = h.worker
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b := h.board
	for appended := false; !appended; {
		entry := adapters.Entry{Job: b.job, Part: h.part, Number: h.number + 1, Data: data}
		first, err := b.journal.Append(ctx, b.job, entry)
		if err != nil {
			return &journalError{err}
		}
		// Nobody else can have the number now. But one that was removed could be had again, by who looked before it was there: so
		// what counts is that it is the newest.
		s, err := b.newest(ctx)
		if err != nil {
			return err
		}
		newest := s.at[h.part]
		if newest.Worker != h.worker || newest.number <= h.number {
			return errLost
		}
		// An entry that a transport sent twice is ours. Another one is ours too, of a request whose answer was lost: append behind it.
		appended = newest.number == h.number+1 && (first || bytes.Equal(newest.data, data))
		h.number = newest.number
	}
	_ = b.journal.Drop(ctx, b.job, h.part, h.number) // else the next one does it
	h.over = ends.IsZero()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = ends
	return nil
}

// ensure renews the lease unless the part is ours for certain, and fails if it is not.
func (h *holding) ensure(ctx context.Context) error {
	h.mu.Lock()
	ends := h.ends
	h.mu.Unlock()
	// Both clocks: one of them may have stood still with the machine.
	if now := time.Now(); now.Before(ends) && now.Round(0).Before(ends.Round(0)) {
		return context.Cause(ctx)
	}
	return h.renew(ctx)
}

// keep renews the lease until ctx ends, and calls lose if it is lost.
func (h *holding) keep(ctx context.Context, lose func(error)) {
	every := h.lease / beats
	for sleep(ctx, every) == nil {
		trying, cancel := context.WithTimeout(ctx, h.lease/2)
		err := h.renew(trying)
		cancel()
		h.mu.Lock()
		late := !h.ends.IsZero() && !time.Now().Before(h.ends)
		h.mu.Unlock()
		if ctx.Err() == nil && (errors.Is(err, errLost) || late) {
			lose(errLost)
			return
		}
	}
}
