package typesense

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/effort"
)

// ids returns the ids of an answer's hits.
func ids(t *testing.T, answer []byte) (list []string) {
	t.Helper()
	var reply struct {
		Hits []struct{ Document struct{ ID string } }
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	for _, h := range reply.Hits {
		list = append(list, h.Document.ID)
	}
	return list
}

// What is shown in the place of a list's leaders can stand anywhere in the window: it is read in few small pages, in one request. Where
// the list moves between the two readings, it is read once more, and the page is of one state of the list.
func TestRepresentativesOfAListThatMoves(t *testing.T) {
	seed := searchSeed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	m, rule, again := memo{}, newRule(t, "news", "body"), 0
	rule.Choice = adapters.Choice{By: adapters.ByField, Field: "n"} // the last
	for i := range max(effort.Rounds(60), 4) {
		f := &fake{documents: m.corpus(r, rule, 300+r.IntN(300), r.Float64())}
		most := []int{1, 2, maxSearches}[r.IntN(3)]
		moves, query := i%2 == 0, []string{"", "&include_fields=id", "&exclude_fields=n,body"}[r.IntN(3)]
		own := get("/collections/news/documents/search?q=x&per_page=20&page=2" + query)
		own.Header = adapters.Header{keyHeader: {scopedKey(fmt.Sprintf(`{"limit_multi_searches":%d}`, most))}}
		reading := false // the page's own hits
		answer, err := adaptertest.Run(search(own, planFor(adapters.Scope{Lacking: r.IntN(2) == 0}, rule)).Exchange, func(r *adapters.Request) *adapters.Reply {
			searches, _ := fakeSearches(r)
			if len(searches) > most {
				t.Fatalf("%d searches in one request", len(searches))
			}
			if perPage, _ := fakeNumber(searches[0], "per_page", 10); perPage < 100 && !reading {
				if reading = true; moves {
					f.documents = slices.Delete(slices.Clone(f.documents), 0, 1)
				}
			}
			return f.reply(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		list := make([]listed, len(f.documents))
		for i, d := range f.documents {
			list[i] = listed{id: fmt.Sprint(d["id"]), sketch: &m.sketch(rule, d["body"].(string)).Sketch, values: map[string]any{"n": d["n"]}}
		}
		shown := definition{rule: rule, threshold: rule.Profile.Threshold, keep: 1, window: rule.Window}.collapse(list).shown
		var want []string
		for _, rank := range shown[min(20, len(shown)):min(40, len(shown))] {
			want = append(want, list[rank].id)
		}
		o := answer.Outcomes[0]
		if diff := cmp.Diff(want, ids(t, answer.Body)); diff != "" {
			t.Fatalf("moves: %t%s, %+v: %s", moves, query, o, diff)
		}
		if moves && o.Rounds > 2 {
			again++
		}
		if !moves && o.Rounds > 3 || !moves && most == maxSearches && f.asked > 3 || strings.Contains(string(answer.Body), adapters.SketchField) {
			t.Errorf("%d rounds in %d requests: %s", o.Rounds, f.asked, answer.Body)
		}
	}
	if again == 0 {
		t.Error("no list was read again")
	}
}

// A dry run of one search of several is that one's, and the engine is asked once where the page is near.
func TestDryRunOfOneSearchOfSeveral(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(3, 3)), rule, 90, 0.9)}
	body := `{"searches":[{"collection":"news","per_page":5,"neardup":"dry_run"},{"collection":"news","per_page":5},{"collection":"news","group_by":"n"}]}`
	answer, err := adaptertest.Run(search(post("/multi_search", body), planFor(adapters.Scope{Rate: 0.8, Lacking: true}, rule)).Exchange, f.reply)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := adapters.Members(answer.Body)
	results, _ := adapters.Elements(adapters.Get(root, "results"))
	own := cleaned(t, f.search(map[string]any{"collection": "news", "per_page": 5}), "")
	if diff := cmp.Diff(string(own), string(results[0])); diff != "" {
		t.Error(diff)
	}
	first, second := answer.Outcomes[0], answer.Outcomes[1]
	if !first.DryRun || second.DryRun || first.Folded == 0 || first.Folded != second.Folded || first.Rounds != 1 || answer.Outcomes[2].Reason != "grouped" {
		t.Errorf("%+v", answer.Outcomes)
	}
	if f.asked != 1 {
		t.Errorf("asked %d times", f.asked)
	}
}

// What is folded into a hit is shown beside its document, of what the client itself sees; and on request why.
func TestFoldedHitsAreShown(t *testing.T) {
	rule := newRule(t, "news", "body")
	rule.Choice = adapters.Choice{By: adapters.ByField, Field: "n"}
	text := func(last string) string {
		return strings.Repeat("one two three four five six seven eight nine ten ", 2) + last
	}
	f := &fake{documents: []map[string]any{
		{"id": "a", "body": text("end"), "n": 1}, {"id": "b", "body": "something else", "n": 5}, {"id": "c", "body": text("End"), "n": 3}, {"id": "d", "n": 9},
	}}
	const highlight = `,"highlight":{},"highlights":[]`
	for _, c := range []struct{ query, want string }{
		{"neardup_expand=ids&include_fields=n",
			`{"document":{"n":3}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000}]}},` +
				`{"document":{"n":5}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[]}},` +
				`{"document":{"n":9}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[]}}`},
		{"neardup_expand=source&include_fields=n&per_page=1",
			`{"document":{"n":3}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000,"document":{"n":1}}]}}`},
		{"neardup_explain&exclude_fields=n,id&per_page=2",
			`{"document":{"body":"` + text("End") + `"}` + highlight + `,"neardup":{"found":1,"exact":true,"hits":[{"id":"a","agreement":1.0000,"explain":` +
				`{"agreement":1.0000,"error":0.0055,"by":"fingerprint","shingles":[11,11],"shared":["one two","two three","three four","four five",` +
				`"five six","six seven","seven eight","eight nine","nine ten","ten one"]}}],` +
				`"explain":{"representative":"field","leader":{"id":"a"},"folded":1,"threshold":0.7,"measure":"resemblance","window":40}}},` +
				`{"document":{"body":"something else"}` + highlight + `,"neardup":{"found":0,"exact":true,"hits":[],` +
				`"explain":{"representative":"field","folded":0,"threshold":0.7,"measure":"resemblance","window":40}}}`},
	} {
		s := search(get("/collections/news/documents/search?q=x&"+c.query), planFor(adapters.Scope{Window: 40, Lacking: true}, rule))
		answer, err := adaptertest.Run(s.Exchange, f.reply)
		if err != nil {
			t.Fatal(err)
		}
		root, _ := adapters.Members(answer.Body)
		if diff := cmp.Diff("["+c.want+"]", string(adapters.Get(root, "hits"))); diff != "" {
			t.Errorf("%s: %s", c.query, diff)
		}
		if f.asked--; f.asked != 0 {
			t.Errorf("%s: asked %d times", c.query, f.asked+1)
		}
	}
}
