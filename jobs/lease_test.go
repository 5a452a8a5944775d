package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/rule"
)

var errKilled = errors.New("killed")

// site is one worker's way to the engine. It can be cut at any moment, as kill -9 does: what was sent may have come through,
// and no answer comes back.
type site struct {
	adapters.JobStore
	name    string
	memory  *memory
	ledger  *Ledger
	rnd     *rand.Rand
	clock   time.Duration // by how much the worker's clock is ahead
	trouble float64       // share of the journal's answers that are lost
	// The journal can't be reached from jamFrom until jamUntil.
	mu                sync.Mutex
	jamFrom, jamUntil time.Time
	killed            chan struct{}
	trust             bool // that only holders write
	fail              func(format string, args ...any)
}

func (s *site) chance(share float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Float64() < share
}

// way waits for as long as a request takes, and fails once the worker was killed.
func (s *site) way(ctx context.Context) error {
	s.mu.Lock()
	took := time.Duration(s.rnd.Int64N(int64(200 * time.Millisecond)))
	s.mu.Unlock()
	select {
	case <-time.After(took):
	case <-s.killed:
	case <-ctx.Done():
	}
	select {
	case <-s.killed:
		return errKilled
	default:
		return ctx.Err()
	}
}

func (s *site) Scan(
	ctx context.Context, index string, rule *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error,
) error {
	return s.memory.Scan(ctx, index, rule, sel, func(p adapters.Page) error {
		if err := s.way(ctx); err != nil {
			return err
		}
		return yield(p)
	})
}

func (s *site) Split(ctx context.Context, index, query string, n int) ([]string, int, error) {
	return s.memory.Split(ctx, index, query, n)
}

func (s *site) Identity(context.Context, string) (string, error) { return "", nil }

func (s *site) Journal() adapters.Journal { return s }

func (s *site) Release(context.Context, string) {}

func (s *site) Patch(ctx context.Context, index string, rule *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	if s.trust {
		s.holds(patches)
	}
	if err := s.way(ctx); err != nil && !s.chance(0.5) { // else it arrives all the same
		return nil, err
	}
	results, err := s.memory.Patch(context.WithoutCancel(ctx), index, rule, patches)
	if late := s.way(ctx); late != nil {
		return nil, late
	}
	return results, err
}

// holds fails the test where another worker has taken the part over that the patches are of.
func (s *site) holds(patches []adapters.Stored) {
	entries, _ := s.ledger.Entries(context.Background(), "")
	newest := map[int]record{}
	for _, e := range entries {
		if e.Slot > 0 {
			var r record
			_ = json.Unmarshal(e.Data, &r)
			newest[e.Slot] = r
		}
	}
	for _, p := range patches {
		held, others := false, ""
		for _, r := range newest {
			if within(r.Part, p.ID, p.Version.(int)) {
				held = held || strings.HasPrefix(r.Holder, s.name+"/")
				others += r.Holder + " "
			}
		}
		if !held {
			s.fail("%s writes %s, which is held by %s", s.name, p.ID, others)
			return
		}
	}
}

// reach is the way to the journal, which may be jammed.
func (s *site) reach(ctx context.Context) error {
	s.mu.Lock()
	begun, wait := !time.Now().Before(s.jamFrom), time.Until(s.jamUntil)
	s.mu.Unlock()
	if begun && wait > 0 {
		select {
		case <-time.After(wait):
		case <-s.killed:
		case <-ctx.Done():
		}
	}
	return s.way(ctx)
}

func (s *site) Append(ctx context.Context, job string, e adapters.Entry) (bool, error) {
	if err := s.reach(ctx); err != nil {
		return false, err
	}
	var r record
	if json.Unmarshal(e.Data, &r) == nil && e.Slot > 0 && r.For > 0 {
		r.Until = r.Until.Add(s.clock)
		e.Data, _ = json.Marshal(r)
	}
	appended, err := s.ledger.Append(ctx, job, e)
	if s.chance(s.trouble) {
		return s.ledger.Append(ctx, job, e) // sent twice, by a transport that tries again
	}
	if s.chance(s.trouble) {
		return false, fmt.Errorf("%w: the answer was lost", adapters.ErrBusy)
	}
	if err := s.way(ctx); err != nil {
		return false, err
	}
	return appended, err
}

