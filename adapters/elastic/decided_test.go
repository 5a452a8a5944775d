package elastic

import (
	"bytes"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
)

// asked are the documents about which a search asked what was decided.
type asked map[string]bool

func (a asked) Of(index, id string, _ uint64) *rerank.Decided {
	a[index+" "+id] = true
	return nil
}

func (a asked) Mark() uint64 { return 0 }

// TestDeepPagesKnowTheirDocuments: where people have decided about documents, readings of sketches alone show which document each hit is of. Otherwise they show
// sequence numbers.
func TestDeepPagesKnowTheirDocuments(t *testing.T) {
	for _, decided := range []bool{false, true} {
		plan, seen, numbered := searchPlan(t, false), asked{}, 0
		plan.MaxWindow = 1000
		plan.Scope = func(string) adapters.Scope {
			scope := adapters.Scope{Configured: true, Window: 1000, Widening: rerank.Widening{Rate: 0.3}}
			if decided {
				scope.Decided = seen
			}
			return scope
		}
		documents := adaptertest.Articles(t, plan.Rules[0], 1000, 1400, 0.3)
		class, request := searchFor("/news-1/_search", "", `{"from":490,"size":10}`)
		answer, err := adaptertest.Run(Dialect{}.ParseSearch(class, request, plan), func(ask *adapters.Request) *adapters.Reply {
			if bytes.Contains(ask.Body, []byte(`"seq_no_primary_term":true`)) {
				numbered++
			}
			return articleReply(t, ask.Body, documents)
		})
		expect.OK(t, err)
		if want := answer.Outcomes[0].Read; decided && (len(seen) < want || !seen["news-1 "+documents[0].ID] || numbered > 0) || !decided && (len(seen) > 0 || numbered == 0) {
			t.Errorf("decided %v: asked about %d of %d documents, %d requests for sequence numbers", decided, len(seen), want, numbered)
		}
	}
}
