package typesense

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/rule"
)

// BenchmarkExchange measures what a collapsed search takes beside the engine and HTTP: Search and what package collapse does, over a reply of 50 hits of
// 2 kB each with their highlights, in the form that 0.24.1 gives it.
func BenchmarkExchange(b *testing.B) {
	for _, share := range []float64{0, 0.3} {
		b.Run(fmt.Sprintf("folding=%v", share), func(b *testing.B) {
			rule := newRule(b, "news", "title", "body")
			plan := planFor(adapters.Scope{Window: 1000}, rule)
			request := get("/collections/news/documents/search?q=report&query_by=title,body&per_page=50")
			ask := firstAsk(b, search(request, plan))
			reply := articleReply(b, rule, share, valuesOf(paramsOf(ask.RawQuery))["per_page"])
			b.SetBytes(int64(len(reply.Body)))
			b.ReportAllocs()
			cost := adaptertest.ProcessorTime(b)
			for b.Loop() {
				answer, err := adaptertest.Run(search(request, plan), func(*adapters.Request) *adapters.Reply { return reply })
				if err != nil || answer.Outcomes[0].Read != 50 || answer.Outcomes[0].Folded > 0 != (share > 0) {
					b.Fatal(answer, err)
				}
			}
			cost()
		})
	}
}

func articleReply(b *testing.B, rule *rule.Rule, share float64, perPage string) *adapters.Reply {
	var hits [][]byte
	for _, d := range adaptertest.Articles(b, rule, 50, 1500, share) {
		hits = append(hits, fmt.Appendf(nil, `{"document":%s,"highlight":{"title":{"matched_tokens":["Report"],"snippet":"<mark>Report</mark> %s of the day"}},"highlights":[{"field":"title","matched_tokens":["Report"],"snippet":"<mark>Report</mark> %s of the day"}],"text_match":578730123365187706,"text_match_info":{"best_field_score":"1108091338752","best_field_weight":15,"fields_matched":2,"score":"578730123365187706","tokens_matched":1}}`,
			d.Source, d.ID, d.ID))
	}
	body := fmt.Appendf(nil, `{"facet_counts":[],"found":50,"hits":[%s],"out_of":50,"page":1,"request_params":{"collection_name":"news","per_page":%s,"q":"report"},"search_cutoff":false,"search_time_ms":3}`,
		bytes.Join(hits, []byte(",")), perPage)
	return &adapters.Reply{Status: 200, Header: adapters.Header{"Content-Type": {"application/json"}}, Body: body}
}
