package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// heldPart returns two boards of a job with one part, and the part held by the first.
func heldPart(t *testing.T) (a, b *board, l *lease) {
	t.Helper()
	journal := &Ledger{}
	a, b = newBoard(journal, NewPace(0), "j", "a"), newBoard(journal, NewPace(0), "j", "b")
	one := func() ([]string, int, error) { return []string{""}, 0, nil }
	for _, board := range []*board{a, b} {
		expect.Value(board.joinPlan(t.Context(), "", true, one))(t)
	}
	l, _, err := a.take(t.Context(), false)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	return a, b, l
}

// TestStoppedProcess is a worker that stood still for longer than its lease: it writes no more until it has claimed the part again, which it
// gets unless another holds it. Whoever waits for the part is to try again when the lease ends, not later.
func TestStoppedProcess(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, b, l := heldPart(t)
			expect.OK(t, l.certain(t.Context()))
			other, wait, err := b.take(t.Context(), false)
			if other != nil || wait == 0 || err != nil {
				t.Fatal(other, wait, err)
			}
			time.Sleep(leaseFor - time.Second)
			if _, wait, err = b.take(t.Context(), false); wait != time.Second || err != nil {
				t.Errorf("a second before the lease ends the wait is %v, %v", wait, err)
			}
			time.Sleep(time.Second)
			if taken {
				if other, _, err = b.take(t.Context(), false); err != nil || other == nil {
					t.Fatal(other, err)
				}
			}
			if err := l.certain(t.Context()); !errors.Is(err, errLost) {
				t.Errorf("taken %v: %v", taken, err)
			}
			if l, _, err = a.take(t.Context(), false); err != nil || (l == nil) != taken {
				t.Errorf("taken %v: claimed %v, %v", taken, l, err)
			}
		})
	}
}

// TestLeaseThatCantBeRenewed is given up by the time it ends, since another may hold the part from then on.
func TestLeaseThatCantBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, l := heldPart(t)
		expect.OK(t, l.renew(t.Context()))
		a.journal = &closed{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*leaseFor)
		defer cancel()
		began, lost := time.Now(), error(nil)
		l.keep(ctx, func(err error) { lost = err })
		if took := time.Since(began); !errors.Is(lost, errLost) || took > leaseFor {
			t.Errorf("lost %v after %v", lost, took)
		}
	})
}

// cutOff is a journal whose reply to the next append never comes, because ctx is cancelled meanwhile.
type cutOff struct {
	*Ledger
	cancel context.CancelFunc
}

func (c *cutOff) Append(ctx context.Context, job string, e adapters.Entry) (bool, error) {
	if c.cancel == nil {
		return c.Ledger.Append(ctx, job, e)
	}
	_, _ = c.Ledger.Append(ctx, job, e)
	c.cancel()
	c.cancel = nil
	return false, ctx.Err()
}

// TestCancelledWhileClaiming is a worker that ends just as it claims a part: the part is free at once for others.
func TestCancelledWhileClaiming(t *testing.T) {
	a, b, l := heldPart(t)
	l.giveBack(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	a.journal = &cutOff{a.journal.(*Ledger), cancel}
	if l, _, err := a.take(ctx, false); l != nil || !errors.Is(err, context.Canceled) {
		t.Fatal(l, err)
	}
	if l, _, err := b.take(t.Context(), false); l == nil || err != nil {
		t.Errorf("after a claim that was cancelled the part is held: %v", err)
	}
}
