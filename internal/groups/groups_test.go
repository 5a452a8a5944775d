package groups

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cleanup"
	"github.com/neardup/sidecar/sketch"
)

// noStore is a store that is not asked.
type noStore struct{ adapters.EngineStore }

func (noStore) Journal() adapters.Journal { return nil }

// shelf returns groups of two to five documents: each in a section, and a day of January 2024 for each group.
func shelf(t *testing.T) *Groups {
	t.Helper()
	member := func(group, n int) cleanup.Member {
		fields := []cleanup.Field{
			{Name: "section", Value: json.RawMessage(fmt.Sprintf(`"s%d"`, n))}, {Name: "price", Value: json.RawMessage("1.50")},
			{Name: "day", Value: json.RawMessage(fmt.Sprintf(`"2024-01-%02d"`, 1+group%31))},
		}
		m := cleanup.Member{ID: fmt.Sprintf("d%d: \"%d\"", group, n), Digest: "x", Fields: fields, Title: "a title"}
		if n > 0 {
			m.Agreement = 1 - float64(group)/1000
		}
		return m
	}
	g, err := New(Options{Job: jobs.Job{Store: noStore{}, Rule: &rule.Rule{DateField: "day"}}, Dir: t.TempDir()}, func(yield func(cleanup.Group) error) (cleanup.Counts, error) {
		for group := range 120 {
			made := cleanup.Group{Stays: member(group, 0), Why: "first"}
			for n := range 1 + group%4 {
				made.Goes = append(made.Goes, member(group, n+1))
			}
			expect.OK(t, yield(made))
		}
		return cleanup.Counts{Stay: 120, Go: 300}, nil
	})
	expect.OK(t, err)
	t.Cleanup(g.Close)
	return g
}

// TestList filters and orders groups, a part at a time.
func TestList(t *testing.T) {
	g := shelf(t)
	for _, c := range []struct {
		w            wanted
		total, first int
		shown        int
	}{
		{wanted{Order: Largest}, 120, 3, 50}, {wanted{Order: Largest, From: 100}, 120, 40, 20}, {wanted{Order: Nearest}, 120, 119, 50},
		{wanted{Order: Nearest, From: 500}, 120, -1, 0}, {wanted{Filter: Filter{Field: "section", Value: "s4"}, Order: Largest}, 30, 3, 30},
		{wanted{Filter: Filter{Field: "section", Value: "none"}}, 0, -1, 0}, {wanted{Filter: Filter{Field: "price", Value: "1.50"}}, 120, 3, 50},
		{wanted{Filter: Filter{Field: "price", Value: "1.5"}}, 120, 3, 50},
		{wanted{Filter: Filter{From: "2024-01-02", To: "2024-01-04"}, Order: Nearest}, 8, 95, 8},
		{wanted{Filter: Filter{Value: "s4"}, Order: Largest}, 30, 3, 30}, {wanted{Filter: Filter{Value: "none"}}, 0, -1, 0},
		{wanted{Filter: Filter{Field: "section", Value: "s4", From: "2024-01-31"}, Order: Largest}, 0, -1, 0},
		{wanted{Filter: Filter{Field: "section", Value: "s3", From: "2024-01-31"}, Order: Largest}, 1, 30, 1},
	} {
		value, err := g.listed(t.Context(), c.w)
		expect.OK(t, err)
		l := value.(list)
		first := -1
		if len(l.Groups) > 0 {
			first = l.Groups[0].Number
		}
		expect.Same(t, [3]int{c.total, c.first, c.shown}, [3]int{l.Total, first, len(l.Groups)}, "%+v", c.w)
	}
	if _, err := g.listed(t.Context(), wanted{Filter: Filter{From: "soon"}}); err == nil || !strings.Contains(err.Error(), "is not a date") {
		t.Error(err)
	}
}

// TestPassages: a passage is cut, wherever the page shows it.
func TestPassages(t *testing.T) {
	list := []boilerplate.Passage{{Text: strings.Repeat("one two three ", 4), Documents: 20}, {Text: strings.Repeat("ä夜𝄞 ", 100) + "end"}, {Text: strings.Repeat("ä夜𝄞 ", 75)}}
	s := expect.Value(sketch.New(sketch.Scheme{}))(t)
	g := Groups{Options: Options{Job: jobs.Job{Rule: &rule.Rule{Sketcher: s}}, Passages: list}, spool: new(spool), marker: boilerplate.NewMarker(s, list)}
	want := []contained{{1, 20, list[0].Text}, {2, 0, list[2].Text + " …"}, {3, 0, list[2].Text}}
	expect.Same(t, want, g.state().Passages, "of the index")
	m := member{Text: list[0].Text + list[1].Text}
	g.mark(&m)
	expect.Same(t, want[:2], m.Passages, "of a member")
}

