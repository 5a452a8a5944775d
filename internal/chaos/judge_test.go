package chaos

import (
	"fmt"
	"math/rand/v2"
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
func enriched(t *testing.T, rule Rule, document, title, body string) []byte {
	t.Helper()
	s, ok := rule.Sketcher.Sketch(title, body)
	text, err := s.MarshalText()
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return []byte(strings.TrimSuffix(document, "}") + `,"neardup_sketch":"` + string(text) + `"}`)
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
	right := string(enriched(t, rule, one, titleOne, bodyOne))
	with := func(members string) string { return strings.TrimSuffix(right, "}") + "," + members + "}" }
	for _, c := range []struct {
		name, stored string
		plain        bool
		want         []string
	}{
		{"right", right, false, nil},
		{"absent", one, false, nil},
		{"cleared", strings.TrimSuffix(one, "}") + `,"neardup_sketch":null}`, false, nil},
		{"of another text", string(enriched(t, rule, one, titleOne, bodyOne+" or so")), false, []string{Stale}},
		{"of another field's text", string(enriched(t, rule, one, "", bodyOne)), false, []string{Stale}},
		{"no sketch at all", strings.TrimSuffix(one, "}") + `,"neardup_sketch":"forged"}`, false, []string{Stale}},
		{"past the sidecar", right, true, []string{Stale}},
		{"bands without a sketch", strings.TrimSuffix(one, "}") + `,"neardup_bands":[1,2]}`, false, []string{Stale}},
		{"bands", with(`"neardup_bands":[1,2]`), false, nil},
		{"in front", `{"neardup_sketch":null,` + one[1:], false, []string{Altered}},
		{"beside a stranger", with(`"stranger":1`), false, []string{Altered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, rule := NewLedger(), rule
			rule.Plain = c.plain
			l.Finish(l.Start(Write{Index: "i", ID: "x", Kind: Put, Body: []byte(one)}), Result{Answer: Done})
			wantFindings(t, l, []Stored{{ID: "x", Source: []byte(c.stored)}}, rule, c.want)
		})
	}
	t.Run("a cluster of two texts, and bands that differ", func(t *testing.T) {
		l := NewLedger()
		var stored []Stored
		for i, document := range []string{one, two, strings.Replace(one, "m1", "m3", 1)} {
			id := fmt.Sprint(i)
			l.Finish(l.Start(Write{Index: "i", ID: id, Kind: Put, Body: []byte(document)}), Result{Answer: Done})
			sketched := document
			if i != 1 {
				sketched = string(enriched(t, rule, document, titleOne, bodyOne))
				sketched = strings.TrimSuffix(sketched, "}") + fmt.Sprintf(`,"neardup_bands":[%d]}`, i)
			}
			stored = append(stored, Stored{ID: id, Source: []byte(strings.TrimSuffix(sketched, "}") + `,"neardup_cluster":"c"}`)})
		}
		wantFindings(t, l, stored, rule, []string{Stale, Stale, Stale})
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

// TestJudgeOfAnEngineThatForgets has the workload's own documents stored as they should be, and then one thing go wrong at random.
func TestJudgeOfAnEngineThatForgets(t *testing.T) {
	rule, r := ruleOfTests(t), rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		texts, l := newTexts(uint64(n), n%2 == 0), NewLedger()
		var stored []Stored
		for i := range 20 {
			body := texts.document(r, "", texts.topic(r, 50), 0)
			id := fmt.Sprint("d", i)
			l.Finish(l.Start(Write{Index: "i", ID: id, Kind: Put, Body: body}), Result{Answer: Done})
			title, text := textOf(object(body), "title"), textOf(object(body), "body")
			gap := strings.TrimRight(strings.TrimSuffix(string(body), "}"), " ")
			sketched := enriched(t, rule, gap+"}", title, text)
			stored = append(stored, Stored{ID: id, Source: append(sketched[:len(sketched)-1], body[len(gap):]...)})
		}
		wantFindings(t, l, stored, rule, nil)
		i := r.IntN(len(stored))
		switch want := []string{Lost, Altered, Stale}[n%3]; want {
		case Lost:
			wantFindings(t, l, slices.Delete(slices.Clone(stored), i, i+1), rule, []string{Lost})
		case Altered: // one byte of it
			source := slices.Clone(stored[i].Source)
			at := strings.Index(string(source), `"mark":"m`) + len(`"mark":"m`)
			source[at] ^= 1
			broken := slices.Clone(stored)
			broken[i].Source = source
			wantFindings(t, l, broken, rule, []string{Altered})
		case Stale: // the sketch of another
			other := (i + 1) % len(stored)
			sketchOf := func(s Stored) string { return textOf(object(s.Source), "neardup_sketch") }
			broken := slices.Clone(stored)
			broken[i].Source = []byte(strings.Replace(string(stored[i].Source), sketchOf(stored[i]), sketchOf(stored[other]), 1))
			wantFindings(t, l, broken, rule, []string{Stale})
		}
	}
}

// TestPages feeds it pages, right and wrong.
func TestPages(t *testing.T) {
	rule := ruleOfTests(t)
	near := func(a, b *sketch.Sketch) bool { return a.SameText(b) }
	copyOfOne := strings.Replace(one, "m1", "m3", 1)
	l := NewLedger()
	for id, body := range map[string]string{"a": one, "b": two, "c": copyOfOne} {
		l.Finish(l.Start(Write{Index: "i", ID: id, Kind: Put, Body: []byte(body)}), Result{Answer: Done})
	}
	l.Finish(l.Start(Write{Index: "i", ID: "a", Kind: Part, Body: []byte(partial)}), Result{Answer: Unknown})
	l.Finish(l.Start(Write{Index: "i", Kind: Auto, Body: []byte(strings.Replace(two, "m2", "m4", 1))}), Result{Answer: Unknown})
	hit := func(id, source string) Stored { return Stored{ID: id, Source: []byte(source)} }
	for _, c := range []struct {
		name, outcome string
		hits          []Stored
		body          string
		want          int
	}{
		{"right", "collapsed; raw=2", []Stored{hit("a", one), hit("b", two)}, "", 0},
		{"a part that may have come", "collapsed", []Stored{hit("a", onePartial)}, "", 0},
		{"an id that the engine made up", "collapsed", []Stored{hit("e77", strings.Replace(two, "m2", "m4", 1))}, "", 0},
		{"twice", "bypassed", []Stored{hit("a", one), hit("a", one)}, "", 1},
		{"near-duplicates", "collapsed; raw=2", []Stored{hit("a", one), hit("c", copyOfOne)}, "", 1},
		{"near-duplicates, left alone", "bypassed; reason=budget", []Stored{hit("a", one), hit("c", copyOfOne)}, "", 0},
		{"never sent", "collapsed", []Stored{hit("a", strings.Replace(one, "seven", "eight", 1))}, "", 1},
		{"of another document", "collapsed", []Stored{hit("a", two)}, "", 1},
		{"of nobody", "collapsed", []Stored{hit("z", `{"mark":"m9"}`)}, "", 1},
		{"a field of ours", "collapsed", nil, `{"neardup_sketch":1}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := l.CheckPage(Page{Index: "i", Outcome: c.outcome, Hits: c.hits, Body: []byte(c.body)}, rule, near); len(got) != c.want {
				t.Errorf("%d findings, want %d: %v", len(got), c.want, got)
			}
		})
	}
}

// TestReads feeds it what a client reads of a document that it wrote.
func TestReads(t *testing.T) {
	l, rule := NewLedger(), ruleOfTests(t)
	l.Finish(l.Start(Write{Index: "i", ID: "x", Kind: Put, Body: []byte(one)}), Result{Answer: Done})
	for source, want := range map[string]int{
		one: 0, "": 1, two: 1, string(enriched(t, rule, one, titleOne, bodyOne)): 1, strings.Replace(one, ", ", ",", 1): 1,
	} {
		got := l.CheckRead("i", "x", []byte(source), rule)
		if source == "" {
			got = l.CheckRead("i", "x", nil, rule)
		}
		if len(got) != want {
			t.Errorf("%q: %d findings, want %d: %v", source, len(got), want, got)
		}
	}
}

// TestTroubles has errors in and out of the time and the reach of a fault.
func TestTroubles(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	fault := Fault{Allows: []string{Broken, "502"}, Ways: []string{"a"}, Begin: at(10), End: at(20)}
	later := Fault{Allows: []string{TimeOut}, Begin: at(30), End: at(40), Later: true}
	for _, c := range []struct {
		name      string
		trouble   Trouble
		explained bool
	}{
		{"within", Trouble{Way: "a", What: Broken, Begin: at(12), End: at(13)}, true},
		{"across its beginning", Trouble{Way: "a", What: "502", Begin: at(5), End: at(11)}, true},
		{"across its end", Trouble{Way: "a", What: "502", Begin: at(19), End: at(25)}, true},
		{"before", Trouble{Way: "a", What: Broken, Begin: at(1), End: at(9)}, false},
		{"after", Trouble{Way: "a", What: Broken, Begin: at(21), End: at(22)}, false},
		{"another way", Trouble{Way: "b", What: Broken, Begin: at(12), End: at(13)}, false},
		{"another word", Trouble{Way: "a", What: Garbage, Begin: at(12), End: at(13)}, false},
		{"what was under way is spared", Trouble{Way: "b", What: TimeOut, Begin: at(29), End: at(35)}, false},
		{"what came later is not", Trouble{Way: "b", What: TimeOut, Begin: at(31), End: at(50)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Diary{}
			d.Did(fault)
			d.Did(later)
			d.Met(c.trouble)
			if all, unexplained := d.Troubles(); all != 1 || len(unexplained) == 0 != c.explained {
				t.Errorf("%d unexplained", len(unexplained))
			}
		})
	}
}
