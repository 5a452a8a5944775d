package typesense

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

func get(path string) *adapters.Request {
	path, query, _ := strings.Cut(path, "?")
	return &adapters.Request{Method: "GET", Path: path, RawQuery: query, Header: adapters.Header{keyHeader: {"k"}}}
}

func post(path, body string) *adapters.Request {
	r := get(path)
	r.Method, r.Body = "POST", []byte(body)
	return r
}

func search(r *adapters.Request, p adapters.Plan) *adapters.Searches {
	d := Dialect{}
	return d.ParseSearch(d.Classify(r), r, p)
}

// pageCase is a search of the collection news with random paging, fields and knowledge.
type pageCase struct {
	rule                  *rule.Rule
	scope                 adapters.Scope
	page, perPage, window int
	include, exclude      string
}

func randomCase(t testing.TB, r *rand.Rand) pageCase {
	c := pageCase{rule: newRule(t, "news", "body"), page: 1 + r.IntN(5), perPage: 1 + r.IntN(40), window: 1 + r.IntN(700)}
	if r.IntN(3) == 0 {
		c.page = 1
	}
	c.rule.Compute = r.IntN(3) > 0
	c.scope = adapters.Scope{Window: c.window, Widening: rerank.Widening{Rate: r.Float64()}, Lacking: r.IntN(2) == 0}
	c.include = []string{"", "", "title,id", "title", "body , n", "nosuch", "title,neardup_sketch"}[r.IntN(7)]
	c.exclude = []string{"", "", "body", "id", "n,neardup_sketch", "body,id"}[r.IntN(6)]
	return c
}

// want returns the result that the client must get of the engine.
func (c pageCase) want(m memo, f *fake) string {
	params := map[string]any{"collection": "news", "page": c.page, "per_page": c.perPage, "facet_by": "n"}
	params["include_fields"], params["exclude_fields"] = c.include, c.exclude
	if !strings.Contains(c.include, rule.SketchField) {
		params["exclude_fields"] = c.exclude + "," + rule.SketchField
	}
	whole := f.documents
	var page []map[string]any
	for _, rank := range m.oracle(c.rule, whole, c.window, c.page, c.perPage) {
		page = append(page, whole[rank])
	}
	hits := make([]string, len(page))
	for i, d := range page {
		hits[i] = renderHit(d, params)
	}
	return fmt.Sprintf(`{"facet_counts":[{"field_name":"n"}],"found":%d,"hits":[%s],"out_of":%d,"page":%d,"request_params":{"collection_name":"news","per_page":%d,"q":"x"},"search_cutoff":false,"search_time_ms":3}`,
		len(whole), strings.Join(hits, ","), len(whole), c.page, c.perPage)
}

func (c pageCase) query() url.Values {
	v := url.Values{"q": {"x"}, "page": {fmt.Sprint(c.page)}, "per_page": {fmt.Sprint(c.perPage)}, "facet_by": {"n"}}
	if c.include != "" {
		v.Set("include_fields", c.include)
	}
	if c.exclude != "" {
		v.Set("exclude_fields", c.exclude)
	}
	return v
}

func TestPagesAgreeWithTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	m := memo{}
	for range max(effort.Rounds(120), 6) {
		c := randomCase(t, r)
		f := &fake{documents: m.corpus(r, c.rule, r.IntN(700), r.Float64())}
		s := search(get("/collections/news/documents/search?"+c.query().Encode()), planFor(c.scope, c.rule))
		if s.Left() {
			t.Fatalf("%+v is left alone: %s", c, s.Reason)
		}
		answer, err := f.run(s)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		expect.Must(t, c.want(m, f), string(answer.Body), "%+v of %d", c, len(f.documents))
		if o := answer.Outcomes[0]; o.Reason != "" || o.Raw != len(f.documents) || o.Rounds != f.asked {
			t.Fatalf("outcome %+v after %d requests", o, f.asked)
		} else if without := lacking(c.rule, f.documents[:o.Read]); o.Without != without {
			t.Fatalf("outcome %+v, but %d of the ranks read have no sketch stored", o, without)
		}
	}
}

