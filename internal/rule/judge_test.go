package rule

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// TestDoubt: a Judge that doubts believes a sketch unless the text at hand is another one.
func TestDoubt(t *testing.T) {
	const one, two = `{"title":"one two three"}`, `{"title":"four five six"}`
	rule := testRule(t, "title")
	sketchOf := func(document string) string {
		computed, _ := rule.SketchOf([]byte(document))
		return computed.Text
	}
	for _, c := range []struct {
		name, stored, document string // an empty document is not at hand
		trusting, alone        bool
		want                   string // whose sketch the hit gets
		lacking, unread        int
	}{
		{name: "it fits", stored: one, document: one, want: one},
		{name: "it fits, as a list", stored: one, document: `{"title":[null,"one two three"]}`, want: one},
		{name: "another text", stored: one, document: two, want: two, lacking: 1},
		{name: "another text, alone", stored: one, document: two, alone: true, lacking: 1},
		{name: "another text, believed", stored: one, document: two, trusting: true, want: one},
		{name: "punctuation alone", stored: one, document: `{"title":"one, two, three"}`, want: `{"title":"one, two, three"}`, lacking: 1},
		{name: "not at hand", stored: one, want: one},
		{name: "no field left", stored: one, document: `{"n":1}`, lacking: 1},
		{name: "none stored", document: two, want: two, lacking: 1},
		{name: "none stored, none at hand", lacking: 1, unread: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := *rule
			r.Compute = !c.alone
			j := NewJudge(Rules{&r}, 0, 0)
			j.Doubting = !c.trusting
			stored := ""
			if c.stored != "" {
				stored = sketchOf(c.stored)
			}
			hit := j.Hit(Seen{Index: "news-1", ID: "1", Stored: []byte(stored), Shown: shown{c.document, nil}})
			got := ""
			if hit.Sketch != nil {
				got = hit.Sketch.String()
			}
			want := ""
			if c.want != "" {
				want = sketchOf(c.want)
			}
			if got != want || (hit.Profile != nil) != (want != "") || j.Lacking != c.lacking || j.Unread != c.unread {
				t.Errorf("sketch %q, want %q; %d lacking, %d unread", got, want, j.Lacking, j.Unread)
			}
		})
	}
}

// decisions knows one document.
type decisions struct {
	index, id string
	text      uint64
}

func (d decisions) Of(index, id string, text uint64) *rerank.Decided {
	if d == (decisions{index, id, text}) {
		return &rerank.Decided{Document: 7}
	}
	return nil
}

func (d decisions) Mark() uint64 { return 0 }

// TestDecidedHits: a hit gets what was decided about its document and text.
func TestDecidedHits(t *testing.T) {
	rule := testRule(t, "title")
	const text, other = `{"title":"one two three"}`, `{"title":"four five six"}`
	computed, _ := rule.SketchOf([]byte(text))
	j := NewJudge(Rules{rule}, 0, 0)
	j.Decided = decisions{"news-1", "a", computed.Fingerprint}
	for _, c := range []struct {
		index, id, document string
		want                bool
	}{
		{"news-1", "a", text, true}, {"news-1", "b", text, false}, {"news-2", "a", text, false}, {"news-1", "a", other, false}, {"news-1", "", text, false},
	} {
		hit := j.Hit(Seen{Index: c.index, ID: "x", Document: c.id, Shown: shown{c.document, nil}})
		if hit.Sketch == nil || (hit.Decided != nil) != c.want {
			t.Errorf("%+v: %+v", c, hit)
		}
	}
}

func TestTraitsOfSeveralRules(t *testing.T) {
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	rule := func(match string, together Together, choice Choice) *Rule {
		return &Rule{
			Match: match, Fields: []string{"title"}, Profile: rerank.Profile{Threshold: 0.5}, Window: 10, Compute: true, Sketcher: sketcher,
			Together: together, Choice: choice,
		}
	}
	j := NewJudge(Rules{
		rule("host", Together{Same: []string{"host"}}, Choice{}),
		rule("votes", Together{}, Choice{By: ByField, Field: "votes"}),
		rule("plain", Together{}, Choice{}),
	}, 0, 0)
	seen := func(index, host, votes string) rerank.Hit {
		values := map[string][]string{"host": {host}, "votes": {votes}}
		return j.Hit(Seen{Index: index, ID: host + votes, Shown: shown{`{"title": "the ferry is back in town"}`, values}})
	}
	for _, c := range []struct {
		name string
		hits []rerank.Hit
		want []int
	}{
		{"a condition of the hit's rule holds for a leader of another", []rerank.Hit{seen("plain", "a", "1"), seen("host", "a", "1"), seen("host", "b", "1")}, []int{0, 2}},
		{"and none where the hit's rule has none", []rerank.Hit{seen("host", "a", "1"), seen("plain", "b", "1")}, []int{0}},
		{"the leader's rule chooses", []rerank.Hit{seen("votes", "a", "1"), seen("plain", "a", "7"), seen("host", "a", "3")}, []int{1}},
		{"and the first is shown where it does not", []rerank.Hit{seen("plain", "a", "1"), seen("votes", "a", "7")}, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, rerank.Collapse(c.hits, 10).Shown, "")
		})
	}
	bare := j.Hit(Seen{Index: "plain", Shown: shown{`{"title": "the ferry is back in town"}`, nil}})
	if bare.Sketch == nil || bare.Others != nil {
		t.Errorf("of fields that are not read a hit holds %v", bare.Others)
	}
}

// shown is a document, and the values of deciding fields; of a date by its field and " as a date".
type shown struct {
	document string
	values   map[string][]string
}

func (s shown) Document(*Rule) []byte {
	if s.document == "" {
		return nil
	}
	return []byte(s.document)
}

func (s shown) Values(d Deciding) []string {
	if d.Date {
		return s.values[d.Field+" as a date"]
	}
	return s.values[d.Field]
}
