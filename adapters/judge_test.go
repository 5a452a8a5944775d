package adapters

import (
	"testing"
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
		{name: "it fits, folded", stored: one, document: `{"n":1,"title":" One  two\tTHREE "}`, want: one},
		{name: "it fits, as a list", stored: one, document: `{"title":[null,"one two three"]}`, want: one},
		{name: "another text", stored: one, document: two, want: two, lacking: 1},
		{name: "another text, alone", stored: one, document: two, alone: true, lacking: 1},
		{name: "another text, believed", stored: one, document: two, trusting: true, want: one},
		{name: "punctuation alone", stored: one, document: `{"title":"one, two, three"}`, want: `{"title":"one, two, three"}`, lacking: 1},
		{name: "not at hand", stored: one, want: one},
		{name: "no text left", stored: one, document: `{"title":null}`, lacking: 1},
		{name: "no field left", stored: one, document: `{"n":1}`, lacking: 1},
		{name: "no texts", stored: one, document: `{"title":7}`, lacking: 1},
		{name: "the field twice", stored: one, document: `{"title":"one two three","title":"one two three"}`, lacking: 1},
		{name: "no JSON", stored: one, document: `{"title"`, lacking: 1},
		{name: "none stored", document: two, want: two, lacking: 1},
		{name: "none stored, none at hand", lacking: 1, unread: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := *rule
			r.Compute = !c.alone
			j := NewJudge(Rules{&r}, Controls{})
			j.Doubting = !c.trusting
			stored := ""
			if c.stored != "" {
				stored = sketchOf(c.stored)
			}
			hit := j.Hit(Seen{Index: "news-1", ID: "1", Stored: stored, Document: func(*Rule) []byte {
				if c.document == "" {
					return nil
				}
				return []byte(c.document)
			}})
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
