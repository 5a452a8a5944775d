package elastic

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

// searchPlan knows the targets that begin with "news" and expects no hit to fold.
func searchPlan(t testing.TB, lacking bool) adapters.Plan {
	rules, behind := adaptertest.Rules(t), adapters.Scope{}
	behind.Add(rules[0])
	return adapters.Plan{Rules: rules, MaxWindow: 100, Scope: func(target string) adapters.Scope {
		return adapters.Scope{Configured: strings.HasPrefix(target, "news"), Window: 30, Lacking: lacking, Texts: behind.Texts}
	}}
}

func searchFor(path, query, body string) (adapters.Class, *adapters.Request) {
	r := &adapters.Request{Method: "POST", Path: path, RawQuery: query,
		Header: adapters.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	return Dialect{}.Classify(r), r
}

// TestManyMembers: a search, or an entry's header, with more members than any engine knows is left alone before a list is made of them.
func TestManyMembers(t *testing.T) {
	many := "{" + strings.Repeat(`"":1,`, 1<<20) + `"size":1}`
	for path, body := range map[string]string{"/news/_search": many, "/news/_msearch": many + "\n{}\n"} {
		c, r := searchFor(path, "", body)
		used := allocated(func() {
			if s := (Dialect{}).ParseSearch(c, r, searchPlan(t, false)); !s.Left() || s.Reason != "not_understood" {
				t.Errorf("%s: %q", path, s.Reason)
			}
		})
		if used > uint64(len(body)) {
			t.Errorf("%s: %d bytes for a search of %d", path, used, len(body))
		}
	}
}

// TestLongLists: of a list that is longer than any engine takes no list is made.
func TestLongLists(t *testing.T) {
	for _, key := range []string{"sort", "_source", "fields", "docvalue_fields", "stored_fields", "search_after", "rescore"} {
		body := `{"` + key + `":[` + strings.Repeat(`1,`, 4<<20) + `1]}`
		c, r := searchFor("/news/_search", "", body)
		used := allocated(func() { _ = (Dialect{}).ParseSearch(c, r, searchPlan(t, false)) })
		t.Logf("%s: %d MB for a search of %d MB", key, used>>20, len(body)>>20)
		if used > uint64(6*len(body)) {
			t.Errorf("%s: %d bytes for a search of %d", key, used, len(body))
		}
	}
}

func TestAsks(t *testing.T) {
	const ours = `"docvalue_fields":["neardup_sketch"]`
	for _, c := range []struct {
		name, query, body string
		lacking           bool
		wantQuery, want   string
	}{
		{"no body", "", ``, false, "", `{"from":0,"size":10,` + ours + `}`},
		{"from and size stay where they stand", "", `{"size":3,"query":{"match_all":{}},"from":1}`, false, "",
			`{"query":{"match_all":{}},"from":0,"size":4,` + ours + `}`},
		{"in the URL", "size=3&q=a%20b&from=1&pretty", ``, false, "q=a%20b&pretty", `{"from":0,"size":4,` + ours + `}`},
		{"the URL wins", "size=3", `{"size":5}`, false, "", `{"from":0,"size":3,` + ours + `}`},
		{"controls go", "neardup=on&q=a&neardup_window=5", `{"neardup_threshold":0.9,"size":2}`, false, "q=a",
			`{"from":0,"size":2,` + ours + `}`},
		{"the source filtered in the URL, lacking", "_source=b*,t&_source_excludes=body,m", `{"_source":false}`, true, "",
			`{"from":0,"size":1,"_source":["body","title"],` + ours + `}`},
		{"the source filtered, lacking", "", `{"_source":{"excludes":["title","body"]}}`, true, "",
			`{"from":0,"size":1,"_source":["body","title"],` + ours + `}`},
		{"the whole source, lacking", "_source=true", `{"_source":["title","body","n"]}`, true, "_source=true",
			`{"_source":["title","body","n"],"from":0,"size":10,` + ours + `}`},
		{"a pattern that brings the sketch", "", `{"fields":["n*"]}`, false, "", `{"fields":["n*"],"from":0,"size":10}`},
		{"all in the URL", "source=%7B%22size%22:3%7D&source_content_type=application/json&pretty", ``, false, "pretty",
			`{"from":0,"size":3,` + ours + `}`},
		{"client's docvalue_fields in the URL", "docvalue_fields=n", ``, false, "docvalue_fields=n",
			`{"from":0,"size":10,` + ours + `}`},
		{"client names our field", "", `{"docvalue_fields":[{"field":"neardup_sketch"}]}`, false, "",
			`{"docvalue_fields":[{"field":"neardup_sketch"}],"from":0,"size":10}`},
		{"client names our field in the URL", "docvalue_fields=n,neardup_sketch", ``, false, "docvalue_fields=n,neardup_sketch",
			`{"from":0,"size":10}`},
		{"sketches only, the rest later", "from=60&_source=n&docvalue_fields=n&sort=n&suggest_field=title",
			`{"highlight":{},"fields":["n"],"aggs":{},"suggest":{},"explain":true,"track_scores":true,"terminate_after":5}`, false,
			"sort=n", `{"track_scores":true,"terminate_after":5,"from":0,"size":1,"_source":false,` + ours + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			class, r := searchFor("/news-1/_search", c.query, c.body)
			plan := searchPlan(t, c.lacking)
			plan.MaxWindow = 1 // so that the pager reads no more than the page
			parsed := Dialect{}.ParseSearch(class, r, plan)
			if parsed.Left() {
				t.Fatalf("left alone: %s %+v", parsed.Reason, parsed.Refusal)
			}
			ask := firstAsk(t, parsed)
			expect.Same(t, c.want, string(ask.Body), "")
			expect.Same(t, c.wantQuery, ask.RawQuery, "")
			if ask.Method != "POST" || ask.Path != "/news-1/_search" || !slices.Equal(ask.Header["Content-Type"],
				[]string{"application/json"}) {
				t.Errorf("%+v", ask)
			}
		})
	}
}

