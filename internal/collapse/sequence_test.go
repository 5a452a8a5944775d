package collapse_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

func (*search) List() string { return "the shelf" }

// Pages asked for one after the other are those of the definition, be the page before remembered or not, and whatever the list did since. From page 3
// on each takes one request while the list stands still.
func TestPagesInSequence(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	single, pages := 0, 0
	for range effort.Rounds(100) {
		rule := newRule(t, 1+r.IntN(300))
		rule.Profile.Keep = 1 + r.IntN(2)*r.IntN(3)
		missing, rate := r.Float64()*float64(r.IntN(2)), 0.9*float64(r.IntN(2))
		s := newShelf(r, rule, 20+r.IntN(300), missing)
		kept, size, moves, forgets, back := adaptertest.Cursors{}, 1+r.IntN(30), r.IntN(3) == 0, r.IntN(4) == 0, 5
		grows := r.IntN(2) == 0 // a list that grows and shrinks can have as many hits as before, and then nothing tells that it moved
		for from := 0; from < len(s.documents); from += size {
			if back > 0 && r.IntN(5) == 0 { // pages that were asked for before
				from, back = size*r.IntN(1+from/size), back-1
			}
			all := searches(rule, r.IntN(2) == 0, [2]int{from, size})
			all.Plan.Cursors = kept
			for _, one := range all.List {
				one := one.(*search)
				one.asked.Sequence, one.asked.Scope.Widening = one, learned(r)
				one.asked.Scope.Rate = rate
				one.asked.Ways.Scattered, one.asked.Ways.Weighed = r.IntN(2) == 0, r.IntN(2) == 0
			}
			before := len(s.requests)
			answer, err := adaptertest.Whole(collapse.Answer(t.Context(), all, s.ask))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			want := s.page(rule, from, size)
			expect.Must(t, want, string(answer.Body), "seed %d: %d from %d of %d, window %d, keep %d", seed, size, from, len(s.documents), rule.Window, rule.Profile.Keep)
			o := answer.Outcomes[0]
			if o.Window != rule.Window || o.Raw != len(s.documents) || o.Folded > o.Read {
				t.Fatalf("seed %d: %+v", seed, o)
			}
			if !moves && !forgets && missing == 0 && want != "" && from >= 2*size && (back == 5 || rule.Profile.Keep == 1) {
				if asked := s.requests[before:]; slices.ContainsFunc(asked, func(r string) bool { return strings.Contains(r, `"From":0,`) }) {
					t.Errorf("seed %d: %d from %d: read again from rank 0: %q", seed, size, from, asked)
				}
				if rate > 0 {
					pages++
				}
				if rate > 0 && o.Rounds == 1 {
					single++
				}
			}
			if moves && r.IntN(3) == 0 { // the engine counts other hits then
				at := r.IntN(len(s.documents))
				s.documents = slices.Clone(s.documents)
				if d := newShelf(r, rule, 1, 0).documents[0]; grows {
					d.ID = "new" + d.ID
					s.documents = slices.Insert(s.documents, at, d)
				} else {
					s.documents = slices.Delete(s.documents, at, at+1)
				}
			}
			if forgets && r.IntN(3) == 0 {
				clear(kept)
			}
		}
	}
	if t.Logf("%d of %d pages took one round", single, pages); pages >= 100 && pages-single > pages/5 { // of fewer, one list alone may decide
		t.Errorf("%d of %d pages took one round", single, pages)
	}
}
