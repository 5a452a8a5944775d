package sketch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// matrixRow is one element of the universe and which of the sets (the columns) hold it.
type matrixRow struct {
	id  uint64
	has []bool
}

// rowHash gives every row its place in one random order.
type rowHash func(id uint64) uint64

const noRow = ^uint64(0)

// scanRow is one step of row hashing: for each set that holds the row and each hash, the slot keeps the smaller.
func scanRow(slots [][]uint64, r matrixRow, hashes []rowHash) {
	for i, h := range hashes {
		for column, has := range r.has {
			if has {
				slots[column][i] = min(slots[column][i], h(r.id))
			}
		}
	}
}

func emptySlots(columns, hashes int) [][]uint64 {
	slots := make([][]uint64, columns)
	for i := range slots {
		slots[i] = slices.Repeat([]uint64{noRow}, hashes)
	}
	return slots
}

// signatures is min-hash by row hashing as Manning and Raghavan's slides give it: the rows in any order, one pass.
func signatures(rows []matrixRow, hashes []rowHash) [][]uint64 {
	slots := emptySlots(len(rows[0].has), len(hashes))
	for _, r := range rows {
		scanRow(slots, r, hashes)
	}
	return slots
}

// agreeing counts the positions on which two signatures agree.
func agreeing(a, b []uint64) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// columnSets returns the sets of a matrix as this package has them: sorted numbers.
func columnSets(rows []matrixRow) [][]uint64 {
	sets := make([][]uint64, len(rows[0].has))
	for _, r := range rows {
		for i, has := range r.has {
			if has {
				sets[i] = append(sets[i], r.id)
			}
		}
	}
	return sets
}

// TestPermutationsAreRowHashing holds the family against the plain algorithm with the family's own hashes, on random sets
// that share rows, are empty, or hold everything.
func TestPermutationsAreRowHashing(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 5))
	for range 60 {
		rows := make([]matrixRow, 1+r.IntN(120))
		for i := range rows {
			rows[i] = matrixRow{id: r.Uint64(), has: []bool{r.IntN(2) == 0, r.IntN(5) == 0, true, false}}
		}
		hashes := make([]rowHash, 8+r.IntN(200))
		for i := range hashes {
			key := mix(uint64(i+1) * golden)
			hashes[i] = func(x uint64) uint64 { return mix(x ^ key) }
		}
		want := signatures(rows, hashes)
		for i, set := range columnSets(rows) {
			r.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
			got := make([]uint64, len(hashes))
			permutations(got, set)
			if diff := cmp.Diff(want[i], got); diff != "" {
				t.Fatalf("%d rows, %d hashes, set %d: %s", len(rows), len(hashes), i, diff)
			}
		}
	}
}
