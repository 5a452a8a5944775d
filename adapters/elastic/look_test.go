package elastic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

var dialect Dialect

// TestLookFor: the request names one index, quotes what was typed, and reads what the judge needs where it is asked to.
func TestLookFor(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "_all", "_doc", "-a", "+a", "*", "a*", "a,b", "a/b", `a\b`, "a?b", "<a-{now/d}>", "c:a", "a b", "a#b",
		`a"b`, "a|b", "/_bulk",
	} {
		if r, err := dialect.LookFor(adapters.Look{Index: name}); err == nil {
			t.Errorf("%q: %s", name, r.Path)
		}
	}
	l := adapters.Look{
		Index: "ä%20.b", Words: "say \"hi\"\n}", Size: 7, Fields: []string{"title", `a"b`}, Titles: []string{"name", "title"},
		Judged: true, Header: adapters.Header{"Authorization": {"x"}}, Deciding: []rule.Deciding{{Field: "at", Date: true}, {Field: "host"}},
	}
	r, err := dialect.LookFor(l)
	expect.OK(t, err)
	const body = `{"track_total_hits":true,"size":7,"query":{"multi_match":{"lenient":true,` +
		`"query":"say \"hi\"\u000a}","fields":["title","a\"b"]}},` +
		`"_source":["title","a\"b","name"],"docvalue_fields":["neardup_sketch",{"field":"at","format":"epoch_millis"},"host"]}`
	if string(r.Body) != body || !json.Valid(r.Body) || r.Path != "/%C3%A4%2520.b/_search" || r.Method != "POST" ||
		r.Header["Authorization"][0] != "x" {
		t.Errorf("%s %s %v\n%s", r.Method, r.Path, r.Header, r.Body)
	}
	expect.Same(t, adapters.KindSearch, (Dialect{}).Classify(r).Kind, "the kind")
	if r, err = dialect.LookFor(adapters.Look{Index: "a", Size: 1, Fields: []string{"b"}}); err != nil ||
		string(r.Body) != `{"track_total_hits":true,"size":1,"query":{"match_all":{}},"_source":["b"]}` {
		t.Errorf("%v %s", err, r.Body)
	}
	if r, err = dialect.LookFor(adapters.Look{Index: "a", IDs: []string{"1", `"`}, Words: "x", Fields: []string{"b"}}); err != nil ||
		!strings.Contains(string(r.Body), `"query":{"ids":{"values":["1","\""]}}`) {
		t.Errorf("%v %s", err, r.Body)
	}
}

