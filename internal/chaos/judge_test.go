package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/sketch"
)

func ruleOfTests(t *testing.T) Rule {
	t.Helper()
	sketcher, err := sketch.New(sketch.Scheme{Seed: "tests"})
	if err != nil {
		t.Fatal(err)
	}
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
		{"lost part", []step{done, {Part, partial, Done, ""}}, []string{one}, []string{Lost}},
		{"part", []step{done, {Part, partial, Done, ""}}, []string{onePartial}, nil},
		{"part of another", []step{done, {Part, partial, Done, ""}}, []string{strings.Replace(onePartial, "7", "8", 1)}, []string{Altered}},
		{"altered", []step{done}, []string{strings.Replace(one, "seven", "eleven", 1)}, []string{Altered}},
		{"altered white space", []step{done}, []string{strings.Replace(one, ", ", ",", 1)}, []string{Altered}},
		{"cut off", []step{done}, []string{`{"mark":"m1"}`}, []string{Altered}},
		{"deleted", []step{done, {Delete, "", Done, ""}}, nil, nil},
		{"deleted and there", []step{done, {Delete, "", Done, ""}}, []string{one}, []string{Invented}},
		{"never written", nil, []string{one}, []string{Invented}},
		{"refused", []step{{Put, one, Refused, ""}}, nil, nil},
		{"refused and there", []step{{Put, one, Refused, ""}}, []string{one}, []string{Invented}},
		{"unknown, not done", []step{done, unknown}, []string{one}, nil},
		{"unknown, done", []step{done, unknown}, []string{two}, nil},
		{"unknown, gone", []step{done, unknown}, nil, []string{Lost}},
		{"unknown deletion", []step{done, {Delete, "", Unknown, ""}}, nil, nil},
		{"unknown, then done again", []step{done, unknown, {Put, two, Done, ""}}, []string{one}, []string{Lost}},
		{"unknown creation, then a conflict", []step{{Create, one, Unknown, ""}, {Create, one, Conflict, ""}}, []string{one}, nil},
		{"creation that met itself", []step{{Create, one, Conflict, ""}}, []string{one}, []string{Doubled, Invented}},
		{"document lost before its end", []step{done, {Part, partial, Missing, ""}, {Delete, "", Missing, ""}}, []string{one}, []string{Lost, Lost}},
		{"deletion of nothing that was done", []step{{Delete, "", Done, ""}}, nil, []string{Invented}},
		{"left, and another stands for it", []step{{Put, one, Left, "y"}}, []string{"y=" + one}, []string{Invented}}, // nobody wrote y
		{"left, and nothing stands for it", []step{{Put, one, Left, "y"}}, nil, []string{Lost}},
		{"left for another text", []step{{Put, one, Left, "y"}}, []string{"y=" + two}, []string{Invented, Lost}},
		{"left and stored", []step{{Put, one, Left, "x"}}, []string{one}, []string{Invented}},
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
		{"of another field's text", enriched(t, rule, one, "", bodyOne), rule, []string{Stale}},
		{"no sketch at all", with(one, `"neardup_sketch":"forged"`), rule, []string{Stale}},
		{"past the sidecar", right, past, []string{Stale}},
		{"bands without a sketch", with(one, `"neardup_bands":[1,2]`), rule, []string{Stale}},
		{"bands", with(right, `"neardup_bands":[1,2]`), rule, nil},
		{"in front", `{"neardup_sketch":null,` + one[1:], rule, []string{Altered}},
		{"beside a stranger", with(right, `"stranger":1`), rule, []string{Altered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantFindings(t, written(map[string]string{"x": one}), []Stored{{ID: "x", Source: []byte(c.stored)}}, c.rule, c.want)
		})
	}
	t.Run("a cluster of two texts, and bands that differ", func(t *testing.T) {
		again := strings.Replace(one, "m1", "m3", 1)
		stored := []Stored{
			{ID: "0", Source: []byte(with(right, `"neardup_bands":[0],"neardup_cluster":"c"`))},
			{ID: "1", Source: []byte(with(two, `"neardup_cluster":"c"`))},
			{ID: "2", Source: []byte(with(enriched(t, rule, again, titleOne, bodyOne), `"neardup_bands":[2],"neardup_cluster":"c"`))},
		}
		wantFindings(t, written(map[string]string{"0": one, "1": two, "2": again}), stored, rule, []string{Stale, Stale, Stale})
	})
}

