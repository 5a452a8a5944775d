package typesense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// bench is a real engine with a collection of its own, and a sidecar in small: the dialect and the store, and no proxy.
type bench struct {
	t          *testing.T
	engine     *engines.Engine
	key        string
	collection string
	rule       *rule.Rule
	plan       adapters.Plan
	counts     map[rule.Change]int
	outcome    adapters.Outcome // of the last search through the sidecar
	memo       memo
	// assigned are clusters that patches give to texts, by fingerprint; nil for each text's own.
	assigned map[uint64]string
	front    func(*adapters.Request) *adapters.Reply // stands before the engine, if not nil
}

func newBench(t *testing.T, schema string, fields ...string) *bench {
	t.Helper()
	b := &bench{t: t, engine: engines.Shared(t, engines.Typesense), counts: map[rule.Change]int{}, memo: memo{}}
	b.key = b.engine.Key
	b.collection = fmt.Sprintf("neardup_test_%s_%d", strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(t.Name(), "Test"), "/", "_")), os.Getpid())
	b.rule = newRule(t, b.collection, fields...)
	b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: 0.3}}, b.rule)
	b.direct("DELETE", "/collections/"+b.collection, "")
	b.must(201)(b.direct("POST", "/collections", schema))
	t.Cleanup(func() { b.direct("DELETE", "/collections/"+b.collection, "") })
	return b
}

func (b *bench) store() adapters.EngineStore {
	return Dialect{}.Open(nil, b.urls(), rule.Rules{b.rule})(adapters.Header{keyHeader: {b.key}}, "")
}

// whole has the rule store all three fields of ours.
func (b *bench) whole() *bench {
	b.rule.Bands, b.rule.Rows, b.rule.Clusters = 16, 8, true
	return b
}

// send sends a request as it stands.
func (b *bench) send(r *adapters.Request) *adapters.Reply {
	b.t.Helper()
	if b.front != nil {
		return b.front(r)
	}
	return adaptertest.Send(b.t, b.engine.URL, r)
}

func (b *bench) request(method, path, body string) *adapters.Request {
	r := get(strings.ReplaceAll(path, "NAME", b.collection))
	r.Method, r.Body = method, []byte(strings.ReplaceAll(body, "NAME", b.collection))
	r.Header = adapters.Header{keyHeader: {b.key}}
	return r
}

// direct sends a request past the sidecar.
func (b *bench) direct(method, path, body string) (int, string) {
	b.t.Helper()
	reply := b.send(b.request(method, path, body))
	return reply.Status, string(reply.Body)
}

// through sends a request through the sidecar in small.
func (b *bench) through(method, path, body string) (int, string) {
	b.t.Helper()
	d, r := Dialect{}, b.request(method, path, body)
	c := d.Classify(r)
	switch c.Kind {
	case adapters.KindWrite:
		indices := expect.Value(b.store().Prepare(b.t.Context(), c.Target, true))(b.t)
		w := adaptertest.Always(rule.Rules{b.rule}.For(indices[0].Name))
		if !indices[0].Ready {
			w = adaptertest.Unprepared(b.rule)
		}
		w.Counts = func(c rule.Change) { b.counts[c]++ }
		var enriched bytes.Buffer
		if _, err := d.EnrichWrite(c, &enriched, bytes.NewReader(r.Body), w, 1<<30); err != nil {
			b.t.Fatal(err)
		}
		r.Body = enriched.Bytes()
	case adapters.KindSearch:
		status, answer, outcome := b.answer(r)
		b.outcome = outcome
		return status, answer
	}
	return b.cleaned(c, r)
}

// answer sends a search through the sidecar in small, and returns the outcome of its first search.
func (b *bench) answer(r *adapters.Request) (int, string, adapters.Outcome) {
	b.t.Helper()
	c := Dialect{}.Classify(r)
	s := Dialect{}.ParseSearch(c, r, b.plan)
	if s.Refusal != nil {
		return s.Refusal.Status, string(s.Refusal.Body), adapters.Outcome{Reason: "refusal"}
	}
	reason := s.Reason
	if !s.Left() {
		answer, err := adaptertest.Run(s, b.send)
		if err == nil {
			return answer.Status, string(answer.Body), answer.Outcomes[0]
		}
		reason = adapters.Reason(err.Error())
	}
	c.NamesOurs = c.NamesOurs || s.NamesOurs
	status, body := b.cleaned(c, s.Plain)
	return status, body, adapters.Outcome{Reason: reason}
}

