package typesense

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Every span is covered without a gap by pages that the engine grants, and by no more of them than full ones would need.
func TestPagesCoverSpans(t *testing.T) {
	for from := 0; from < 600; from += 1 + from/90 {
		for _, length := range []int{1, 7, 10, 100, 250, 251, 700} {
			for _, fixed := range []int{0, 1, 7, 250} {
				for _, limit := range []int{maxRanks, from + length, from + length + 13} {
					granted := &query{most: maxPerPage}
					if fixed > 0 {
						limit = limit / fixed * fixed
						granted = &query{page: enginePage{size: fixed}, key: key{fixed: map[string]string{"per_page": ""}}}
					}
					at, to := from, min(from+length, limit)
					list := granted.cover(from, to, limit)
					for _, s := range list {
						if s.size > maxPerPage || s.number < 1 || s.from() > at || s.to() <= at || s.to() > limit || fixed > 0 && s.size != fixed {
							t.Fatalf("%d to %d in pages of %d up to %d: %v", from, to, fixed, limit, list)
						}
						at = s.to()
					}
					if at < to || fixed == 0 && limit == maxRanks && len(list) > (length+249)/250+1 {
						t.Fatalf("%d to %d in pages of %d up to %d: %v", from, to, fixed, limit, list)
					}
				}
			}
		}
	}
}

// Our field is asked for whatever the client highlights, and never highlighted: engines hang on a field that is not indexed.
func TestOurFieldIsNotHighlighted(t *testing.T) {
	rule := newRule(t, "news", "body")
	for value, want := range map[string]string{"neardup_sketch": noField, "title, neardup_sketch": "title", "title,body": "title,body"} {
		s := search(get("/collections/news/documents/search?q=x&highlight_fields="+url.QueryEscape(value)), planFor(adapters.Scope{}, rule))
		f := &fake{documents: []map[string]any{{"id": "1", "body": "b"}}}
		expect.Value(adaptertest.Run(s, f.reply))(t)
		for _, asked := range f.searches {
			expect.Same(t, want, asked["highlight_fields"], "%q", value)
		}
	}
}

// A search that is left alone does not name our field among those to be highlighted either, and else stays as it is.
func TestOurFieldIsNotHighlightedWhereASearchIsLeftAlone(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	for _, c := range []struct{ query, want string }{
		{"group_by=n&highlight_fields=title%2C+neardup_sketch&q=%61", "group_by=n&highlight_fields=title&q=%61"},
		{"highlight_fields=neardup_sketch&neardup=off&q=x", "highlight_fields=" + noField + "&q=x"},
		{"group_by=n&highlight_fields=%74itle&&q=x", "group_by=n&highlight_fields=%74itle&&q=x"},
	} {
		s := search(get("/collections/news/documents/search?"+c.query), plan)
		if !s.Left() || s.Plain.RawQuery != c.want {
			t.Errorf("%s: sent %s", c.query, s.Plain.RawQuery)
		}
		other := strings.ReplaceAll(c.query, "&neardup=off", "")
		expect.Same(t, other, search(get("/collections/other/documents/search?"+other), plan).Plain.RawQuery, "another collection's")
	}
	body := `{"searches":[{"collection":"news","group_by":"n","highlight_fields":"neardup_sketch, body"},{"collection":"other","highlight_fields":"neardup_sketch"}]}`
	s := search(post("/multi_search?highlight_fields=neardup_sketch,n", body), plan)
	if want := strings.Replace(body, "neardup_sketch, body", "body", 1); !s.Left() || string(s.Plain.Body) != want || s.Plain.RawQuery != "highlight_fields=n" {
		t.Errorf("sent %s with %s", s.Plain.Body, s.Plain.RawQuery)
	}
}

// capped answers as a server that was told to grant no larger pages.
func capped(f *fake, most int) func(*adapters.Request) *adapters.Reply {
	return func(r *adapters.Request) *adapters.Reply {
		searches, _ := fakeSearches(r)
		reply := f.reply(r)
		root, _ := jsonedit.Members(reply.Body)
		results, _ := jsonedit.Elements(jsonedit.Get(root, "results"))
		for i, search := range searches {
			perPage, _ := fakeNumber(search, "per_page", defaultPerPage)
			reason := fmt.Sprintf("Only upto %d hits can be fetched per page.", most)
			switch {
			case r.Method == "GET" && perPage > most:
				return fakeReply(422, fakeError(reason))
			case r.Method == "GET":
				return reply
			case perPage > most:
				results[i] = fmt.Appendf(nil, `{"code":422,"error":%q}`, reason)
			}
		}
		return fakeReply(200, `{"results":`+string(jsonedit.Array(results))+`}`)
	}
}