// TestExports hold the same in each form, without what a person told apart.
func TestExports(t *testing.T) {
	g := shelf(t)
	g.made[3] = map[string][]made{`d3: "2"`: {{verdict: decided.Different}}}
	get := func(of func(http.ResponseWriter, *http.Request), query string) []byte {
		w := httptest.NewRecorder()
		of(w, httptest.NewRequestWithContext(context.Background(), "GET", "/?"+query, nil))
		expect.Same(t, 200, w.Code, "%s: %s", query, w.Body)
		return w.Body.Bytes()
	}
	for query, want := range map[string][2]int{"": {120, 299}, "&field=section&value=s4": {30, 119}} {
		rows := expect.Value(csv.NewReader(strings.NewReader(string(get(g.export, "form=csv"+query)))).ReadAll())(t)
		expect.Same(t, 1+want[0]+want[1], len(rows), "lines of CSV")
		var byJSON []cleanup.Group
		expect.OK(t, json.Unmarshal(get(g.export, "form=json"+query), &byJSON))
		var byYAML []struct {
			Stays string
			Goes  []struct{ ID string }
		}
		expect.OK(t, yaml.Unmarshal(get(g.export, "form=yaml"+query), &byYAML))
		goes := 0
		for i, group := range byJSON {
			goes += len(group.Goes)
			if byYAML[i].Stays != group.Stays.ID || len(byYAML[i].Goes) != len(group.Goes) || group.Stays.Fields != nil {
				t.Errorf("group %d: %+v in JSON, %+v in YAML", i, group, byYAML[i])
			}
		}
		expect.Same(t, want, [2]int{len(byYAML), goes}, "groups and documents that go")
	}
	for _, c := range []struct {
		filter Filter
		out    int // a group that is left out
		want   [2]int
	}{{Filter{}, -1, [2]int{120, 299}}, {Filter{Field: "section", Value: "s4"}, -1, [2]int{30, 119}}, {Filter{Value: "s4"}, 7, [2]int{29, 115}}} {
		if c.out >= 0 {
			expect.Value(g.leave(t.Context(), leaving{c.out, true}))(t)
		}
		goes := [2]int{}
		query := url.Values{"field": {c.filter.Field}, "value": {c.filter.Value}}.Encode()
		p, err := cleanup.ReadPlan(strings.NewReader(string(get(g.plan, query))), func(group cleanup.Group) error {
			goes[0]++
			goes[1] += len(group.Goes)
			return nil
		})
		expect.OK(t, err)
		l := expect.Value(g.listed(t.Context(), wanted{Filter: c.filter}))(t).(list)
		expect.Same(t, [3][2]int{c.want, c.want, c.want}, [3][2]int{{p.Counts.Stay, p.Counts.Go}, goes, {l.Stay, l.Go}}, "the plan of %+v, its groups, the page", c.filter)
	}
	w := httptest.NewRecorder()
	g.export(w, httptest.NewRequestWithContext(context.Background(), "GET", "/?form=xml", nil))
	expect.Same(t, 400, w.Code, "another form")
}

// store is an engine with documents, and a journal in memory.
type store struct {
	noStore
	journal jobs.Ledger
}

func (s *store) Scan(_ context.Context, _ string, _ *rule.Rule, which adapters.Selection, yield func(adapters.Page) error) error {
	var p adapters.Page
	for _, id := range which.IDs {
		p.Documents = append(p.Documents, adapters.Stored{ID: id, Source: []byte(fmt.Sprintf(`{"text":%q}`, "the text of "+id))})
	}
	return yield(p)
}

func (s *store) Journal() adapters.Journal { return &s.journal }

// TestUndoRestores: a decision that is undone leaves what somebody had decided before, and a further undo changes nothing.
func TestUndoRestores(t *testing.T) {
	for _, before := range []decided.Verdict{decided.Forgotten, decided.Same, decided.Different} {
		g, s := shelf(t), &store{}
		r := &rule.Rule{Fields: []string{"text"}, Sketcher: expect.Value(sketch.New(sketch.DefaultScheme()))(t)}
		g.Job, g.Place, g.log, g.By = jobs.Job{Store: s, Rule: r}, decided.Place{Rule: r}, decided.Open(s.Journal()), "me"
		g.Place.Name = "news"
		const stays, goes = `d3: "0"`, `d3: "1"`
		log := decided.Open(s.Journal())
		if before != decided.Forgotten {
			expect.Value(log.Add(t.Context(), "anna", decided.Pair{Index: "news", A: goes, B: stays, Verdict: before, TextA: 1, TextB: 2}))(t)
		}
		earlier, _ := log.Pair("news", stays, goes)
		for _, verdict := range []decided.Verdict{decided.Different, decided.Same, decided.Forgotten, decided.Forgotten} {
			answer := expect.Value(g.decide(t.Context(), decision{3, goes, verdict}))(t).(decidedNow)
			expect.OK(t, log.Read(t.Context()))
			now, _ := log.Pair("news", stays, goes)
			expect.Same(t, now.Verdict, answer.Stored, "what is stored after %q", verdict)
			if verdict != decided.Forgotten && (now.Verdict != verdict || now.By != "me" || g.verdict(3, goes) != verdict) {
				t.Errorf("after %q: %+v", verdict, now)
			}
		}
		now, _ := log.Pair("news", stays, goes)
		if now.Verdict != before || now.TextA != earlier.TextA || before != decided.Forgotten && now.By != "anna" || g.apart(3) != 0 {
			t.Errorf("%+v in place of %+v", now, earlier)
		}
		if _, err := g.decide(t.Context(), decision{3, goes, decided.Forgotten}); err == nil || !strings.Contains(err.Error(), "nothing was decided here") {
			t.Errorf("nothing to undo: %v", err)
		}
	}
}
