package collapse_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// Every page is the slice of the collapsed list that its definition says, be it asked for alone or with others, whatever is known of the
// list, and whether or not sketches are stored.
func TestPagesAreSlicesOfTheCollapsedList(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range effort.Rounds(200) {
		rule := newRule(t, 1+r.IntN(150))
		s := newShelf(r, rule, r.IntN(200), r.Float64()*float64(r.IntN(2)))
		var pages [][2]int
		var want []string
		for range 1 + r.IntN(4) {
			p := [2]int{r.IntN(60) * r.IntN(2), 1 + r.IntN(30)}
			pages, want = append(pages, p), append(want, s.page(rule, p[0], p[1]))
		}
		all := searches(rule, len(pages) == 1 && r.IntN(2) == 0, pages...)
		for _, one := range all.List {
			a := &one.(*search).asked
			a.Scope.Widening, a.Scope.Lacking = learned(r), r.IntN(2) == 0
			a.Ways.Scattered, a.Ways.Weighed = r.IntN(2) == 0, r.IntN(2) == 0
		}
		answer, err := adaptertest.Whole(collapse.Answer(t.Context(), all, s.ask))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		expect.Must(t, strings.Join(want, "\n"), string(answer.Body), "seed %d: pages %v of %d, window %d", seed, pages, len(s.documents), rule.Window)
	}
}

// learned returns what random searches may have taught: any rate, and readings that took any time.
func learned(r *rand.Rand) (known rerank.Widening) {
	var each [3]float64
	for kind := range each {
		each[kind] = r.Float64() * r.Float64()
	}
	for range r.IntN(100) {
		s := rerank.Stats{Read: 10, Folded: r.IntN(10), HitBytes: r.IntN(10_000)}
		for kind := range s.Times {
			if hits := r.IntN(60); r.IntN(2) == 0 {
				s.Times[kind] = rerank.ReadTime{Hits: hits, Time: 1 + each[kind]*float64(hits)}
			}
		}
		known = known.Learn(s)
	}
	known.Rate = r.Float64()
	return known
}

// What each reading took is told, all its rounds together, for a search that is asked by itself.
func TestTimesAreTold(t *testing.T) {
	rule := newRule(t, 100)
	list := newShelf(rand.New(rand.NewPCG(9, 3)), rule, 150, 0).documents
	ask := func(weighed, single bool, piece, from int) rerank.Stats {
		s := &shelf{documents: list, takes: 7}
		all := searches(rule, single, [2]int{from, 10})
		one := all.List[0].(*search)
		one.asked.Ways.Weighed, one.piece = weighed, piece
		return expect.Value(adaptertest.Whole(collapse.Answer(t.Context(), all, s.ask)))(t).Outcomes[0].Stats
	}
	first := ask(true, true, 0, 0)
	expect.Same(t, [3]rerank.ReadTime{{Hits: first.Read, Time: 7}}, first.Times, "page 1")
	deep := ask(true, true, 30, 60)
	rounds := (deep.Read + 29) / 30
	if rounds < 2 {
		t.Errorf("%d ranks are read in one round", deep.Read)
	}
	expect.Same(t, [3]rerank.ReadTime{1: {Hits: deep.Read, Time: 7 * float64(rounds)}, 2: {Hits: 10, Time: 7}}, deep.Times, "a deep page")
	expect.Same(t, [3]rerank.ReadTime{}, ask(false, true, 0, 0).Times, "a search that is unlike others")
	expect.Same(t, [3]rerank.ReadTime{}, ask(true, false, 0, 0).Times, "a search among others")
}

// A listing that asks for more until it is whole is one like any other, alone and among several.
func TestListingsInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	rule := newRule(t, 100)
	for _, single := range []bool{true, false} {
		s := newShelf(r, rule, 150, 0.3)
		all := searches(rule, single, [2]int{40, 20})
		all.List[0].(*search).piece = 30
		answer := expect.Value(adaptertest.Whole(collapse.Answer(t.Context(), all, s.ask)))(t)
		if diff := cmp.Diff(s.page(rule, 40, 20), string(answer.Body)); diff != "" || s.rounds < 3 || answer.Outcomes[0].Rounds != s.rounds {
			t.Errorf("%d rounds, %+v: %s", s.rounds, answer.Outcomes, diff)
		}
	}
}

// template is what the searches follow from.
type template struct {
	searches *adapters.Searches
	fails    error
}

func (t template) Request() *adapters.Request {
	return &adapters.Request{Body: []byte("[]"), Ahead: true}
}

func (t template) Searches(*adapters.Reply) (*adapters.Searches, error) { return t.searches, t.fails }

