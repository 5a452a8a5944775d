package jobs

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

func TestReindexCounts(t *testing.T) {
	rule := testRule(t)
	other := testRule(t)
	other.Fields = []string{"title", "body"} // a sketch of other fields is not comparable and is made anew
	foreign, _ := other.SketchOf([]byte(`{"title":"one two three"}`))
	m := newMemory(3, documents(5))
	m.put("empty", `{"title":"…"}`)
	m.put("broken", `{"title":`)
	m.put("foreign", `{"title":"one two three","neardup_sketch":"`+foreign.Text+`"}`)
	m.put("garbage", `{"title":"one two three","neardup_sketch":"x"}`)
	m.put("refused", `{"title":"one two three"}`)
	m.refuse["refused"] = true

	var last Progress
	got := expect.Value(Reindex(t.Context(), m.job(rule), Options{}, func(p Progress) { last = p }))(t)
	want := Progress{Total: 10, All: 10, Scanned: 10, Written: 7, Textless: 2, Refused: 1}
	expect.Same(t, want, got.Progress, "the progress")
	expect.Same(t, last, got.Progress, "the last report differs")
	expect.Same(t, []string{"refused"}, m.wrong(rule), "documents with another sketch")
	again := expect.Value(Reindex(t.Context(), m.job(rule), Options{}, nil))(t)
	expect.Same(t, Progress{Total: 10, All: 10, Scanned: 10, Skipped: 7, Textless: 2, Refused: 1}, again.Progress, "the second run")
}

// A document whose text went away must not keep the sketch of it.
func TestReindexClearsStaleSketches(t *testing.T) {
	rule := testRule(t)
	old, _ := rule.SketchOf([]byte(`{"title":"one two three"}`))
	m := newMemory(3, map[string]string{
		"emptied": `{"title":"","neardup_sketch":"` + old.Text + `"}`, "odd": `{"n":1,"neardup_sketch":"x"}`, "cleared": `{"title":"","neardup_sketch":null}`,
	})
	got := expect.Value(Reindex(t.Context(), m.job(rule), Options{}, nil))(t)
	expect.Same(t, Progress{Total: 3, All: 3, Scanned: 3, Written: 2, Textless: 1}, got.Progress, "")
	expect.Same(t, [2]string{`{"title":""}`, `{"n":1}`}, [2]string{m.sources["emptied"], m.sources["odd"]}, "what is stored")
}

func TestReindexDryRunWritesNothing(t *testing.T) {
	m := newMemory(4, documents(10))
	got := expect.Value(Reindex(t.Context(), m.job(testRule(t)), Options{DryRun: true}, nil))(t)
	expect.Same(t, Progress{Total: 10, All: 10, Scanned: 10, Written: 10}, got.Progress, "")
	expect.Same(t, 0, m.writes, "documents that were written")
}

func TestReindexGivesWay(t *testing.T) {
	m, rule := newMemory(10, documents(10)), testRule(t)
	m.onPatch = func(batch int) (int, error) {
		m.put("0003", `{"title":"rewritten while we were away"}`)
		m.remove("0005")
		return batch, nil
	}
	got := expect.Value(Reindex(t.Context(), m.job(rule), Options{}, nil))(t)
	expect.Same(t, Progress{Total: 10, All: 10, Scanned: 10, Written: 8, Changed: 1, Gone: 1}, got.Progress, "")
	expect.Same(t, `{"title":"rewritten while we were away"}`, m.sources["0003"], "a changed document")
}

