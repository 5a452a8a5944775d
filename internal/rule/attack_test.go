package rule

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// page is a document of an attack: the victim's text of 120 words with the words from own on replaced by as many of another writer, longer by more words.
type page struct {
	id                   string
	from, replaced, more int
	values               map[string][]string
}

func (p page) document() string {
	text := ""
	for i := range 120 {
		if i >= p.from && i < p.from+p.replaced {
			text += fmt.Sprintf("other%c%c ", 'a'+i/26, 'a'+i%26)
		} else {
			text += fmt.Sprintf("victim%c%c ", 'a'+i/26, 'a'+i%26)
		}
	}
	for i := range p.more {
		text += fmt.Sprintf("more%c%c ", 'a'+i/26, 'a'+i%26)
	}
	document, _ := json.Marshal(map[string]string{"body": text}) // of a string, which can't fail
	return string(document)
}

// TestAttackPages: what somebody who writes documents can do to the page "victim" by near-copies, in the engine's order, and what he can't. What
// is hidden here stands in docs/internals/threats.md under what remains.
func TestAttackPages(t *testing.T) {
	victim, near := page{id: "victim"}, page{id: "near", replaced: 10}
	copies := func(n int, from int) (list []page) {
		for i := range n {
			list = append(list, page{id: fmt.Sprint("copy", i), from: from + i%10, replaced: 8})
		}
		return list
	}
	var chain []page // each replaces more of the text: the first has none of the victim's words
	for replaced := 120; replaced > 0; replaced -= 10 {
		chain = append(chain, page{id: fmt.Sprint("chain", replaced), replaced: replaced})
	}
	with := func(p page, field, value string) page {
		p.values = map[string][]string{field: {value}}
		return p
	}
	by := func(c Choice) func(*Rule) {
		return func(r *Rule) { r.Choice, r.DateField = c, "date" }
	}
	for _, c := range []struct {
		name   string
		rule   func(*Rule)
		hits   []page
		window int
		hidden bool
	}{
		{"a near-copy above", nil, []page{near, victim}, 200, true},
		{"a near-copy below", nil, []page{victim, near}, 200, false},
		{"a hundred near-copies below", nil, append([]page{victim}, copies(100, 0)...), 200, false},
		{"many near-copies that fill the window", nil, append(copies(100, 0), victim), 100, false},
		{"a chain of near-copies above", nil, append(slices.Clone(chain[:6]), victim), 200, false},
		{"the same, with transitive, and all of the chain", func(r *Rule) { r.Transitive = true }, append(slices.Clone(chain), victim), 200, true},
		{"one near-copy above, with keep: 2", func(r *Rule) { r.Profile.Keep = 2 }, []page{near, victim}, 200, false},
		{"two near-copies above, with keep: 2", func(r *Rule) { r.Profile.Keep = 2 }, []page{near, {id: "second", from: 40, replaced: 6}, victim}, 200, true},
		{"a longer one below, with longest", by(Choice{By: ByLongest}), []page{victim, {id: "long", more: 20}}, 200, true},
		{"a date to come below, with newest", by(Choice{By: ByNewest}), []page{with(victim, "date as a date", "1700000000000"), with(near, "date as a date", "253402300799000")}, 200, true},
		{"a date before all below, with oldest", by(Choice{By: ByOldest}), []page{with(victim, "date as a date", "1700000000000"), with(near, "date as a date", "-62135596800000")}, 200, true},
		{"no date below, with oldest", by(Choice{By: ByOldest}), []page{with(victim, "date as a date", "1700000000000"), near}, 200, false},
		{"most votes below, with a field", by(Choice{By: ByField, Field: "votes"}), []page{with(victim, "votes", "9"), with(near, "votes", "1e300")}, 200, true},
		{"NaN votes below, with a field", by(Choice{By: ByField, Field: "votes"}), []page{with(victim, "votes", "9"), with(near, "votes", "NaN")}, 200, false},
		{"the victim's host below, with prefer", by(Choice{By: ByPrefer, Field: "host", Values: []string{"a.example"}}), []page{with(victim, "host", "a.example"), with(near, "host", "a.example")}, 200, false},
		{"another host above, with prefer", by(Choice{By: ByPrefer, Field: "host", Values: []string{"a.example"}}), []page{with(near, "host", "b.example"), with(victim, "host", "a.example")}, 200, false},
		{"another host above, with same", func(r *Rule) { r.Together.Same = []string{"host"} }, []page{with(near, "host", "b.example"), with(victim, "host", "a.example")}, 200, false},
		{"the victim's host above, with same", func(r *Rule) { r.Together.Same = []string{"host"} }, []page{with(near, "host", "a.example"), with(victim, "host", "a.example")}, 200, true},
		{"the whole text in a longer one above", nil, []page{{id: "quotes", more: 300}, victim}, 200, false},
		{"the same, with containment", func(r *Rule) { r.Profile.Measure = rerank.Containment }, []page{{id: "quotes", more: 300}, victim}, 200, true},
	} {
		r := &Rule{
			Match: "*", Fields: []string{"body"}, Profile: rerank.Default(), Compute: true, Window: 200,
			Sketcher: expect.Value(sketch.New(sketch.Scheme{Seed: "a secret"}))(t),
		}
		if c.rule != nil {
			c.rule(r)
		}
		expect.OK(t, r.Validate())
		j := NewJudge(Rules{r}, 0, 0)
		var hits []rerank.Hit
		for _, p := range c.hits {
			hits = append(hits, j.Hit(Seen{Index: "news", ID: p.id, Shown: shown{p.document(), p.values}}))
		}
		collapsed := rerank.Collapse(hits, c.window)
		if r.Transitive {
			collapsed = rerank.CollapseTransitive(hits, c.window)
		}
		at := slices.IndexFunc(c.hits, func(p page) bool { return p.id == "victim" })
		hidden := at < c.window && !slices.Contains(collapsed.Shown, at) // beyond the window all are shown
		expect.Same(t, c.hidden, hidden, "%s: that the victim is hidden; shown are %v", c.name, collapsed.Shown)
	}
}
