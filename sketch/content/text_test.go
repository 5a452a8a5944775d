package content_test

import (
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch/content"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"empty", "", ""},
		{"plain", "one two", "one two"},
		{"white space", " \n one \t\r\n two\f", "one two"},
		{"no-break space is kept", "one&nbsp;two", "one\u00a0two"},
		{"inline", "foo<b>bar</b> <i>b</i>az", "foobar baz"},
		{"unknown is inline", "foo<x-y>bar</x-y><y>z", "foobarz"},
		{"word break", "foo<wbr>bar&shy;baz\u00adx", "foobarbazx"},
		{"block", "<p>one</p><p>two</p>", "one\ntwo"},
		{"block in a word", "one<div>two</div>three", "one\ntwo\nthree"},
		{"list", "<ul><li>one<li>two</ul>", "one\ntwo"},
		{"table", "<table><tr><td>one<td>two<tr><th>three</table>", "one\ntwo\nthree"},
		{"form", "<label>Name</label><input value=x><button>Go</button><select><option>a<option>b</select>", "Name\nGo\na\nb"},
		{"text area", "one<textarea><b>two</b></textarea>three", "one\n<b>two</b>\nthree"},
		{"entities", "&lt;p&gt; AT&amp;T &eacute; &#233; &#xe9; &notin; &nosuch; &", "<p> AT&T é é é ∉ &nosuch; &"},
		{"less than", "a < b and 3<4", "a < b and 3<4"},
		{"comment", "one<!-- two <p> -->three<!-- x", "onethree"},
		{"attributes", "<img alt=two title=x>one<a href=y title='z>'>three</a>", "onethree"},
		{"head", "<html><head><meta name=x content=y><title>T &amp; U</title><link rel=x></head><body>one", "T & U\none"},
		{"script", "one<script>if (a</b) '<p>two'</script>three", "onethree"},
		{"style", "one <STYLE>p { x: y }</STYLE > three", "one three"},
		{"noscript", "one <noscript><p>Please enable it.</noscript>two", "one two"},
		{"template", "one <template>a<template>b</template><p>c</template>two", "one two"},
		{"template without an end", "one <template>two", "one two"},
		{"end alone", "one </template></svg></script></p>two", "one\ntwo"},
		{"svg", "one <svg><title>Icon</title><text>a</text></svg>two", "one two"},
		{"ends of another name", "one <svg>a</svgx></template></svg >two", "one two"},
		{"video", "one <video><source src=x><p>Your browser is old.</p></video>two", "one two"},
		{"ruby", "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字<rt>ji</rt></ruby>", "漢字"},
		{"end of file in a tag", "one <p class=", "one"},
		{"zero byte", "a\x00b", "a\x00b"},
		{"hidden by style is text", "<p hidden>one</p><p style='display:none'>two", "one\ntwo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, content.Text(c.page), "Text(%q)", c.page)
		})
	}
}

// hostile are pages made to be slow, each grown to about n bytes.
func hostile(n int) map[string]string {
	fill := func(part string) string { return strings.Repeat(part, n/len(part)) }
	nested := func(depth int, inner string) string {
		comb := strings.Repeat("<div class=share>", depth) + inner + strings.Repeat("</div>", depth)
		return strings.Repeat(comb, max(1, n/len(comb)))
	}
	return map[string]string{
		"less than":           fill("<"),
		"end tag begins":      fill("</"),
		"open paragraphs":     fill("<p>"),
		"open formatting":     "<p>" + strings.Repeat("<b a=1><b a=2><b a=3>", 30) + fill("<p>x"),
		"deep":                fill("<div>"),
		"deep, inline":        fill("<b>"),
		"ampersands":          fill("&"),
		"entities":            fill("&ampamp;&#"),
		"comments":            fill("<!--"),
		"open svg":            fill("<svg>"),
		"open templates":      fill("<template>") + "</template>",
		"svg, template":       fill("<svg></svg><template></template><rt></rp>"),
		"attributes":          "<p " + fill("a=1 class=b ") + ">x",
		"text nodes":          fill("x<!-- -->"),
		"breaks":              fill("<br><br>x"),
		"headings":            "<h1>" + fill("word ") + "</h1>" + fill("<h2>word x</h2>"),
		"long text, deep":     nested(120, "<p>"+fill("word, ")),
		"combs":               nested(100, "<p>word, word, word, word, word</p>"),
		"long classes":        fill("<div class='" + strings.Repeat("a ", 50) + "'>x</div>"),
		"white space":         fill(" ") + "x" + fill("<p \n"),
		"attribute that ends": fill("<p a "),
	}
}

// limit is far above what any of it takes, and far below what quadratic time would: 1 MB takes some hundredths of a second, and
// would take minutes. The race detector and a busy machine have their part in it.
const limit = 20 * time.Second

func TestHostilePages(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 1 << 15
	}
	for name, page := range hostile(n) {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			content.IsHTML(page)
			all := content.Text(page)
			expect.Same(t, all == "", content.Useful(page) == "", "Text (-) and Useful (+) are empty")
			if took := time.Since(begin); took > limit {
				t.Errorf("took %v for %d bytes", took, len(page))
			}
		})
	}
}
