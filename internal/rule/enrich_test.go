package rule

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/sketch"
)

// clustered returns a rule of title and body that stores all of our fields.
func clustered(t testing.TB) *Rule {
	t.Helper()
	rule := testRule(t, "title", "body")
	rule.Bands, rule.Rows, rule.Clusters = 4, 3, true
	return rule
}

// made returns our fields of a document with the texts, alone in its cluster.
func made(t testing.TB, r *Rule, texts ...string) Ours {
	t.Helper()
	s, ok := r.Sketch(texts)
	if !ok {
		t.Fatalf("%q has no sketch", texts)
	}
	o := Ours{Sketch: s.String(), Bands: r.BandKeys(&s)}
	if r.Clusters {
		o.Cluster = r.ClusterID(s.Fingerprint)
	}
	expect.Must(t, r.Bands, len(o.Bands), "bands")
	return o
}

// TestAppendOurs holds documents to what they get of all fields of ours.
func TestAppendOurs(t *testing.T) {
	rule := clustered(t)
	both := string(made(t, rule, "a b c", "d").Fields())
	own := string(Ours{Cluster: rule.ClusterID(7)}.Fields())
	cleared := `"neardup_sketch":null,"neardup_bands":null,`
	const forged = `"neardup_bands":[1],"neardup_cluster":"x"`
	for _, c := range []struct {
		name, doc, want string
		partial         bool
		change          Change
		set             func(e *Enricher)
	}{
		{"whole", `{"title":"a b c","body":"d"}`, `{"title":"a b c","body":"d",` + both + `}`, false, Enriched, nil},
		{"some fields", `{"title":"a"}`, `{"title":"a",` + cleared + own + `}`, true, Cleared, nil},
		{"no word in any", `{"title":"?","body":null}`, `{"title":"?","body":null,` + cleared + own + `}`, true, Cleared, nil},
		{"no field", `{"n":1}`, `{"n":1}`, true, Untouched, nil},
		{"no word", `{"n":1}`, `{"n":1,` + own + `}`, false, Textless, nil},
		{"nothing to number it by", `{"n":1}`, `{"n":1}`, false, Textless, func(e *Enricher) { e.Writing.(*oneWrite).number = 0 }},
		{"an update of many", `{"title":"a"}`, `{"title":"a",` + cleared + `"neardup_cluster":null}`, true, Cleared, func(e *Enricher) { e.Start(Operation{}) }},
		{"an update of many that makes one", `{"title":"a"}`, `{"title":"a",` + cleared + own + `}`, true, Cleared, func(e *Enricher) { e.Start(Operation{}); e.Upserts = true }},
		{"not prepared", `{"title":"a b c","body":"d"}`, `{"title":"a b c","body":"d"}`, false, Unprepared, unprepared},
		{"not prepared, cleared", `{"title":"a b c","body":"d"}`, `{"title":"a b c","body":"d",` + cleared + `"neardup_cluster":null}`, true, Cleared, unprepared},
		{"not prepared, and not all is known", `{"title":"a"}`, `{"title":"a","neardup_sketch":null}`, true, Cleared, func(e *Enricher) { e.Writing.(*oneWrite).takes = TakesNullSketch }},
		{"not prepared, making", `{"title":"a"}`, `{"title":"a","neardup_sketch":null,"neardup_bands":null}`, true, Cleared, func(e *Enricher) { unprepared(e); e.Upserts = true }},
		{"no room, cleared", `{"title":"a b c","body":"d"}`, `{"title":"a b c","body":"d",` + cleared + own + `}`, true, Cleared, func(e *Enricher) { e.growth, e.reserved = 100, 50 }},
		{"own values", `{` + forged + `,"title":"a b c","neardup_sketch":"x","body":"d"}`, `{"title":"a b c","body":"d",` + both + `}`, false, Enriched, nil},
		{"own values outdone", `{"title":"a b c",` + forged + `,"body":"d"}`, `{"title":"a b c",` + forged + `,"body":"d",` + both + `}`, false, Enriched, last},
		{"own values outdone, textless", `{` + forged + `}`, `{` + forged + `,` + own + `,"neardup_bands":null}`, false, Textless, last},
		{"own values outdone, untouched", `{"n":1,` + forged + `}`, `{"n":1,` + forged + `,"neardup_bands":null,"neardup_cluster":null}`, true, Untouched, last},
		{"a cluster that was found", `{"title":"a b c","body":"d"}`, strings.Replace(`{"title":"a b c","body":"d",`+both+`}`, made(t, rule, "a b c", "d").Cluster, "found", 1), false, Enriched, found},
	} {
		t.Run(c.name, func(t *testing.T) {
			var changes []Change
			e := enricher(rule, TakesAll, &changes)
			e.Writing.(*oneWrite).number = 7
			e.Start(Operation{ID: "1"})
			if c.set != nil {
				c.set(e)
			}
			expect.Same(t, c.want, string(e.Append(nil, "news-1", []byte(c.doc), c.partial)), "the document")
			expect.Same(t, []Change{c.change}, changes, "the changes")
		})
	}
}

