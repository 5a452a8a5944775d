package elastic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// lateSum is what became of searches for which the time was over.
type lateSum struct{ cut, plain, collapsed int }

// strikes has the time for a search be over at every look at the time, or at some of many, and while every reply but the first is awaited.
// The answer is then the engine's own to the client's search, or the one that is given in time.
func (l *larder) strikes(r *rand.Rand, name string, request, own *adapters.Request, plan adapters.Plan, sum *lateSum) {
	t := l.t
	t.Helper()
	run := func(clock *adaptertest.Clock) (*adaptertest.Answer, error) {
		plan.Deadline = clock
		parsed := l.d.ParseSearch(l.d.Classify(request), request, plan)
		if parsed.Left() {
			return nil, adapters.Alone{Reason: parsed.Reason}
		}
		return clock.Run(parsed, l.send)
	}
	var all adaptertest.Clock
	inTime, err := run(&all)
	if alone, ok := errors.AsType[adapters.Alone](err); ok && alone.Reason == "cursor" {
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var clocks []adaptertest.Clock
	for round := 2; round <= all.Rounds; round++ {
		clocks = append(clocks, adaptertest.Clock{Round: round})
	}
	calls := r.Perm(all.Calls)
	for _, call := range slices.Compact(slices.Sorted(slices.Values(append([]int{0, all.Calls - 1}, calls[:min(len(calls), 8)]...)))) {
		clocks = append(clocks, adaptertest.Clock{Call: call + 1})
	}
	parts := func(body []byte) (list []string) { // of several searches each has its own answer
		for _, reply := range fakeReplies([]byte(comparable(string(body)))) {
			list = append(list, string(reply))
		}
		return list
	}
	want := parts([]byte(l.own(own)))
	for _, clock := range clocks {
		answer, err := run(&clock)
		alone, isAlone := errors.AsType[adapters.Alone](err)
		switch {
		case errors.Is(err, adapters.ErrLate), isAlone && alone.Reason == adapters.ReasonDeadline:
			sum.plain++ // and the engine's own answer it will be
			continue
		case err != nil:
			t.Errorf("%s: %+v: %v", name, clock, err)
			return
		case answer.Status != 200 || adapters.WasLate(answer.Outcomes) && !clock.Over():
			t.Errorf("%s: %+v, status %d", name, clock, answer.Status)
			return
		}
		got, collapsed := parts(answer.Body), parts(inTime.Body)
		for i, o := range answer.Outcomes {
			like, of := want[i], "the engine's own"
			switch o.Reason {
			case "":
				sum.collapsed++
				like, of = collapsed[i], "what there was in time"
			case adapters.ReasonDeadline:
				sum.cut++
			}
			expect.Same(t, like, got[i], "%s: %+v: search %d, %+v, is not %s", name, clock, i, o, of)
		}
		if t.Failed() {
			return
		}
	}
}

// TestRealLate has the time for random pages under random rules be over at every point.
func TestRealLate(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		r := seeded(t)
		l.fillPages(r, 60)
		var sum lateSum
		for range searches(10) {
			l.late(r, &sum)
			if t.Failed() {
				return
			}
		}
		t.Logf("%+v", sum)
		if !testing.Short() && (sum.cut < 5 || sum.plain < 5) {
			t.Errorf("too few to tell: %+v", sum)
		}
	})
}

func (l *larder) late(r *rand.Rand, sum *lateSum) {
	p := &page{rule: randomRule(l, r), from: r.IntN(60) * r.IntN(2) * r.IntN(2), size: 1 + r.IntN(20)}
	body, params := randomSearch(r)
	target, multi, after := l.name+[]string{"*", "0", "1"}[r.IntN(3)], r.IntN(4) == 0, ""
	p.choose(r)
	if r.IntN(4) == 0 { // behind a cursor
		multi, p.from = false, 0
		body = `"query":{"match":{"title":"alpha t1 t2"}},"aggs":{"a":{"terms":{"field":"host"}}},"sort":["n",{"at":{"order":"asc","missing":0}}]`
		after = fmt.Sprintf(`,"search_after":[%d,%d]`, r.IntN(20), 1700000000000+int64(r.IntN(40))*3600000)
	}
	request := func(controls string) *adapters.Request {
		text := fmt.Sprintf(`{%s"from":%d,"size":%d%s%s}`, strings.TrimPrefix(body+",", ","), p.from, p.size, after, controls)
		if multi {
			return requestFor("POST", "/_msearch", "", fmt.Sprintf("{\"index\":%q}\n%s\n{\"index\":%q}\n%s\n{\"index\":%q}\n{\"size\":0}\n",
				target, text, l.name+"1", fmt.Sprintf(`{"size":7%s}`, controls), target))
		}
		return requestFor("POST", "/"+target+"/_search", params, text)
	}
	name := fmt.Sprintf("?%s %s\n rule %+v", params, request(p.controls).Body, *p.rule)
	l.strikes(r, name, request(p.controls), request(""), planOf(rule.Rules{p.rule}, r.IntN(2) == 0, []float64{0, 0.3}[r.IntN(2)]), sum)
}
