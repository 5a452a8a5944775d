package content_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch/content"
	"golang.org/x/net/html"
)

func seeds(f *testing.F) {
	for _, page := range hostile(200) {
		f.Add(page)
	}
	for _, page := range []string{
		gazette("Owls", owls), herald("The old bridge", bridge), "a < b", "foo<b>bar</b>&shy;&nbsp;x", "<div>\xdf<x>\xb3", "<div>a<u>b",
		"<template><svg></template>x</svg>", "<ruby>漢<rt>kan</ruby>", "<table><li><td><p><table></td></p>x",
		"<select><option>a<p>b", "\xff<p>\x00", "<textarea><p></textarea>",
	} {
		f.Add(page)
	}
}

// checkFolded checks what is promised of every result, of whatever text.
func checkFolded(t *testing.T, page, result string) {
	t.Helper()
	if utf8.ValidString(page) && !utf8.ValidString(result) {
		t.Errorf("%q of valid text is not valid", result)
	}
	if strings.Trim(result, " \n\t\r\f") != result || strings.ContainsAny(result, "\t\r\f") {
		t.Errorf("white space at an end, or of another kind: %q", result)
	}
	for _, twice := range []string{"  ", "\n\n", " \n", "\n "} {
		if strings.Contains(result, twice) {
			t.Errorf("two pieces of white space in a row: %q", result)
		}
	}
}

func FuzzText(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, page string) {
		all := content.Text(page)
		checkFolded(t, page, all)
		expect.Same(t, all, content.Text(page), "a second time")
		// A text that is escaped comes back as it was, but for white space and soft hyphens.
		shown := strings.ReplaceAll(page, "\u00ad", "")
		fields := strings.FieldsFunc(shown, func(r rune) bool { return strings.ContainsRune(" \n\t\r\f", r) })
		expect.Same(t, strings.Join(fields, " "), content.Text(html.EscapeString(page)), "escaped")
		// What comes out stays as it is the next time. (Where a soft hyphen leaves invalid text, the bytes around may make a new one.)
		again := content.Text(html.EscapeString(all))
		if utf8.ValidString(page) && again != strings.ReplaceAll(all, "\n", " ") {
			t.Errorf("once more: got %q, want %q", again, all)
		}
		content.IsHTML(page)
	})
}

// FuzzTextLikeParser makes pages of a few plain tags and compares with the tree that the standard's algorithm makes of them.
func FuzzTextLikeParser(f *testing.F) {
	parts := []string{"<p>", "</p>", "<b>", "</b>", "<div>", "</div>", "x", "é", " ", "&amp;", "<!-- c -->", "<script>s</script>",
		"<br>", "<ul>", "<li>", "</ul>", "<section id=x>", "</section>", "< ", "<h1>", "</h1>",
		"<style>p</style>", "<img alt=a>", "<x-y>", "word"}
	f.Add([]byte{0, 6, 2, 7, 3, 8, 24, 1, 11, 13, 14, 6, 14, 9, 15, 10, 22, 18})
	f.Fuzz(func(t *testing.T, program []byte) {
		var page strings.Builder
		for _, b := range program[:min(len(program), 100)] {
			page.WriteString(parts[int(b)%len(parts)])
		}
		doc, err := html.Parse(strings.NewReader(page.String()))
		if err != nil {
			t.Skip(err)
		}
		var want strings.Builder
		for n := range doc.Descendants() {
			if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
				want.WriteString(n.Data)
			}
		}
		expect.Same(t, squeeze(want.String()), squeeze(content.Text(page.String())), "%q", page.String())
	})
}

func FuzzUseful(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, page string) {
		all, useful := content.Text(page), content.Useful(page)
		checkFolded(t, page, useful)
		expect.Same(t, useful, content.Useful(page), "a second time")
		expect.Same(t, all == "", useful == "", "Text %q, Useful %q: which is empty", all, useful)
		if !isSubsequence(squeeze(useful), squeeze(all)) {
			t.Errorf("Useful has what Text has not, or in another order:\n%q\n%q", useful, all)
		}
	})
}

// squeeze leaves out white space, byte by byte: what was invalid may become valid where two pieces meet.
func squeeze(text string) string {
	kept := make([]byte, 0, len(text))
	for i := range len(text) {
		if strings.IndexByte(" \n\t\r\f", text[i]) < 0 {
			kept = append(kept, text[i])
		}
	}
	return string(kept)
}

func isSubsequence(part, whole string) bool {
	rest := []byte(whole)
	for i := range len(part) {
		at := bytes.IndexByte(rest, part[i])
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}
