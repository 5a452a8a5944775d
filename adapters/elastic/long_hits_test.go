package elastic

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// TestLongHits: where hits are known to be long, the engine is asked for the sources of the page's own hits alone, and the page is the same;
// but where the client wants but a part of the sources.
func TestLongHits(t *testing.T) {
	list := revised(t, rand.New(rand.NewPCG(8, 8)), 200, 1)
	for _, c := range []struct {
		body         string
		rounds, more int  // how many sources are asked for beyond the page's, at least
		told         bool // the hits' length is
	}{
		{`{"size":10}`, 2, 0, true}, {`{"from":10,"size":10}`, 2, 0, true}, {`{"size":10,"_source":["title"]}`, 1, 1, false},
		{`{"size":10,"query":{"percolate":{}}}`, 1, 1, false},
	} {
		var answers []string
		for _, long := range []float64{0, 1 << 20} {
			plan := parsePlan(t, "window 100\n")
			scope := plan.Scope
			plan.Scope = func(target string) adapters.Scope {
				s := scope(target)
				s.HitBytes, s.Rate = long, 0.4
				return s
			}
			class, request := searchFor("/news-1/_search", "", c.body)
			rounds, sources := 0, 0
			answer, err := adaptertest.Run(Dialect{}.Search(class, request, plan).Exchange, func(ask *adapters.Request) *adapters.Reply {
				reply := fakeEngine(ask, func([]string) []adaptertest.Document { return list })
				rounds++
				sources += bytes.Count(reply.Body, []byte(`"_source":`))
				return reply
			})
			if err != nil {
				t.Fatal(err)
			}
			if long > 0 && (rounds != c.rounds || sources < 10+c.more || c.more == 0 && sources > 10) {
				t.Errorf("%s: %d requests, %d sources", c.body, rounds, sources)
			}
			if (answer.Outcomes[0].HitBytes > 0) != c.told {
				t.Errorf("%s: hits of %d bytes", c.body, answer.Outcomes[0].HitBytes)
			}
			answers = append(answers, string(answer.Body))
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
			t.Errorf("%s: %s", c.body, diff)
		}
	}
}
