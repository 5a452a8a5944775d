package typesense

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// TestRealLate has the time for random searches be over at every look at the time, or at some of many, and while every reply but the first
// is awaited. The answer is then the engine's own to the client's search, or the one that is given in time.
func TestRealLate(t *testing.T) {
	b := newBench(t, vectors, "body")
	r := rand.New(rand.NewPCG(searchSeed(t), 7))
	b.loadVectors(r, 400, 0.5)
	scoped := b.searchKey()
	var sum lateSum
	for range max(searchRounds(10), 5) {
		c := randomTrial(r)
		c.preset = nil
		if b.lateTrial(c, r, scoped(c.imposed), &sum); t.Failed() {
			return
		}
	}
	t.Logf("%+v", sum)
	if !testing.Short() && (sum.cut < 3 || sum.plain < 3) {
		t.Errorf("too few to tell: %+v", sum)
	}
}

// lateSum is what became of searches for which the time was over.
type lateSum struct{ cut, plain, collapsed int }

// manySearches returns a multi-search of the trial and of others beside it.
func (c trial) manySearches(collection string, r *rand.Rand) *adapters.Request {
	var searches []any
	for _, of := range []trial{c, c, {params: map[string][]string{"q": {"t1"}, "query_by": {"title"}, "per_page": {"3"}}}} {
		params := map[string]string{"collection": collection}
		for name := range of.params {
			params[name] = of.params.Get(name)
		}
		searches = append(searches, params)
	}
	searches[1].(map[string]string)["per_page"] = []string{"2", "31"}[r.IntN(2)]
	body, _ := json.Marshal(map[string]any{"searches": searches})
	return post("/multi_search", string(body))
}

func (b *bench) lateTrial(c trial, r *rand.Rand, key string, sum *lateSum) {
	t := b.t
	t.Helper()
	b.rule.Window = c.window
	c.choice.put(b.rule)
	plan := planFor(adapters.Scope{Rate: r.Float64() / 2, Lacking: r.IntN(2) == 0, VectorWindow: c.least}, b.rule)
	plan.MaxWindow = 10_000
	multi := r.IntN(3) == 0
	plain := c.request(b.collection, r.IntN(2) == 0)
	if multi {
		plain = c.manySearches(b.collection, r)
	}
	plain.Header = adapters.Header{keyHeader: {key}}
	d := Dialect{}
	run := func(clock *adaptertest.Clock) (*adapters.Answer, error) {
		plan.Late = clock.Late
		request := plain
		if !multi {
			request = c.choice.control(plain)
		}
		parsed := d.Search(d.Classify(request), request, plan)
		if parsed.Exchange == nil {
			return nil, adapters.Alone{Reason: parsed.Reason}
		}
		return clock.Run(parsed.Exchange, b.send)
	}
	var all adaptertest.Clock
	inTime, err := run(&all)
	if err != nil || inTime.Status != 200 {
		return // what is left alone, or refused
	}
	parts := func(body []byte) (list []string) {
		elements := [][]byte{body}
		if plain.Method == "POST" {
			root, _ := adapters.Members(body)
			if elements, err = adapters.Elements(adapters.Get(root, "results")); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
		}
		for _, element := range elements {
			if !c.named() {
				element = cleaned(t, string(element), "")
			}
			list = append(list, took.ReplaceAllString(string(element), ""))
		}
		return list
	}
	own, collapsed := parts(b.send(plain).Body), parts(inTime.Body)
	for _, clock := range strikes(r, all) {
		answer, err := run(&clock)
		alone, isAlone := errors.AsType[adapters.Alone](err)
		switch {
		case errors.Is(err, adapters.ErrLate), isAlone && alone.Reason == adapters.Deadline:
			sum.plain++ // and the engine's own answer it will be
			continue
		case err != nil, answer.Status != 200, answer.WasLate() && !clock.Over():
			t.Fatalf("%+v: %+v: %v %+v", c, clock, err, answer)
		}
		got := parts(answer.Body)
		for i, o := range answer.Outcomes {
			like, of := own[i], "the engine's own"
			switch o.Reason {
			case "":
				sum.collapsed++
				like, of = collapsed[i], "what there was in time"
			case adapters.Deadline:
				sum.cut++
			}
			if diff := cmp.Diff(like, got[i]); diff != "" {
				t.Fatalf("%s %+v: %+v: search %d, %+v, is not %s (-want +got):\n%s", strings.ToLower(plain.Method), c, clock, i, o, of, diff)
			}
		}
	}
}

// strikes returns when the time can be over for a search that takes so many rounds and looks at the time.
func strikes(r *rand.Rand, all adaptertest.Clock) (clocks []adaptertest.Clock) {
	for round := 2; round <= all.Rounds; round++ {
		clocks = append(clocks, adaptertest.Clock{Round: round})
	}
	calls := r.Perm(all.Calls)
	for _, call := range slices.Compact(slices.Sorted(slices.Values(append([]int{0, all.Calls - 1}, calls[:min(len(calls), 8)]...)))) {
		clocks = append(clocks, adaptertest.Clock{Call: call + 1})
	}
	return clocks
}
