package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// documented are parameters of a search with values as clients send them, some of them wrong. A value stands for an absent parameter more
// often than not.
var documented = map[string][]string{
	"q":                    {"*", "alpha", "alpha", "alpha", "t1", "alpa t2", `"alpha t3"`, "alpha -t4", "w17 w40 w99", "", "nothingatall"},
	"query_by":             {"title,body", "title", "body,title", "title,nosuch", "", "title,meta", "meta.a"},
	"prefix":               {"false", "true,false"},
	"filter_by":            {"n:>1", "n:[1,2,3]", "n:<6&&title:alpha", "n:=9", "nosuch:1", "id:[d1,d2,d3]"},
	"sort_by":              {"n:asc", "n:desc,_text_match:desc", "_text_match(buckets: 4):desc,n:asc", "nosuch:asc", "title:asc"},
	"facet_by":             {"n", "n", "title"},
	"facet_query":          {"n:1", ""},
	"page":                 {"1", "2", "3", "40", "0", "-1", "x", "", "2.0", " 2", "%zz"},
	"per_page":             {"1", "5", "30", "250", "0", "251", "x", "", "007", "+7"},
	"limit":                {"3"},
	"offset":               {"2", "0"},
	"group_by":             {"n", ""},
	"include_fields":       {"title", "id", "title,n", "nosuch", "", "title , n", "body*", "meta", "meta.a", "meta.b.c,n", "$other(x)"},
	"exclude_fields":       {"body", "id", "id,body", "out_of", "search_time_ms,title", "", "meta", "meta.b", "meta.a,n"},
	"highlight_fields":     {"title", "nosuch", "body", "meta", "meta.a"},
	"enable_highlight_v1":  {"false"},
	"num_typos":            {"0", "1,0"},
	"pinned_hits":          {"d5:1,d6:3", "d3:50", "bad"},
	"hidden_hits":          {"d1,d2", "nosuch"},
	"filter_curated_hits":  {"true", "1"},
	"preset":               {"nosuch", ""},
	"vector_query":         {"v:([0.1,0.2,0.3,0.4])", "v:([0.1,0.2,0.3,0.4], k:3)", "v:([], id: d7, k: 200)", "v:([1])", "v:(", ""},
	"limit_hits":           {"5", "40", "1000", "x", ""},
	"limit_multi_searches": {"1", "3", "60"},
	"x-typesense-user-id":  {"someone"},
	"nosuch":               {"x"},
	"collection":           {"NAME", "NAME", "NAME", "nosuch"},
}

// identity makes requests at random.
type identity struct {
	r          *rand.Rand
	collection string
	keys       []string
}

func (i identity) pick(list []string) string {
	return strings.ReplaceAll(list[i.r.IntN(len(list))], "NAME", i.collection)
}

// names are the parameters of one search.
func (i identity) names() []string {
	names := []string{"q", "query_by"}
	all := []string{}
	for name := range documented {
		all = append(all, name)
	}
	slices.Sort(all)
	for range i.r.IntN(6) {
		names = append(names, all[i.r.IntN(len(all))])
	}
	return names
}

func (i identity) query(names []string) string {
	var parts []string
	for _, name := range names {
		value := url.QueryEscape(i.pick(documented[name]))
		if i.r.IntN(4) == 0 {
			value = strings.ReplaceAll(value, "+", "%20")
		}
		parts = append(parts, name+"="+value)
		if i.r.IntN(15) == 0 {
			parts = append(parts, name+"="+url.QueryEscape(i.pick(documented[name])))
		}
	}
	i.r.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
	between := "&"
	if i.r.IntN(30) == 0 {
		between = "&&"
	}
	return strings.Join(parts, between)
}

// body is one search of a multi-search.
func (i identity) body() string {
	members := []string{fmt.Sprintf(`"collection":%q`, i.collection)}
	for _, name := range i.names() {
		value := i.pick(documented[name])
		quoted, _ := json.Marshal(value)
		if number := strings.Trim(value, "0123456789") == "" && value != "" && value[0] != '0'; number && i.r.IntN(2) == 0 || name != "preset" && i.r.IntN(60) == 0 { // a preset that is no text makes the engine hang
			if quoted = []byte(value); !number {
				quoted = []byte([]string{"true", "1.5", "7", "null", "[]"}[i.r.IntN(5)])
			}
		}
		members = append(members, fmt.Sprintf("%q: %s", name, quoted))
	}
	if i.r.IntN(6) == 0 {
		members = append(members, fmt.Sprintf(`"x-typesense-api-key":%q`, i.pick(i.keys)))
	}
	i.r.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
	return "{" + strings.Join(members, ", ") + "}"
}