// TestAppendWithoutRoom: a long text for which there is no room gets no sketch, and leaves none that is stale. Room is given back.
func TestAppendWithoutRoom(t *testing.T) {
	rule := testRule(t, "title", "body")
	long := `"title":"` + strings.Repeat("a b1 ", 20<<10) + `"`
	for _, c := range []struct {
		doc, want string
		partial   bool
		change    Change
	}{
		{`{` + long + `,"neardup_sketch":"F"}`, `{` + long + `}`, false, Oversized},
		{`{` + long + `,"body":"x"}`, `{` + long + `,"body":"x","neardup_sketch":null}`, true, Cleared},
		{`{"title":"a b c","body":""}`, "", false, Enriched},
	} {
		for _, most := range []int{1 << 20, 100 << 10} {
			held, enough := 0, most == 1<<20
			var changes []Change
			e := enricher(rule, TakesAll, &changes)
			e.Writing.(*oneWrite).hold = func(n int) bool {
				if n > 0 && held+n > most {
					return false
				}
				held += n
				return true
			}
			got := string(e.Append(nil, "news-1", []byte(c.doc), c.partial))
			change := changes[0]
			if !enough && c.want != "" && (got != c.want || change != c.change) || held != 0 {
				t.Errorf("%.30s of %d bytes became %.30s of %d, %s; %d bytes are still held", c.doc, len(c.doc), got, len(got), change, held)
			}
			if (enough || c.want == "") && !c.partial && change != Enriched {
				t.Errorf("%.30s of %d bytes, where there is room: %s", c.doc, len(c.doc), change)
			}
		}
	}
}

// TestManyOfOneName: a document in which names stand many times takes little more memory than its length.
func TestManyOfOneName(t *testing.T) {
	rule := testRule(t, "title", "body")
	doc := []byte("{" + strings.Repeat(`"title":1,"body":2,"neardup_sketch":3,`, 20000) + `"n":1}`)
	members, _, err := rule.membersOf(nil, doc, false)
	if want := 6; err != nil || len(members) != want || string(members[0].Value) != "1" || members[5].End != len(doc)-len(`,"n":1}`) {
		t.Errorf("%d members are kept, want %d (%v)", len(members), want, err)
	}
	var found texts
	if rule.textsIn(&found, members); found.odd == nil {
		t.Error("a name that stands many times goes unnoticed")
	}
}

func unprepared(e *Enricher) {
	e.Writing.(*oneWrite).takes = TakesNulls
}

func last(e *Enricher) { e.LastCounts = true }

func found(e *Enricher) {
	e.Writing.(*oneWrite).cluster = "found"
}

// Where the rule stores no clusters, none is ever sent, and null only for what it stores: a strict mapping knows no more.
func TestAppendOnlyWhatTheRuleStores(t *testing.T) {
	for _, bands := range []int{0, 4} {
		rule := testRule(t, "title")
		rule.Bands, rule.Rows = bands, 3
		for _, doc := range []string{`{"title":"a b"}`, `{"title":null}`, `{"n":1}`, `{"title":5}`} {
			for _, partial := range []bool{false, true} {
				var changes []Change
				e := enricher(rule, TakesAll, &changes)
				found(e)
				e.Writing.(*oneWrite).number = 7
				got := e.Append(nil, "news-1", []byte(doc), partial)
				if bytes.Contains(got, []byte(ClusterField)) || bands == 0 && bytes.Contains(got, []byte(BandsField)) {
					t.Errorf("%s becomes %s", doc, got)
				}
			}
		}
	}
}

// effective returns what an engine takes for the value of a field, where of two members the last one counts; nothing for null.
func effective(t *testing.T, document []byte, field string) (value string) {
	t.Helper()
	members := expect.Value(jsonedit.Members(document))(t)
	for _, m := range members {
		if m.Key == field {
			value = strings.TrimSuffix(string(m.Value), "null")
		}
	}
	return value
}

