package cluster

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

func TestForest(t *testing.T) {
	const n = 5000
	r := rand.New(rand.NewPCG(5, 9))
	var edges [][2]uint32
	for range 3500 {
		edges = append(edges, [2]uint32{uint32(r.IntN(n)), uint32(r.IntN(n))})
	}
	plain := NewForest(n)
	for _, e := range edges {
		plain.Join(e[0], e[1])
	}
	for i := range uint32(n) {
		if root := plain.Of(i); root > i || plain.Of(root) != root {
			t.Fatalf("%d leads to %d", i, root)
		}
	}
	together := NewForest(n)
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range edges {
				e := edges[(i*7+worker*911)%len(edges)]
				together.Join(e[1], e[0])
			}
		})
	}
	wait.Wait()
	for i := range uint32(n) {
		if together.Of(i) != plain.Of(i) {
			t.Fatalf("%d is of %d, want %d", i, together.Of(i), plain.Of(i))
		}
	}
}

// TestTemporaryFiles holds that they are gone when the corpus is closed, and told apart from other failures.
func TestTemporaryFiles(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(rand.New(rand.NewPCG(6, 9)), 9000, 20))
	dir := t.TempDir()
	for _, algorithm := range []Algorithm{Bands, Broder} {
		clustered(t, Options{Rule: rule, Algorithm: algorithm, Memory: 1, Dir: dir}, list)
		expect.Same(t, 0, len(expect.Value(os.ReadDir(dir))(t)), "%s: files that are left behind", algorithm)
	}
	missing := filepath.Join(dir, "missing")
	c, err := New(Options{Rule: rule, Memory: 1, Dir: missing})
	for i := 0; err == nil && i < len(list); i++ {
		err = c.Add(list[i])
	}
	if !errors.Is(err, ErrTemporary) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// TestSorterOfABrokenFile: pairs that can't be written or read back are an error, and none go missing silently.
func TestSorterOfABrokenFile(t *testing.T) {
	for _, more := range []bool{false, true} {
		s := newSorter[pair](&scratch{dir: t.TempDir()}, 0, false)
		expect.OK(t, errors.Join(s.add(pair{1, 2}), s.spill()))
		expect.OK(t, s.file.Close())
		if err := s.add(pair{3, 4}); err != nil || !more {
			s.held = s.held[:0]
		}
		if err := s.each(t.Context(), func(pair) error { return nil }); !errors.Is(err, ErrTemporary) {
			t.Errorf("more to write: %v: %v", more, err)
		}
	}
}

// TestInterrupted holds that every algorithm ends with its context.
func TestInterrupted(t *testing.T) {
	rule := ruleOf(t, sketch.DefaultScheme(), 0.64, 8)
	list := documents(rule, texts(rand.New(rand.NewPCG(6, 9)), 300, 20))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, algorithm := range Algorithms {
		c := filled(t, Options{Rule: rule, Algorithm: algorithm}, list)
		if err := c.Cluster(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}
