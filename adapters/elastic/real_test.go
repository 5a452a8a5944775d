package elastic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// larder is an engine with indices of a test's own, and what was stored in them.
type larder struct {
	t      *testing.T
	d      Dialect
	url    string
	name   string // what the names of its indices begin with
	stored map[string]stored
	asked  []*adapters.Request // by the exchange that was run last
}

// stored is a document as the test knows it.
type stored struct {
	source map[string]any
	sketch string // as stored, empty if it is not
	at     int64  // Unix milliseconds, 0 if it has none
}

// onBoth runs a test on both engines.
func onBoth(t *testing.T, run func(t *testing.T, l *larder)) {
	onEach(t, []string{engines.Elasticsearch, engines.OpenSearch}, run)
}

func onEach(t *testing.T, names []string, run func(t *testing.T, l *larder)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			e := engines.Shared(t, name)
			l := &larder{t: t, d: Dialect{OpenSearch: e.Kind == engines.OpenSearch}, url: e.URL, stored: map[string]stored{}}
			l.name = fmt.Sprintf("nde_%s_%d_", strings.ToLower(strings.NewReplacer("/", "_", "Test", "").Replace(t.Name())), os.Getpid())
			run(t, l)
		})
	}
}

// send sends a request to the engine itself, even when the test's context is done.
func (l *larder) send(r *adapters.Request) *adapters.Reply {
	l.t.Helper()
	return adaptertest.Send(l.t, l.url, r)
}

func requestFor(method, path, query, body string) *adapters.Request {
	kind := "application/json"
	if strings.HasSuffix(path, "_bulk") || strings.HasSuffix(path, "_msearch") {
		kind = "application/x-ndjson"
	}
	return &adapters.Request{Method: method, Path: path, RawQuery: query, Header: adapters.Header{"Content-Type": {kind}},
		Body: []byte(body)}
}

// must sends a request that has to succeed.
func (l *larder) must(method, path, body string) string {
	l.t.Helper()
	reply := l.send(requestFor(method, path, "", body))
	if reply.Status >= 300 || strings.Contains(string(reply.Body), `"errors":true`) {
		l.t.Fatalf("%s %s: %d %s", method, path, reply.Status, reply.Body)
	}
	return string(reply.Body)
}

// create makes an index of the mapping's properties and our field.
func (l *larder) create(index, properties string, shards int) {
	l.t.Helper()
	l.drop(index)
	l.must("PUT", "/"+index, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0},"mappings":{"properties":{
		"neardup_sketch":{"type":"binary","doc_values":true},%s}}}`, shards, properties))
}

// drop deletes an index, or what else has the path, now and when the test ends.
func (l *larder) drop(path string) {
	l.send(requestFor("DELETE", "/"+path, "", ""))
	l.t.Cleanup(func() { l.send(requestFor("DELETE", "/"+path, "", "")) })
}

// put stores documents. Those with a sketch carry it.
func (l *larder) put(index string, documents map[string]stored) {
	l.t.Helper()
	var bulk []byte
	for id, d := range documents {
		l.stored[index+"\x00"+id] = d
		line := expect.Value(json.Marshal(d.source))(l.t)
		if d.sketch != "" {
			line = expect.Value(rule.WithOurs(line, rule.Ours{Sketch: d.sketch}))(l.t)
		}
		bulk = fmt.Appendf(bulk, "{\"index\":{\"_id\":%q}}\n%s\n", id, line)
	}
	l.must("POST", "/"+index+"/_bulk?refresh=true", string(bulk))
}

// plan is what is known of targets: all rules are behind each.
func planOf(rules rule.Rules, lacking bool, rate float64) adapters.Plan {
	return adapters.Plan{Rules: rules, MaxWindow: 10000, Scope: func(string) adapters.Scope {
		scope := adapters.Scope{Lacking: lacking, Widening: rerank.Widening{Rate: rate}}
		for _, rule := range rules {
			scope.Add(rule)
		}
		return scope
	}}
}

// answer runs a search through the dialect.
func (l *larder) answer(r *adapters.Request, plan adapters.Plan) (*adaptertest.Answer, error) {
	l.t.Helper()
	return l.answerBy(l.send, r, plan)
}

// answerBy does so with an engine of the test's own.
func (l *larder) answerBy(send func(*adapters.Request) *adapters.Reply, r *adapters.Request, plan adapters.Plan) (*adaptertest.Answer, error) {
	l.t.Helper()
	l.asked = nil
	parsed := l.d.ParseSearch(l.d.Classify(r), r, plan)
	switch {
	case parsed.Refusal != nil:
		return &adaptertest.Answer{Reply: parsed.Refusal}, nil
	case parsed.Left():
		return nil, adapters.Alone{Reason: parsed.Reason}
	}
	return adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
		l.asked = append(l.asked, ask)
		return send(ask)
	})
}

// own returns the engine's own reply to a request, less our field.
func (l *larder) own(r *adapters.Request) string {
	l.t.Helper()
	reply := l.send(r)
	if reply.Status != 200 {
		l.t.Fatalf("%s: %d %s", r.Body, reply.Status, reply.Body)
	}
	var clean strings.Builder
	expect.OK(l.t, l.d.CleanReply(l.d.Classify(r), &clean, strings.NewReader(string(reply.Body))))
	return clean.String()
}

// seeded returns a source of chance.
func seeded(t *testing.T) *rand.Rand { return rand.New(rand.NewPCG(effort.Seed(t), 5)) }

// searches is how many searches a random test makes: fewer in a short run, more in a long one.
func searches(n int) int {
	if os.Getenv("NEARDUP_SOAK") != "" {
		return n * 20
	}
	return effort.Rounds(n)
}

// sentence is a version of a text of so many words, of which a few differ from version to version.
func sentence(family, version, words int) string {
	base := rand.New(rand.NewPCG(uint64(family), 1))
	var out []string
	for i := range words {
		word := fmt.Sprintf("w%d", base.IntN(5000))
		if i == 7*version+3 {
			word = fmt.Sprintf("v%d", version)
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func sketcher(t testing.TB) *sketch.Sketcher {
	t.Helper()
	return expect.Value(sketch.New(pinned))(t)
}