// TestEnrichedAtRandom holds random documents under random rules to the promise: the client's bytes and behind them what is right, or null, or
// nothing; never a value of the client's own.
func TestEnrichedAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	for range effort.Rounds(20_000) {
		rule := testRule(t, "title", "body")
		if random.IntN(3) > 0 {
			rule.Bands, rule.Rows = 4, 3
		}
		rule.Clusters = random.IntN(3) > 0
		members := []string{}
		for _, m := range []string{
			`"title":` + pick(`"a b c d e"`, `"é"`, `null`, `"?"`, `7`, `["x","y"]`), `"body":` + pick(`"f g"`, `"\u0061"`, `null`, `{}`), `"n":1`,
			`"neardup_sketch":` + pick(`"own"`, `null`, `[1]`), `"neardup_bands":` + pick(`[1,2]`, `"own"`, `null`), `"neardup_cluster":` + pick(`"own"`, `{"own":1}`),
		} {
			if random.IntN(2) == 0 {
				members = append(members, m)
			}
		}
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		document := []byte("{" + strings.Join(members, pick(",", " , ")) + "}")
		partial, lastCounts, prepared := random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(4) > 0
		var changes []Change
		takes := TakesNullSketch
		if prepared {
			takes = TakesAll
		}
		e := enricher(rule, takes, &changes)
		e.LastCounts = lastCounts
		e.growth = []int64{1 << 20, 300, 0}[random.IntN(3)]
		e.reserved = e.growth / 2
		e.Writing.(*oneWrite).number = 7
		e.Start(Operation{ID: "1"})
		room := e.growth
		got := e.Append(nil, "news-1", document, partial)
		what := fmt.Sprintf("%s (partial %v, last %v, prepared %v, room %d, bands %d, clusters %v) → %s", document, partial, lastCounts, prepared, room, rule.Bands, rule.Clusters, got)
		expect.Must(t, e.growth, room-int64(len(got)-len(document)), "%s: the room that is left", what)
		checkEnriched(t, what, rule, document, got, lastCounts)
		if t.Failed() {
			return
		}
	}
}

func checkEnriched(t *testing.T, what string, rule *Rule, document, got []byte, lastCounts bool) {
	t.Helper()
	if lastCounts {
		end := bytes.LastIndexByte(document, '}')
		if !bytes.HasPrefix(got, document[:end]) {
			t.Errorf("%s: the client's bytes differ", what)
		}
	} else {
		sent, err := jsonedit.Cut(document, Our)
		bare, err2 := jsonedit.Cut(got, Our)
		if err != nil || err2 != nil || !bytes.Equal(sent, bare) {
			t.Errorf("%s: less our fields it is %s, not %s (%v, %v)", what, bare, sent, err, err2)
		}
	}
	computed, _ := rule.SketchOf(document)
	want := Ours{}
	if computed != nil {
		want = Ours{Sketch: computed.Text, Bands: rule.BandKeys(&computed.Sketch)}
	}
	if s := effective(t, got, SketchField); s != "" && s != `"`+want.Sketch+`"` {
		t.Errorf("%s: the sketch is not that of the text, %q", what, want.Sketch)
	}
	if bands := effective(t, got, BandsField); bands != "" && !slices.Equal(OursOf([]byte(`{"neardup_bands":`+bands+`}`)).Bands, want.Bands) {
		t.Errorf("%s: the bands are not %v", what, want.Bands)
	}
	cluster, right := effective(t, got, ClusterField), []string{"", `"` + rule.ClusterID(7) + `"`}
	if computed != nil {
		right[1] = `"` + rule.ClusterID(computed.Fingerprint) + `"`
		right = append(right, `"`+rule.ClusterID(7)+`"`) // of a partial document that is cleared
	}
	if !slices.Contains(right, cluster) || !rule.Clusters && cluster != "" {
		t.Errorf("%s: the cluster is none of %q", what, right)
	}
}

// FuzzNoForgery enriches any document: none of what is stored under a name of ours, as Elasticsearch reads names, is the client's.
func FuzzNoForgery(f *testing.F) {
	for _, s := range []string{
		`{"title":"some words here","neardup_sketch":"forged"}`, `{"neardup_sketch":"forged"}`,
		`{"title":5,"neardup_bands":["forged"]}`,
		"{\"title\":\"a\",\"\xc1\xaeeardup_sketch\":\"forged\"}", `{"neardup_sketch.":"forged","title":"a b c"}`,
		`{"neardup_cluster":"forged","neardup_cluster":"forged"}`,
		`{"title":["a",null,"b"],"\u006eeardup_bands":"forged"}`, "\uFEFF{\"neardup_sketch\":\"forged\",}",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(f)
	rule := &Rule{Match: "*", Fields: []string{"title"}, Window: 10, Sketcher: sketcher, Bands: 4, Rows: 8, Clusters: true}
	f.Fuzz(func(t *testing.T, document []byte, partial bool) {
		e := enricher(rule, TakesAll, new([]Change))
		out := e.Append(nil, "i", document, partial)
		members, err := jsonedit.Members(out)
		if err != nil {
			return // the engine refuses it
		}
		for _, m := range members {
			name, _ := jsonedit.Text(jsonedit.AppendString(nil, m.Key))
			if Our(name) && bytes.Contains(m.Value, []byte("forged")) {
				t.Fatalf("%q became %q", document, out)
			}
		}
	})
}
