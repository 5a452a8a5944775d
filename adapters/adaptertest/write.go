package adaptertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// writing is what is known while a write is enriched.
type writing struct {
	rules            rule.Rules
	prepared, clears bool
	room             int64
}

// telling returns a Writing which tells changes of every document.
func (w writing) telling(changes *[]rule.Change) Writing {
	*changes = nil
	takes := rule.TakesNothing
	switch {
	case w.prepared:
		takes = rule.TakesAll
	case w.clears:
		takes = rule.TakesNullSketch
	}
	return Writing{
		Rules:  func(index string, _ bool) (*rule.Rule, rule.Takes) { return w.rules.For(index), takes },
		Counts: func(c rule.Change) { *changes = append(*changes, c) },
	}
}

// Writing is an rule.Writing of functions, each of which but Rules may be nil.
type Writing struct {
	Rules  func(index string, creates bool) (*rule.Rule, rule.Takes)
	Holds  func(n int) bool
	Counts func(rule.Change)
}

// Always returns a Writing whose documents all go under the rule, to indices that take all fields.
func Always(r *rule.Rule) Writing {
	return Writing{Rules: func(string, bool) (*rule.Rule, rule.Takes) { return r, rule.TakesAll }}
}

// Unprepared returns a Writing whose documents all go under the rule, to indices that take nothing of ours.
func Unprepared(r *rule.Rule) Writing {
	return Writing{Rules: func(string, bool) (*rule.Rule, rule.Takes) { return r, rule.TakesNothing }}
}

// By returns a Writing whose documents go under the rules, to indices that take all fields.
func By(rules rule.Rules) Writing {
	return Writing{Rules: func(index string, _ bool) (*rule.Rule, rule.Takes) { return rules.For(index), rule.TakesAll }}
}

// Rule implements rule.Writing.
func (w Writing) Rule(index string, creates bool) (*rule.Rule, rule.Takes) {
	return w.Rules(index, creates)
}

// Hold implements rule.Writing.
func (w Writing) Hold(n int) bool { return w.Holds == nil || w.Holds(n) }

// Count implements rule.Writing.
func (w Writing) Count(c rule.Change) {
	if w.Counts != nil {
		w.Counts(c)
	}
}

// Starting is a Writing that is told of each operation, and says which stay. Documents get no clusters.
type Starting struct {
	Writing
	Starts func(rule.Operation) bool
}

var _ rule.Clustering = Starting{}

// Start implements rule.Clustering.
func (s Starting) Start(o rule.Operation) bool { return s.Starts(o) }

// Sketch implements rule.Clustering.
func (s Starting) Sketch(_ rule.Operation, rule *rule.Rule, texts [][]byte, vector []byte, _ bool) (*sketch.Sketch, bool) {
	made := &sketch.Sketch{}
	return made, rule.SketchInto(made, texts, vector)
}

// Cluster implements rule.Clustering.
func (s Starting) Cluster(rule.Operation, *rule.Rule, *sketch.Sketch, bool) string { return "" }

// Number implements rule.Clustering.
func (s Starting) Number(rule.Operation, *rule.Rule) uint64 { return 0 }

// through returns a body as it is enriched, and what was done to its documents.
func (w writing) through(t *testing.T, s Subject, r *adapters.Request, src io.Reader) (string, []rule.Change, error) {
	t.Helper()
	class := s.Dialect.Classify(r)
	if class.Kind != adapters.KindWrite {
		t.Fatalf("%s %s?%s is a %s", r.Method, r.Path, r.RawQuery, class.Kind)
	}
	var out bytes.Buffer
	var changes []rule.Change
	_, err := s.Dialect.EnrichWrite(class, &out, src, w.telling(&changes), w.room)
	return out.String(), changes, err
}

// changed is a document, what is to be done to it and the texts that its sketch is then made of.
type changed struct {
	name, document string
	change         rule.Change
	texts          []string
}

