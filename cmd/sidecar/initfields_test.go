package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chosenOf has fields chosen from so many documents, each made by its number, and returns them and why others are not.
func chosenOf(t *testing.T, names string, n, least int, make func(i int) map[string]any) (*texts, []string) {
	t.Helper()
	var documents [][]byte
	for i := range n {
		document, err := json.Marshal(make(i))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	c := texts{looked: n, least: least}
	c.take(strings.Fields(names), documents)
	c.choose()
	var left []string
	for _, f := range c.fields {
		if f.why != "" {
			left = append(left, f.name+": "+f.why)
		}
	}
	if len(c.chosen) > 0 {
		c.alike(documents)
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
			name: "little text", fields: "body note title", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"body": strings.Repeat(body(i), 3), "note": fmt.Sprint("a note ", i), "title": fmt.Sprint("a title ", i)}
			},
			want: "title body", left: "note: little text beside the others",
		},
		{
			name: "many", fields: "a b c d e f", least: 2,
			make: func(i int) map[string]any {
				m := map[string]any{}
				for _, name := range strings.Fields("a b c d e f") {
					m[name] = name + " " + body(i)
				}
				return m
			},
			want: "a b c d e", left: "f: there are longer ones",
		},
		{
			name: "languages without spaces are sentences", fields: "body", least: 2,
			make: func(i int) map[string]any {
				return map[string]any{"body": "渡轮今天晚上又开了" + fmt.Sprint(i)}
			}, want: "body",
		},
		{
			name: "keywords need more words", fields: "name line", least: leastInNames,
			make: func(i int) map[string]any {
				return map[string]any{"name": fmt.Sprint("only three ", i), "line": fmt.Sprint("a line of some words ", i)}
			},
			want: "line", left: "name: few words",
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
			if diff := cmp.Diff(c.want, strings.Join(got.chosen, " ")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.left, strings.Join(left, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestInitFindsNearDuplicates counts those that a search would fold, and names a word by which it finds them.
func TestInitFindsNearDuplicates(t *testing.T) {
	text := func(i int) string {
		if i%5 < 2 { // pairs
			return fmt.Sprintf("about the ferry the paper wrote %d lines that nobody had expected in week %d of that year %s", i/5, i/5, []string{"", "at all"}[i%5])
		}
		words := strings.Fields("alpha bravo charlie delta golf hotel india juliet kilo lima mike november oscar papa quebec romeo sierra tango uniform victor")
		var b strings.Builder
		for k := range 12 {
			b.WriteString(words[(i*7+k*k+i*i*k)%len(words)] + " ")
		}
		return b.String()
	}
	got, _ := chosenOf(t, "body", 20, 2, func(i int) map[string]any { return map[string]any{"body": text(i)} })
	if got.duplicates < 4 || got.duplicates > 8 {
		t.Errorf("%d near-duplicates among 4 pairs", got.duplicates)
	}
	if !strings.Contains(text(0), got.word) || got.word == "" {
		t.Errorf("the word %q finds none of them", got.word)
	}
	none, _ := chosenOf(t, "body", 3, 2, func(i int) map[string]any { return map[string]any{"body": fmt.Sprintf("№ %d ½ 渡轮 x", i)} })
	if none.duplicates != 0 || none.word != "" {
		t.Errorf("%d near-duplicates, the word %q", none.duplicates, none.word)
	}
}

func TestInitByNames(t *testing.T) {
	for names, want := range map[string]string{
		"a body headline x.title": "x.title headline body", "a b": "a b", "a b c d e f g": "a b c d e", "Description n": "Description",
	} {
		var c texts
		c.take(strings.Fields(names), nil)
		c.byName()
		if got := strings.Join(c.chosen, " "); got != want {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
	}
}

// TestComment has odd texts stand in one line of a comment.
func TestComment(t *testing.T) {
	if got := comment("a\nb\x00c\u2028d\u0085e"); got != "a b c d e" {
		t.Errorf("%q", got)
	}
	for word, want := range map[string]string{"news.yaml": "news.yaml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
