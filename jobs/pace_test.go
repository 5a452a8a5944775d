package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
)

// TestBusyEngine has an engine with room for so many documents at a time, and none for a while, under several slices: each
// document is written in the end, and no more is sent than is needed to find out how much room there is.
func TestBusyEngine(t *testing.T) {
	seeds(t, 40, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		m, rule := newMemory(1+rnd.IntN(400), documents(500+rnd.IntN(3000))), testRule(t)
		n, room, start := len(m.sources), 1+rnd.IntN(600), time.Now()
		from, to := time.Duration(rnd.IntN(5))*time.Second, time.Duration(rnd.IntN(60))*time.Second
		sent := 0
		m.room = func(batch int) int {
			sent += batch
			if at := time.Since(start); at >= from && at < to {
				return 0
			}
			return room
		}
		slow := &slowStore{memory: m, takes: 100 * time.Millisecond, started: func() {}}
		m.split = m.ranges
		job := Job{Store: slow, Index: "news", Rule: rule}
		slices := 1 + rnd.IntN(4)
		got, err := Reindex(t.Context(), job, Options{Slices: slices}, nil)
		if err != nil || got.Written != n || got.Refused != 0 || got.Changed != 0 || len(m.wrong(rule)) > 0 || m.writes != n {
			fail("%d documents, room for %d: %v %+v, %d writes", n, room, err, got, m.writes)
		}
		if sent-got.Retries != n || got.Retries > 0 != (got.Waited > 0) {
			fail("%d sent, %d again, %v waited, %d documents", sent, got.Retries, got.Waited, n)
		}
		// Where there is room for far fewer than a step, each request that is taken is followed by one with a step too many.
		if sent > 4*n+20000+n/room*maxBatch*slices/steps {
			fail("%d sent for %d documents with room for %d", sent, n, room)
		}
	})
}

// TestEngineWithoutRoom ends when the engine has had no room for anything for long, with an error.
func TestEngineWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, start := newMemory(100, documents(300)), time.Now()
		m.room = func(int) int { return 0 }
		got, err := Reindex(t.Context(), m.job(testRule(t)), Options{}, nil)
		if took := time.Since(start); err == nil || took < patience || took > patience+2*lastPause || got.Written+got.Refused != 0 {
			t.Errorf("after %v: %v %+v", took, err, got)
		}
	})
}

// TestBusyScan breaks reading off with a busy engine again and again: it goes on behind what was written.
func TestBusyScan(t *testing.T) {
	seeds(t, 40, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		m, rule := newMemory(20, documents(400+rnd.IntN(400))), testRule(t)
		var mu sync.Mutex
		m.onPage = func() error {
			mu.Lock()
			defer mu.Unlock()
			if rnd.IntN(8) == 0 {
				return fmt.Errorf("no room: %w", adapters.ErrBusy)
			}
			return nil
		}
		m.split = m.ranges
		got, err := Reindex(t.Context(), m.job(rule), Options{Slices: 2}, nil)
		if n := len(m.sources); err != nil || got.Written != n || got.Changed != 0 || m.writes != n || got.Scanned > n+n/4 {
			fail("%d documents: %v %+v", n, err, got)
		}
	})
}

// closed is a journal that these credentials may not write.
type closed struct{ Ledger }

var errForbidden = errors.New("the engine answered 403")

func (c *closed) Append(context.Context, string, adapters.Entry) (bool, error) {
	return false, errForbidden
}

// TestWithoutJournal runs without a checkpoint where none can be kept, and says so; a resume has nothing to go on from.
func TestWithoutJournal(t *testing.T) {
	m, rule := newMemory(10, documents(30)), testRule(t)
	job := m.job(rule)
	m.journal = &closed{}
	if got, err := Reindex(t.Context(), job, Options{Resume: true}, nil); !errors.Is(err, errForbidden) || m.writes > 0 {
		t.Errorf("%v %+v", err, got)
	}
	got, err := Reindex(t.Context(), job, Options{}, nil)
	if err != nil || got.Written != 30 || !strings.Contains(got.Unkept, errForbidden.Error()) {
		t.Errorf("%v %+v", err, got)
	}
}

