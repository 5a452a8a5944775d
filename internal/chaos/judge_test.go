package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

func ruleOfTests(t *testing.T) Rule {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.Scheme{Seed: "tests"}))(t)
	return Rule{Sketcher: sketcher, Fields: []string{"title", "body"}, Exact: true}
}

// enriched returns a document as the sidecar has it stored: with the sketch of the texts behind its last member.
func enriched(t *testing.T, rule Rule, document, title, body string) string {
	t.Helper()
	s, ok := rule.Sketcher.Sketch(title, body)
	text, err := s.MarshalText()
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return strings.TrimSuffix(document, "}") + `,"neardup_sketch":"` + string(text) + `"}`
}

const (
	titleOne, bodyOne = "about the ferry", "the ferry crosses the river at seven in the morning and at nine in the evening"
	one               = `{"mark":"m1", "topic":"t1","title":"about the ferry","body":"the ferry crosses the river at seven in the morning and at nine in the evening"}`
	two               = `{"mark":"m2","topic":"t2","title":"about the market","body":"butter is sold where the old bridge meets the town square on every other day"}`
	partial           = `{"n":7}`
	onePartial        = `{"body":"the ferry crosses the river at seven in the morning and at nine in the evening","mark":"m1","n":7,"title":"about the ferry","topic":"t1"}`
)

// step is a write and its answer.
type step struct {
	kind   Kind
	body   string
	answer Answer
	other  string
}

// TestJudge feeds the judge what an engine could hold after some writes of one document, right and wrong.
func TestJudge(t *testing.T) {
	done, unknown := step{Put, one, Done, ""}, step{Put, two, Unknown, ""}
	for _, c := range []struct {
		name   string
		steps  []step
		stored []string // of the id x, or id=document
		want   []string
	}{
		{"stored", []step{done}, []string{one}, nil},
		{"lost", []step{done}, nil, []string{Lost}},
		{"lost behind a former one", []step{done, {Put, two, Done, ""}}, []string{one}, []string{Lost}},
		{"part", []step{done, {Part, partial, Done, ""}}, []string{onePartial}, nil},
		{"altered", []step{done}, []string{strings.Replace(one, "seven", "eleven", 1)}, []string{Altered}},
		{"altered white space", []step{done}, []string{strings.Replace(one, ", ", ",", 1)}, []string{Altered}},
		{"deleted", []step{done, {Delete, "", Done, ""}}, nil, nil},
		{"deleted and there", []step{done, {Delete, "", Done, ""}}, []string{one}, []string{Invented}},
		{"never written", nil, []string{one}, []string{Invented}},
		{"refused and there", []step{{Put, one, Refused, ""}}, []string{one}, []string{Invented}},
		{"unknown, done", []step{done, unknown}, []string{two}, nil},
		{"unknown, gone", []step{done, unknown}, nil, []string{Lost}},
		{"unknown creation, then a conflict", []step{{Create, one, Unknown, ""}, {Create, one, Conflict, ""}}, []string{one}, nil},
		{"creation that met itself", []step{{Create, one, Conflict, ""}}, []string{one}, []string{Doubled, Invented}},
		{"left, and nothing stands for it", []step{{Put, one, Left, "y"}}, nil, []string{Lost}},
		{"left for another text", []step{{Put, one, Left, "y"}}, []string{"y=" + two}, []string{Invented, Lost}},
		{"stored twice", []step{done}, []string{one, one}, []string{Doubled}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewLedger()
			for _, s := range c.steps {
				l.Finish(l.Start(Write{Index: "i", ID: "x", Kind: s.kind, Body: []byte(s.body)}), Result{Answer: s.answer, Other: s.other})
			}
			var stored []Stored
			for _, text := range c.stored {
				id, document, ok := strings.Cut(text, "={")
				if !ok {
					id, document = "x", text[1:]
				}
				stored = append(stored, Stored{ID: id, Source: []byte("{" + document)})
			}
			wantFindings(t, l, stored, ruleOfTests(t), c.want)
		})
	}
}