var wholes = []changed{
	{"both texts", `{"title":"a b","body":"c d"}`, rule.Enriched, []string{"a b", "c d"}},
	{"one text", `{ "body" : "c d" }`, rule.Enriched, []string{"c d"}},
	{"a list of texts", `{"title":["a",["b"]],"n":1e3}`, rule.Enriched, []string{"a", "b"}},
	{"null", `{"title":null,"body":"c"}`, rule.Enriched, []string{"c"}},
	{"an escaped name", `{"\u0074itle":"\u0061"}`, rule.Enriched, []string{"a"}},
	{"a value of the client's own", `{"title":"a","neardup_sketch":"x"}`, rule.Enriched, []string{"a"}},
	{"a value of the client's own, first", `{"neardup_sketch":[1],"title":"a"}`, rule.Enriched, []string{"a"}},
	{"a value of the client's own, alone", `{"neardup_sketch":"x"}`, rule.Textless, nil},
	{"nothing", `{}`, rule.Textless, nil},
	{"no word", `{"title":"?!","body":null}`, rule.Textless, nil},
	{"a number for a text", `{"title":7,"body":"c"}`, rule.Unreadable, nil},
	{"a text twice", `{"title":"a","title":"b"}`, rule.Unreadable, nil},
	{"text that is not UTF-8", "{\"title\":\"\xff\"}", rule.Unreadable, nil},
	{"no object", `["title"]`, rule.Unreadable, nil},
	{"what ends early", `{"title":"a"`, rule.Unreadable, nil},
}

var partials = []changed{
	{"both texts", `{"title":"a b","body":"c d"}`, rule.Enriched, []string{"a b", "c d"}},
	{"both, one null", `{"title":"a","body":null}`, rule.Enriched, []string{"a"}},
	{"one text", `{"title":"a b","n":1}`, rule.Cleared, nil},
	{"both null", `{"title":null,"body":null}`, rule.Cleared, nil},
	{"one null", `{"body":null}`, rule.Cleared, nil},
	{"a number for a text", `{"title":7,"body":"c"}`, rule.Cleared, nil},
	{"no text", `{"n":2}`, rule.Untouched, nil},
	{"nothing", `{}`, rule.Untouched, nil},
	{"a value of the client's own", `{"n":2,"neardup_sketch":"x"}`, rule.Untouched, nil},
	{"a value of the client's own beside a text", `{"neardup_sketch":"x","title":"a"}`, rule.Cleared, nil},
}

// testChanges holds whole and partial documents to what is to become of them, whatever form they come in.
func testChanges(t *testing.T, s Subject) {
	rules := Rules(t)
	for _, partial := range []bool{false, true} {
		list := wholes
		if partial {
			list = partials
		}
		for _, c := range list {
			for copies := 1; copies <= 3; copies += 2 {
				c.check(t, s, rules[0], writing{rules: rules, prepared: true, room: 1 << 30}, partial, copies)
				c.withoutRoom(t, s, rules, partial, copies)
			}
		}
	}
}

// withoutRoom makes of a change what it is where no sketch can be stored.
func (c changed) withoutRoom(t *testing.T, s Subject, rules rule.Rules, partial bool, copies int) {
	t.Helper()
	stored := c.change == rule.Enriched || c.change == rule.Cleared
	for _, w := range []struct {
		writing
		whole, partial rule.Change
	}{
		{writing{rules: rules, room: 1 << 30}, rule.Unprepared, rule.Unprepared},
		{writing{rules: rules, room: 1 << 30, clears: true}, rule.Unprepared, rule.Cleared},
		{writing{rules: rules, prepared: true, room: 0}, rule.Oversized, rule.Cleared},
		{writing{room: 1 << 30}, rule.Untouched, rule.Untouched},
	} {
		c := c
		switch {
		case w.rules == nil:
			c.change = rule.Untouched
		case stored && partial && s.Clears:
			c.change = rule.Cleared
		case stored && partial:
			c.change = w.partial
		case stored:
			c.change = w.whole
		}
		c.check(t, s, rules[0], w.writing, partial, copies)
	}
}

// outdone reports whether the document's own value of our field stays, and null goes behind it where it gets no other of ours.
func (c changed) outdone(s Subject) bool {
	members, err := jsonedit.Members([]byte(c.document))
	return s.LastCounts && err == nil && slices.ContainsFunc(members, func(m jsonedit.Member) bool { return rule.Our(m.Key) })
}

// check holds one request of copies of the document to what is to become of each.
func (c changed) check(t *testing.T, s Subject, matched *rule.Rule, w writing, partial bool, copies int) {
	t.Helper()
	sent, stored := make([]string, copies), make([]string, copies)
	for i := range sent {
		sent[i], stored[i] = c.document, c.document
		if w.rules != nil && !s.LastCounts {
			stored[i] = bare(c.document)
		}
		switch {
		case c.change == rule.Enriched:
			sketched, _ := matched.Sketch(c.texts)
			stored[i] = spliced(stored[i], `"`+sketched.String()+`"`)
		case c.change == rule.Cleared, w.rules != nil && c.outdone(s):
			stored[i] = spliced(stored[i], "null")
		}
	}
	r, want := s.Write("news-1", partial, sent...), s.Write("news-1", partial, stored...)
	if r == nil {
		return
	}
	what := fmt.Sprintf("%s (partial: %v, %d documents, prepared: %v, clears: %v, room: %d)",
		c.name, partial, copies, w.prepared, w.clears, w.room)
	got, changes, err := w.through(t, s, r, bytes.NewReader(r.Body))
	if diff := cmp.Diff(string(want.Body), got); diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got)\n%s", what, err, diff)
	}
	for _, change := range changes {
		if change != c.change || len(changes) != copies {
			t.Errorf("%s: %v, want %s", what, changes, c.change)
		}
	}
}

