package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// held returns two boards of a job with one part, and the part held by the first.
func held(t *testing.T) (a, b *board, h *holding) {
	t.Helper()
	l := &ledger{}
	a, b = newBoard(l, "j", "a"), newBoard(l, "j", "b")
	one := func() (plan, error) { return plan{Parts: []string{""}}, nil }
	for _, board := range []*board{a, b} {
		expect.OK(t, board.join(t.Context(), true, one))
	}
	h, err := a.claim(t.Context())
	if err != nil || h == nil {
		t.Fatal(h, err)
	}
	return a, b, h
}

// TestStoppedProcess is a worker that stood still for longer than its lease: it writes no more if another holds the part, and goes on
// if none does.
func TestStoppedProcess(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, b, h := held(t)
			if err := h.ensure(t.Context()); err != nil {
				t.Error(err)
			}
			if taken {
				began := time.Now()
				if other, err := b.claim(t.Context()); err != nil || other == nil {
					t.Fatal(other, err)
				}
				if took := time.Since(began); took < leaseFor || took > leaseFor+leaseFor/beats {
					t.Errorf("the part was taken over after %v", took)
				}
			} else {
				time.Sleep(2 * leaseFor)
			}
			if err := h.ensure(t.Context()); errors.Is(err, errLost) != taken {
				t.Errorf("taken %v: %v", taken, err)
			}
		})
	}
}

// TestLeaseThatCantBeRenewed is given up by the time it ends, since another may hold the part from then on.
func TestLeaseThatCantBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, h := held(t)
		expect.OK(t, h.renew(t.Context()))
		a.journal = &closed{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*leaseFor)
		defer cancel()
		began, lost := time.Now(), false
		h.keep(ctx, func(error) { lost = true })
		if took := time.Since(began); !lost || took > leaseFor {
			t.Errorf("lost %v after %v", lost, took)
		}
	})
}

// TestGivenBack has a part that was given back be taken at once, where it stopped, and one that is done by nobody.
func TestGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, h := held(t)
		h.advance("17", 5)
		expect.OK(t, h.release(t.Context(), false))
		began := time.Now()
		other, err := b.claim(t.Context())
		if err != nil || other.After != "17" || other.Scanned != 5 || time.Since(began) > 0 {
			t.Fatalf("%v %+v after %v", err, other, time.Since(began))
		}
		expect.OK(t, other.release(t.Context(), true))
		if none, err := b.claim(t.Context()); none != nil || err != nil {
			t.Errorf("%+v %v", none, err)
		}
	})
}
