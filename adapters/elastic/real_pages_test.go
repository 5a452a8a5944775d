package elastic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const pageProperties = `"title":{"type":"text"},"body":{"type":"text"},"at":{"type":"date"},"n":{"type":"integer"},
	"k":{"type":"keyword"},"host":{"type":"keyword"},"c":{"type":"nested","properties":{"x":{"type":"keyword"}}}`

// fillPages makes two indices with versions of texts. Some have no sketch, some one of another scheme, some lack a field.
func (l *larder) fillPages(r *rand.Rand, n int) {
	l.t.Helper()
	rule := pageRule(l)
	for i, shards := range []int{2, 1} {
		index := l.name + strconv.Itoa(i)
		l.create(index, pageProperties, shards)
		documents := map[string]stored{}
		for j := range n {
			family := 1000*i + j
			if r.IntN(10) < 5 {
				family = r.IntN(12)
			}
			d := stored{source: map[string]any{
				"title": fmt.Sprintf("alpha t%d", family%9), "body": sentence(family, r.IntN(3), 40), "n": r.IntN(20),
				"c": []any{map[string]any{"x": "p"}, map[string]any{"x": strconv.Itoa(j)}}, "f": 1.50, "o": map[string]any{"title": "x",
					"y": []any{1, nil}},
			}}
			if r.IntN(8) > 0 {
				d.at = 1700000000000 + int64(r.IntN(40))*3600000
				d.source["at"] = time.UnixMilli(d.at).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			if r.IntN(8) > 0 {
				d.source["host"] = []string{"a", "b", "c"}[r.IntN(3)]
			}
			if r.IntN(8) > 0 {
				d.source["k"] = []string{[]string{"x", "y"}[r.IntN(2)], "z"}
			}
			if s, ok := rule.Sketch(textsOf(d)); ok && r.IntN(8) > 0 {
				if r.IntN(10) == 0 {
					s.Scheme++
				}
				d.sketch = s.String()
			}
			documents[fmt.Sprintf("d%d", j)] = d
		}
		l.put(index, documents)
	}
}

func textsOf(d stored) []string {
	return []string{d.source["title"].(string), d.source["body"].(string)}
}

func pageRule(l *larder) *rule.Rule {
	return &rule.Rule{
		Match: l.name + "*", Fields: []string{"title", "body"}, Profile: rerank.Profile{Threshold: 0.5, MinShingles: 8}, Window: 60,
		VectorWindow: 100, Compute: true, Sketcher: sketcher(l.t),
	}
}

// randomRule returns a rule with choices and conditions.
func randomRule(l *larder, r *rand.Rand) *rule.Rule {
	matched := pageRule(l)
	matched.Window, matched.DateField = []int{10, 40, 120, 400}[r.IntN(4)], "at"
	matched.Profile.Keep, matched.Compute, matched.Transitive = 1+r.IntN(3)*r.IntN(2), r.IntN(4) > 0, r.IntN(5) == 0
	matched.Choice = []rule.Choice{
		{}, {}, {By: rule.ByNewest}, {By: rule.ByOldest}, {By: rule.ByLongest}, {By: rule.ByField, Field: "n"},
		{By: rule.ByField, Field: "host", Ascending: true}, {By: rule.ByPrefer, Field: "k", Values: []string{"y", "z"}},
	}[r.IntN(8)]
	if r.IntN(4) == 0 {
		matched.Together.Within, matched.Together.WithinField = int64(1+r.IntN(20))*time.Hour.Milliseconds(), "at"
	}
	switch r.IntN(6) {
	case 0:
		matched.Together.Same = []string{"host"}
	case 1:
		matched.Together.Different = []string{"host"}
	}
	if matched.Profile.Measure = rerank.Resemblance; r.IntN(4) == 0 {
		matched.Profile.Measure = rerank.Containment
	}
	return matched
}

// traits is what is known of a document beside its sketch, by what the test stored.
func (d stored) traits(r *rule.Rule, s *sketch.Sketch) (t rerank.Traits) {
	text := func(field string) []string {
		switch v := d.source[field].(type) {
		case nil:
			return nil
		case []string:
			return v
		default:
			return []string{fmt.Sprint(v)}
		}
	}
	t.At, t.Timed = d.at, d.at != 0
	for _, field := range r.Together.Same {
		t.Same = strings.Join(text(field), ",")
	}
	for _, field := range r.Together.Different {
		t.Different = append(t.Different, text(field))
	}
	switch c := r.Choice; c.By {
	case rule.ByNewest, rule.ByOldest:
		t.Merit = rerank.Merit{Known: t.Timed, Number: float64(d.at)}
	case rule.ByLongest:
		t.Merit = rerank.Merit{Known: true, Number: float64(s.Shingles)}
	case rule.ByField:
		if values := text(c.Field); values != nil {
			n, err := strconv.ParseFloat(values[0], 64)
			t.Merit = rerank.Merit{Known: true, Number: n}
			if err != nil {
				t.Merit.Text = values[0]
			}
		}
	case rule.ByPrefer:
		for i := len(c.Values) - 1; i >= 0; i-- {
			if slices.Contains(text(c.Field), c.Values[i]) {
				t.Merit = rerank.Merit{Known: true, Number: float64(i)}
			}
		}
	}
	return t
}

// judged returns what is compared of the hits of the engine's own list.
func (l *larder) judged(r *rule.Rule, raw []string) []rerank.Hit {
	profile := r.Profile
	profile.Within, profile.Same, profile.Different = r.Together.Within, r.Together.Same != nil, r.Together.Different != nil
	by := r.Choice.By
	profile.Chooses = !r.Choice.Ranked()
	profile.Ascending = by == rule.ByOldest || by == rule.ByPrefer || r.Choice.Ascending
	hits := make([]rerank.Hit, len(raw))
	for i, text := range raw {
		hits[i].ID = idOf(l.t, text)
		d, ok := l.stored[hits[i].ID]
		if !ok {
			l.t.Fatalf("unknown hit %s", text)
		}
		s := r.Decode(d.sketch)
		if s == nil && r.Compute {
			computed, _ := r.Sketch(textsOf(d))
			s = &computed
		}
		if hits[i].Sketch = s; s != nil {
			hits[i].Profile, hits[i].Traits = &profile, d.traits(r, s)
		}
	}
	return hits
}

func idOf(t *testing.T, hit string) string {
	t.Helper()
	var h struct {
		Index string `json:"_index"`
		ID    string `json:"_id"`
	}
	expect.JSON(t, []byte(hit), &h)
	return h.Index + "\x00" + h.ID
}

// randomSearch returns the body of a search less from and size, and its parameters.
func randomSearch(r *rand.Rand) (body, params string) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	parts := []string{
		pick(``, `"query":{"match_all":{}}`, `"query":{"match":{"title":"alpha t1 t2"}}`, `"query":{"range":{"n":{"gte":2}}}`,
			`"query":{"bool":{"must":[{"match":{"title":"alpha t3"}},{"nested":{"path":"c","query":{"match_all":{}},`+
				`"inner_hits":{"size":1}}}]}}`),
		pick(``, ``, `"sort":["n"]`, `"sort":[{"at":"desc"},"n"]`, `"sort":[{"k":{"order":"asc"}},"_score"],"track_scores":true`),
		pick(``, ``, `"post_filter":{"range":{"n":{"lt":17}}}`,
			`"post_filter":{"bool":{"should":[{"term":{"host":{"value":"a","_name":"h"}}},{"range":{"n":{"lt":9,"_name":"l"}}}]}}`),
		pick(``, `"highlight":{"fields":{"title":{}}}`),
		pick(``, ``, `"aggs":{"a":{"terms":{"field":"host"}}}`,
			`"aggs":{"a":{"terms":{"field":"host"},"aggs":{"t":{"top_hits":{"size":2,"sort":["n","_doc"]}}}}}`),
		pick(``, ``, `"fields":["title","at"]`, `"fields":["*"]`, `"docvalue_fields":["n","host"]`,
			`"docvalue_fields":[{"field":"at"}]`, `"docvalue_fields":["a*"]`,
			`"script_fields":{"n":{"script":"doc['n'].value*2"}}`),
		pick(``, ``, `"version":true,"seq_no_primary_term":true`, `"explain":true`, `"min_score":0.01`, `"stored_fields":["title"]`,
			`"stored_fields":["_source"]`),
		pick(``, ``, `"track_total_hits":false`, `"track_total_hits":7`, `"track_total_hits":true`),
		sourcePart(r),
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	if body = strings.Join(parts, ","); strings.Contains(body, `hits":7`) {
		return body, pick("", "pretty")
	}
	return body, pick("", "", "pretty", "rest_total_hits_as_int=true", "typed_keys=true")
}

// sourcePart returns a source filter.
func sourcePart(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	names := func(n int) string {
		list := []string{}
		for range n {
			list = append(list, strconv.Quote(pick("title", "body", "n", "o", "o.title", "o.y", "c.x", "t*", "b*", "*y", "f", "title.x", "none", "at",
				"bo", "o.*")))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	n, m := r.IntN(4), r.IntN(4)
	return pick(``, `"_source":false`, `"_source":`+strings.Trim(names(1), "[]"), `"_source":`+names(n), `"_source":{"includes":`+names(n)+`}`,
		`"_source":{"excludes":`+names(n)+`}`, `"_source":{"includes":`+names(n)+`,"excludes":`+names(m)+`}`)
}

// page is one search of the test.
type page struct {
	rule       *rule.Rule
	from, size int
	show       adapters.Scope
	controls   string
	raw        []string // the engine's whole list
	list       rerank.Collapsed
	hits       []rerank.Hit
	ranks      []int // of the page
}

// choose sets what the answer is to show.
func (p *page) choose(r *rand.Rand) {
	if p.show.DryRun = r.IntN(8) == 0; p.show.DryRun {
		p.controls = `,"neardup":"dry_run"`
	} else {
		p.controls = []string{``, ``, ``, `,"neardup_expand":"ids"`, `,"neardup_expand":"source"`, `,"neardup_explain":true`,
			`,"neardup_expand":"source","neardup_explain":"true"`}[r.IntN(7)]
	}
	if r.IntN(3) == 0 {
		p.controls += `,"neardup_totals":"collapsed"`
		p.show.CollapsedTotals = true
	}
}

// collapse is the definition.
func (p *page) collapse() {
	collapse := rerank.Collapse
	if p.rule.Transitive {
		collapse = rerank.CollapseTransitive
	}
	p.list = collapse(p.hits, p.rule.Window)
	ranks := slices.Clone(p.list.Shown)
	for rank := p.rule.Window; rank < len(p.raw); rank++ {
		ranks = append(ranks, rank)
	}
	p.ranks = ranks[min(p.from, len(ranks)):min(p.from+p.size, len(ranks))]
}
