package content_test

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch/content"
)

func TestIsHTML(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"empty", "", false},
		{"plain", "My name is Inigo Montoya.", false},
		{"less than", "a < b and b > c", false},
		{"type parameter", "Vec<T>, Map<String, Object> and vector<int>", false},
		{"type parameter that is an element", "List<Object>, Vec<Option>, Array<Time>", false},
		{"address", `Bob <bob@example.org>`, false},
		{"link in angle brackets", "<https://example.org/?a=b>", false},
		{"arrow", "<- and <-- and <!-- and </ and <", false},
		{"entities alone", "AT&amp;T &lt;p&gt;", false},
		{"inline start tag alone", "put it in <b> or <title> or <img>", false},
		{"start tag that does not end", "<p", false},
		{"attribute without a value", "<hr noshade>", false},
		{"name that goes on", "<paragraph> <bra> <divx a=b> <figcaptions a=b>", false},
		{"other doctype", "<!doctype book>", false},
		{"doctype", "<!DOCTYPE html>", true},
		{"html", "<html>", true},
		{"body", "<body/>", true},
		{"end tag", "a <b>word</b> of it", true},
		{"end tag with white space", "a</B \n>", true},
		{"longest name", "</blockquote>", true},
		{"break", "one<br>two", true},
		{"paragraph", "<p>one", true},
		{"paragraph with a class", `<p class="x">one`, true},
		{"image", `<img src="a.png">`, true},
		{"attribute on the next line", "<a\n\thref = x>", true},
		{"after other brackets", strings.Repeat("a < b, x <y> z, ", 100) + "<li>", true},
		{"not ASCII", "<ſpan a=b> <İmg src=x>", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, content.IsHTML(c.text), "IsHTML(%q)", c.text)
		})
	}
}
