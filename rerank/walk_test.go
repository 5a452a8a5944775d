package rerank

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

// TestWalkShowsTheCollapsedList: in pieces of any size, each from a copy of what the last one left.
func TestWalkShowsTheCollapsedList(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	for i := range effort.Rounds(1500) {
		k := randomKind(r, true)
		hits, window := k.list(r, r.IntN(120)), r.IntN(130)
		want, folded, _ := defined(hits, window, false)
		walk, got := new(Walk), []int(nil)
		for at := 0; at < len(hits); {
			next := min(len(hits), at+1+r.IntN(20))
			walk = walk.Clone()
			for ; at < next; at++ {
				h := hits[at]
				if walk.Take(&h, window) {
					got = append(got, at)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("case %d, window %d: shows %v, want %v", i, window, got, want)
		}
		expect.Must(t, [2]int{len(hits), folded}, [2]int{walk.Ranks(), walk.Folded()}, "case %d: ranks, and folded", i)
	}
}

// TestClonesOfAWalkAreIndependent: a client may go on twice from one cursor.
func TestClonesOfAWalkAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 1))
	take := func(w *Walk, hits []Hit) (shown []bool) {
		for i := range hits {
			shown = append(shown, w.Take(&hits[i], 1000))
		}
		return shown
	}
	for range effort.Rounds(500) {
		k := randomKind(r, true)
		before, one, two := k.list(r, 30), k.list(r, 40), k.list(r, 40)
		walk := new(Walk)
		take(walk, before)
		memory := walk.Bytes()
		want := take(walk.Clone(), two)
		take(walk.Clone(), one)
		other := walk.Clone()
		if take(walk, one); !slices.Equal(take(other, two), want) {
			t.Fatal("what one walk took shows in its clone")
		}
		if len(other.leaders.list) > 0 && memory < 0 || walk.Bytes() < memory {
			t.Fatalf("%d bytes after more hits than had taken %d", walk.Bytes(), memory)
		}
	}
}

// TestWalksJoin: pieces of one list that are joined in any order are found again as they were, and say nothing of where none ended. Pieces of two lists
// do not.
func TestWalksJoin(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 1))
	for i := range effort.Rounds(500) {
		k := randomKind(r, true)
		hits, window := k.list(r, 1+r.IntN(60)), 1000
		var pieces []*Walk
		walk := new(Walk)
		for at := range hits {
			if hits[at].Profile != nil {
				hits[at].Profile.Keep = 1
			}
			if walk.Take(&hits[at], window) && r.IntN(4) == 0 {
				piece := walk.Clone()
				piece.Last = hits[at].ID
				pieces = append(pieces, piece)
			}
		}
		joined := new(Walk)
		for _, at := range r.Perm(len(pieces)) {
			joined = joined.Join(pieces[at])
			if joined == nil || joined.Join(pieces[at]) != joined {
				t.Fatalf("case %d: not joined, or more than once", i)
			}
		}
		for _, want := range pieces {
			got := joined.Until(want.ranks - want.folded).Clone()
			got.ends = nil
			by := expect.By{cmp.AllowUnexported(Walk{}, leaders{}, leader{}, outline{}), cmpopts.EquateEmpty()}
			by.Must(t, want, got, "case %d", i)
		}
		if len(pieces) > 0 && joined.Until(pieces[len(pieces)-1].ranks+1) != nil {
			t.Fatalf("case %d: a piece ended nowhere", i)
		}
		if len(joined.leaders.list) > 0 {
			other := joined.Clone()
			other.leaders.list[0].hit = &Hit{ID: "another", Sketch: distinct(r)}
			if joined.Join(other) != nil {
				t.Fatalf("case %d: joins another list", i)
			}
		}
	}
}

// TestWalkKeepsNothingOfTheList: what a walk keeps of a sketch stays as it was where the memory of the list is used again.
func TestWalkKeepsNothingOfTheList(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 1))
	h := Hit{ID: "1", Sketch: distinct(r), Profile: &Profile{}}
	h.Sketch.Topics, h.Sketch.Vector = []byte(strings.Repeat("t", 28)), randomVector(r)
	for h.Sketch.Vector == nil {
		h.Sketch.Vector = randomVector(r)
	}
	walk, want := new(Walk), h.Sketch.String()
	walk.Take(&h, 1)
	for _, used := range [][]byte{h.Sketch.Payload, h.Sketch.Topics, h.Sketch.Vector.Payload} {
		for i := range used {
			used[i]++
		}
	}
	if got := walk.leaders.list[0].hit.Sketch.String(); got != want || got == "" {
		t.Errorf("a leader's sketch is %q, was %q", got, want)
	}
}

// TestWalkBytesCoverItsMemory: what is counted of a walk is no less than what it takes, by and large, whatever its hits carry.
func TestWalkBytesCoverItsMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	text := func(n int) string { return strings.Clone(strings.Repeat("x", n)) }
	bases := []string{"one", "another", "a third", "a fourth", "5", "6", "7", "8", "9"}
	for name, traits := range map[string]func() Traits{
		"none": func() Traits { return Traits{} },
		"all": func() Traits {
			return Traits{Same: text(30), Different: [][]string{{text(10), text(20)}, {text(1)}, {text(5)}}, Merit: Merit{Known: true, Text: text(40)}}
		},
	} {
		for _, others := range []int{0, 1, 3, 9} {
			walk, before := new(Walk), live()
			for range 5000 {
				h := Hit{ID: text(30), Sketch: distinct(r), Profile: &Profile{Threshold: 1}, Traits: traits()}
				for i := range others {
					if h.Others == nil {
						h.Others = map[string]Traits{}
					}
					h.Others[bases[i]] = traits()
				}
				walk.leaders.list = append(walk.leaders.list, leader{hit: &h, n: 1})
			}
			walk = walk.Clone()
			took, counted := live()-before, walk.Bytes()
			if took > counted {
				t.Errorf("%s, %d others: takes %d bytes of %d counted", name, others, took, counted)
			}
			if counted > 2*took {
				t.Errorf("%s, %d others: takes no more than %d bytes of %d counted", name, others, took, counted)
			}
			runtime.KeepAlive(walk)
		}
	}
}

// TestWalksKeepNothingElse: what is remembered of one hit does not keep the memory that the hits of its reading share.
func TestWalksKeepNothingElse(t *testing.T) {
	const shared = 1 << 20
	held := make([]*Walk, 32)
	before := live()
	for i := range held {
		names, payloads := strings.Repeat("x", shared), make([]byte, shared)
		s := sketch.Sketch{Form: sketch.Positions, Bits: 8, Payload: payloads[:128:128], Shingles: 3}
		held[i] = new(Walk)
		held[i].Take(&Hit{ID: names[:10], Sketch: &s, Profile: &Profile{Threshold: 0.7, Keep: 1}}, 10)
	}
	if grown := live() - before; grown > 8*shared {
		t.Errorf("%d walks of one hit each keep %d bytes", len(held), grown)
	}
	runtime.KeepAlive(held)
}

// live is how many bytes are reachable.
func live() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
