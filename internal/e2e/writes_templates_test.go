package e2e

import (
	"crypto/rand"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// strictDocuments is a mapping that takes the documents of these tests and no field more.
const strictDocuments = `"mappings":{"dynamic":"strict","properties":{"@timestamp":{"type":"date"},"title":{"type":"text"},"body":{"type":"text"}}}`

// newStream makes the template of data streams and returns their common name, which is one of its own: an engine may have no way
// to drop a data stream. What there is is dropped when the test ends.
func newStream(t *testing.T, direct api) string {
	t.Helper()
	name := "wds-" + strings.ToLower(rand.Text()[:8])
	body := `{"index_patterns":["` + name + `*"],"priority":77,"data_stream":{},"template":{` + strictDocuments + `}}`
	call(t, direct.e, "PUT", direct.base+"/_index_template/"+name, body).want(t, 200)
	t.Cleanup(func() {
		for _, path := range []string{"/_data_stream/" + name + "*", "/_index_template/" + name} {
			direct.clear(t, path)
		}
	})
	return name
}

// rollOver writes through the sidecar, one document after another, while a stream is rolled over past it, and fails the test
// where one is refused. It returns how many carry a sketch.
func (a api) rollOver(t *testing.T, stream string) (sketched, all int) {
	t.Helper()
	const each = 20 // documents before the first rollover, between the two and after the second; all fit into the window of the rule
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 3 * each {
			r := a.send(t, "POST /INDEX/_doc | {\"@timestamp\":\"2026-01-01\","+wordsA+"}", stream)
			if r.status != 201 {
				t.Errorf("a document is refused: %d %s", r.status, r.body)
			}
			all++
			var at struct {
				Index string `json:"_index"`
				ID    string `json:"_id"`
			}
			if err := json.Unmarshal(r.body, &at); err != nil {
				t.Error(err)
			}
			if rule.HasSketch(call(t, a.e, "GET", a.e.URL+"/"+at.Index+"/_source/"+at.ID, "").body) {
				sketched++
			}
			if all == each || all == 2*each {
				written <- struct{}{}
			}
		}
	}()
	for range written {
		call(t, a.e, "POST", a.e.URL+"/"+stream+"/_rollover", "").want(t, 200)
	}
	return sketched, all
}

// TestDataStreams writes to data streams with a strict mapping that roll over past the sidecar: nothing is refused, and as soon
// as their template declares our field everything is enriched.
func TestDataStreams(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		s := setup{match: "wds-*"}
		through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
		stream := newStream(t, direct)
		create := "POST /INDEX/_doc?refresh=true | {\"@timestamp\":\"2026-01-01\"," + wordsA + "}"
		through.send(t, create, stream).want(t, 201)
		if sketched, all := through.rollOver(t, stream); sketched != 0 || all < 10 {
			t.Errorf("no template declares our field and %d of %d documents have a sketch", sketched, all)
		}
		out, code := sidecar(t, "setup", "--config", config(t, e, s))
		if code != 0 || !strings.Contains(out, "template "+stream+": ready, the field was added") {
			t.Fatalf("setup ended with %d: %s", code, out)
		}
		time.Sleep(2100 * time.Millisecond) // past us: what is known of an index is believed for two seconds
		if sketched, all := through.rollOver(t, stream); sketched != all || all < 10 {
			t.Errorf("%d of %d documents have a sketch", sketched, all)
		}
		second := stream + "-second" // which the first write makes
		if r := through.send(t, "POST /_bulk?refresh=true | {\"create\":{\"_index\":\"INDEX\"}}¶{\"@timestamp\":\"2026-01-01\","+wordsB+"}¶", second); r.status != 200 || strings.Contains(string(r.body), `"errors":true`) {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for _, h := range kept(t, direct, second) {
			if why := wrong(ruleOfTests(t), h.source); why != "" || !rule.HasSketch(h.source) {
				t.Errorf("the first document of a stream is stored as %s %s", h.source, why)
			}
		}
		succeed(t, "reindex", "--config", config(t, e, s))
		direct.refresh(t, stream)
		r := call(t, e, "POST", through.base+"/"+stream+"/_search", `{"size":5}`).want(t, 200)
		if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed;") || strings.Count(string(r.body), `"_id"`) != 1 {
			t.Errorf("a search of a stream of copies: %s: %.300s", outcome, r.body)
		}
	})
}