// A page of nearest neighbours is the engine's own, byte for byte, where nothing among them folds.
func TestNeighboursThatDoNotFoldAreTheEnginesOwnPage(t *testing.T) {
	r := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(7, 7)), r, 60, 0)}
	for page := 1; page <= 4; page++ {
		query := url.Values{"q": {"*"}, "vector_query": {"v:([0.1], k:3)"}, "page": {fmt.Sprint(page)}, "per_page": {"3"}}
		request := get("/collections/news/documents/search?" + query.Encode())
		own := string(cleaned(t, string(f.reply(request).Body), ""))
		expect.Same(t, own, string(expect.Value(f.run(search(request, planFor(adapters.Scope{VectorWindow: 20}, r))))(t).Body), "page %d", page)
	}
}

// lacking counts the documents without a comparable sketch.
func lacking(r *rule.Rule, documents []map[string]any) int {
	n := 0
	for _, d := range documents {
		if text, _ := d[rule.SketchField].(string); r.Decode(text) == nil {
			n++
		}
	}
	return n
}

// Whatever the readings are, the client's own parameters reach the engine, facets are computed and the search is counted once, and hits of which only the sketch
// counts are not highlighted.
func TestWhatTheEngineIsAsked(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(6, 1)), rule, 400, 0.8)}
	query := "collection=news&q=a%2Cb&filter_by=n:1&filter_by=n:2&page=3&per_page=30&facet_by=n&highlight_fields=title&include_fields=title&x-typesense-api-key=k%3D"
	var requests []*adapters.Request
	for _, r := range []*adapters.Request{get("/collections/trap/documents/search?" + query), post("/multi_search?"+query, `{"searches":[{"collection":"trap","page":7,"per_page":1}]}`)} {
		s := search(r, planFor(adapters.Scope{Window: 400}, rule))
		if s.Left() {
			t.Fatal(s.Reason)
		}
		f.searches = nil
		expect.Value(adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply { requests = append(requests, r); return f.reply(r) }))(t)
		facets, counted := 0, 0
		for _, a := range f.searches {
			if a["enable_analytics"] == nil {
				counted++
			}
			include, highlight := a["include_fields"].(string), a["highlight_fields"]
			if a["facet_by"] == "n" {
				facets++
			}
			if a["collection"] != "news" || a["facet_by"] != nil && !strings.HasPrefix(include, "title") || strings.HasPrefix(include, "title") != (highlight == "title") {
				t.Errorf("asked %v", a)
			}
		}
		if facets != 1 || counted != 1 || len(f.searches) < 3 {
			t.Errorf("facets were asked %d times, and %d counted, in %d searches", facets, counted, len(f.searches))
		}
	}
	for _, r := range requests {
		query := strings.Replace(r.RawQuery, "collection=news&", "", 1)
		if query != "q=a%2Cb&filter_by=n:1&filter_by=n:2&x-typesense-api-key=k%3D" || r.Path != "/multi_search" || r.Header[keyHeader][0] != "k" {
			t.Errorf("asked %s?%s with %v", r.Path, r.RawQuery, r.Header)
		}
	}
}

// No request holds more searches than the engine takes, however many pages a reading has.
func TestLargeWindows(t *testing.T) {
	rule := newRule(t, "news", "body")
	rule.Compute = false
	f := &fake{documents: make([]map[string]any, 13500)}
	for i := range f.documents {
		f.documents[i] = map[string]any{"id": fmt.Sprint("d", i)}
	}
	plan := planFor(adapters.Scope{Window: 13000}, rule)
	plan.MaxWindow = 20000
	answer := expect.Value(adaptertest.Run(search(get("/collections/news/documents/search?page=1299"), plan), f.reply))(t)
	if got := strings.Count(string(answer.Body), `"id":"d1298`); got != 10 || answer.Outcomes[0].Window != 13000 {
		t.Errorf("%+v: %s", answer.Outcomes, answer.Body)
	}
}