func (i identity) request() *adapters.Request {
	r := &adapters.Request{Method: "GET", Path: "/collections/" + i.collection + "/documents/search", Header: adapters.Header{}}
	if i.r.IntN(2) == 0 {
		r.RawQuery = i.query(i.names())
	} else {
		r.Method, r.Path = "POST", "/multi_search"
		r.Header["Content-Type"] = []string{[]string{"application/json", "text/plain", "application/octet-stream"}[i.r.IntN(3)]}
		searches := make([]string, 1+i.r.IntN(5))
		for n := range searches {
			searches[n] = i.body()
		}
		r.Body = []byte(`{"searches": [` + strings.Join(searches, ",\n") + "]" + []string{"", `, "union":false`, `,"x":1`}[i.r.IntN(3)] + "}")
		if i.r.IntN(2) == 0 {
			r.RawQuery = i.query(i.names()[2:])
		}
	}
	key := i.pick(i.keys)
	if where := i.r.IntN(4); where < 2 {
		r.Header[keyHeader] = []string{key}
	} else if r.RawQuery += "&x-typesense-api-key=" + url.QueryEscape(key); where == 3 {
		r.Header[keyHeader] = []string{i.pick(i.keys)}
	}
	r.RawQuery = strings.TrimPrefix(r.RawQuery, "&")
	return r
}

// Where no two documents are near-duplicates, the reply to every search is, but for the time it took, the one that the engine gives
// without us: whatever the parameters, right or wrong, wherever they and the keys stand.
func TestRealSearchesAreTheEnginesOwn(t *testing.T) {
	b := newBench(t, vectors, "body")
	r := rand.New(rand.NewPCG(effort.Seed(t), 2))
	b.loadVectors(r, 330, 0)
	scoped := b.searchKey()
	i := identity{r: r, collection: b.collection, keys: append(slices.Repeat([]string{b.key, scoped(nil)}, 4), "wrong")}
	for _, imposed := range []map[string]any{{"filter_by": "n:<5"}, {"per_page": 7}, {"exclude_fields": "body"}, {"exclude_fields": "id,neardup_sketch"},
		{"include_fields": "title"}, {"limit_hits": 30}, {"page": 2}, {"group_by": "n"}, {"limit_multi_searches": 2}, {"limit_multi_searches": 0}, {"q": "t1", "facet_by": "n"}} {
		key := scoped(imposed)
		if len(key)%4 == 0 && !strings.HasSuffix(key, "=") && r.IntN(2) == 0 {
			key += "A" // the engine leaves such a rest out
		}
		i.keys = append(i.keys, key)
	}
	rounds := searchRounds(300)
	reasons, collapsed := map[adapters.Reason]int{}, 0
	for tried := 0; tried < rounds || collapsed < rounds/8 && tried < 4*rounds; tried++ { // a short run goes on until it has seen some
		request := i.request()
		b.rule.Window = 1 + r.IntN(400)
		b.plan = planFor(adapters.Scope{Widening: rerank.Widening{Rate: r.Float64() / 2}, Lacking: r.IntN(2) == 0, VectorWindow: 100}, b.rule)
		own := b.send(request)
		status, got, outcome := b.answer(request)
		want := string(jsonedit.Cleaned(own.Body, inHit)) // no request names our field
		if diff := cmp.Diff(took.ReplaceAllString(want, ""), took.ReplaceAllString(got, "")); status != own.Status || diff != "" {
			t.Fatalf("%s %s?%s\n%s\n%v: %d and not %d, %+v: %s", request.Method, request.Path, request.RawQuery, request.Body, request.Header,
				status, own.Status, outcome, diff)
		}
		if outcome.Reason == "" && own.Status == 200 {
			collapsed++
		} else if own.Status == 200 {
			reasons[outcome.Reason]++
		}
	}
	t.Logf("%d collapsed, left alone though the engine answers: %v", collapsed, reasons)
	if collapsed < rounds/8 {
		t.Error("hardly any search was collapsed")
	}
}
