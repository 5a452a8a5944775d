package elastic

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
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
		r := recorder{t: t, url: engines.Start(t, kind).URL}
		r.fill()
		for _, x := range loadExchanges(t) {
			if !strings.HasSuffix(x.path, "."+kind+".txtar") {
				continue
			}
			x.replies = nil
			asks, answer := x.run(t, func(_ int, ask *adapters.Request) *adapters.Reply {
				reply := r.send(ask.Method, ask.Path+"?"+ask.RawQuery, string(ask.Body))
				x.replies = append(x.replies, reply)
				return reply
			})
			x.rewrite(t, asks, answer)
		}
	}
}

type recorder struct {
	t   *testing.T
	url string
}

// names are the indices of the corpus; in the engine each has the prefix.
var names = []string{"news-1", "news-2", "logs-1", "shop-1"}

// send asks the engine, with the prefix put in front of the names and taken away again in the reply.
func (r recorder) send(method, path, body string) *adapters.Reply {
	r.t.Helper()
	var pairs, back []string
	for _, name := range append([]string{"news-*", "news-none"}, names...) {
		pairs, back = append(pairs, name, *prefix+name), append(back, *prefix+name, name)
	}
	to := strings.NewReplacer(pairs...)
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+to.Replace(path), strings.NewReader(to.Replace(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header{},
		Body: []byte(strings.NewReplacer(back...).Replace(string(reply)))}
}

func (r recorder) must(method, path, body string) {
	r.t.Helper()
	if reply := r.send(method, path, body); reply.Status >= 300 || bytes.Contains(reply.Body, []byte(`"errors":true`)) {
		r.t.Fatalf("%s %s: %d %s", method, path, reply.Status, reply.Body)
	}
}

// fill makes the corpus: versions of six reports. news-1 holds sketches, news-2 and logs-1 none, and shop-1 has our field
// mapped as a text by mistake.
func (r recorder) fill() {
	r.t.Helper()
	e := &adapters.Enricher{Rule: func(string, bool) (*adapters.Rule, bool) { return exchangeRules(r.t)[0], true }, Room: 1 << 20}
	for i, name := range names {
		r.send("DELETE", "/"+name, "")
		r.t.Cleanup(func() {
			request, _ := http.NewRequest("DELETE", r.url+"/"+*prefix+name, nil) // the test's context is done
			if resp, err := http.DefaultClient.Do(request); err == nil {
				_ = resp.Body.Close()
			}
		})
		ours := `"type":"binary","doc_values":true`
		if name == "shop-1" {
			ours = `"type":"text"`
		}
		r.must("PUT", "/"+name, `{"settings":{"number_of_shards":1,"number_of_replicas":0},`+
			`"mappings":{"properties":{"neardup_sketch":{`+ours+
			`},"neardup_cluster":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"}}}}`)
		var bulk []byte
		for rank, version := range versions[:14-3*i] {
			bulk = fmt.Appendf(bulk, "{\"index\":{\"_id\":\"%d\"}}\n", rank)
			document := fmt.Appendf(nil, `{"n":%d,"title":"%s","body":"%s"}`, rank, titles[version[0]], fmt.Sprintf(bodies[version[0]],
				version[1]))
			if name == "news-1" { // with the report for its cluster
				document = e.Append(nil, name, document, false)
				document, _ = adapters.Set(document, adapters.ClusterField, fmt.Appendf(nil, "%q", exchangeRules(r.t)[0].ClusterID(uint64(version[0]))))
			}
			bulk = append(append(bulk, document...), '\n')
		}
		r.must("POST", "/"+name+"/_bulk?refresh=true", string(bulk))
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
