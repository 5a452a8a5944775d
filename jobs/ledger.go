package jobs

import (
	"context"
	"slices"
	"sync"

	"github.com/neardup/sidecar/adapters"
)

// Ledger is a journal in memory, for a run that is to leave nothing in the engine.
type Ledger struct {
	mu      sync.Mutex
	entries []adapters.Entry // in their order
}

var _ adapters.Journal = (*Ledger)(nil)

// Append implements adapters.Journal.
func (l *Ledger) Append(_ context.Context, job string, e adapters.Entry) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Job = job
	at, there := slices.BinarySearchFunc(l.entries, e, adapters.Entry.Compare)
	if !there {
		l.entries = slices.Insert(l.entries, at, e)
	}
	return !there, nil
}

// Entries implements adapters.Journal.
func (l *Ledger) Entries(_ context.Context, job string) ([]adapters.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.entries), func(e adapters.Entry) bool { return job != "" && e.Job != job }), nil
}

// Since implements adapters.Journal.
func (l *Ledger) Since(ctx context.Context, job string, slot, number int) ([]adapters.Entry, error) {
	list, err := l.Entries(ctx, job)
	return slices.DeleteFunc(list, func(e adapters.Entry) bool { return e.Slot != slot || e.Number < number }), err
}

// Drop implements adapters.Journal.
func (l *Ledger) Drop(_ context.Context, job string, slot, below int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(e adapters.Entry) bool {
		return e.Job == job && (slot < 0 || e.Slot == slot && e.Number < below)
	})
	return nil
}