// A server that grants smaller pages than most do is asked for these, once it has said so.
func TestPagesOfAServerThatGrantsSmallOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	m := memo{}
	for range max(effort.Rounds(60), 12) {
		c := randomCase(t, r)
		f := &fake{documents: m.corpus(r, c.rule, r.IntN(700), r.Float64())}
		most := c.perPage + r.IntN(80)
		s := search(get("/collections/news/documents/search?"+c.query().Encode()), planFor(c.scope, c.rule))
		answer, err := adaptertest.Run(s, capped(f, most))
		if err != nil {
			t.Fatalf("%+v, pages of %d: %v", c, most, err)
		}
		expect.Must(t, c.want(m, f), string(answer.Body), "%+v of %d, pages of %d", c, len(f.documents), most)
	}
}

// No page is asked for by a number that engines hang on, however far behind the end the client's own lies.
func TestFarPages(t *testing.T) {
	rule := newRule(t, "news", "body")
	rule.Window = 60
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(5, 1)), rule, 200, 0.5)}
	left := 0
	for page := 8_500_000; page < 8_700_000; page += 3889 {
		s := search(get(fmt.Sprintf("/collections/news/documents/search?q=x&per_page=249&page=%d", page)), planFor(adapters.Scope{}, rule))
		if s.Left() {
			left++
			continue
		}
		expect.Value(adaptertest.Run(s, f.reply))(t)
	}
	for _, asked := range f.searches {
		page, _ := fakeNumber(asked, "page", 1)
		if perPage, _ := fakeNumber(asked, "per_page", 10); page*perPage > math.MaxInt32 {
			t.Fatalf("asked for page %d of %d", page, perPage)
		}
	}
	if left == 0 {
		t.Error("no page lies far enough")
	}
}

// scopedKey returns a key that imposes parameters, as far as it can be read.
func scopedKey(params string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("d", scopedHead) + params))
}

// imposing puts parameters over those of every search of a request, as the engine does with a key's.
func imposing(r *adapters.Request, imposed map[string]any) *adapters.Request {
	searches, _ := fakeSearches(r)
	for _, search := range searches {
		maps.Copy(search, imposed)
	}
	out := *r
	if r.Method == "GET" {
		for name, value := range imposed {
			out.RawQuery += fmt.Sprintf("&%s=%v", name, value)
		}
		return &out
	}
	out.Body, _ = json.Marshal(map[string]any{"searches": searches})
	return &out
}

// Of a name that stands twice in a key the last counts, also if the engine ignores it; and a rest of too few bits is ignored.
func TestOddKeys(t *testing.T) {
	for params, want := range map[string]map[string]string{
		`{"per_page":3,"per_page":null}`:                        {},
		`{"per_page":null,"per_page":3}`:                        {"per_page": "3"},
		`{"exclude_fields":"body","exclude_fields":["x"]}`:      {},
		`{"exclude_fields":"body","n":true,"expires_at":99999}`: {"exclude_fields": "body", "n": "true"},
	} {
		key := strings.TrimRight(scopedKey(params), "=")
		for _, tail := range []string{"", "=", "=A", "!A"} {
			expect.Same(t, want, embedded(key+tail), "%s%s", params, tail)
		}
		if diff := cmp.Diff(want, embedded(key+"A")); len(key)%4 == 0 && diff != "" {
			t.Errorf("%sA: %s", params, diff)
		}
	}
}

