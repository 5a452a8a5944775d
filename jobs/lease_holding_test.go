package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// held returns two boards of a job with one part, and the part held by the first.
func held(t *testing.T) (a, b *board, h *holding) {
	t.Helper()
	l := &ledger{}
	a, b = newBoard(l, "j", "a", nil), newBoard(l, "j", "b", nil)
	one := func() (plan, error) { return plan{Parts: []string{""}}, nil }
	for _, board := range []*board{a, b} {
		if err := board.join(t.Context(), true, one); err != nil {
			t.Fatal(err)
		}
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
			if err := h.held(t.Context()); err != nil {
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
			if err := h.held(t.Context()); errors.Is(err, errLost) != taken {
				t.Errorf("taken %v: %v", taken, err)
			}
		})
	}
}

// TestGivenBack has a part that was given back be taken at once, where it stopped, and one that is done by nobody.
func TestGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, h := held(t)
		h.note("17", 5)
		if err := h.release(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		other, err := b.claim(t.Context())
		if err != nil || other.After != "17" || other.Scanned != 5 || time.Since(began) > 0 {
			t.Fatalf("%v %+v after %v", err, other, time.Since(began))
		}
		if err := other.release(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if none, err := b.claim(t.Context()); none != nil || err != nil {
			t.Errorf("%+v %v", none, err)
		}
	})
}

// TestDeadWorker has the part of a worker that is known to have ended be taken at once.
func TestDeadWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, h := held(t)
		b.dead = func(worker string) bool { return worker == h.worker }
		began := time.Now()
		if other, err := b.claim(t.Context()); err != nil || other == nil || time.Since(began) > 0 {
			t.Errorf("%+v %v after %v", other, err, time.Since(began))
		}
	})
}

// echo is a journal over a transport that sends everything twice, and tells of the second time.
type echo struct {
	ledger
	times int
}

func (e *echo) Append(ctx context.Context, job string, entry adapters.Entry) (bool, error) {
	if e.times++; e.times > 100 {
		return false, errors.New("this has no end")
	}
	if _, err := e.ledger.Append(ctx, job, entry); err != nil {
		return false, err
	}
	return e.ledger.Append(ctx, job, entry)
}

// TestEntriesSentTwice has a worker know its own entries, where it is told that they are another's.
func TestEntriesSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &echo{}
		b := newBoard(l, "j", "a", nil)
		if err := b.join(t.Context(), false, func() (plan, error) { return plan{Parts: []string{""}}, nil }); err != nil {
			t.Fatal(err)
		}
		data := []byte(`{"worker":"x"}`)
		if first, err := (&l.ledger).Append(t.Context(), "other", adapters.Entry{Part: 1, Number: 1, Data: data}); !first || err != nil {
			t.Fatal(first, err)
		}
		h := &holding{board: b, part: partOf(1, 0), lease: leaseFor, worker: "a/1", turn: make(chan struct{}, 1)}
		r := record{Worker: "a/1", For: leaseFor}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.append(ctx, r); err != nil {
			t.Error(err)
		}
	})
}

// TestAnswerLost has the answer to an entry be lost, after which a later state is what comes to stand, not that entry.
func TestAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, h := held(t)
		early, err := json.Marshal(record{Worker: h.worker, For: leaseFor})
		if err != nil {
			t.Fatal(err)
		}
		entry := adapters.Entry{Part: h.part, Number: h.number + 1, Data: early}
		if first, err := a.journal.Append(t.Context(), a.job, entry); err != nil || !first {
			t.Fatal(first, err)
		}
		if err := h.release(t.Context(), true); err != nil {
			t.Error(err)
		}
		if r := standsAt(a.journal.(*ledger), h.part); !r.Done {
			t.Errorf("the part stands at %+v", r)
		}
	})
}