// TestJudgeOfAutoIDs feeds it documents whose ids the engine made up.
func TestJudgeOfAutoIDs(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer Answer
		ids    []string
		want   []string
	}{
		{"done", Done, []string{"e1"}, nil},
		{"doubled", Done, []string{"e1", "e2"}, []string{Doubled}},
		{"lost", Done, nil, []string{Lost}},
		{"under another id", Done, []string{"e2"}, []string{Lost}},
		{"unknown, not done", Unknown, nil, nil},
		{"unknown, done", Unknown, []string{"e9"}, nil},
		{"unknown, doubled", Unknown, []string{"e8", "e9"}, []string{Doubled}},
		{"refused and there", Refused, []string{"e1"}, []string{Invented}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := NewLedger()
			l.Finish(l.Start(Write{Index: "i", Kind: Auto, Body: []byte(one)}), Result{Answer: c.answer, ID: "e1"})
			var stored []Stored
			for _, id := range c.ids {
				stored = append(stored, Stored{ID: id, Source: []byte(one)})
			}
			wantFindings(t, l, stored, ruleOfTests(t), c.want)
		})
	}
}

// TestJudgeOfVersions feeds it what an engine counts.
func TestJudgeOfVersions(t *testing.T) {
	for version, want := range map[int][]string{1: {Lost}, 2: nil, 3: nil, 4: {Doubled}} {
		l := NewLedger()
		for _, answer := range []Answer{Done, Unknown, Done} {
			l.Finish(l.Start(Write{Index: "i", ID: "x", Kind: Put, Body: []byte(one)}), Result{Answer: answer})
		}
		wantFindings(t, l, []Stored{{ID: "x", Source: []byte(one), Version: version}}, ruleOfTests(t), want)
	}
}

// TestPages feeds it pages, right and wrong.
func TestPages(t *testing.T) {
	rule := ruleOfTests(t)
	near := func(a, b *sketch.Sketch) bool { return a.SameText(b) }
	copyOfOne, auto := strings.Replace(one, "m1", "m3", 1), strings.Replace(two, "m2", "m4", 1)
	l := written(map[string]string{"a": one, "b": two, "c": copyOfOne})
	l.Finish(l.Start(Write{Index: "i", ID: "a", Kind: Part, Body: []byte(partial)}), Result{Answer: Unknown})
	l.Finish(l.Start(Write{Index: "i", Kind: Auto, Body: []byte(auto)}), Result{Answer: Unknown})
	for _, c := range []struct {
		name, outcome string
		hits          [][2]string
		body          string
		want          int
	}{
		{"right", "collapsed; raw=2", [][2]string{{"a", one}, {"b", two}}, "", 0},
		{"a part that may have come", "collapsed", [][2]string{{"a", onePartial}}, "", 0},
		{"an id that the engine made up", "collapsed", [][2]string{{"e77", auto}}, "", 0},
		{"twice", "bypassed", [][2]string{{"a", one}, {"a", one}}, "", 1},
		{"near-duplicates", "collapsed; raw=2", [][2]string{{"a", one}, {"c", copyOfOne}}, "", 1},
		{"near-duplicates, left alone", "bypassed; reason=budget", [][2]string{{"a", one}, {"c", copyOfOne}}, "", 0},
		{"never sent", "collapsed", [][2]string{{"a", strings.Replace(one, "seven", "eight", 1)}}, "", 1},
		{"of another document", "collapsed", [][2]string{{"a", two}}, "", 1},
		{"of nobody", "collapsed", [][2]string{{"z", `{"mark":"m9"}`}}, "", 1},
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
	d.Did(Fault{Allows: []string{TimeOut}, Begin: at(30), End: at(40), Later: true})
	for _, c := range []struct {
		name       string
		way, what  string
		begin, end int
		explained  bool
	}{
		{"within", "a", Broken, 12, 13, true},
		{"across its beginning", "a", "502", 5, 11, true},
		{"across its end", "a", "502", 19, 25, true},
		{"before", "a", Broken, 1, 9, false},
		{"after", "a", Broken, 21, 22, false},
		{"another way", "b", Broken, 12, 13, false},
		{"another word", "a", Garbage, 12, 13, false},
		{"what was under way is spared", "b", TimeOut, 29, 35, false},
		{"what came later is not", "b", TimeOut, 31, 50, true},
	} {
		d.troubles = nil
		d.Met(Trouble{Way: c.way, What: c.what, Begin: at(c.begin), End: at(c.end)})
		if all, unexplained := d.Troubles(); all != 1 || len(unexplained) == 0 != c.explained {
			t.Errorf("%s: %d unexplained", c.name, len(unexplained))
		}
	}
}
