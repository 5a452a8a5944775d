package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/neardup/sidecar/internal/expect"
)

// The sources print examples with their results. Each testdata/lectures/*.txtar holds the printed figures of one source, and
// at its top which of them are wrong. The tests here compute them anew: by the plainest form of the algorithm, which is then
// the oracle of the package's own.

// lecture reads the sections of one source.
func lecture(t *testing.T, name string) func(section string) [][]string {
	t.Helper()
	archive := expect.Value(txtar.ParseFile("testdata/lectures/" + name + ".txtar"))(t)
	return func(section string) (lines [][]string) {
		t.Helper()
		for _, f := range archive.Files {
			if f.Name != section {
				continue
			}
			for line := range strings.Lines(string(f.Data)) {
				lines = append(lines, strings.Fields(line))
			}
		}
		if len(lines) == 0 {
			t.Fatalf("%s has no section %s", name, section)
		}
		return lines
	}
}

func atoi(t *testing.T, field string) int {
	t.Helper()
	return expect.Value(strconv.Atoi(field))(t)
}

func joined(lines [][]string) []string {
	var list []string
	for _, fields := range lines {
		list = append(list, strings.Join(fields, " "))
	}
	return list
}

func readMatrix(t *testing.T, lines [][]string) (rows []matrixRow) {
	t.Helper()
	for _, fields := range lines {
		r := matrixRow{id: uint64(atoi(t, fields[0]))}
		for _, f := range fields[1:] {
			r.has = append(r.has, f == "1")
		}
		rows = append(rows, r)
	}
	return rows
}

// rowOrder is a permutation as the sources write it: the rows in the order in which they are looked at, "34512".
func rowOrder(t *testing.T, rows string) rowHash {
	t.Helper()
	return func(r uint64) uint64 {
		at := strings.Index(rows, strconv.FormatUint(r, 10))
		if at < 0 {
			t.Fatalf("row %d is not in %s", r, rows)
		}
		return uint64(at + 1)
	}
}

// wordRuns returns the runs of w words, in order and with repetitions.
func wordRuns(words []string, w int) (list []string) {
	for i := 0; i+w <= len(words); i++ {
		list = append(list, strings.Join(words[i:i+w], " "))
	}
	return list
}

// TestLectureShingles: the 4-word shingles that the sources print are those of Words, and Shingles makes exactly one number
// of each.
func TestLectureShingles(t *testing.T) {
	const words = 4 // theirs
	s := newSketcher(t, func(s *Scheme) { s.Words = words })
	for _, c := range []struct{ source, text, shingles string }{
		{"stanford", "inigo/text", "inigo/shingles"},
		{"cs124", "fourscore/text", "fourscore/shingles"},
		{"broder", "rose/text", "rose/set"},
	} {
		read := lecture(t, c.source)
		text, printed := joined(read(c.text))[0], joined(read(c.shingles))
		got := wordRuns(Words(text), words)
		slices.Sort(got)
		expect.Same(t, slices.Sorted(slices.Values(printed)), slices.Compact(got), "%s", c.source)
		set := s.Shingles(text)
		if diff := cmp.Diff(s.Shingles(printed...), set); diff != "" || len(set) != len(printed) {
			t.Errorf("%s: %d shingles of %d printed: %s", c.source, len(set), len(printed), diff)
		}
	}
}

