package elastic

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// decide runs a page over versions of one text under a rule, and returns the ids of its hits, or why it is left to the engine.
func (l *larder) decide(index, body string, rules ...*rule.Rule) string {
	l.t.Helper()
	answer, err := l.answer(requestFor("POST", "/"+index+"/_search", "", body), planOf(rules, false, 0.3))
	switch {
	case errors.Is(err, adapters.ErrWidened):
		return "refused"
	case err != nil:
		return err.Error()
	case strings.Contains(string(answer.Body), "neardup_sketch"), answer.Status != 200:
		return string(answer.Body)
	}
	var ids []string
	for _, hit := range fakeHits(answer.Body)[0] {
		_, id, _ := strings.Cut(idOf(l.t, hit), "\x00")
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// TestRealDecidingFields shows what becomes of each type of field as one that decides: it is read, or the search is refused
// for us and left to the engine; or it has no values, and then nothing folds that needs them.
func TestRealDecidingFields(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index := l.name + "0"
		l.create(index, `"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"body":{"type":"text"},"n":{"type":"integer"},
			"date":{"type":"date"},"nanos":{"type":"date_nanos"},"long":{"type":"long"},"double":{"type":"double"},
			"keyword":{"type":"keyword"},"ip":{"type":"keyword"},"bool":{"type":"boolean"},"o":{"properties":{"k":{"type":"keyword"}}},
			"c":{"type":"nested","properties":{"x":{"type":"keyword"}}}`, 1)
		r := pageRule(l)
		documents := map[string]stored{}
		for i := range 4 { // a and b are alike in all, c differs, d has nothing
			id, same := string(rune('a'+i)), i < 2
			pick := func(yes, no any) any {
				if same {
					return yes
				}
				return no
			}
			d := stored{source: map[string]any{"title": "one title", "body": sentence(1, i, 60), "n": i}}
			if i < 3 {
				for field, value := range map[string]any{
					"date": pick("2024-01-02T03:04:05.678Z", "2024-03-02"), "nanos": pick("2024-01-02T03:04:05.123456789Z", "2024-03-02"),
					"long":   pick(7, 8),
					"double": pick(1.5, 2.5), "keyword": pick([]string{"x", "y"}, []string{"z"}), "ip": pick("::1", "::2"),
					"bool": pick(true, false),
					"o":    map[string]any{"k": pick("p", "q")}, "c": []any{map[string]any{"x": "p"}},
				} {
					d.source[field] = value
				}
			}
			s, _ := r.Sketch(textsOf(d))
			d.sketch, documents[id] = s.String(), d
		}
		l.put(index, documents)
		const list = `{"sort":["n"]}`
		expect.Must(t, "a", l.decide(index, list, r), "without a condition")
		for field, want := range map[string]string{
			"date": "a c d", "nanos": "a c d", "long": "a c d", "double": "a c d", "keyword": "a c d", "ip": "a c d", "bool": "a c d",
			"o.k":       "a c d",
			"title.raw": "a", "unmapped": "a b c d", "o": "a b c d", "c.x": "a b c d", "title": "refused", "body": "refused",
		} {
			one := *r
			one.Together.Same = []string{field}
			expect.Same(t, want, l.decide(index, list, &one), "same %s", field)
			if got := l.decide(index, `{"sort":["n"],"docvalue_fields":["n","`+strings.Replace(field, "title", "n", 1)+`"],"size":20}`,
				&one); got != want && field != "body" {
				t.Errorf("same %s, extracted by the client too: %s, want %s", field, got, want)
			}
		}
		for field, want := range map[string]string{
			"date": "a c d", "nanos": "a c d", "long": "a b c d", "unmapped": "a b c d", "keyword": "refused", "bool": "refused",
			"title": "refused",
		} {
			one := *r
			one.Together.Within, one.Together.WithinField = time.Second.Milliseconds(), field
			expect.Same(t, want, l.decide(index, list, &one), "within %s", field)
		}
		for field, want := range map[string]string{"date": "c", "nanos": "c", "long": "a", "unmapped": "a", "keyword": "refused"} {
			one := *r
			one.Choice, one.DateField = rule.Choice{By: rule.ByNewest}, field
			expect.Same(t, want, l.decide(index, list, &one), "newest by %s", field)
		}
		for field, want := range map[string]string{"long": "c", "double": "c", "keyword": "c", "bool": "a", "date": "c",
			"unmapped": "a", "n": "d", "title": "refused"} {
			one := *r
			one.Choice = rule.Choice{By: rule.ByField, Field: field}
			expect.Same(t, want, l.decide(index, list, &one), "greatest %s", field)
		}
		l.checkOtherMapping(index, r, documents)
	})
}

// checkOtherMapping searches two indices, of which one can't give what decides: it fails alone, and the search is left to the
// engine.
func (l *larder) checkOtherMapping(index string, matched *rule.Rule, documents map[string]stored) {
	other := l.name + "1"
	l.create(other, `"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"},"keyword":{"type":"text"},`+
		`"date":{"type":"keyword"}`, 1)
	one := documents["d"]
	one.source["keyword"] = "x"
	l.put(other, map[string]stored{"e": one})
	for _, change := range []func(*rule.Rule){
		func(r *rule.Rule) { r.Together.Same = []string{"keyword"} },
		func(r *rule.Rule) { r.Together.Within, r.Together.WithinField = time.Hour.Milliseconds(), "date" },
	} {
		changed := *matched
		change(&changed)
		if got := l.decide(index+","+other, `{"sort":["n"]}`, &changed); got != "refused" {
			l.t.Errorf("%s: %s", other, got)
		}
		answer, err := l.answer(requestFor("POST", "/_msearch", "",
			fmt.Sprintf("{\"index\":[%q,%q]}\n{\"sort\":[\"n\"]}\n{\"index\":%q}\n{\"sort\":[\"n\"]}\n", index, other, index)),
			planOf(rule.Rules{&changed}, false, 0.3))
		if err != nil || len(fakeHits(answer.Body)[0]) != 5 || len(fakeHits(answer.Body)[1]) != 3 ||
			answer.Outcomes[0].Reason != "refused" || answer.Outcomes[1].Reason != "" {
			l.t.Errorf("%v %+v", err, answer)
		}
	}
}