func TestMultiSearchAnswersEachEntry(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 2))
	m := memo{}
	for range max(effort.Rounds(50), 4) {
		rule := newRule(t, "news", "body")
		f := &fake{documents: m.corpus(r, rule, r.IntN(600), r.Float64())}
		var searches, want []string
		for range 1 + r.IntN(6) {
			c := randomCase(t, r)
			c.rule, c.scope.Window, c.window = rule, 400, 400
			fields := map[string]any{"collection": "news", "facet_by": "n"}
			for name, values := range c.query() {
				fields[name] = values[0]
			}
			alone := r.IntN(3) == 0
			if alone {
				fields["collection"] = "other"
				want = append(want, string(cleaned(t, f.search(fields), c.include)))
			} else {
				want = append(want, c.want(m, f))
			}
			body, _ := json.Marshal(fields)
			searches = append(searches, string(body))
		}
		body := `{"searches":[` + strings.Join(searches, ", ") + `], "union":false}`
		s := search(post("/multi_search?q=x", body), planFor(adapters.Scope{Window: 400, Widening: rerank.Widening{Rate: 0.2}}, rule))
		if s.Left() {
			if strings.Contains(body, `"news"`) {
				t.Fatalf("left alone: %s: %s", s.Reason, body)
			}
			continue
		}
		answer, err := adaptertest.Run(s, f.reply)
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		expect.Must(t, `{"results":[`+strings.Join(want, ",")+`]}`, string(answer.Body), "%s", body)
	}
}

func cleaned(t *testing.T, result, include string) []byte {
	t.Helper()
	var out strings.Builder
	c := adapters.Class{Form: formMulti, NamesOurs: strings.Contains(include, rule.SketchField)}
	expect.OK(t, (Dialect{}).CleanReply(c, &out, strings.NewReader(result)))
	return []byte(out.String())
}

func TestErrorsOfTheEngine(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	for _, c := range []struct {
		status int
		body   string
		want   error
		answer string
	}{
		{401, `{"message": "Forbidden"}`, adapters.ErrRefused, ""},
		{503, `Not Ready`, adapters.ErrRefused, ""},
		{429, ``, adapters.ErrRefused, ""},
		{400, `{"message": "no"}`, adapters.ErrWidened, ""},
		{404, `{"message": "Not found."}`, adapters.ErrRefused, ""},
		{422, `{"message": "Too many."}`, adapters.ErrWidened, ""},
		{422, `{"message": "Only upto 5 hits can be fetched per page."}`, adapters.ErrWidened, ""},
		{302, ``, adapters.ErrNotUnderstood, ""},
		{200, `{"results":[{"code":404,"error":"Not found."}]}`, nil, `{"message": "Not found."}`},
		{200, `{"results":[{"code":422,"error":"Too many."}]}`, adapters.ErrWidened, ""},
		{200, `{"results":[]}`, adapters.ErrNotUnderstood, ""},
		{200, `{"results":[{"found":1,"hits":[],"page":1,"request_params":{"per_page":3,"collection_name":"news"}}]}`, adapters.ErrNotUnderstood, ""},
		{200, `<html>`, adapters.ErrNotUnderstood, ""},
	} {
		path := "/collections/news/documents/search?q=x"
		if strings.Contains(c.body, "results") {
			path += "&" // asked as a multi-search
		}
		answer, err := adaptertest.Run(search(get(path), plan), func(*adapters.Request) *adapters.Reply {
			return &adapters.Reply{Status: c.status, Body: []byte(c.body)}
		})
		if !errors.Is(err, c.want) || err == nil != (c.want == nil) {
			t.Errorf("%d %s: %v, want %v", c.status, c.body, err, c.want)
		}
		if answer != nil && (string(answer.Body) != c.answer || answer.Status != 404) {
			t.Errorf("%d %s: answer %d %s", c.status, c.body, answer.Status, answer.Body)
		}
	}
}

