package content_test

import (
	"strings"
	"testing"

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
		{"less than, no blanks", "a<b && b>c", false},
		{"placeholder", "x <y> z", false},
		{"type parameter", "Vec<T>, Map<String, Object> and vector<int>", false},
		{"type parameter that is an element", "List<Object>, Vec<Option>, Array<Time>", false},
		{"address", `Bob <bob@example.org>`, false},
		{"address at an element's name", `<p@example.org> and <a@example.org>`, false},
		{"link in angle brackets", "<https://example.org/?a=b>", false},
		{"arrow", "<- and <-- and <!-- and </ and <", false},
		{"entities alone", "AT&amp;T &lt;p&gt;", false},
		{"comment alone", "<!-- x -->", false},
		{"inline start tag alone", "put it in <b> or <title> or <img>", false},
		{"unknown end tag", "irony</irony> and </T>", false},
		{"end tag that does not end", "</p", false},
		{"start tag that does not end", "<p", false},
		{"words after a name", "if x <p and y> 3", false},
		{"attribute without a value", "<hr noshade>", false},
		{"name that goes on", "<paragraph> <bra> <divx a=b> <figcaptions a=b>", false},
		{"name that goes on, not in letters", "<b-x=1> <i_j=2> <p:q=3>", false},
		{"other doctype", "<!doctype book>", false},
		{"doctype", "<!DOCTYPE html>", true},
		{"doctype in the middle", "  \n<!doctype\nHTML PUBLIC>", true},
		{"html", "<html>", true},
		{"html with an attribute", "<HTML lang=en", true},
		{"body", "<body/>", true},
		{"end tag", "a <b>word</b> of it", true},
		{"end tag with white space", "a</B \n>", true},
		{"longest name", "</blockquote>", true},
		{"longest name of a table's", "<blockquote cite='x'>", true},
		{"break", "one<br>two", true},
		{"break, closed", "one<br />two<BR/>", true},
		{"rule", "<hr>", true},
		{"paragraph", "<p>one", true},
		{"paragraph with a class", `<p class="x">one`, true},
		{"image", `<img src="a.png">`, true},
		{"attribute on the next line", "<a\n\thref = x>", true},
		{"attribute with a dash", "<span data-x=1>", true},
		{"after other brackets", strings.Repeat("a < b, x <y> z, ", 100) + "<li>", true},
		{"not ASCII", "<ſpan a=b> <İmg src=x>", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := content.IsHTML(c.text); got != c.want {
				t.Errorf("IsHTML(%q) = %t, want %t", c.text, got, c.want)
			}
		})
	}
}

func TestIsHTMLDoesNotAllocate(t *testing.T) {
	text := strings.Repeat("a < b, x <y> z, Vec<T>, <DIV and, </T>, <!doctype book> ", 100)
	if got := testing.AllocsPerRun(10, func() { content.IsHTML(text) }); got != 0 {
		t.Errorf("IsHTML allocates %v times", got)
	}
}