// TestLectureColumns is the slides' example of three columns. Their "Perm 3 = (34512)" is to be read as "look at row 3
// first, then at 4 …", and a signature names the row found: read as "row 1 goes to place 3", columns 1 and 3 would agree
// three times, not twice.
func TestLectureColumns(t *testing.T) {
	read := lecture(t, "stanford")
	rows := readMatrix(t, read("columns/matrix"))
	sets := columnSets(rows)
	var hashes []rowHash
	var named [][]uint64 // by column, then permutation: the row found
	for _, line := range read("columns/signatures") {
		hashes = append(hashes, rowOrder(t, line[0]))
	}
	slots := signatures(rows, hashes)
	for column := range slots {
		named = append(named, make([]uint64, len(hashes)))
		for i, line := range read("columns/signatures") {
			named[column][i] = uint64(line[0][slots[column][i]-1] - '0')
			expect.Same(t, uint64(atoi(t, line[1+column])), named[column][i], "column %d under %s: the row", column+1, line[0])
		}
	}
	for _, line := range read("columns/similarities") {
		a, b := atoi(t, line[0])-1, atoi(t, line[1])-1
		expect.Same(t, line[2], fmt.Sprintf("%.2f", Resemblance(sets[a], sets[b])), "columns %s and %s: the resemblance", line[0], line[1])
		// Places and rows found say the same: under one permutation each place is one row.
		for _, signature := range [][][]uint64{slots, named} {
			agreement := float64(agreeing(signature[a], signature[b])) / 3
			expect.Same(t, line[3], fmt.Sprintf("%.2f", agreement), "columns %s and %s: the agreement", line[0], line[1])
		}
	}
}

// TestLectureRowHashing is the slides' trace of h(x) = x mod 5 and g(x) = 2x+1 mod 5, slot by slot after every row.
func TestLectureRowHashing(t *testing.T) {
	read := lecture(t, "stanford")
	rows := readMatrix(t, read("rows/matrix"))
	hashes := []rowHash{func(x uint64) uint64 { return x % 5 }, func(x uint64) uint64 { return (2*x + 1) % 5 }}
	slots := emptySlots(2, len(hashes))
	show := func(slot uint64) string {
		if slot == noRow {
			return "-"
		}
		return strconv.FormatUint(slot, 10)
	}
	var got []string
	for _, r := range rows {
		scanRow(slots, r, hashes)
		for i, name := range []string{"h", "g"} {
			got = append(got, fmt.Sprintf("%s(%d) = %d %s %s", name, r.id, hashes[i](r.id), show(slots[0][i]), show(slots[1][i])))
		}
	}
	expect.Same(t, joined(read("rows/trace")), got, "")
	sets := columnSets(rows)
	if r, n := Resemblance(sets[0], sets[1]), agreeing(slots[0], slots[1]); r != 0.2 || n != 0 {
		t.Errorf("resemblance %v and %d of 2 positions agree, want 0.2 and 0", r, n)
	}
}

// TestBroderRose is the example of Broder's paper, for sets (its option B, and this package) and for bags (its option A, in
// which an element is a shingle and the number of its occurrence).
func TestBroderRose(t *testing.T) {
	read := lecture(t, "broder")
	rose := joined(read("rose/text"))
	expect.Same(t, joined(read("rose/bag")), labelled(rose[0], 4), "")
	for _, line := range read("rose/resemblance") {
		w := atoi(t, line[0])
		s := newSketcher(t, func(s *Scheme) { s.Words = w })
		a, b := labelled(rose[0], w), labelled(rose[1], w)
		both := 0
		for _, x := range a {
			if slices.Contains(b, x) {
				both++
			}
		}
		bag := 100 * float64(both) / float64(len(a)+len(b)-both)
		set := 100 * Resemblance(s.Shingles(rose[0]), s.Shingles(rose[1]))
		for i, got := range []float64{bag, set} {
			// The paper cuts off 42.857 after the second digit.
			want, err := strconv.ParseFloat(line[1+i], 64)
			if err != nil || math.Floor(got*100+1e-9) != math.Round(want*100) {
				t.Errorf("%d words, option %c: %.4f %%, printed %v (%v)", w, 'A'+i, got, want, err)
			}
		}
	}
}

func labelled(text string, w int) (list []string) {
	seen := map[string]int{}
	for _, shingle := range wordRuns(Words(text), w) {
		seen[shingle]++
		list = append(list, fmt.Sprintf("%s %d", shingle, seen[shingle]))
	}
	return list
}

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
			expect.Must(t, want[i], got, "%d rows, %d hashes, set %d", len(rows), len(hashes), i)
		}
	}
}
