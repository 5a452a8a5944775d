package typesense

import (
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
)

// TestRealJournal: of many who append under one number exactly one does, and what it appended stands there.
func TestRealJournal(t *testing.T) {
	b := newBench(t, articles, "body")
	j, ctx := JournalOf(b.store()), t.Context()
	job, other := fmt.Sprintf("test %d / a*`b` && x:=[1]", os.Getpid()), fmt.Sprintf("test %d / a*`b` && x:=[2]", os.Getpid())
	for _, name := range []string{job, other} {
		t.Cleanup(func() { _ = JournalOf(b.store()).Drop(b.t.Context(), name, -1, 0) })
		if err := j.Drop(ctx, name, -1, 0); err != nil {
			t.Fatal(err)
		}
	}
	var want []adapters.Entry
	for part := range 3 {
		for number := range 5 {
			var winner atomic.Int64
			winner.Store(-1)
			var all sync.WaitGroup
			for worker := range 12 {
				all.Go(func() {
					e := adapters.Entry{Part: part, Number: number, Data: fmt.Appendf(nil, "worker %d \x00\xff", worker)}
					won, err := j.Append(ctx, job, e)
					if err != nil {
						t.Error(err)
					}
					if won && !winner.CompareAndSwap(-1, int64(worker)) {
						t.Errorf("part %d, number %d: two appended", part, number)
					}
				})
			}
			all.Wait()
			data := fmt.Appendf(nil, "worker %d \x00\xff", winner.Load())
			want = append(want, adapters.Entry{Job: job, Part: part, Number: number, Data: data})
			if got, err := j.Entries(ctx, job); err != nil || cmp.Diff(want, got) != "" {
				t.Fatalf("%v %s", err, cmp.Diff(want, got))
			}
		}
	}
	if won, err := j.Append(ctx, other, adapters.Entry{Part: 1 << 30, Number: math.MaxInt32}); !won || err != nil {
		t.Error(won, err)
	}
	if err := j.Drop(ctx, job, 1, 3); err != nil {
		t.Fatal(err)
	}
	want = append(want[:5:5], want[8:]...)
	if got, err := j.Entries(ctx, job); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	if err := j.Drop(ctx, job, -1, 0); err != nil {
		t.Fatal(err)
	}
	left, err := j.Entries(ctx, job)
	if all, err2 := j.Entries(ctx, ""); err != nil || err2 != nil || len(left) > 0 || len(all) == 0 {
		t.Errorf("%v %v, %d entries left, of %d", err, err2, len(left), len(all))
	}
	if got, err := j.Entries(ctx, other); err != nil || len(got) != 1 || got[0].Number != math.MaxInt32 {
		t.Errorf("%v %+v", err, got)
	}
}