// TestSetupTemplates has setup declare our field in templates: in those from which indices of a rule alone are made, in nothing
// else of them, and once.
func TestSetupTemplates(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		s := setup{match: "wst-*"}
		direct, through := api{e, e.URL}, api{e, serve(t, e, s)}
		put := func(path, body string) {
			t.Helper()
			call(t, e, "PUT", e.URL+path, body).want(t, 200)
		}
		// When it was changed, which Elasticsearch 9 tells, is all that may differ.
		changed := regexp.MustCompile(`"modified_date_millis":\d+`)
		get := func(path string) string {
			return changed.ReplaceAllString(string(call(t, e, "GET", e.URL+path, "").want(t, 200).body), `"modified_date_millis":0`)
		}
		templates := map[string]string{
			"/_index_template/wst-whole": `{"index_patterns":["wst-a-*","wst-b"],"priority":5,"version":7,"composed_of":["wst-part"],"_meta":{"by":"us"},"template":{"settings":{"index":{"mapping.total_fields.limit":20,"number_of_replicas":0}},"aliases":{"wst-all":{}},` + strictDocuments + `}}`,
			"/_index_template/wst-bare":  `{"index_patterns":["wst-c-*"],"composed_of":[]}`,
			"/_index_template/wst-wide":  `{"index_patterns":["wst-d-*","other-wst-*"],"priority":6}`,
			"/_index_template/wst-ours":  `{"index_patterns":["wst-e-*"],"_meta":{"managed":true}}`,
			"/_index_template/.wst-dot":  `{"index_patterns":["wst-f-*"]}`,
			"/_index_template/wst-other": `{"index_patterns":["other-wst-2"]}`,
			"/_template/wst-old":         `{"index_patterns":["wst-g-*"],"order":3,"version":9,"settings":{"index.mapping.total_fields.limit":9},"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"}}},"aliases":{"wst-all":{}}}`,
		}
		put("/_component_template/wst-part", `{"template":{"mappings":{"properties":{"n":{"type":"integer"}}}}}`)
		p := pair{direct: direct, one: "x"}
		p.later(t, "/_component_template/wst-part") // cleaned up last
		before := map[string]string{}
		for path, body := range templates {
			put(path, body)
			p.later(t, path)
			before[path] = get(path)
		}
		file := config(t, e, s)
		for i, want := range []string{"the field would be added", "ready, the field was added", "ready"} {
			args := []string{"setup", "--config", file}
			if i == 0 {
				args = append(args, "--dry-run")
			}
			out := string(succeed(t, args...))
			for name, want := range map[string]string{
				"wst-whole": want, "wst-bare": want, "wst-old": want,
				"wst-wide": "left alone: it also makes indices that no rule matches", "wst-ours": "left alone: it is the engine's own",
			} {
				if !strings.Contains(out, "template "+name+": "+want) {
					t.Errorf("%v does not say of %s that it is %q:\n%s", args, name, want, out)
				}
			}
			if strings.Contains(out, ".wst-dot") || strings.Contains(out, "wst-other") {
				t.Errorf("%v says something of what is none of our business:\n%s", args, out)
			}
		}
		const ours = `"neardup_sketch":{"meta":{"declared_by":"template"},"type":"binary","doc_values":true}`
		for path, was := range before {
			want := canonical(t, []byte(was))
			switch path {
			case "/_index_template/wst-whole":
				was = strings.Replace(was, `"limit":"20"`, `"limit":"21"`, 1)
				want = canonical(t, []byte(strings.Replace(was, `"properties":{`, `"properties":{`+ours+`,`, 1)))
			case "/_index_template/wst-bare":
				want = canonical(t, []byte(strings.Replace(was, `"index_patterns"`, `"template":{"mappings":{"properties":{`+ours+`}}},"index_patterns"`, 1)))
			case "/_template/wst-old":
				was = strings.Replace(was, `"limit":"9"`, `"limit":"10"`, 1)
				want = canonical(t, []byte(strings.Replace(was, `"properties":{`, `"properties":{`+ours+`,`, 1)))
			}
			same(t, want, canonical(t, []byte(get(path))), "%s", path)
		}
		// What is made from them takes sketches, whoever makes it.
		for i, index := range []string{"wst-a-1", "wst-c-1", "wst-g-1"} {
			direct.drop(t, index)
			if i == 0 {
				put("/"+index, "")
			}
			body := `{"title":"a b c"}`
			for range 2 {
				through.send(t, "PUT /INDEX/_doc/1 | "+body, index)
			}
			if got := direct.get(t, index, "1"); !rule.HasSketch(got) || wrong(ruleOfTests(t), got) != "" {
				t.Errorf("%s: %s", index, got)
			}
			if m := get("/" + index + "/_mapping"); !strings.Contains(m, "declared_by") {
				t.Errorf("%s was made otherwise: %s", index, m)
			}
		}
	})
}

