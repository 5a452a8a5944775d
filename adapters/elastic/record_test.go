package elastic

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

var (
	record = flag.Bool("record", false, "record the replies in testdata/exchanges anew, from real engines")
	prefix = flag.String("prefix", "recorded_", "what the names of the indices begin with in the engines recorded from")
)

// TestRecord fills the exchange files from real engines:
//
//	go test ./adapters/elastic -run TestRecord -record
//
// A new case is a file for each kind of engine with the sections plan and request.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("only with -record")
	}
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		r := &recorder{larder{t: t, url: engines.Start(t, kind).URL}}
		r.fill()
		for _, x := range loadExchanges(t) {
			if !strings.HasSuffix(x.path, "."+kind+".txtar") {
				continue
			}
			x.replies = nil
			asks, answer := x.run(t, func(_ int, ask *adapters.Request) *adapters.Reply {
				reply := r.send(ask)
				x.replies = append(x.replies, reply)
				return reply
			})
			x.rewrite(t, asks, answer)
		}
	}
}

// names are the indices of the corpus; in the engine each has the prefix.
var names = []string{"news-1", "news-2", "logs-1", "shop-1"}

// recorder is an engine whose indices have the prefix, which is put in front of their names and taken away again in replies.
type recorder struct{ larder }

func (r *recorder) send(ask *adapters.Request) *adapters.Reply {
	r.t.Helper()
	var pairs, back []string
	for _, name := range append([]string{"news-*", "news-none"}, names...) {
		pairs, back = append(pairs, name, *prefix+name), append(back, *prefix+name, name)
	}
	to := strings.NewReplacer(pairs...)
	reply := r.larder.send(requestFor(ask.Method, to.Replace(ask.Path), to.Replace(ask.RawQuery), to.Replace(string(ask.Body))))
	reply.Header, reply.Body = adapters.Header{}, []byte(strings.NewReplacer(back...).Replace(string(reply.Body)))
	return reply
}

// fill makes the corpus: versions of six reports. news-1 holds sketches, news-2 and logs-1 none, and shop-1 has our field
// mapped as a text by mistake.
func (r *recorder) fill() {
	r.t.Helper()
	e := rule.NewEnricher(adaptertest.Always(exchangeRules(r.t)[0]), 1<<20)
	for i, name := range names {
		r.drop(*prefix + name)
		ours := `"type":"binary","doc_values":true`
		if name == "shop-1" {
			ours = `"type":"text"`
		}
		r.must("PUT", "/"+*prefix+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0},`+
			`"mappings":{"properties":{"neardup_sketch":{`+ours+
			`},"neardup_cluster":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"}}}}`)
		var bulk []byte
		for rank, version := range versions[:14-3*i] {
			bulk = fmt.Appendf(bulk, "{\"index\":{\"_id\":\"%d\"}}\n", rank)
			document := fmt.Appendf(nil, `{"n":%d,"title":"%s","body":"%s"}`, rank, titles[version[0]], fmt.Sprintf(bodies[version[0]],
				version[1]))
			if name == "news-1" { // with the report for its cluster
				document = e.Append(nil, name, document, false)
				document, _ = jsonedit.Set(document, rule.ClusterField, fmt.Appendf(nil, "%q", exchangeRules(r.t)[0].ClusterID(uint64(version[0]))))
			}
			bulk = append(append(bulk, document...), '\n')
		}
		r.must("POST", "/"+*prefix+name+"/_bulk?refresh=true", string(bulk))
	}
}

// versions are the report at each rank and its version: which ends in another number.
var versions = [][2]int{{0, 1}, {0, 2}, {1, 1}, {0, 3}, {2, 1}, {1, 2}, {3, 1}, {3, 1}, {4, 1}, {0, 4}, {4, 2}, {5, 1}, {2,
	2}, {5, 2}}

var (
	titles = []string{"River rises", "Market closes early", "New bridge opens", "Storm warning", "School wins prize",
		"Train delayed"}
	bodies = []string{
		"After three days of rain the river has reached the lower town, and the ferry is out of service until further notice %d",
		"Traders went home at noon when the power failed in the old hall, and prices of wheat and barley hardly moved before it %d",
		"The mayor cut the ribbon in front of a small crowd, while lorries were already waiting on both banks of the canal %d",
		"Gusts of up to ninety kilometres an hour are expected along the coast tonight, so fishermen should stay in the harbour %d",
		"A class of fourteen pupils built a clock that runs on tides alone, which the jury called the finest work in years %d",
		"Passengers for the north wait in the main hall because a signal box burnt out in the early hours of the morning %d",
	}
)