// What the searches follow from is asked first; where it fails nothing else is.
func TestSearchesThatFollow(t *testing.T) {
	rule := newRule(t, 100)
	list := newShelf(rand.New(rand.NewPCG(9, 2)), rule, 50, 0).documents
	alone := adapters.Alone{Reason: "cursor"}
	for _, fails := range []error{nil, alone, adapters.ErrWidened, adapters.ErrRefused, jsonedit.ErrMalformed} {
		s := &shelf{documents: list}
		answer, err := adaptertest.Whole(collapse.Answer(t.Context(), &adapters.Searches{Ahead: template{searches(rule, true, [2]int{2, 5}), fails}}, s.ask))
		switch {
		case fails == nil:
			if err != nil || string(answer.Body) != s.page(rule, 2, 5) || s.requests[0] != "[]" || s.rounds != 2 {
				t.Errorf("%v after %q", err, s.requests)
			}
		case !errors.Is(err, fails) || s.rounds != 1:
			t.Errorf("%v after %d rounds, want %v", err, s.rounds, fails)
		case fails == jsonedit.ErrMalformed && !errors.Is(err, adapters.ErrNotUnderstood):
			t.Error(err)
		}
	}
}

// What several searches ask goes out together, in as many rounds as the longest of them takes alone, and the same each time.
func TestSearchesAskTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	rule := newRule(t, 100)
	list := newShelf(r, rule, 150, 0.3).documents
	pages := [][2]int{{0, 5}, {40, 20}, {0, 100}, {300, 5}, {20, 3}}
	longest := 0
	for _, p := range pages {
		alone := &shelf{documents: list}
		expect.Value(adaptertest.Whole(collapse.Answer(t.Context(), searches(rule, true, p), alone.ask)))(t)
		longest = max(longest, alone.rounds)
	}
	stored := newShelf(r, rule, 150, 0)
	if _, _, err := collapse.Answer(t.Context(), searches(rule, true, pages[0]), stored.ask); err != nil || stored.rounds != 1 {
		t.Errorf("a first page takes %d rounds, %v", stored.rounds, err)
	}
	var first []string
	for range 3 {
		s := &shelf{documents: list}
		answer := expect.Value(adaptertest.Whole(collapse.Answer(t.Context(), searches(rule, false, pages...), s.ask)))(t)
		rounds := 0
		for _, o := range answer.Outcomes {
			rounds = max(rounds, o.Rounds)
		}
		if s.rounds != longest || rounds != longest || longest < 2 {
			t.Errorf("%d rounds, %d by the outcomes, the longest alone takes %d", s.rounds, rounds, longest)
		}
		if first == nil {
			first = s.requests
		}
		expect.Same(t, first, s.requests, "the requests")
	}
}

// Whenever the time is over, each search is answered by the whole collapsed page, by the client's own, or the request is sent as it was
// written; and after that the engine is asked once more at most.
func TestLate(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	rule := newRule(t, 100)
	list := newShelf(r, rule, 150, 0.5).documents
	pages := [][2]int{{0, 5}, {40, 20}, {10, 30}}
	whole := &shelf{documents: list}
	for _, single := range []bool{true, false} {
		asked := pages
		if single {
			asked = pages[2:]
		}
		own, collapsed := 0, 0
		for at := 1; at < 200; at++ {
			s, clock, late := &shelf{documents: list}, &adaptertest.Clock{Call: at}, 0
			all := searches(rule, single, asked...)
			all.Plan.Deadline = clock
			answer, err := adaptertest.Whole(collapse.Answer(t.Context(), all, func(ctx context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
				if clock.Over() {
					late++
				}
				return s.ask(ctx, requests...)
			}))
			if late > 1 {
				t.Fatalf("look %d: asked %d times afterwards", at, late)
			}
			if err != nil {
				if !errors.Is(err, adapters.ErrLate) || !single && at > 1 {
					t.Fatalf("look %d: %v", at, err)
				}
				continue
			}
			again := slices.ContainsFunc(answer.Outcomes, func(o adapters.Outcome) bool { return o.Again })
			if late == 1 && again != (s.rounds > 1) {
				t.Fatalf("look %d: asked again %v, in %d rounds", at, again, s.rounds)
			}
			for i, line := range strings.Split(string(answer.Body), "\n") {
				p, o := asked[i], answer.Outcomes[i]
				plain := string((&search{}).Clean(whole.raw(p)))
				want := whole.page(rule, p[0], p[1])
				if o.Reason == adapters.ReasonDeadline {
					own, want = own+1, plain
				} else {
					collapsed++
				}
				expect.Must(t, want, line, "look %d, search %d: %+v", at, i, o)
			}
		}
		if own == 0 || collapsed == 0 {
			t.Errorf("single %v: %d pages of the client's own, %d collapsed", single, own, collapsed)
		}
	}
}

