package elastic

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/rerank"
)

// BenchmarkExchange measures what a collapsed search takes beside the engine and HTTP: Search and what package collapse does. The first page holds 50 hits
// of 2 kB each with their sketches beside and within the source, in the form that 8.19.13 gives it; the deep one lies behind 700 hits whose
// sketches alone are read. The rows that end in decided are the same beside 100,000 decided pairs of other documents.
func BenchmarkExchange(b *testing.B) {
	for _, c := range []struct {
		name       string
		hits, from int
		size       int
		share      float64
		decided    int
	}{
		{"folding=0", 50, 0, 50, 0, 0}, {"folding=0.3", 50, 0, 50, 0.3, 0}, {"folding=0.3,decided", 50, 0, 50, 0.3, 100_000},
		{"deep", 1000, 490, 10, 0.3, 0}, {"deep,decided", 1000, 490, 10, 0.3, 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			plan := searchPlan(b, false)
			plan.MaxWindow = 1000
			scope := adapters.Scope{Configured: true, Window: 1000, Widening: rerank.Widening{Rate: c.share}}
			plan.Scope = func(string) adapters.Scope {
				return scope
			}
			var pairs []decided.Pair
			for i := range c.decided {
				pairs = append(pairs, decided.Pair{
					Index: "news-1", A: fmt.Sprint("a", i), B: fmt.Sprint("b", i), Verdict: decided.Different, TextA: uint64(i) * 0x9e3779b97f4a7c15, TextB: uint64(i) * 0xbf58476d1ce4e5b9,
				})
			}
			if c.decided > 0 {
				scope.Decided = decided.NewSet(pairs)
			}
			replies := map[string]*adapters.Reply{}
			documents := adaptertest.Articles(b, plan.Rules[0], c.hits, 1400, c.share)
			engine := func(ask *adapters.Request) *adapters.Reply {
				if replies[string(ask.Body)] == nil {
					replies[string(ask.Body)] = articleReply(b, ask.Body, documents)
				}
				return replies[string(ask.Body)]
			}
			class, request := searchFor("/news-1/_search", "", fmt.Sprintf(`{"from":%d,"size":%d}`, c.from, c.size))
			b.ReportAllocs()
			cost := adaptertest.ProcessorTime(b)
			for b.Loop() {
				answer, err := adaptertest.Run(Dialect{}.ParseSearch(class, request, plan), engine)
				if err != nil || answer.Outcomes[0].Read < c.from+c.size || answer.Outcomes[0].Folded > 0 != (c.share > 0) {
					b.Fatal(answer, err)
				}
			}
			cost()
			n := 0
			for _, reply := range replies {
				n += len(reply.Body)
			}
			b.SetBytes(int64(n))
		})
	}
}

// articleReply answers a search as the engine does whose list the documents are.
func articleReply(b testing.TB, body []byte, documents []adaptertest.Document) *adapters.Reply {
	reply, status := fakeSearch(body, documents)
	if status != 200 {
		b.Fatalf("%s", reply)
	}
	return fakeReply(200, bytes.ReplaceAll(reply, []byte(`"failed":0}`), []byte(`"successful":1,"skipped":0,"failed":0}`)))
}
