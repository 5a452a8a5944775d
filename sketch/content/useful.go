package content

import (
	"log/slog"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
)

// shareUsed is the least share of a page's text, in bytes without white space, that is accepted as its useful content. It was
// measured on 983 pages with sentences marked as wanted (the test set of the port of Trafilatura). The search kept 193 of 230 of them
// if it found between a tenth and a fifth of the text, 40 of 80 between a twentieth and a tenth, and 11 of 41 below that.
const shareUsed = 1. / 10

// Useful returns the text of a page without what surrounds it on every page of a site: menus, footers, notices. Words are parted
// and white space is folded as by [Text], but that unknown elements part words here. The title of the head is left out, because
// sites hang their own name on it; headings stay.
//
// What is useful is found by go-readability, a port of the Readability.js of Firefox, which looks at the length of paragraphs,
// at commas, at the share of text in links, and at class names such as "sidebar". It also leaves out the byline, and what the
// page itself hides by hidden, aria-hidden or an inline style. No address in the page has an influence on what is found.
//
// Useful returns the same as [Text] if there is no "<", if less than a tenth of the text is found, if the page is too large (more
// than 131,072 elements and texts, 128 elements within one another, or 67 million as the sum of each text's bytes times its depth),
// or if the library panics, which is recovered. So it is empty only if Text is.
func Useful(page string) string {
	all := Text(page)
	if strings.IndexByte(page, '<') < 0 {
		return all
	}
	doc, ok := parse(page)
	if !ok {
		return all
	}
	useful := mainText(doc)
	if float64(letters(useful)) < shareUsed*float64(letters(all)) {
		return all
	}
	return useful
}

// mainText returns the text of what the library finds in a tree, which it changes; empty where it finds nothing or panics.
func mainText(doc *html.Node) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	p := readability.NewParser()
	p.Logger = slog.New(slog.DiscardHandler)
	article, err := p.ParseAndMutate(doc, nil)
	if err != nil || article.Node == nil {
		return ""
	}
	var j joiner
	j.node(article.Node)
	return string(j.out)
}

// node writes the text of a tree no deeper than maxDepth.
func (j *joiner) node(n *html.Node) {
	if n.Type == html.TextNode {
		j.text([]byte(n.Data))
		return
	}
	parts := elements[n.Data]&block != 0
	if parts {
		j.part()
	}
	for child := range n.ChildNodes() {
		j.node(child)
	}
	if parts {
		j.part()
	}
}