// raw is the shelf's reply to the client's own search.
func (s *shelf) raw(page [2]int) []byte {
	own, _ := (&search{asked: adapters.Asked{From: page[0], Size: page[1]}}).request(adapters.Reading{Own: true, AsWritten: true}, 0)
	replies, _ := s.ask(context.Background(), &adapters.Request{Body: []byte("[" + string(own.Body) + "]")})
	return replies[0].Body[1 : len(replies[0].Body)-1]
}

// Where documents go between two readings, the page is that of one of the lists that there were. A page wholly beyond the window has no hit in common with
// the reading of the window: its ranks are those of the first list, its documents those of a later one.
func TestListThatMoves(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	moved := 0
	for range effort.Rounds(200) {
		rule := newRule(t, 40+r.IntN(100))
		s := newShelf(r, rule, 150, 0.6*r.Float64())
		p := [2]int{r.IntN(40) * r.IntN(2), 1 + r.IntN(20)}
		want := []string{s.page(rule, p[0], p[1])}
		window := &shelf{documents: s.documents[:min(rule.Window, len(s.documents))]}
		shown := 0 // of the window's ranks
		for window.page(rule, shown, 1) != "" {
			shown++
		}
		changes := 1 + r.IntN(2)
		s.change = func(s *shelf) {
			if changes--; changes >= 0 {
				s.documents = slices.Delete(slices.Clone(s.documents), 3, 4)
				want = append(want, s.page(rule, p[0], p[1]))
				if shown <= p[0] && len(window.documents) == rule.Window {
					want = append(want, s.ranks(rule.Window+p[0]-shown, p[1]))
				}
			}
		}
		answer, err := adaptertest.Whole(collapse.Answer(t.Context(), searches(rule, true, p), s.ask))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.Contains(want, string(answer.Body)) {
			t.Fatalf("seed %d: %s is none of %q", seed, answer.Body, want)
		}
		if len(want) > 1 && want[0] != string(answer.Body) {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no list moved")
	}
}

// A search that the engine declines in another form than the client's is asked as the client wrote it. One that fails as a whole fails
// all that go with it, and leaves nothing running.
func TestSearchesThatFail(t *testing.T) {
	rule := newRule(t, 100)
	list := newShelf(rand.New(rand.NewPCG(7, 1)), rule, 50, 0).documents
	s := &shelf{documents: list, decline: func(r adapters.Reading) bool { return !r.AsWritten && r.To > 20 }}
	answer := expect.Value(adaptertest.Whole(collapse.Answer(t.Context(), searches(rule, false, [2]int{0, 3}, [2]int{0, 30}), s.ask)))(t)
	want := s.page(rule, 0, 3) + "\n" + string((&search{}).Clean(s.raw([2]int{0, 30})))
	if o := answer.Outcomes; string(answer.Body) != want || o[0].Reason != "" || o[1].Reason != "refused" || !o[1].Again {
		t.Errorf("%s, want %s; %+v", answer.Body, want, o)
	}
	if _, _, err := collapse.Answer(t.Context(), searches(rule, true, [2]int{0, 30}), s.ask); !errors.Is(err, adapters.ErrWidened) {
		t.Errorf("a single search that is declined: %v", err)
	}
	before, down := runtime.NumGoroutine(), errors.New("down")
	for round := 1; round < 3; round++ {
		s := &shelf{documents: list, fail: func(n int) error {
			if n == round {
				return down
			}
			return nil
		}}
		_, _, err := collapse.Answer(t.Context(), searches(rule, false, [2]int{0, 3}, [2]int{40, 5}), s.ask)
		if !errors.Is(err, down) || s.rounds != round {
			t.Errorf("round %d of %d: %v", round, s.rounds, err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// A bug in the dialect comes to light where the searches are answered, not in a goroutine of its own.
func TestPanicsReachTheCaller(t *testing.T) {
	rule := newRule(t, 100)
	s := newShelf(rand.New(rand.NewPCG(8, 1)), rule, 50, 0)
	all := searches(rule, false, [2]int{0, 3}, [2]int{0, 30})
	all.List[1].(*search).broken = true
	defer func() { expect.Same(t, "broken", fmt.Sprint(recover()), "the panic") }()
	_, _, _ = collapse.Answer(t.Context(), all, s.ask)
}
