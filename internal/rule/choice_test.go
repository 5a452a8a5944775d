package rule

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

func TestDeciding(t *testing.T) {
	for _, c := range []struct {
		name string
		rule Rule
		want []Deciding
	}{
		{"nothing", Rule{DateField: "day"}, nil},
		{"newest", Rule{DateField: "day", Choice: Choice{By: ByNewest}}, []Deciding{{"day", true}}},
		{"longest", Rule{Choice: Choice{By: ByLongest}}, nil},
		{"field", Rule{Choice: Choice{By: ByField, Field: "votes"}}, []Deciding{{"votes", false}}},
		{"all, each once",
			Rule{DateField: "day", Choice: Choice{By: ByOldest}, Together: Together{
				Within: 3600_000, WithinField: "day", Same: []string{"host", "day"}, Different: []string{"host"}}},
			[]Deciding{{"day", true}, {"host", false}, {"day", false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, c.rule.Deciding(), "")
		})
	}
}

func TestTraits(t *testing.T) {
	number := func(n float64) rerank.Merit { return rerank.Merit{Known: true, Number: n} }
	for _, c := range []struct {
		name   string
		rule   Rule
		values map[string][]string
		want   rerank.Traits
	}{
		{"nothing asked for", Rule{}, map[string][]string{"host": {"a"}}, rerank.Traits{}},
		{"a moment", Rule{Together: Together{Within: 3600_000, WithinField: "day"}},
			map[string][]string{"day as a date": {"-12", "99"}}, rerank.Traits{At: -12, Timed: true}},
		{"a moment with nanoseconds", Rule{Together: Together{Within: 3600_000, WithinField: "day"}},
			map[string][]string{"day as a date": {"12.000345"}}, rerank.Traits{At: 12, Timed: true}},
		{"the same, in another order", Rule{Together: Together{Same: []string{"host", "lang"}}},
			map[string][]string{"host": {"b", "a", "b"}, "lang": {"en"}}, rerank.Traits{Same: "1:a1:b;2:en;"}},
		{"different", Rule{Together: Together{Different: []string{"host", "lang"}}},
			map[string][]string{"host": {"a", "b"}}, rerank.Traits{Different: [][]string{{"a", "b"}, nil}}},
		{"longest", Rule{Choice: Choice{By: ByLongest}}, nil, rerank.Traits{Merit: number(7)}},
		{"newest", Rule{DateField: "day", Choice: Choice{By: ByNewest}},
			map[string][]string{"day as a date": {"5"}}, rerank.Traits{Merit: number(5)}},
		{"preferred", Rule{Choice: Choice{By: ByPrefer, Field: "host", Values: []string{"a", "b", "c"}}},
			map[string][]string{"host": {"x", "c", "b"}}, rerank.Traits{Merit: number(1)}},
		{"a number", Rule{Choice: Choice{By: ByField, Field: "votes"}}, map[string][]string{"votes": {"1.5e3"}}, rerank.Traits{Merit: number(1500)}},
		{"a text", Rule{Choice: Choice{By: ByField, Field: "grade"}},
			map[string][]string{"grade": {"B"}}, rerank.Traits{Merit: rerank.Merit{Known: true, Text: "B"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.rule.traits(&sketch.Sketch{Shingles: 7}, shown{values: c.values})
			expect.Same(t, c.want, got, "")
		})
	}
}

func TestChoicesThatCantBe(t *testing.T) {
	for _, c := range []struct {
		name string
		rule Rule
		want []string
	}{
		{"newest of nothing", Rule{Choice: Choice{By: ByNewest}}, []string{"date_field"}},
		{"field of nothing", Rule{Choice: Choice{By: ByField}}, []string{"representative", "field"}},
		{"prefer nothing", Rule{Choice: Choice{By: ByPrefer, Field: "host"}}, []string{"prefer", "values"}},
		{"unknown", Rule{Choice: Choice{By: "best"}}, []string{`"best"`, "newest"}},
		{"keep too many", Rule{Profile: rerank.Profile{Keep: 101}}, []string{"keep", "101", "100"}},
		{"within nothing", Rule{Together: Together{Within: 3600_000}}, []string{"within", "date_field"}},
		{"a field of ours", Rule{Together: Together{Same: []string{SketchField}}}, []string{SketchField}},
		{"a pattern", Rule{Together: Together{Different: []string{"host*"}}}, []string{`"host*"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.Match, c.rule.Fields, c.rule.Window = "news", []string{"title"}, 10
			c.rule.Profile.Threshold = 0.8
			err := c.rule.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not name %s", err, word)
				}
			}
		})
	}
}
