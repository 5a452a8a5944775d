package onboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// chosenOf has fields chosen from so many documents, each made by its number, and returns them and why others are not.
func chosenOf(t *testing.T, names string, n, least int, make func(i int) map[string]any) (*texts, []string) {
	t.Helper()
	var documents [][]byte
	for i := range n {
		documents = append(documents, expect.Value(json.Marshal(make(i)))(t))
	}
	c := texts{Looked: n, least: least}
	c.count(strings.Fields(names), documents)
	c.choose()
	var left []string
	for _, f := range c.read {
		if f.why != "" {
			left = append(left, f.name+": "+f.why)
		}
	}
	if len(c.Chosen) > 0 {
		c.countDuplicates(documents)
	}
	return &c, left
}

func TestInitChoosesFields(t *testing.T) {
	body := func(i int) string {
		return strings.Repeat(fmt.Sprintf("the %d ferries of town %d sail again over river number %d ", i, i, i), 5)
	}
	for _, c := range []struct {
		name, fields string
		least        int
		make         func(i int) map[string]any
		want, left   string
	}{
		{
			name: "titles first, then the longest", fields: "summary body title", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"title": fmt.Sprint("a title ", i), "summary": fmt.Sprint("what the text ", i, " says in few words"), "body": body(i)}
			},
			want: "title body summary",
		},
		{
			name: "what repeats another one", fields: "copy body part", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"body": body(i), "copy": " " + body(i), "part": body(i)[:100]}
			},
			want: "body part", left: "copy: says the same as body",
		},
		{
			name: "labels, addresses, single words, and nothing", fields: "body kind url id none", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"body": body(i), "kind": []string{"old report", "new report"}[i%2], "url": fmt.Sprint("https://a.example/x/y/", i), "id": fmt.Sprint("k", i)}
			},
			want: "body", left: "url: no sentences; kind: the same few in many documents; id: few words; none: empty",
		},
		{
			name: "the same text in many documents is what we are here for", fields: "body", least: 2,
			make: func(i int) map[string]any { return map[string]any{"body": body(i % 2)} }, want: "body",
		},
		{
			name: "objects and lists", fields: "meta.text parts.text", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"meta": map[string]any{"text": body(i)}, "parts": []any{map[string]any{"text": fmt.Sprint("the first part ", i)}, map[string]any{"text": "another one with more words in it"}}}
			},
			want: "meta.text parts.text",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, left := chosenOf(t, c.fields, 20, c.least, c.make)
			expect.Same(t, c.want, strings.Join(got.Chosen, " "), "the fields chosen")
			expect.Same(t, c.left, strings.Join(left, "; "), "the fields left out")
		})
	}
}

// TestComment has odd texts stand in one line of a comment.
func TestComment(t *testing.T) {
	expect.Same(t, "a b c d e", comment("a\nb\x00c\u2028d\u0085e"), "")
	for word, want := range map[string]string{"news.yaml": "news.yaml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		expect.Same(t, want, shellWord(word), "%q", word)
	}
}