// spliced returns the document with our field behind its last member.
func spliced(document, value string) string {
	end := strings.LastIndexByte(document, '}')
	head := strings.TrimRight(document[:end], " ")
	member := `"` + rule.SketchField + `":` + value
	if !strings.HasSuffix(head, "{") {
		member = "," + member
	}
	return head + member + document[len(head):]
}

// testDocuments holds writes of random documents to what the Enricher makes of each by itself, and replies that show what is
// then stored to showing what the client sent.
func testDocuments(t *testing.T, s Subject) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rules := Rules(t)
	for round := 0; round < effort.Rounds(400) && !t.Failed(); round++ {
		w := writing{rules: rules, prepared: random.IntN(4) > 0, clears: random.IntN(2) == 0, room: 1 << 30}
		if random.IntN(3) == 0 {
			w.room = random.Int64N(2000)
		}
		index, partial := []string{"news-1", "shop-1", "logs-1"}[random.IntN(3)], random.IntN(2) == 0
		documents, stored, shown := make([]string, 1+random.IntN(3)), []string{}, []string{}
		var want []rule.Change
		alone := rule.NewEnricher(w.telling(&want), w.room)
		alone.Doubts = s.Doubts
		alone.LastCounts, alone.TakesNull = s.LastCounts, s.Clears
		for i := range documents {
			list := members(random, s.Names)
			if random.IntN(3) == 0 {
				list = append(list, ours[random.IntN(len(ours))])
				random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			documents[i] = object(random, list)
			stored = append(stored, string(alone.Append(nil, index, []byte(documents[i]), partial)))
			shown = append(shown, bare(documents[i]))
		}
		r := s.Write(index, partial, documents...)
		if r == nil {
			continue
		}
		got, changes, err := w.through(t, s, r, bytes.NewReader(r.Body))
		if diff := cmp.Diff(string(s.Write(index, partial, stored...).Body), got); diff != "" || err != nil {
			t.Errorf("%s %s: %v (-want +got)\n%s", r.Method, r.Path, err, diff)
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Errorf("%s: %s", r.Body, diff)
		}
		w.checkBreaks(t, s, r, got, random)
		checkShown(t, s, stored, shown)
		checkShown(t, s, documents, shown)
	}
}

// checkBreaks enriches the body in pieces, and up to where it breaks off.
func (w writing) checkBreaks(t *testing.T, s Subject, r *adapters.Request, whole string, random *rand.Rand) {
	t.Helper()
	for _, pieces := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		if got, _, err := w.through(t, s, r, pieces(bytes.NewReader(r.Body))); got != whole || err != nil {
			t.Errorf("in other pieces %q becomes %q, not %q: %v", r.Body, got, whole, err)
		}
	}
	head := r.Body[:random.IntN(len(r.Body)+1)]
	got, _, err := w.through(t, s, r, io.MultiReader(bytes.NewReader(head), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(whole, got) {
		t.Errorf("of a body that breaks off after %q there is sent %q: %v", head, got, err)
	}
}

// checkShown holds replies that show stored documents to showing what is expected of them.
func checkShown(t *testing.T, s Subject, stored, shown []string) {
	t.Helper()
	wanted := s.Show(shown...)
	for i, read := range s.Show(stored...) {
		class := s.Dialect.Classify(&read.Request)
		if class.Kind == adapters.KindPass || class.Kind == adapters.KindWrite && !class.ReplyMayHoldOurs {
			t.Errorf("%s %s?%s: the reply is not cleaned", read.Method, read.Path, read.RawQuery)
		}
		var out bytes.Buffer
		err := s.Dialect.CleanReply(class, &out, strings.NewReader(read.Reply))
		if diff := cmp.Diff(wanted[i].Reply, out.String()); diff != "" || err != nil {
			t.Errorf("%s %s?%s: %s\n%v (-want +got)\n%s", read.Method, read.Path, read.RawQuery, read.Reply, err, diff)
		}
	}
}
