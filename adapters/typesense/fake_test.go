package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func newSketcher(t testing.TB) *sketch.Sketcher {
	t.Helper()
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	return sketcher
}

func newRule(t testing.TB, match string, fields ...string) *adapters.Rule {
	t.Helper()
	r := &adapters.Rule{
		Match: match, Fields: fields, Profile: rerank.Profile{Threshold: 0.7}, Window: 1000, Compute: true, Sketcher: newSketcher(t),
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

// planFor configures every target that a rule matches.
func planFor(scope adapters.Scope, rules ...*adapters.Rule) adapters.Plan {
	return adapters.Plan{Rules: rules, MaxWindow: 5000, Scope: func(target string) adapters.Scope {
		rule := adapters.Rules(rules).For(target)
		if rule == nil {
			return adapters.Scope{}
		}
		s := scope
		s.Configured = true
		if s.Window == 0 {
			s.Window = rule.Window
		}
		return s
	}}
}

// fake is an engine that answers every search with one list of documents, whatever its query. It takes no control of ours.
type fake struct {
	documents []map[string]any
	of        func(collection string) []map[string]any // in their place, if set
	asked     int
	searches  []map[string]any // all that it was asked
}

// reply answers a multi-search, or the search of one collection.
func (f *fake) reply(r *adapters.Request) *adapters.Reply {
	f.asked++
	answer := func(status int, body string) *adapters.Reply {
		return &adapters.Reply{Status: status, Header: adapters.Header{"Content-Type": {"application/json; charset=utf-8"}}, Body: []byte(body)}
	}
	if strings.Contains(r.RawQuery, "neardup=") || strings.Contains(r.RawQuery+string(r.Body), "neardup_window") {
		return answer(400, `{"message": "a control"}`)
	}
	collection, single := strings.CutSuffix(strings.TrimPrefix(r.Path, "/collections/"), "/documents/search")
	body := struct{ Searches []map[string]any }{}
	if single {
		body.Searches = []map[string]any{{}}
	} else if err := json.Unmarshal(r.Body, &body); err != nil || r.Path != "/multi_search" || r.Method != "POST" {
		return answer(400, `{"message": "bad"}`)
	}
	if len(body.Searches) > 50 {
		return answer(400, `{"message": "too many"}`)
	}
	f.searches = append(f.searches, body.Searches...)
	results := make([]string, len(body.Searches))
	for i, search := range body.Searches {
		for _, p := range adapters.Params(r.RawQuery) {
			search[p.Name] = p.Value
		}
		if single {
			search["collection"] = collection
		}
		results[i] = f.search(search)
	}
	if single {
		return answer(200, results[0])
	}
	return answer(200, `{"results":[`+strings.Join(results, ",")+`]}`)
}

func intOf(search map[string]any, name string, otherwise int) int {
	n := otherwise
	if v, ok := search[name]; ok {
		if _, err := fmt.Sscan(fmt.Sprint(v), &n); err != nil {
			return -1
		}
	}
	return n
}

// search answers one search as the engine would.
func (f *fake) search(search map[string]any) string {
	page, perPage := intOf(search, "page", 1), intOf(search, "per_page", 10)
	if page < 1 || perPage < 0 || perPage > 250 {
		return `{"code":422,"error":"Bad page."}`
	}
	documents := f.documents
	if f.of != nil {
		documents = f.of(fmt.Sprint(search["collection"]))
	}
	from := min((page-1)*perPage, len(documents))
	var hits []string
	for _, document := range documents[from:min(from+perPage, len(documents))] {
		hits = append(hits, renderHit(document, search))
	}
	facets := "[]"
	if by, ok := search["facet_by"]; ok {
		facets = fmt.Sprintf(`[{"field_name":%q}]`, by)
	}
	return fmt.Sprintf(`{"facet_counts":%s,"found":%d,"hits":[%s],"out_of":%d,"page":%d,"request_params":{"collection_name":%q,"per_page":%d,"q":"x"},"search_cutoff":false,"search_time_ms":3}`,
		facets, len(documents), strings.Join(hits, ","), len(documents), page, search["collection"], perPage)
}

// renderHit shows the fields that the search asks for, sorted as the engine sorts them.
func renderHit(document, search map[string]any) string {
	include, _ := search["include_fields"].(string)
	exclude, _ := search["exclude_fields"].(string)
	shown := map[string]any{}
	for k, v := range document {
		if (include == "" || slices.Contains(fieldList(include), k)) && !slices.Contains(fieldList(exclude), k) {
			shown[k] = v
		}
	}
	data, _ := json.Marshal(shown)
	return fmt.Sprintf(`{"document":%s,"highlight":{},"text_match":1}`, data)
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
type memo map[string]*adapters.Encoded

func (m memo) sketch(rule *adapters.Rule, text string) *adapters.Encoded {
	if m[text] == nil {
		s, _ := rule.Sketch([]string{text})
		m[text] = &adapters.Encoded{Sketch: s, Text: s.String()}
	}
	return m[text]
}

// corpus returns documents of which some repeat one another; some of them have no sketch, and some a stale scheme's.
func (m memo) corpus(r *rand.Rand, rule *adapters.Rule, n int, duplicates float64) []map[string]any {
	documents := make([]map[string]any, n)
	for i := range documents {
		family := 1000 + i
		if r.Float64() < duplicates {
			family = r.IntN(8)
		}
		body := familyText(family, r.IntN(3))
		d := map[string]any{"id": fmt.Sprint("d", i), "title": fmt.Sprint("t ", i, " <b>&\u2028"), "body": body, "n": i}
		switch s := m.sketch(rule, body); r.IntN(10) {
		case 0:
		case 1:
			other := s.Sketch
			other.Scheme++
			d[adapters.SketchField] = other.String()
		default:
			d[adapters.SketchField] = s.Text
		}
		documents[i] = d
	}
	return documents
}

// oracle returns the ranks of the page by the definition of the collapsed list.
func (m memo) oracle(rule *adapters.Rule, documents []map[string]any, window, page, perPage int) []int {
	hits := make([]rerank.Hit, len(documents))
	for i, d := range documents {
		text, _ := d[adapters.SketchField].(string)
		if stored := rule.Decode(text); stored != nil {
			hits[i].Sketch, hits[i].Profile = stored, &rule.Profile
		} else if rule.Compute {
			hits[i].Sketch, hits[i].Profile = &m.sketch(rule, d["body"].(string)).Sketch, &rule.Profile
		}
	}
	var list []int
	for _, g := range rerank.Collapse(hits, window) {
		list = append(list, g.Leader)
	}
	for i := min(window, len(hits)); i < len(hits); i++ {
		list = append(list, i)
	}
	from := (page - 1) * perPage
	return list[min(from, len(list)):min(from+perPage, len(list))]
}