// TestLookedAt: hits are read as a search that is collapsed reads them, and refusals are the engine's own.
func TestLookedAt(t *testing.T) {
	reply := `{"hits":{"total":{"value":9,"relation":"eq"},"hits":[
{"_index":".ds-logs-2026.01.02-000003","_id":"1","_score":1.25,"_source":{"b":"x"},"fields":{"neardup_sketch":["abc"],"host":["h","i"]}},
{"_index":"a","_id":"2","_score":null,"inner_hits":{"neardup":{"hits":{"hits":[{"_index":"b","_id":"3"}]}}}}]}}`
	got, err := dialect.LookedAt(adapters.Look{}, &adapters.Reply{Status: 200, Body: []byte(reply)})
	if err != nil || got.Total != 9 || len(got.Hits) != 2 || got.Doubting {
		t.Fatalf("%v %+v", err, got)
	}
	first, second := got.Hits[0], got.Hits[1]
	if first.Index != "logs" || first.Name != ".ds-logs-2026.01.02-000003" || first.ID != "1" || string(first.Stored) != "abc=" ||
		string(first.Score) != "1.25" || string(first.Document) != `{"b":"x"}` ||
		fmt.Sprint(first.Shown.Values(rule.Deciding{Field: "host"})) != "[h i]" {
		t.Errorf("%+v", first)
	}
	if len(first.Folded) > 0 || len(second.Folded) != 1 || second.Folded[0] != (adapters.Named{Index: "b", ID: "3"}) {
		t.Errorf("folded %v, %v", first.Folded, second.Folded)
	}
	if second.Score != nil || string(second.Shown.Document(nil)) != "{}" || len(second.Stored) > 0 {
		t.Errorf("%+v", second)
	}
	for _, c := range []struct {
		status int
		body   string
		want   int
	}{
		{403, `{"error":{"type":"security_exception","reason":"no"},"status":403}`, 403},
		{200, `{"_shards":{"failed":1,"failures":[{"reason":{"type":"x","reason":"[host] is a text"}}]},"hits":{"hits":[]}}`, 400},
		{200, `{"hits":{"hits":[{"_id":"1"}]}}`, 0},
		{200, `nothing`, 0},
	} {
		look := adapters.Look{Deciding: []rule.Deciding{{Field: "host"}}}
		_, err := dialect.LookedAt(look, &adapters.Reply{Status: c.status, Body: []byte(c.body)})
		if err == nil || adapters.StatusOf(err) != c.want || c.want == 0 && !errors.Is(err, adapters.ErrNotUnderstood) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

// TestLookForSearch: a client's own search keeps its page, or has the first ranks read, without our controls.
func TestLookForSearch(t *testing.T) {
	const own = `{"from":5,"size":3,"query":{"term":{"a":1}},"_source":false,"docvalue_fields":["x"],"neardup":"off","aggs":{},"sort":["d"]}`
	l := adapters.Look{Index: "a", Search: []byte(own), Fields: []string{"body"}}
	body := func() string { return string(expect.Value(dialect.LookFor(l))(t).Body) }
	expect.Same(t, strings.Replace(own, `"neardup":"off",`, "", 1), body(), "the client's page")
	l.Size, l.Judged = 200, true
	expect.Same(t, `{"query":{"term":{"a":1}},"sort":["d"],"size":200,"track_total_hits":true,"_source":["body"],"docvalue_fields":["neardup_sketch"]}`,
		body(), "the first ranks")
	for text, want := range map[string]string{`{"query":` + "\n" + ` {]}`: "line 2, column 3", `[]`: "begin it with {"} {
		l.Search = []byte(text)
		if _, err := dialect.LookFor(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReadQuery: words, bodies and the lines of slow logs are told apart.
func TestReadQuery(t *testing.T) {
	const body = `{"size":5,"query":{"match":{"t":"a ] b"}}}`
	escaped := func(text string) string {
		quoted := expect.Value(json.Marshal(text))(t)
		return string(quoted[1 : len(quoted)-1])
	}
	once := escaped(body)
	twice := escaped(once)
	for line, want := range map[string]adapters.Query{
		" storm over sylt\t":   {Words: "storm over sylt"},
		`"say \"hi\""`:         {Words: `say "hi"`},
		`"not closed`:          {Words: `"not closed`},
		"[a] source[b":         {Words: "[a] source[b"},
		body:                   {Search: []byte(body)},
		`{"type":{"odd":"x"}}`: {Search: []byte(`{"type":{"odd":"x"}}`)},
		// As Elasticsearch 9.4 and OpenSearch 3.6 write them, which escape the body twice.
		`{"@timestamp":"2026-01-02T03:04:05.678Z","log.level":"TRACE", "elasticsearch.slowlog.message":"[.ds-news-2026.01.02-000003][0]",` +
			`"elasticsearch.slowlog.source":"` + twice + `","elasticsearch.slowlog.took_millis":47,"log.logger":"index.search.slowlog.query"}`: {
			Search: []byte(body), Index: "news",
		},
		`{"type": "index_search_slowlog", "level": "TRACE", "component": "i.s.s.query", "message": "[news-2][11]", "took": "35ms", "source": "` + twice + `"}`: {
			Search: []byte(body), Index: "news-2",
		},
		`{"type": "search_request_slowlog", "took": "133ms", "shards": "{total:1, successful:1}", "source": "{}"}`: {Search: []byte(`{}`)},
		`{"type": "index_search_slowlog", "message": "[news-2][11]", "source": "` + once + `"}`:                    {Search: []byte(body), Index: "news-2"},
		`[2026-01-02T03:04:05,678][WARN ][i.s.s.query              ] [node-1] [news-2][0] took[5ms], took_millis[5], total_hits[3 hits], stats[], ` +
			`search_type[QUERY_THEN_FETCH], total_shards[1], source[` + body + `], id[], `: {Search: []byte(body), Index: "news-2"},
		`[2026-01-02T03:04:05,678][TRACE][c.s.r.slowlog] [node-1] took[5ms], shards[{total:1, failed:0}], indices[news-1], source[{}], id[]`: {
			Search: []byte(`{}`), Index: "news-1",
		},
		`[2026-01-02T03:04:05,678][TRACE][i.s.s.fetch] [node-1] [news-2][0] took[5ms], source[], id[]`: {Search: []byte(`{}`), Index: "news-2"},
	} {
		got, err := dialect.ReadQuery(line)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %+v (%s)", line, err, got, got.Search)
		}
	}
	for _, line := range []string{`{"query":`, `[x] [a][0] took[1ms], source[{"query":{"mat`} {
		if q, err := dialect.ReadQuery(line); err == nil {
			t.Errorf("%s: %+v", line, q)
		}
	}
}

// TestRealListed: the indices come with how many documents they hold, data streams as themselves, and hidden ones only where a
// rule says so.
func TestRealListed(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		name := strings.ReplaceAll(strings.ToLower(l.name), "_", "-")
		for i, index := range []string{name + "a", name + "b", "." + name + "c", "." + name + "d"} {
			l.create(index, `"body":{"type":"text"}`, 1)
			l.must("POST", "/"+index+"/_bulk?refresh=true", strings.Repeat("{\"index\":{}}\n{\"body\":\"x\"}\n", i+1))
		}
		want := map[string]int{"a": 1, "b": 2, ".c": 3}
		if l.d.OpenSearch { // where a test can be rid of one again
			want["stream"] = 1
			l.drop("_index_template/" + name + "stream") // in the end behind the stream
			l.drop("_data_stream/" + name + "stream")
			l.must("PUT", "/_index_template/"+name+"stream", `{"index_patterns":["`+name+`stream"],"data_stream":{},"priority":500}`)
			l.must("POST", "/"+name+"stream/_doc?refresh=true", `{"@timestamp":"2026-01-01T00:00:00Z","body":"x"}`)
		}
		s := l.store(http.DefaultTransport)
		s.rules = rule.Rules{{Match: "." + name + "c"}}
		list := expect.Value(s.Listed(t.Context()))(t)
		found := map[string]int{}
		for _, i := range list {
			if strings.Contains(i.Name, name) {
				found[strings.Replace(i.Name, name, "", 1)] = i.Documents
			}
		}
		expect.Same(t, want, found, "the hits")
	})
}
