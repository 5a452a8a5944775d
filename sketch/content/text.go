package content

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// Text returns all the text of a page that a reader is shown, entities decoded.
//
// A block element (<p>, <div>, <li>, <td>, <br>, …) parts words, an inline one does not: "foo<b>bar</b>" is the one word
// "foobar". Runs of white space become one blank, or one newline where a block element begins or ends; none is left at either
// end. So the text does not depend on how the markup is indented. Unknown elements are inline.
//
// Left out are comments, all attributes (alt texts and form values too), the content of script, style, template, svg, canvas,
// audio, video, object, applet, iframe, datalist, noscript, noframes and noembed, the readings (<rt>, <rp>) of a ruby text, and
// soft hyphens. So only the title is left of the head. Styles are ignored: what a style sheet or the attribute hidden hides is text.
// A hidden element without an end tag hides nothing, except script, style, iframe, noscript, noframes and noembed: they hide the
// rest of the page, as in browsers.
//
// Any string may be passed; valid UTF-8 stays valid. It takes time and memory linear in the text, however it nests.
func Text(page string) string {
	j := joiner{out: make([]byte, 0, len(page)/4)}
	s := newShown(page)
	for s.next() {
		switch {
		case s.token == html.TextToken:
			j.text(s.z.Text())
		case s.kind&block != 0:
			j.part()
		}
	}
	return string(j.out)
}

// joiner puts texts together: white space folded, words parted where blocks meet.
type joiner struct {
	out []byte
	gap byte // what to write before the next word: 0, ' ' or '\n'
}

// part marks the beginning or end of a block.
func (j *joiner) part() { j.gap = '\n' }

func (j *joiner) text(text []byte) {
	if bytes.Contains(text, softHyphen) {
		text = bytes.ReplaceAll(text, softHyphen, nil)
	}
	for len(text) > 0 {
		n := 0
		for n < len(text) && isSpace(text[n]) {
			n++
		}
		if n > 0 && j.gap == 0 {
			j.gap = ' '
		}
		text = text[n:]
		n = 0
		for n < len(text) && !isSpace(text[n]) {
			n++
		}
		if n > 0 {
			j.word(text[:n])
			text = text[n:]
		}
	}
}

func (j *joiner) word(w []byte) {
	if j.gap != 0 && len(j.out) > 0 {
		j.out = append(j.out, j.gap)
	}
	j.gap = 0
	j.out = append(j.out, w...)
}

// softHyphen is shown only where a line happens to break there, so that the same word is written with and without it.
var softHyphen = []byte("\u00ad")

// letters counts the bytes of a text that are no white space.
func letters(text string) int {
	return len(text) - strings.Count(text, " ") - strings.Count(text, "\n")
}
