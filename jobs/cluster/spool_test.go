package cluster

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/neardup/sidecar/sketch"
)

// pairsOf returns pairs, some of them equal, some with bytes in common.
func pairsOf(r *rand.Rand, n int, mask uint64) []pair {
	list := make([]pair, n)
	for i := range list {
		list[i] = pair{r.Uint64() & mask, uint64(r.IntN(50))}
	}
	return list
}

func TestSortKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, mask := range []uint64{0, 3 << 32, 0xfff << 40, ^uint64(0)} {
		list := make([]uint64, 30000)
		for i := range list {
			list[i] = r.Uint64()&mask&^0xffffffff | uint64(i)
		}
		want := slices.Sorted(slices.Values(list))
		if got := sortKeys(list, make([]uint64, len(list))); !slices.Equal(want, got) {
			t.Errorf("keys of mask %x are out of order, or their numbers", mask)
		}
	}
}

func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, sum := range []bool{false, true} {
		for _, memory := range []int64{1, 1 << 17, 1 << 30} {
			s := scratch{dir: t.TempDir()}
			list := pairsOf(r, 50000, 0x3ff<<20)
			want := slices.SortedFunc(slices.Values(list), comparePairs)
			if sum {
				var sums []pair
				for _, p := range want {
					if n := len(sums); n > 0 && sums[n-1].hi == p.hi {
						sums[n-1].lo += p.lo
					} else {
						sums = append(sums, p)
					}
				}
				want = sums
			}
			sorter := newSorter(&s, memory, sum)
			for _, p := range list {
				if err := sorter.add(p.hi, p.lo); err != nil {
					t.Fatal(err)
				}
			}
			if spilled := sorter.file != nil; spilled != (!sum && memory < 1<<20) {
				t.Errorf("sum %v, %d bytes: spilled is %v", sum, memory, spilled)
			}
			var got []pair
			if err := sorter.each(t.Context(), func(p pair) error { got = append(got, p); return nil }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(want, got) {
				t.Errorf("sum %v, %d bytes: %d pairs came out, want %d, or in another order", sum, memory, len(got), len(want))
			}
			s.close()
		}
	}
}

func TestSpool(t *testing.T) {
	for _, limit := range []int64{0, 3000, 1 << 20} {
		s := scratch{dir: t.TempDir()}
		p := newSpool(&s, 1000, limit)
		r := rand.New(rand.NewPCG(4, 9))
		var records [][]byte
		var at []int64
		for range 200 {
			record := bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(300))
			where, err := p.add(record)
			if err != nil {
				t.Fatal(err)
			}
			records, at = append(records, record), append(at, where)
		}
		if err := p.seal(); err != nil {
			t.Fatal(err)
		}
		if p.whole() != (limit == 1<<20) {
			t.Errorf("limit %d: in memory is %v", limit, p.whole())
		}
		room := make([]byte, 400)
		for i, record := range records {
			got, err := p.read(at[i], 400, room)
			if err != nil || !bytes.HasPrefix(got, record) {
				t.Fatalf("limit %d: record %d reads as %x, %v", limit, i, got, err)
			}
		}
		s.close()
	}
}

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
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left behind, %v", algorithm, left, err)
		}
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