// cleaned sends a request, and returns the reply without our fields.
func (b *bench) cleaned(c adapters.Class, r *adapters.Request) (int, string) {
	b.t.Helper()
	reply := b.send(r)
	var clean strings.Builder
	if err := (Dialect{}).CleanReply(c, &clean, bytes.NewReader(reply.Body)); err != nil {
		b.t.Fatal(err)
	}
	return reply.Status, clean.String()
}

// must fails the test unless the status is right.
func (b *bench) must(status int) func(int, string) string {
	return func(got int, body string) string {
		b.t.Helper()
		if got != status {
			b.t.Fatalf("got %d, want %d: %s", got, status, body)
		}
		return body
	}
}

const articles = `{"name":"NAME","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},{"name":"n","type":"int32","facet":true}]}`

// put imports documents past the sidecar.
func (b *bench) put(documents []map[string]any) {
	b.t.Helper()
	var lines strings.Builder
	for _, d := range documents {
		line := expect.Value(json.Marshal(d))(b.t)
		lines.Write(append(line, '\n'))
	}
	if reply := b.must(200)(b.direct("POST", documentsPath+"/import", lines.String())); strings.Contains(reply, `"success":false`) {
		b.t.Fatal(reply)
	}
}

var took = regexp.MustCompile(`"search_time_ms":\d+`)

func clone(v url.Values) url.Values {
	out := url.Values{}
	for k, values := range v {
		out[k] = append([]string{}, values...)
	}
	return out
}

// Only the sketch is added to what is stored, and no reply shows it.
func TestRealWrites(t *testing.T) {
	b := newBench(t, articles, "title", "body")
	text := `"title":"one two three four five","body":"six seven eight nine ten"`
	for _, c := range []struct {
		method, path, body string
		status             int
		change             rule.Change
	}{
		{"POST", "/collections/NAME/documents/?action=create", `{"id":"1",` + text + `,"n":1,"more":9007199254740993}`, 201, rule.Enriched},
		{"POST", "/collections/NAME/documents?action=upsert", `{"id":"1",` + text + `,"n":2}`, 201, rule.Enriched},
		{"PATCH", "/collections/NAME/documents/1", `{"n":3}`, 201, rule.Untouched},
		{"POST", "/collections/NAME/documents?action=update", `{"id":"1",` + text + `}`, 201, rule.Enriched},
		{"POST", "/collections/NAME/documents?action=emplace", `{"id":"1","title":"other"}`, 201, rule.Cleared},
		{"POST", "/collections/NAME/documents?action=emplace", `{"id":"2",` + text + `,"n":4}`, 201, rule.Enriched},
		{"POST", "/collections/NAME/documents", `{"id":"2",` + text + `,"n":4}`, 409, rule.Enriched},
		{"PATCH", "/collections/NAME/documents/2", `{"title":"other","neardup_sketch":"forged"}`, 201, rule.Cleared},
	} {
		clear(b.counts)
		reply := b.must(c.status)(b.through(c.method, c.path, c.body))
		if strings.Contains(reply, rule.SketchField) || b.counts[c.change] != 1 {
			t.Errorf("%s %s: %v: %s", c.method, c.path, b.counts, reply)
		}
	}
	for id, has := range map[string]bool{"1": false, "2": false} {
		stored := b.must(200)(b.direct("GET", "/collections/NAME/documents/"+id, ""))
		expect.Same(t, has, strings.Contains(stored, rule.SketchField+`":"`), "that there is a sketch in %s", stored)
	}
	b.must(201)(b.through("PATCH", "/collections/NAME/documents/1", `{`+text+`}`))
	stored := b.must(200)(b.direct("GET", "/collections/NAME/documents/1", ""))
	if computed, kept := b.rule.SketchOf([]byte(stored)); kept == nil || computed.Text != kept.Text {
		t.Errorf("the sketch is not that of %s", stored)
	}
	for _, path := range []string{"/collections/NAME/documents/1", "/collections/NAME/documents/export", "/collections/NAME", "/collections", "/collections/NAME/documents/search?q=*"} {
		b.plan = planFor(adapters.Scope{}) // nothing is configured: searches are left alone
		if body := b.must(200)(b.through("GET", path, "")); strings.Contains(body, rule.SketchField) || len(body) < 20 {
			t.Errorf("%s shows %s", path, body)
		}
	}
	if body := b.must(200)(b.through("GET", "/collections/NAME/documents/search?q=*&include_fields=neardup_sketch", "")); !strings.Contains(body, stored[strings.Index(stored, `"neardup_sketch"`):][:60]) {
		t.Errorf("our field is not shown to who names it: %s", body)
	}
	b.must(200)(b.through("DELETE", "/collections/NAME/documents/1", ""))
}