// TestPipelines writes through ingest pipelines: the engine changes documents after they were sketched, which setup says and
// reindex mends.
func TestPipelines(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	s := setup{match: "wpip-*"}
	p := newPair(t, e, serve(t, e, s), "wpip-x")
	p.set(t, "PUT /_ingest/pipeline/INDEX | {\"processors\":[{\"set\":{\"field\":\"n\",\"value\":1}},{\"set\":{\"if\":\"ctx.title == 'to be changed'\",\"field\":\"title\",\"value\":\"changed\"}},"+
		"{\"drop\":{\"if\":\"ctx.title == 'to be dropped'\"}}]}")
	p.later(t, "/_ingest/pipeline/INDEX")
	p.send(t, "PUT /INDEX/_doc/0?pipeline=INDEX | {\"title\":\"to be dropped\"}", "GET /INDEX/_doc/0 |", // which makes no index
		"PUT /INDEX/_doc/1?pipeline=INDEX | {"+wordsA+"}")
	time.Sleep(1100 * time.Millisecond) // that there is nothing is believed for a second
	p.send(t, "POST /INDEX/_bulk?pipeline=INDEX | {\"index\":{\"_id\":\"2\"}}¶{"+wordsA+"}¶{\"index\":{\"_id\":\"3\",\"pipeline\":\"_none\"}}¶{"+wordsB+"}¶")
	p.same(t, "INDEX", "1") // it makes its index, of which the pipeline might have kept it
	p.set(t, "PUT /INDEX/_settings | {\"index.default_pipeline\":\"INDEX\"}")
	p.send(t, "PUT /INDEX/_doc/4 | {"+wordsB+"}", "PUT /INDEX/_doc/5 | {\"title\":\"to be changed\"}", "PUT /INDEX/_doc/6?pipeline=nosuchpipeline | {"+wordsA+"}")
	if source := kept(t, p.direct, p.two)["5"].source; wrong(ruleOfTests(t), source) == "" {
		t.Errorf("the pipeline changed nothing after the sketch: %s", source)
	}
	file := config(t, e, s)
	if out, code := sidecar(t, "setup", "--config", file); code != 0 || !strings.Contains(out, p.two+": note: the ingest pipeline "+p.two+" runs after") {
		t.Errorf("setup ended with %d and says nothing of the pipeline: %s", code, out)
	}
	succeed(t, "reindex", "--config", file)
	for id, h := range kept(t, p.direct, p.two) {
		if why := wrong(ruleOfTests(t), h.source); why != "" || !rule.HasSketch(h.source) {
			t.Errorf("after reindex %s is stored as %s %s", id, h.source, why)
		}
	}
}