func (s *site) Entries(ctx context.Context, job string) ([]adapters.Entry, error) {
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	return s.ledger.Entries(ctx, job)
}

func (s *site) Since(context.Context, string, int, int) ([]adapters.Entry, error) {
	panic("no job asks")
}

func (s *site) Drop(ctx context.Context, job string, slot, below int) error {
	if err := s.reach(ctx); err != nil || s.chance(s.trouble) {
		return err
	}
	return s.ledger.Drop(ctx, job, slot, below)
}

// crowd is an engine with a job that many workers share.
type crowd struct {
	*memory
	ledger Ledger
	rule   *rule.Rule
	rnd    *rand.Rand
	fail   func(format string, args ...any)
	n      int
	total  Report
	mu     sync.Mutex
}

func newCrowd(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) *crowd {
	c := &crowd{memory: newMemory(1+rnd.IntN(40), documents(200+rnd.IntN(600))), rule: testRule(t), rnd: rnd, fail: fail}
	c.split = func(_ context.Context, n int) ([]string, error) { return c.ranges(t.Context(), n*(1+n%3)) }
	if rnd.IntN(3) == 0 {
		c.split = shares
	}
	return c
}

// worker starts a worker of the crowd, which is killed after a while if that is above 0. With resume it goes on where others
// were.
func (c *crowd) worker(t *testing.T, all *sync.WaitGroup, resume bool, dies time.Duration, change func(*site)) {
	c.n++
	s := &site{
		name: fmt.Sprintf("w%d", c.n), memory: c.memory, ledger: &c.ledger, rnd: rand.New(rand.NewPCG(c.rnd.Uint64(), 0)),
		killed: make(chan struct{}), fail: c.fail,
	}
	if change != nil {
		change(s)
	}
	slices := 1 + c.rnd.IntN(4)
	all.Go(func() {
		if dies > 0 {
			timer := time.AfterFunc(dies, func() { close(s.killed) })
			defer timer.Stop()
		}
		job := Job{Store: s, Index: "news", Rule: c.rule}
		got, err := Reindex(t.Context(), job, Options{Slices: slices, Worker: s.name, Resume: resume}, nil)
		if err != nil && !errors.Is(err, errKilled) {
			c.fail("%s: %v", s.name, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.total.Progress = c.total.Add(got.Progress)
		c.total.Taken += got.Taken
		c.total.Lost += got.Lost
		c.total.PartsDone += got.PartsDone
		c.total.Parts = got.Parts
	})
}

// seeds runs a test of a crowd [effort.Rounds] times of n, each in a time of its own.
func seeds(t *testing.T, n int, test func(t *testing.T, rnd *rand.Rand, fail func(string, ...any))) {
	t.Helper()
	first := rand.Uint64()
	for i := range effort.Rounds(n) {
		seed := first + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			test(t, rand.New(rand.NewPCG(seed, 0)), func(format string, args ...any) {
				t.Errorf("seed %d: %s", seed, fmt.Sprintf(format, args...))
			})
		})
		if t.Failed() {
			return
		}
	}
}

// TestWorkersShareAJob has several workers begin at once: each part is done once, and no document read for nothing.
func TestWorkersShareAJob(t *testing.T) {
	seeds(t, 50, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		c := newCrowd(t, rnd, fail)
		var all sync.WaitGroup
		for range 1 + rnd.IntN(6) {
			c.worker(t, &all, false, 0, func(s *site) { s.trust = true })
		}
		all.Wait()
		n := len(c.sources)
		if wrong := c.wrong(c.rule); len(wrong) > 0 || len(c.twice()) > 0 || c.writes != n {
			fail("wrong %v, twice %v, %d writes for %d documents", wrong, c.twice(), c.writes, n)
		}
		if c.total.Written != n || c.total.Changed != 0 || c.total.PartsDone != c.total.Parts || c.total.Taken+c.total.Lost != 0 {
			fail("%d documents: %+v", n, c.total)
		}
	})
}

