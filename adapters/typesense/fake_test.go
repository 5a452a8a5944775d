package typesense

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func newSketcher(t testing.TB) *sketch.Sketcher {
	t.Helper()
	return expect.Value(sketch.New(sketch.DefaultScheme()))(t)
}

func newRule(t testing.TB, match string, fields ...string) *rule.Rule {
	t.Helper()
	r := &rule.Rule{
		Match: match, Fields: fields, Profile: rerank.Profile{Threshold: 0.7}, Window: 1000, Compute: true, Sketcher: newSketcher(t),
	}
	expect.OK(t, r.Validate())
	return r
}

// planFor configures every target that a rule matches.
func planFor(scope adapters.Scope, rules ...*rule.Rule) adapters.Plan {
	return adapters.Plan{Rules: rules, MaxWindow: 5000, Scope: func(target string) adapters.Scope {
		rule := rule.Rules(rules).For(target)
		if rule == nil {
			return adapters.Scope{}
		}
		s := adapters.Scope{Widening: rerank.Widening{Rate: scope.Rate}, Lacking: scope.Lacking}
		s.Add(rule)
		s.Window, s.VectorWindow = cmp.Or(scope.Window, s.Window), cmp.Or(scope.VectorWindow, s.VectorWindow)
		return s
	}}
}

// fake is an engine that answers every search with one list of documents, whatever its query. It takes no control of ours, and
// else answers as the real one did in testdata/fake.txtar, byte for byte but for the facets' counts and the times.
type fake struct {
	documents []map[string]any
	of        func(collection string) []map[string]any // in their place, if set; nil is no such collection
	obeys     bool                                     // limit and offset, as releases from 0.25 on do by their source
	asked     int                                      // how often
	searches  []map[string]any                         // all that it was asked
}

// run answers a search. What it asks side by side counts once.
func (f *fake) run(s *adapters.Searches) (*adaptertest.Answer, error) {
	rounds := f.asked
	defer func() { f.asked = rounds }()
	return adaptertest.Whole(collapse.Answer(context.Background(), s, func(_ context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
		rounds++
		var replies []*adapters.Reply
		for _, r := range requests {
			replies = append(replies, f.reply(r))
		}
		return replies, nil
	}))
}

// reply answers a multi-search, or the search of one collection.
func (f *fake) reply(r *adapters.Request) *adapters.Reply {
	f.asked++
	if strings.Contains(r.RawQuery, "neardup=") || strings.Contains(r.RawQuery+string(r.Body), "neardup_window") {
		return fakeReply(400, fakeError("a control"))
	}
	searches, refusal := fakeSearches(r)
	switch {
	case r.Method == "GET" && len(searches) == 1:
		f.searches = append(f.searches, searches...)
		return fakeReply(f.answer(searches[0]))
	case r.Path != "/multi_search" || r.Method != "POST":
		return fakeReply(404, fakeError("Not Found"))
	}
	if refusal != "" {
		return fakeReply(400, fakeError(refusal))
	}
	if len(searches) == 0 {
		return fakeReply(500, fakeError("Embedded params parsing error."))
	}
	f.searches = append(f.searches, searches...)
	results := make([]string, len(searches))
	for i, search := range searches {
		results[i] = f.search(search)
	}
	return fakeReply(200, `{"results":[`+strings.Join(results, ",")+`]}`)
}

func fakeReply(status int, body string) *adapters.Reply {
	header := adapters.Header{"Content-Type": {"application/json; charset=utf-8"}}
	return &adapters.Reply{Status: status, Header: header, Body: []byte(body)}
}

func fakeError(reason string) string {
	return `{"message": ` + string(jsonedit.AppendString(nil, reason)) + `}`
}

// fakeSearches returns the search of one collection, or those of a multi-search, with the parameters of the query string put over them, or what the
// engine says of a body that it can't read.
func fakeSearches(r *adapters.Request) (searches []map[string]any, refusal string) {
	if collection, single := strings.CutSuffix(strings.TrimPrefix(r.Path, "/collections/"), "/documents/search"); single && r.Method == "GET" {
		return []map[string]any{fakeSearch(map[string]any{"collection": collection}, r.RawQuery)}, ""
	}
	var root any
	if json.Unmarshal(r.Body, &root) != nil {
		return nil, "Bad JSON."
	}
	body, _ := root.(map[string]any)
	list, ok := body["searches"].([]any)
	switch {
	case !ok:
		return nil, "Missing `searches` array."
	case len(list) > maxSearches:
		return nil, "Number of multi searches exceeds `limit_multi_searches` parameter."
	}
	for _, element := range list {
		search, ok := element.(map[string]any)
		if !ok {
			return nil, "The value of `searches` must be an array of objects."
		}
		for _, value := range search {
			switch value.(type) {
			case nil, map[string]any:
				return nil, "One or more search parameters are malformed."
			}
		}
		searches = append(searches, fakeSearch(search, r.RawQuery))
	}
	return searches, ""
}

func fakeSearch(search map[string]any, query string) map[string]any {
	out := map[string]any{}
	for name, value := range search {
		out[name] = value
	}
	for _, p := range adapters.Params(query) {
		out[p.Name] = p.Value
	}
	return out
}

// fakeNumber reads a parameter, false where it is none.
func fakeNumber(search map[string]any, name string, otherwise int) (int, bool) {
	value, given := search[name]
	if !given {
		return otherwise, true
	}
	n, err := strconv.Atoi(fmt.Sprint(value))
	return n, err == nil && n >= 0
}

