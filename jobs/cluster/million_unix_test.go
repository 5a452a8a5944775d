//go:build unix

package cluster

import (
	"fmt"
	"hash/fnv"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/sketch"
)

// worked is how much processor time the process has taken.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestMillion clusters a million sketches: in 10 seconds on two cores, counted as processor time so that other work on the
// machine makes no difference, and in less than 1 GB; and in a tenth of the memory to the same end.
func TestMillion(t *testing.T) {
	if os.Getenv("NEARDUP_SOAK") == "" {
		t.Skip("set NEARDUP_SOAK to cluster a million sketches")
	}
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	ends := map[uint64]bool{}
	for _, memory := range []int64{DefaultMemory, DefaultMemory / 10} {
		c, err := New(Options{Rule: rule, Memory: memory, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		planted(t, c, 1_000_000)
		before, sum := worked(t), fnv.New64a()
		if err := c.Cluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = c.Report(t.Context(), func(m *Member) error {
			_, err := fmt.Fprintln(sum, m.ID, m.Cluster, m.Size, m.Agreement)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		took := worked(t) - before
		t.Logf("%d MB: %v of processor time, at most %.0f MB", memory>>20, took.Round(time.Millisecond), peak())
		if took > 20*time.Second && memory == DefaultMemory || peak() > 1000 {
			t.Errorf("%v of processor time, %.0f MB: want 20 s and 1000 MB at most", took, peak())
		}
		ends[sum.Sum64()] = true
		c.Close()
	}
	if len(ends) != 1 {
		t.Errorf("the clusters depend on the memory: %d ends", len(ends))
	}
}