// TestWorkersDie kills workers at random, jams their ways to the journal, loses answers, and has live writers at work. In the
// end, when a last worker was left in peace, each document is right, and none was written twice in one state. Nobody writes what
// another has taken over.
func TestWorkersDie(t *testing.T) {
	taken, lost, changed := 0, 0, 0
	whole := !testing.Short() // fewer rounds may see too little
	for tries := 0; tries < 100 && !t.Failed() && (tries == 0 || whole && taken*lost*changed == 0); tries++ {
		seeds(t, 50, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
			c := newCrowd(t, rnd, fail)
			var all, writers sync.WaitGroup
			live, stop := context.WithCancel(t.Context())
			writing := rand.New(rand.NewPCG(rnd.Uint64(), 1))
			writers.Go(func() { c.live(live, writing) })
			begun := rnd.IntN(2) == 0 // all workers start with --resume, or none
			for range 2 + rnd.IntN(8) {
				dies := time.Duration(1 + rnd.Int64N(int64(40*time.Second)))
				c.worker(t, &all, begun, dies, func(s *site) {
					s.trust, s.trouble = true, 0.1
					// Within what clocks may differ by: else a run at work may be taken for one that was broken off.
					s.clock = time.Duration(rnd.IntN(40)-20) * time.Second
					if rnd.IntN(2) == 0 {
						s.jamFrom = time.Now().Add(time.Duration(rnd.Int64N(int64(4 * time.Second)))) // it may hold something by then
						s.jamUntil = s.jamFrom.Add(time.Duration(rnd.Int64N(int64(30 * time.Second))))
					}
				})
				time.Sleep(time.Duration(rnd.Int64N(int64(8 * time.Second))))
			}
			c.worker(t, &all, true, 0, nil)
			all.Wait()
			stop()
			writers.Wait()
			if wrong := c.wrong(c.rule); len(wrong) > 0 || len(c.twice()) > 0 {
				fail("wrong %v, twice %v", wrong, c.twice())
			}
			taken, lost, changed = taken+c.total.Taken, lost+c.total.Lost, changed+c.total.Changed
		})
	}
	if whole && (taken == 0 || lost == 0 || changed == 0) {
		t.Errorf("too little happened: %d leases taken over, %d lost, %d documents changed meanwhile", taken, lost, changed)
	}
}

// live writes documents with their sketches, as through the sidecar, until ctx ends.
func (c *crowd) live(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil {
		id := fmt.Sprintf("%04d", rnd.IntN(1000))
		source := fmt.Sprintf(`{"title":"the ferry of %d was early for once in %d"}`, rnd.IntN(9), rnd.IntN(99))
		computed, _ := c.rule.SketchOf([]byte(source))
		whole, err := rule.WithOurs([]byte(source), rule.Ours{Sketch: computed.Text})
		if err != nil {
			c.fail("%v", err)
		}
		if rnd.IntN(10) == 0 {
			c.remove(id)
		} else {
			c.put(id, string(whole))
		}
		_ = sleep(ctx, time.Duration(rnd.Int64N(int64(300*time.Millisecond))))
	}
}

// TestClocksApart has workers whose clocks are hours apart.
func TestClocksApart(t *testing.T) {
	seeds(t, 50, func(t *testing.T, rnd *rand.Rand, fail func(string, ...any)) {
		c := newCrowd(t, rnd, fail)
		var all sync.WaitGroup
		for i := range 2 + rnd.IntN(4) {
			c.worker(t, &all, true, 0, func(s *site) { s.trust, s.clock = true, time.Duration(i-2)*time.Hour })
		}
		all.Wait()
		if wrong := c.wrong(c.rule); len(wrong) > 0 || len(c.twice()) > 0 || c.writes != len(c.sources) || c.total.Changed > 0 {
			fail("wrong %v, twice %v, %d writes for %d documents, %+v", wrong, c.twice(), c.writes, len(c.sources), c.total)
		}
	})
}

func TestNamesOfJobs(t *testing.T) {
	rule, other := testRule(t), testRule(t)
	other.Bands, other.Rows = 20, 4
	name := jobName(Job{Index: "a:b", Rule: rule}, "")
	if name == jobName(Job{Index: "a:b", Rule: other}, "") || name == jobName(Job{Index: "a:b", Rule: rule}, "{}") {
		t.Error("jobs that do something else have the same name")
	}
	if name != jobName(Job{Index: "a:b", Rule: testRule(t)}, "") || IndexOf(name) != "a:b" {
		t.Errorf("the same job has another name, or the index of %s is %s", name, IndexOf(name))
	}
}