func TestAskOfABarePathGetsAContentType(t *testing.T) {
	r := &adapters.Request{Method: "GET", Path: "/news-1/_search", RawQuery: "q=a",
		Header: adapters.Header{"Authorization": {"Basic x"}}}
	ask := firstAsk(t, Dialect{}.ParseSearch(Dialect{}.Classify(r), r, searchPlan(t, false)))
	expect.Same(t, "GET", ask.Method, "the method")
	expect.Same(t, adapters.Header{"Authorization": {"Basic x"}, "Content-Type": {"application/json"}}, ask.Header, "the header")
	expect.Same(t, 1, len(r.Header), "lines of the client's header")
}

func TestLeftAlone(t *testing.T) {
	for _, c := range []struct{ path, query, body, want string }{
		{"/news-1/_search", "neardup=off", `{}`, "off"},
		{"/news-1/_search", "", `{"neardup":"off"}`, "off"},
		{"/logs-1/_search", "", `{}`, "unconfigured"},
		{"/news-1/_search", "", `{"size":0}`, "size_zero"},
		{"/news-1/_search", "", `{"collapse":{"field":"n"}}`, "client_collapse"},
		{"/news-1/_search", "", `{"search_after":[1],"sort":["n"]}`, ""},
		{"/news-1/_search", "scroll=1m", ``, "export"},
		{"/news-1/_search", "", `{"slice":{"id":0,"max":2}}`, "export"},
		{"/news-1/_search", "", `{"sort":["_doc"]}`, "export"},
		{"/news-1/_search", "neardup=on", `{"sort":"_doc"}`, "export"},
		{"/news-1/_search", "", `{"retriever":{"unheard_of":{}}}`, "vector"},
		{"/news-1/_search", "", `{"query":{"bool":{"filter":[{"percolate" : {"field":"query","document":{}}}]}}}`, "percolate"},
		{"/news-1/_search", "", `{"query":{"p\u0065rcolate":{"document":{},"field":"query"}}}`, "percolate"},
		{"/news-1/_search", "", `{"query":{"wrapper":{"query":"` + base64.StdEncoding.EncodeToString([]byte(`{"percolate":{"field":"q"}}`)) + `"}}}`, "percolate"},
		{"/news-1/_search", "", `{"query":{"wrapper":{"query":"` + base64.StdEncoding.EncodeToString([]byte(`{"match_all":{}}`)) + `"}}}`, ""},
		{"/news-1/_search", "", `{"query":{"match":{"percolate":"percolate"}}}`, ""},
		{"/news-1/_search", "", `{"query":{"match":{"percolate":{"query":"field"}}},"sort":[{"percolate":{"order":"asc"}}]}`, ""},
		{"/news-1/_search", "", `{"from":9990}`, ""},
		{"/news-1/_search", "filter_path=took", ``, ""},
		{"/news-1/_search", "format=yaml", ``, "format"},
		{"/news-1/_search", "source={}&source_content_type=application/json", ``, ""},
		{"/news-1/_search", "source={}&source_content_type=application/json", `{}`, "not_understood"},
		{"/news-1/_search", "unheard_of=1", ``, "not_understood"},
		{"/news-1/_search", "", `{"unheard_of":1}`, "not_understood"},
		{"/news-1/_search", "", `{"query":`, "not_understood"},
		{"/news-1/_search", "", `{"query":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `}`,
			"not_understood"}, // the engine refuses it
		{"/news-1/_search", "", `{"size":"3"}`, ""},
		{"/news-1/_search", "", `{"size":99999999999999999999}`, "not_understood"},
		{"/news-1/_search", "", `{"stored_fields":"_none_"}`, "not_understood"},
		{"/_msearch", "", "{\"index\":\"logs-1\"}\n{}\n{\"index\":\"news-1\"}\n{\"size\":0}\n", "size_zero"},
		{"/_msearch", "", "{\"index\":\"logs-1\"}\n{}\n", "unconfigured"},
		{"/news-1/_search", "", `{"rescore":{},"size":11}`, "rescore"},
		{"/news-1/_search", "", `{"suggest":{"s":{"prefix":"a","completion":{"field":"f"}}}}`, ""},
		{"/_msearch", "", "{\"index\":\"logs-1\"}\n{}\n{\"index\":[\"news-1\",\"x\"]}\n{}\n", ""},
		{"/news-1/_msearch", "", "\n{}\n", ""},
		{"/news-1/_msearch", "", "{}", "not_understood"},
		{"/news-1/_msearch", "", "{}\n{}", "not_understood"},
		{"/news-1/_search", "", `{"sort":{"_shard_doc":{"order":"asc"}}}`, "export"},
		{"/news-1/_search", "", `{"sort":["_doc","n"]}`, ""},
		{"/news-1/_search", "", `{"from":9223372036854775807}`, "engine_limit"},
		{"/news-1/_msearch", "filter_path=took", "{}\n{}\n", ""},
		{"/news-1/_msearch", "", "{\"index\":\n{}\n", "not_understood"},
	} {
		class, r := searchFor(c.path, c.query, c.body)
		parsed := Dialect{}.ParseSearch(class, r, searchPlan(t, false))
		if parsed.Refusal != nil || string(parsed.Reason) != c.want || parsed.Left() != (c.want != "") {
			t.Errorf("%s?%s %s: %q, exchange %v, refusal %v; want %q", c.path, c.query, c.body, parsed.Reason, !parsed.Left(),
				parsed.Refusal, c.want)
		}
		if c.body != "" && !strings.Contains(c.body, "neardup") && string(parsed.Plain.Body) != c.body {
			t.Errorf("%s: the plain body became %s", c.body, parsed.Plain.Body)
		}
	}
}

// TestBlankLinesOfAMultiSearch: OpenSearch skips a blank first line, which Elasticsearch takes for an empty header.
func TestBlankLinesOfAMultiSearch(t *testing.T) {
	class, r := searchFor("/news-1/_msearch", "", "\n{}\n")
	if got := (Dialect{OpenSearch: true}).ParseSearch(class, r, searchPlan(t, false)); got.Reason != "not_understood" || !got.Left() {
		t.Errorf("%+v", got)
	}
}

func TestLeftAloneForItsHeader(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"Content-Type", "application/yaml", "format"}, {"Content-Type", "application/smile", "format"}, {"Accept",
			"application/cbor", "format"},
		{"Content-Type", "application/vnd.elasticsearch+json;compatible-with=8", ""}, {"Accept", "text/html, */*", ""},
		{"Authorization", "AWS4-HMAC-SHA256 Credential=x", "signed"}, {"Authorization", "ApiKey x", ""},
	} {
		class, r := searchFor("/news-1/_search", "", `{}`)
		r.Header[c.key] = []string{c.value}
		expect.Same(t, c.want, string((Dialect{}).ParseSearch(class, r, searchPlan(t, false)).Reason), "%s: %s", c.key, c.value)
	}
}

func TestControlsOfAMultiSearchAreCutOutOfItsPlainForm(t *testing.T) {
	class, r := searchFor("/_msearch", "neardup_window=5",
		"{\"index\":\"news-1\"}\n{\"neardup\":\"off\",\"size\":3}\n{\"index\":\"logs-1\"}\n{ }\n")
	parsed := Dialect{}.ParseSearch(class, r, searchPlan(t, false))
	want := "{\"index\":\"news-1\"}\n{\"size\":3}\n{\"index\":\"logs-1\"}\n{ }\n"
	expect.Same(t, [2]string{want, ""}, [2]string{string(parsed.Plain.Body), parsed.Plain.RawQuery}, "the body and the query")
	if parsed.Reason != "off" || !parsed.Left() {
		t.Errorf("%+v", parsed)
	}
}

// firstAsk returns what the engine is asked first.
func firstAsk(t *testing.T, parsed *adapters.Searches) (first *adapters.Request) {
	t.Helper()
	_, _ = adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
		if first == nil {
			first = ask
		}
		return fakeReply(503, nil)
	})
	if first == nil {
		t.Fatal("nothing is asked")
	}
	return first
}

// afterReply returns what is asked after a reply to the first ask of a search, or answered.
func afterReply(t *testing.T, path, body, reply string) (*adapters.Request, *adaptertest.Answer, error) {
	t.Helper()
	class, r := searchFor(path, "", body)
	parsed := Dialect{}.ParseSearch(class, r, searchPlan(t, false))
	if parsed.Left() {
		t.Fatal(parsed.Reason)
	}
	var asks []*adapters.Request
	answer, err := adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
		if asks = append(asks, ask); len(asks) > 1 {
			return fakeReply(503, nil)
		}
		return fakeReply(200, []byte(reply))
	})
	if len(asks) > 1 {
		return asks[1], nil, nil
	}
	return nil, answer, err
}

func TestShardsThatCannotReadOurFieldMakeTheSearchPlain(t *testing.T) {
	const reply = `{"_shards":{"failed":1,"failures":[{"reason":{"reason":"Fielddata is disabled on [neardup_sketch]"}}]},` +
		`"hits":{"hits":[]}}`
	if _, _, err := afterReply(t, "/news-1/_search", `{}`, reply); !errors.Is(err, adapters.ErrWidened) || errors.Is(err,
		adapters.ErrNotUnderstood) {
		t.Error(err)
	}
	ask, _, err := afterReply(t, "/_msearch", "{\"index\":\"news-1\"}\n{\"size\":3}\n", `{"responses":[`+reply+`]}`)
	if err != nil || ask == nil || string(ask.Body) != "{\"index\":\"news-1\"}\n{\"size\":3}\n" {
		t.Errorf("%+v %v", ask, err)
	}
}

func TestFieldsAskedForTwice(t *testing.T) {
	sketched, ok := adaptertest.Rules(t)[0].Sketch([]string{"one two three four five"})
	if !ok {
		t.Fatal("no sketch")
	}
	text := `"` + sketched.String() + `"`
	hit := func(id, fields string) string {
		return `{"_index":"news-1","_id":"` + id + `","fields":{` + fields + `}}`
	}
	reply := `{"hits":{"total":2,"hits":[` + hit("1", `"neardup_sketch":[`+text+`,`+text+`],"n":[1]`) + `,` + hit("2",
		`"n":[2],"neardup_sketch":[`+text+`]`) + `]}}`
	_, answer, err := afterReply(t, "/news-1/_search", `{"docvalue_fields":["ne*","n"]}`, reply)
	expect.OK(t, err)
	expect.Same(t, `{"hits":{"total":2,"hits":[`+hit("1", `"n":[1]`)+`]}}`, string(answer.Body), "")
	_, answer, err = afterReply(t, "/news-1/_search", `{"docvalue_fields":["neardup_sketch"]}`, reply)
	if err != nil || strings.Count(string(answer.Body), text) != 2 {
		t.Errorf("what the client names is not shown: %s %v", answer.Body, err)
	}
}

func TestPagesUpToTheEnginesLimit(t *testing.T) {
	list := make([]adaptertest.Document, maxResultWindow+20)
	for i := range list {
		list[i] = adaptertest.Document{Index: "news-1", ID: strconv.Itoa(i), Source: []byte(`{"n":1}`)}
	}
	for _, i := range []int{3, 5, 6} { // two of them fold
		list[i].Source = []byte(`{"title":"one two three four five six"}`)
	}
	for _, c := range []struct {
		from, first, hits int
		limited           bool
	}{{9980, 9982, 10, false}, {9988, 9990, 10, false}, {9989, 9991, 9, true}, {9990, 9992, 8, true}} {
		class, r := searchFor("/news-1/_search", "", fmt.Sprintf(`{"from":%d}`, c.from))
		x := Dialect{}.ParseSearch(class, r, searchPlan(t, true))
		answer := expect.Value(adaptertest.Run(x, func(ask *adapters.Request) *adapters.Reply {
			return fakeEngine(ask, func([]string) []adaptertest.Document { return list })
		}))(t)
		hits := fakeHits(answer.Body)[0]
		if len(hits) != c.hits || !strings.Contains(hits[0], fmt.Sprintf(`"_id":"%d"`,
			c.first)) || answer.Outcomes[0].Limited != c.limited {
			t.Errorf("from %d: %d hits, %+v: %s", c.from, len(hits), answer.Outcomes[0], hits)
		}
	}
}

// Every control is taken at every place that the contract does not know, and a bad value refused there by its name.
func TestControlsEverywhere(t *testing.T) {
	values := map[string][2]string{ // good, bad
		"neardup": {"on", "maybe"}, "neardup_threshold": {"0.5", "1.1"}, "neardup_unknown": {"", "1"},
	}
	places := map[string]func(name, value string) (adapters.Class, *adapters.Request){
		"source": func(n, v string) (adapters.Class, *adapters.Request) {
			return searchFor("/news-1/_search", "source_content_type=application/json&source=%7B%22"+n+"%22:%22"+v+"%22%7D", ``)
		},
		"entry": func(n, v string) (adapters.Class, *adapters.Request) {
			return searchFor("/_msearch", "", "{}\n{}\n{\"index\":\"news-1\"}\n{\""+n+"\":\""+v+"\"}\n")
		},
		"all": func(n, v string) (adapters.Class, *adapters.Request) {
			return searchFor("/news-1/_msearch", n+"="+v, "{}\n{}\n")
		},
		"template": func(n, v string) (adapters.Class, *adapters.Request) {
			return searchFor("/news-1/_search/template", "", `{"id":"a","`+n+`":"`+v+`"}`)
		},
	}
	for place, request := range places {
		for name, value := range values {
			class, r := request(name, value[1])
			refusal := Dialect{OpenSearch: true}.ParseSearch(class, r, searchPlan(t, false)).Refusal
			if refusal == nil || refusal.Status != 400 || !strings.Contains(string(refusal.Body), "["+name+"]") {
				t.Errorf("%s: %s=%s: %+v", place, name, value[1], refusal)
			}
			if value[0] == "" {
				continue
			}
			class, r = request(name, value[0])
			parsed := Dialect{OpenSearch: true}.ParseSearch(class, r, searchPlan(t, false))
			if parsed.Refusal != nil || parsed.Left() || strings.Contains(string(parsed.Plain.Body)+parsed.Plain.RawQuery,
				"neardup") {
				t.Errorf("%s: %s=%s: %q %+v", place, name, value[0], parsed.Reason, parsed.Plain)
			}
		}
	}
}

// TestNeighboursAreRaised: a list of neighbours is made long enough to fill a page from which hits are folded. A clause that filters is left.
func TestNeighboursAreRaised(t *testing.T) {
	for body, want := range map[string]string{
		`{"knn":{"field":"v","query_vector":[1],"k":3,"num_candidates":10}}`:     `{"knn":{"field":"v","query_vector":[1],"k":50,"num_candidates":50}}`,
		`{"query":{"knn":{"v":{"vector":[1],"k":3}}}}`:                           `{"query":{"knn":{"v":{"vector":[1],"k":50}}}}`,
		`{"query":{"knn":{"v":{"vector":[1],"min_score":0.5}}}}`:                 "",
		`{"query":{"bool":{"filter":[{"knn":{"v":{"vector":[1],"k":3}}}]}}}`:     "",
		`{"query":{"bool":{"should":[{"knn":{"v":{"vector":[1],"k":60}}},{}]}}}`: "",
	} {
		if want == "" {
			want = body
		}
		if got, _, err := raised([]byte(body), 10, 50); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", body, got, err)
		}
	}
}

// alike are n documents of one text.
func alike(n int) (list []adaptertest.Document) {
	for i := range n {
		list = append(list, adaptertest.Document{Index: "news-1", ID: fmt.Sprint(i), Source: []byte(`{"title":"one two three four five six","body":"seven"}`)})
	}
	return list
}

// TestLateSearches: when the time is over after the first reading, the client gets the engine's own page out of it.
func TestLateSearches(t *testing.T) {
	list := alike(60)
	class, r := searchFor("/news-1/_search", "", `{"from":2,"size":3}`)
	clock, plan := adaptertest.Clock{Round: 2}, searchPlan(t, true)
	plan.Deadline = &clock
	answer, err := clock.Run(Dialect{}.ParseSearch(class, r, plan), func(ask *adapters.Request) *adapters.Reply {
		return fakeEngine(ask, func([]string) []adaptertest.Document { return list })
	})
	if err != nil || !adapters.WasLate(answer.Outcomes) {
		t.Fatalf("%+v %v", answer, err)
	}
	got := ""
	for _, h := range fakeHits(answer.Body)[0] {
		got += idIn(t, h)
	}
	expect.Same(t, "234", got, "the page")
	if answer.Outcomes[0].Reason = ""; adapters.WasLate(answer.Outcomes) {
		t.Error("a search that was in time is taken for a late one")
	}
}

// TestMultiSearchWithARescore asks for an entry as it is when its page needs hits beyond those that are rescored, and collapses the other.
func TestMultiSearchWithARescore(t *testing.T) {
	const rescore = `"rescore":{"window_size":20,"query":{}},`
	class, r := searchFor("/_msearch", "", "{\"index\":[\"news-1\"]}\n{"+rescore+"\"size\":5}\n{\"index\":[\"news-2\"]}\n{\"size\":5}\n")
	answer, err := adaptertest.Run(Dialect{}.ParseSearch(class, r, searchPlan(t, true)), func(ask *adapters.Request) *adapters.Reply {
		ask.Body = bytes.ReplaceAll(ask.Body, []byte(rescore), nil) // the fake does not know it
		return fakeEngine(ask, func([]string) []adaptertest.Document { return alike(40) })
	})
	expect.OK(t, err)
	if hits := fakeHits(answer.Body); len(hits[0]) != 5 || len(hits[1]) != 5 || answer.Outcomes[0].Reason != "rescore" || answer.Outcomes[1].Reason != "" {
		t.Errorf("%d and %d hits, %+v", len(hits[0]), len(hits[1]), answer.Outcomes)
	}
}

// TestFoldedHitsComeWithTheirSources, also on a far page, whose hits are read when it is known which they are.
func TestFoldedHitsComeWithTheirSources(t *testing.T) {
	rule := adaptertest.Rules(t)[0]
	var list []adaptertest.Document
	for i := range 72 {
		title := fmt.Sprint("story ", min(i, 70), " is about ", min(i, 70)*7919) // the last two are alike
		sketched, ok := rule.Sketch([]string{title})
		if !ok {
			t.Fatal("no sketch")
		}
		source := fmt.Sprintf(`{"title":%q,"n":%d,"neardup_sketch":%q}`, title, i, sketched)
		list = append(list, adaptertest.Document{Index: "news-1", ID: fmt.Sprint(i), Source: []byte(source)})
	}
	plan := searchPlan(t, false)
	plan.Scope = func(string) adapters.Scope { return adapters.Scope{Configured: true, Window: 90} }
	class, r := searchFor("/news-1/_search", "neardup_expand=source", `{"from":70,"size":1,"_source":["n"]}`)
	answer, err := adaptertest.Run(Dialect{}.ParseSearch(class, r, plan), func(ask *adapters.Request) *adapters.Reply {
		return fakeEngine(ask, func([]string) []adaptertest.Document { return list })
	})
	if err != nil || !regexp.MustCompile(`"n":70.*"n":71`).Match(answer.Body) {
		t.Errorf("%v %s", err, answer.Body)
	}
}