// A reading that would take more requests than a search may cost is not begun.
func TestReadingsOfTooManyPages(t *testing.T) {
	rule := newRule(t, "news", "body")
	rule.Window = 5000
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(6, 3)), rule, 60, 0.5)}
	for page, want := range map[int]bool{5: true, 4500: false} {
		r := get(fmt.Sprintf("/collections/news/documents/search?q=x&page=%d", page))
		r.Header = adapters.Header{keyHeader: {scopedKey(`{"per_page":1}`)}}
		f.asked = 0
		_, err := adaptertest.Run(search(r, planFor(adapters.Scope{}, rule)), func(r *adapters.Request) *adapters.Reply {
			return f.reply(imposing(r, map[string]any{"per_page": 1}))
		})
		if got := f.asked > 0; got != want || (err == nil) != want {
			t.Errorf("page %d: %v after %d requests", page, err, f.asked)
		}
	}
	for k, reason := range map[int]adapters.Reason{10_000: "", 10_001: "vector", 1_000_000_000: "vector"} {
		query := url.Values{"q": {"*"}, "vector_query": {fmt.Sprintf("v:([0.1], k:%d)", k)}}
		s := search(get("/collections/news/documents/search?"+query.Encode()), planFor(adapters.Scope{}, rule))
		expect.Same(t, reason, s.Reason, "%d neighbours", k)
	}
}

// Newer engines make vectors of texts where a field says so. A list of neighbours differs with the page, and is left alone. One that is fused with that of the words
// does not, as far as rank 100.
func TestListsOfNeighboursNobodyAskedFor(t *testing.T) {
	matched := newRule(t, "news", "body")
	const distance, fusion = `"vector_distance":0.1`, `"hybrid_search_info":{"rank_fusion_score":1.0}`
	for _, c := range []struct {
		mark    string
		page    int
		reason  adapters.Reason
		shorter adapters.Reason
	}{
		{distance, 1, "vector", ""}, {distance + "," + fusion, 1, "", ""}, {fusion, 2, "", ""}, {fusion, 5, "", "rank_window"}, {fusion, 6, "rank_window", ""},
	} {
		f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(6, 4)), matched, 150, 0.5)}
		marked := func(r *adapters.Request) *adapters.Reply {
			reply := f.reply(r)
			reply.Body = []byte(strings.ReplaceAll(string(reply.Body), `"highlights":[]`, c.mark+`,"highlights":[]`))
			return reply
		}
		page := fmt.Sprintf("q=x&per_page=20&page=%d", c.page)
		answer, err := adaptertest.Run(search(get("/collections/news/documents/search?"+page), planFor(adapters.Scope{}, matched)), marked)
		if (err != nil) != (c.reason != "") || err != nil && adapters.ReasonOf(err) != c.reason {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && answer.Outcomes[0].Limited != (c.shorter != "") {
			t.Errorf("%+v: %+v", c, answer.Outcomes[0])
		}
		multi := fmt.Sprintf(`{"searches":[{"collection":"news","q":"x","per_page":20,"page":%d}]}`, c.page)
		answer = expect.Value(adaptertest.Run(search(post("/multi_search", multi), planFor(adapters.Scope{}, matched)), marked))(t)
		if o := answer.Outcomes[0]; o.Reason != c.reason || o.Again != (c.reason != "") || strings.Contains(string(answer.Body), rule.SketchField) {
			t.Errorf("%+v: %+v", c, o)
		}
	}
}

// limit and offset are ignored by one release and obeyed by the next: the page is cut from where the client's own reply says, which shows
// in the reply as it does there.
func TestLimitAndOffset(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	m, rule := memo{}, newRule(t, "news", "body")
	rule.Window = 60
	for i := range max(effort.Rounds(200), 10) {
		f := &fake{documents: m.corpus(r, rule, r.IntN(200), r.Float64()), obeys: i%2 == 0}
		limit, offset := 1+r.IntN(30), 1+r.IntN(120)
		query := fmt.Sprintf("/collections/news/documents/search?q=x&limit=%d&offset=%d&include_fields=id", limit, offset)
		s := search(get(query), planFor(adapters.Scope{}, rule))
		answer := expect.Value(adaptertest.Run(s, f.reply))(t)
		from, size := 0, defaultPerPage
		if f.obeys {
			from, size = offset, limit
		}
		var want []string
		list := m.oracle(rule, f.documents, rule.Window, 1, len(f.documents))
		for _, rank := range list[min(from, len(list)):min(from+size, len(list))] {
			want = append(want, fmt.Sprintf(`{"document":{"id":"d%d"},"highlight":{},"highlights":[]}`, rank))
		}
		own := f.reply(get(query)) // what the engine says of the client's own search
		wanted := expect.Value(jsonedit.Set(own.Body, "hits", []byte("["+strings.Join(want, ",")+"]")))(t)
		expect.Must(t, string(wanted), string(answer.Body), "limit %d, offset %d of %d, obeyed %t", limit, offset, len(f.documents), f.obeys)
	}
}