// written returns a ledger in which documents were stored, by their ids.
func written(documents map[string]string) *Ledger {
	l := NewLedger()
	for id, body := range documents {
		l.Finish(l.Start(Write{Index: "i", ID: id, Kind: Put, Body: []byte(body)}), Result{Answer: Done})
	}
	return l
}

func wantFindings(t *testing.T, l *Ledger, stored []Stored, rule Rule, want []string) {
	t.Helper()
	findings, _ := l.Judge("i", stored, rule)
	var got []string
	for _, f := range findings {
		got = append(got, f.What)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it finds %v, and should find %v: %v", got, want, findings)
	}
}

// TestJudgeOfFields feeds it documents with our fields, right and wrong.
func TestJudgeOfFields(t *testing.T) {
	rule := ruleOfTests(t)
	past := rule
	past.Plain = true
	right := enriched(t, rule, one, titleOne, bodyOne)
	with := func(document, members string) string { return strings.TrimSuffix(document, "}") + "," + members + "}" }
	for _, c := range []struct {
		name, stored string
		rule         Rule
		want         []string
	}{
		{"right", right, rule, nil},
		{"cleared", with(one, `"neardup_sketch":null`), rule, nil},
		{"of another text", enriched(t, rule, one, titleOne, bodyOne+" or so"), rule, []string{Stale}},
		{"no sketch at all", with(one, `"neardup_sketch":"forged"`), rule, []string{Stale}},
		{"past the sidecar", right, past, []string{Stale}},
		{"beside a stranger", with(right, `"stranger":1`), rule, []string{Altered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFindings(t, written(map[string]string{"x": one}), []Stored{{ID: "x", Source: []byte(c.stored)}}, c.rule, c.want)
		})
	}
}

// TestPages feeds it pages, right and wrong.
func TestPages(t *testing.T) {
	rule := ruleOfTests(t)
	near := func(a, b *sketch.Sketch) bool { return a.SameText(b) }
	copyOfOne := strings.Replace(one, "m1", "m3", 1)
	l := written(map[string]string{"a": one, "b": two, "c": copyOfOne})
	for _, c := range []struct {
		name, outcome string
		hits          [][2]string
		body          string
		want          int
	}{
		{"right", "collapsed; raw=2", [][2]string{{"a", one}, {"b", two}}, "", 0},
		{"twice", "bypassed", [][2]string{{"a", one}, {"a", one}}, "", 1},
		{"near-duplicates", "collapsed; raw=2", [][2]string{{"a", one}, {"c", copyOfOne}}, "", 1},
		{"never sent", "collapsed", [][2]string{{"a", strings.Replace(one, "seven", "eight", 1)}}, "", 1},
		{"a field of ours", "collapsed", nil, `{"neardup_sketch":1}`, 1},
	} {
		p := Page{Index: "i", Outcome: c.outcome, Body: []byte(c.body)}
		for _, h := range c.hits {
			p.Hits = append(p.Hits, Stored{ID: h[0], Source: []byte(h[1])})
		}
		if got := l.CheckPage(p, rule, near); len(got) != c.want {
			t.Errorf("%s: %d findings, want %d: %v", c.name, len(got), c.want, got)
		}
	}
}

// TestTroubles has errors in and out of the time and the reach of a fault.
func TestTroubles(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	d := &Diary{}
	d.Did(Fault{Allows: []string{Broken, "502"}, Ways: []string{"a"}, Begin: at(10), End: at(20)})
	for _, c := range []struct {
		name       string
		way, what  string
		begin, end int
		explained  bool
	}{
		{"within", "a", Broken, 12, 13, true},
		{"before", "a", Broken, 1, 9, false},
		{"another way", "b", Broken, 12, 13, false},
		{"another word", "a", Garbage, 12, 13, false},
	} {
		d.troubles = nil
		d.Met(Trouble{Way: c.way, What: c.what, Begin: at(c.begin), End: at(c.end)})
		if all, unexplained := d.Troubles(); all != 1 || len(unexplained) == 0 != c.explained {
			t.Errorf("%s: %d unexplained", c.name, len(unexplained))
		}
	}
}