// TestReindexAfterAnyInterruption breaks runs off in every way there is until one comes through: each document must then have
// the right sketch, and have been written exactly once.
func TestReindexAfterAnyInterruption(t *testing.T) {
	seed := effort.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rule := testRule(t)
	broken := errors.New("the line went dead")
	for range effort.Rounds(80) {
		n := 1 + rnd.IntN(300)
		m := newMemory(1+rnd.IntN(70), documents(n))
		m.put("textless", `{"title":""}`)
		runs, done := 0, false
		for ; !done; runs++ {
			if runs > 2000 {
				t.Fatal("no run ever comes through")
			}
			ctx, cancel := context.WithCancel(t.Context())
			options, trouble := Options{}, rnd.IntN(5)
			m.onPage = func() error {
				if trouble == 1 && rnd.IntN(4) == 0 {
					return broken
				}
				return nil
			}
			m.onPatch = func(batch int) (int, error) {
				switch {
				case trouble == 2 && rnd.IntN(3) == 0: // some are written, and the reply is lost
					return rnd.IntN(batch + 1), broken
				case trouble == 3 && rnd.IntN(3) == 0:
					cancel()
				}
				return batch, nil
			}
			if trouble == 4 {
				options.MaxDocs = 1 + rnd.IntN(20)
			}
			before := m.writes
			got, err := Reindex(ctx, m.job(rule), options, nil)
			cancel()
			if err != nil && !errors.Is(err, broken) && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if !errors.Is(err, broken) && got.Written != m.writes-before {
				t.Fatalf("counted %d of %d writes", got.Written, m.writes-before)
			}
			done = err == nil && !got.Cut
		}
		if wrong := m.wrong(rule); len(wrong) > 0 {
			t.Fatalf("wrong after %d runs: %v", runs, wrong)
		}
		expect.Must(t, n, m.writes, "writes in %d runs", runs)
	}
}

// TestReindexKeepsTheRate has all slices together keep the rate.
func TestReindexKeepsTheRate(t *testing.T) {
	for _, c := range []struct {
		perSecond               float64
		documents, page, slices int
	}{{0.5, 4, 1000, 1}, {7, 50, 1000, 1}, {100, 1000, 1000, 1}, {3000, 9000, 1000, 1}, {30, 900, 50, 4}} {
		synctest.Test(t, func(t *testing.T) {
			m, start := newMemory(c.page, documents(c.documents)), time.Now()
			job := m.job(testRule(t))
			if c.slices > 1 {
				m.split = m.ranges
			}
			report := func(p Progress) {
				// A batch's worth may be written at once, one batch after the time that it took.
				if allowed := c.perSecond * time.Since(start).Seconds(); float64(p.Written) > allowed+0.01 {
					t.Errorf("%v/s: %d written after %v", c.perSecond, p.Written, time.Since(start))
				}
			}
			got, err := Reindex(t.Context(), job, Options{Slices: c.slices, Pace: NewPace(c.perSecond)}, report)
			if err != nil || got.Written != c.documents {
				t.Fatalf("%v: %+v", err, got)
			}
			took, want := time.Since(start).Seconds(), float64(c.documents)/c.perSecond
			if took > want*1.03+0.01 {
				t.Errorf("%v/s: %d documents took %.1f s, want %.1f", c.perSecond, c.documents, took, want)
			}
		})
	}
}

// TestReindexWaitsForTheBatchUnderWay cancels during a write: the batch ends and is counted; one that never ends is given up.
func TestReindexWaitsForTheBatchUnderWay(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		ends  bool
	}{{"soon", time.Second, true}, {"never", time.Hour, false}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			m := newMemory(30, documents(60))
			slow := &slowStore{memory: m, takes: c.takes, started: cancel}
			start := time.Now()
			got, err := Reindex(ctx, Job{Store: slow, Index: "news", Rule: testRule(t)}, Options{}, nil)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error: %v", c.name, err)
			}
			want := 0
			if c.ends {
				want = slow.begun
			}
			if slow.begun == 0 || got.Written != want || m.writes != want {
				t.Errorf("%s: counted %d, wrote %d, want %d of %d", c.name, got.Written, m.writes, want, slow.begun)
			}
			if took := time.Since(start); took > grace {
				t.Errorf("%s: took %v", c.name, took)
			}
		})
	}
}

// slowStore takes its time over a batch, and calls started when it begins. begun counts the documents of all batches that began:
// the first batch holds one page or two, depending on which goroutine runs first.
type slowStore struct {
	*memory
	takes   time.Duration
	started func()
	begun   int
}

func (s *slowStore) Patch(ctx context.Context, index string, rule *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	s.mu.Lock()
	s.begun += len(patches)
	s.mu.Unlock()
	s.started()
	select {
	case <-time.After(s.takes):
		return s.memory.Patch(ctx, index, rule, patches)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