// search answers one search of a multi-search.
func (f *fake) search(search map[string]any) string {
	status, body := f.answer(search)
	if status == 200 {
		return body
	}
	var e struct{ Message string }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"code":%d,"error":%s}`, status, jsonedit.AppendString(nil, e.Message))
}

// answer answers one search of a collection.
func (f *fake) answer(search map[string]any) (status int, body string) {
	page, ok1 := fakeNumber(search, "page", 1)
	perPage, ok2 := fakeNumber(search, "per_page", defaultPerPage)
	if f.obeys && search["per_page"] == nil {
		perPage, ok2 = fakeNumber(search, "limit", perPage)
	}
	from, shown := (page-1)*perPage, fmt.Sprintf(`"page":%d`, page)
	if f.obeys && search["page"] == nil && search["offset"] != nil {
		from, _ = fakeNumber(search, "offset", 0)
		shown = fmt.Sprintf(`"offset":%d`, from)
	}
	documents := f.documents
	if f.of != nil {
		documents = f.of(fmt.Sprint(search["collection"]))
	}
	switch {
	case f.of != nil && documents == nil:
		return 404, fakeError("Not found.")
	case !ok1:
		return 400, fakeError("Parameter `page` must be an unsigned integer.")
	case !ok2:
		return 400, fakeError("Parameter `per_page` must be an unsigned integer.")
	case page == 0:
		return 422, fakeError("Page must be an integer of value greater than 0.")
	case perPage > maxPerPage:
		return 422, fakeError("Only upto 250 hits can be fetched per page.")
	}
	if from = min(from, len(documents)); page > len(documents) { // far pages are empty, and must not overflow
		from = len(documents)
	}
	var hits []string
	for _, document := range documents[from:min(from+perPage, len(documents))] {
		hits = append(hits, renderHit(document, search))
	}
	facets, q := "[]", "x"
	if by, _ := search["facet_by"].(string); by != "" {
		facets = fmt.Sprintf(`[{"field_name":%q}]`, by)
	}
	if given, ok := search["q"].(string); ok {
		q = given
	}
	return 200, fmt.Sprintf(`{"facet_counts":%s,"found":%d,"hits":[%s],"out_of":%d,%s,"request_params":{"collection_name":%q,"per_page":%d,"q":%q},"search_cutoff":false,"search_time_ms":3}`,
		facets, len(documents), strings.Join(hits, ","), len(documents), shown, search["collection"], perPage, q)
}

// renderHit shows the fields that the search asks for, sorted and written as the engine does.
func renderHit(document, search map[string]any) string {
	include, _ := search["include_fields"].(string)
	exclude, _ := search["exclude_fields"].(string)
	included := fieldList(include)
	var members []string
	for _, key := range slices.Sorted(maps.Keys(document)) {
		if len(included) > 0 && !slices.Contains(included, key) || slices.Contains(fieldList(exclude), key) {
			continue
		}
		value := fmt.Sprint(document[key])
		if text, ok := document[key].(string); ok {
			value = string(jsonedit.AppendString(nil, text))
		}
		members = append(members, fmt.Sprintf(`%q:%s`, key, value))
	}
	return `{"document":{` + strings.Join(members, ",") + `},"highlight":{},"highlights":[]}`
}

// familyText returns one of a family of near-duplicates.
func familyText(family, version int) string {
	r := rand.New(rand.NewPCG(uint64(family), 1))
	words := make([]string, 60)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", r.IntN(5000))
	}
	if version > 0 {
		words[version%60] = fmt.Sprintf("v%d", version)
	}
	return strings.Join(words, " ")
}

// memo remembers sketches by text: making them is most of what these tests take.
type memo map[string]*rule.Encoded

func (m memo) sketch(r *rule.Rule, text string) *rule.Encoded {
	if m[text] == nil {
		s, _ := r.Sketch([]string{text})
		m[text] = &rule.Encoded{Sketch: s, Text: s.String()}
	}
	return m[text]
}

// corpus returns documents of which some repeat one another; some of them have no sketch, and some a stale scheme's.
func (m memo) corpus(r *rand.Rand, matched *rule.Rule, n int, duplicates float64) []map[string]any {
	documents := make([]map[string]any, n)
	for i := range documents {
		family := 1000 + i
		if r.Float64() < duplicates {
			family = r.IntN(8)
		}
		body := familyText(family, r.IntN(3))
		d := map[string]any{"id": fmt.Sprint("d", i), "title": fmt.Sprint("t ", i, " <b>&\u2028"), "body": body, "n": i}
		m.store(d, matched, body, r.IntN(10))
		documents[i] = d
	}
	return documents
}

// oracle returns the ranks of the page by the definition of the collapsed list.
func (m memo) oracle(r *rule.Rule, documents []map[string]any, window, page, perPage int) []int {
	hits := make([]rerank.Hit, len(documents))
	for i, d := range documents {
		text, _ := d[rule.SketchField].(string)
		if stored := r.Decode(text); stored != nil {
			hits[i].Sketch, hits[i].Profile = stored, &r.Profile
		} else if r.Compute {
			hits[i].Sketch, hits[i].Profile = &m.sketch(r, d["body"].(string)).Sketch, &r.Profile
		}
	}
	var list []int
	for _, g := range rerank.Collapse(hits, window).Groups {
		list = append(list, g.Leader)
	}
	for i := min(window, len(hits)); i < len(hits); i++ {
		list = append(list, i)
	}
	from := (page - 1) * perPage
	return list[min(from, len(list)):min(from+perPage, len(list))]
}

// store puts the sketch of its text into a document: none where chance is 0, where it is 1 one of a stale scheme.
func (m memo) store(d map[string]any, matched *rule.Rule, text string, chance int) {
	switch s := m.sketch(matched, text); chance {
	case 0:
	case 1:
		other := s.Sketch
		other.Scheme++
		d[rule.SketchField] = other.String()
	default:
		d[rule.SketchField] = s.Text
	}
}