// The search of one collection is asked as such, with the client's parameters as they came, unless it takes a multi-search to ask it.
func TestOneCollectionIsAskedAsSuch(t *testing.T) {
	const path = "/collections/news/documents/search"
	for query, single := range map[string]bool{
		"exclude_fields=x%26y&q=%61+b": true, "": true, "q=" + strings.Repeat("x", 3000): true, "q=" + strings.Repeat("x", 3950): false,
		"q=x&": false, "&q=x": false, "q=x&&y": false, "q=x&collection=news": false, "q=x&preset=p": false,
	} {
		ask := firstAsk(t, search(get(path+"?"+query), planFor(adapters.Scope{}, newRule(t, "news", "body"))))
		_, client, _ := strings.Cut(query, "exclude_fields=x%26y&")
		right := ask.Path == path && ask.Body == nil && strings.HasPrefix(ask.RawQuery, client) && strings.HasSuffix(ask.RawQuery, "&exclude_fields=x%26y") == (client != "")
		if single != (ask.Method == "GET") || single && !right {
			t.Errorf("%.30s: asks %s %s?%.200s %s", query, ask.Method, ask.Path, ask.RawQuery, ask.Body)
		}
	}
}

// A search of a multi-search that the engine refuses when it is widened is asked as it is, and the others are none the worse.
func TestRefusedEntryIsAskedAsItIs(t *testing.T) {
	matched := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(3, 1)), matched, 30, 0.9)}
	body := `{"searches":[{"collection":"news","per_page":5},{"collection":"news","per_page":7,"tight":true}]}`
	s := search(post("/multi_search", body), planFor(adapters.Scope{}, matched))
	answer := expect.Value(adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
		reply := f.reply(r)
		if f.asked == 1 {
			root, _ := jsonedit.Members(reply.Body)
			results, _ := jsonedit.Elements(jsonedit.Get(root, "results"))
			reply.Body = []byte(`{"results":[` + string(results[0]) + `,{"code":422,"error":"Too many."}]}`)
		}
		return reply
	}))(t)
	if got := strings.Count(string(answer.Body), `"document":`); got != 12 || answer.Outcomes[1].Reason != "refused" || answer.Outcomes[0].Folded == 0 {
		t.Errorf("%d hits, outcomes %+v", got, answer.Outcomes)
	}
	if strings.Contains(string(answer.Body), rule.SketchField) {
		t.Error("a sketch is left in the answer")
	}
}

// A list that moves between the pages of one reading shows a document twice.
func TestMovingListIsNotUnderstood(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(4, 1)), rule, 600, 0)}
	s := search(get("/collections/news/documents/search?q=x&per_page=250&page=2"), planFor(adapters.Scope{Window: 500}, rule))
	_, err := adaptertest.Run(s, func(r *adapters.Request) *adapters.Reply {
		reply := f.reply(r)
		reply.Body = []byte(strings.Replace(string(reply.Body), `"id":"d3"`, `"id":"d300"`, 1))
		return reply
	})
	if !errors.Is(err, adapters.ErrNotUnderstood) {
		t.Errorf("got %v", err)
	}
}

// TestListKeys tells lists apart whose pages are asked for by their numbers, and knows one again on each of its pages.
func TestListKeys(t *testing.T) {
	plan, _ := nativePlan(t)
	key := func(query string) string {
		searches := search(get("/collections/news/documents/search?"+query), plan)
		if len(searches.List) != 1 || searches.List[0].Asked().Sequence == nil {
			return ""
		}
		return searches.List[0].Asked().Sequence.List()
	}
	plain, seen := key("q=a&query_by=title"), map[string]bool{}
	for _, same := range []string{"q=a&query_by=title&page=3", "page=7&query_by=title&q=a"} {
		if got := key(same); got != plain || got == "" {
			t.Errorf("%s: %q, want %q", same, got, plain)
		}
	}
	for _, other := range []string{
		"q=a&query_by=title", "q=b&query_by=title", "q=a&query_by=body", "q=a&query_by=title&filter_by=n:1", "q=a&query_by=title&sort_by=n:asc",
		"q=a&query_by=title&per_page=3", "q=a&query_by=title&neardup_threshold=0.5", "q=a&query_by=title&neardup_window=9", "q=a&query_by=title&neardup_keep=2",
	} {
		if got := key(other); got == "" || seen[got] {
			t.Errorf("%s has no key of its own: %q", other, got)
		} else {
			seen[got] = true
		}
	}
	for _, never := range []string{"q=a&query_by=title&preset=p", "q=a&query_by=title&offset=3"} {
		expect.Same(t, "", key(never), "the key of %s", never)
	}
}