// TestWatch fills what is cleared and written past the sidecar, with an engine that goes on behind a page and with one that
// can't, however few documents a run may write. A second watcher takes over from one that is killed, and a run that begins anew is not in their way.
func TestWatch(t *testing.T) {
	seeds(t, 20, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		c := newCrowd(t, rnd, fail)
		c.pageSize += 20
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		sites := make([]*site, 2)
		for i := range sites {
			s := &site{
				name: fmt.Sprint("w", i), memory: c.memory, ledger: &c.ledger, rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), killed: make(chan struct{}), fail: fail,
			}
			sites[i] = s
			job := Job{Store: s, Index: "news", Rule: c.rule}
			all.Go(func() {
				if _, err := Watch(ctx, job, Options{Worker: s.name, MaxDocs: 1}, 30*time.Second, nil); err != nil && !errors.Is(err, errKilled) {
					fail("%s: %v", s.name, err)
				}
			})
		}
		for round := range 6 {
			time.Sleep(5 * time.Minute)
			if wrong := c.wrong(c.rule); len(wrong) > 0 {
				fail("round %d: %v", round, wrong)
			}
			for range 20 {
				id := fmt.Sprintf("%04d", rnd.IntN(900))
				c.put(id, fmt.Sprintf(`{"title":"cleared in round %d, as %d","neardup_sketch":null}`, round, rnd.IntN(1000)))
			}
			switch round {
			case 2:
				close(sites[rnd.IntN(2)].killed)
			case 4:
				c.worker(t, &all, false, 0, nil)
			}
		}
		time.Sleep(5 * time.Minute)
		if wrong := c.wrong(c.rule); len(wrong) > 0 || len(c.twice()) > 0 {
			fail("in the end: %v, twice %v", wrong, c.twice())
		}
		cancel()
		all.Wait()
	})
}

// TestMaxDocsOfSlices has all slices together send as many as they may, and no more.
func TestMaxDocsOfSlices(t *testing.T) {
	seeds(t, 40, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		m, rule := newMemory(1+rnd.IntN(40), documents(300)), testRule(t)
		job, left := m.job(rule), 300
		m.split, m.journal = m.ranges, &Ledger{}
		for left > 0 {
			most := 1 + rnd.IntN(120)
			got, err := Reindex(t.Context(), job, Options{Slices: 1 + rnd.IntN(4), MaxDocs: most, Resume: rnd.IntN(2) == 0}, nil)
			if err != nil || got.Written != min(most, left) || got.Cut != (most < left) {
				fail("%d left, %d allowed: %v %+v", left, most, err, got)
				return
			}
			left -= got.Written
		}
		if m.writes != 300 || len(m.wrong(rule)) > 0 {
			fail("%d writes", m.writes)
		}
	})
}

// TestSeldomBusy has an engine without room for a read once in a while, over longer than it may have none at all, where there is
// nothing to write: each time is a new one.
func TestSeldomBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, last := newMemory(10, documents(30)), time.Now()
		m.onPage = func() error {
			if time.Since(last) > patience/2 {
				last = time.Now()
				return fmt.Errorf("no room: %w", adapters.ErrBusy)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
		defer cancel()
		got, err := Watch(ctx, m.job(testRule(t)), Options{}, time.Minute, nil)
		if err != nil || got.Retries < 10 {
			t.Errorf("%v %+v", err, got)
		}
	})
}

// TestRate has a run keep its rate within a twentieth over a minute, with any number of slices and any time that the engine takes.
func TestRate(t *testing.T) {
	seeds(t, 20, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		rate, slices := 20+rnd.IntN(80), 1+rnd.IntN(4)
		m := newMemory(1+rnd.IntN(200), documents(60*rate))
		m.split = m.ranges
		slow := &slowStore{memory: m, takes: time.Duration(rnd.IntN(100)) * time.Millisecond, started: func() {}}
		start := time.Now()
		got, err := Reindex(t.Context(), Job{Store: slow, Index: "news", Rule: testRule(t)}, Options{Slices: slices, Pace: NewPace(float64(rate))}, nil)
		took := time.Since(start).Seconds()
		if err != nil || got.Written != 60*rate || took < 60*.95 || took > 60*1.05 {
			fail("%d slices, %d a second: %d documents in %.1f s: %v", slices, rate, got.Written, took, err)
		}
	})
}