// An import through the sidecar gets the reply that it would get without.
func TestRealImportReplies(t *testing.T) {
	lines := `{"id":"a","title":"one","body":"two \"three\"","n":1}` + "\n\r\n\n" + `{"id":"a","title":"é \u00e9 <>/","body":"\\\",\\\"x","n":1 }` + " \r\n" + `{"bad` + "\n" +
		`{"id":"b","title":5,"body":"x","n":1}` + "\n" + ` { "id" : "c" , "body" : "x y" , "title":"t" } ` + "\n" + `{"id":"d","title":"t","body":"x","n":1}`
	var replies []string
	for _, how := range []string{"direct", "through"} {
		b := newBench(t, articles, "title", "body")
		for _, action := range []string{"create", "upsert", "update"} {
			path := "/collections/NAME/documents/import?return_doc=true&return_id=true&action=" + action
			send := b.through
			if how == "direct" {
				send = b.direct
			}
			replies = append(replies, b.must(200)(send("POST", path, lines)))
		}
	}
	expect.Same(t, replies[:3], replies[3:], "the replies")
}

// Keys that may only search, whole or scoped, can use the sidecar as they use the engine.
func TestRealKeys(t *testing.T) {
	b := newBench(t, vectors, "body")
	b.loadVectors(rand.New(rand.NewPCG(1, 2)), 60, 0.5)
	admin, key := b.key, b.searchKey()(nil)
	defer func() { b.key = admin }()
	const path = "/collections/NAME/documents/search?q=*&per_page=20"
	want := b.must(200)(b.through("GET", path, ""))
	b.key = key
	if got := b.must(200)(b.through("GET", path, "")); took.ReplaceAllString(got, "") != took.ReplaceAllString(want, "") || b.outcome.Folded == 0 {
		t.Errorf("%+v\n%s\n%s", b.outcome, got, want)
	}
	b.key = "wrong"
	status, got := b.through("GET", path, "")
	if wantStatus, want := b.direct("GET", path, ""); status != wantStatus || got != want {
		t.Errorf("a wrong key: %d %s, want %d %s", status, got, wantStatus, want)
	}
	b.key = admin
	for _, bad := range []string{"q=x", "q=x&query_by=nosuch", "q=*&per_page=500", "q=*&sort_by=body:asc"} {
		status, got := b.through("GET", "/collections/NAME/documents/search?"+bad, "")
		if wantStatus, want := b.direct("GET", "/collections/NAME/documents/search?"+bad, ""); status != wantStatus || got != want {
			t.Errorf("%s: %d %s, want %d %s", bad, status, got, wantStatus, want)
		}
	}
}

// TestRealLookByIDs finds each document by its id, whatever signs are in that.
func TestRealLookByIDs(t *testing.T) {
	b := newBench(t, articles, "title", "body")
	ids := append([]string{"plain"}, oddIDs...)
	for _, id := range ids {
		b.put([]map[string]any{{"id": id, "title": "a title", "body": "a body", "n": 1}})
	}
	look := func(ids ...string) (found []string) {
		l := adapters.Look{Index: b.collection, IDs: ids, Size: len(ids), Fields: b.rule.Fields, Judged: true, Header: adapters.Header{keyHeader: {b.key}}}
		request, err := Dialect{}.LookFor(l)
		if err != nil {
			if len(ids) == 1 {
				t.Errorf("%q: %v", ids, err)
			}
			return nil
		}
		for _, hit := range expect.Value(Dialect{}.LookedAt(l, b.send(request)))(t).Hits {
			if hit.Name != b.collection || !strings.Contains(string(hit.Document), "a body") {
				t.Errorf("%q: %+v", ids, hit)
			}
			found = append(found, hit.ID)
		}
		return found
	}
	for _, id := range ids {
		expect.Same(t, []string{id}, look(id), "")
		if together := look("plain", id); id != "plain" && together != nil && len(together) != 2 {
			t.Errorf("with another one, %q: %q", id, together)
		}
	}
	expect.Same(t, []string(nil), look("gone`"), "an id that is not there")
}
