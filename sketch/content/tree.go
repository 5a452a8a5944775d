package content

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The bounds of a tree. In a larger one no useful content is searched for: the search is recursive, and reads a text again for
// the elements around it. Of 1,096 real pages none was deeper than 40, had more than 27,446 nodes or made more work than
// 7.4 million. The slowest of about seventy pages crafted to be slow within the bounds took 0.8 s on a shared core.
const (
	maxDepth = 128     // elements within one another
	maxNodes = 1 << 17 // elements and texts
	maxWork  = 1 << 26 // bytes of text, each as often as its depth, and of attributes, each attributeWork times; about one second

	attributeWork = 16 // the search matches a handful of patterns against each, several times
)

// tree builds the page that the search for useful content works on: what is shown of the text, as html > body.
//
// It would suffice to call html.Parse. However, as the standard asks, that reopens all open inline elements in each paragraph: 16 kB
// of text can become a tree of 225 MB. Here no tag makes more than one element, and an end tag that closes nothing is ignored. For
// well-formed pages the tree is the same.
type tree struct {
	open  []*html.Node // from the body down to where the next child goes
	nodes int
	work  int
}

// parse returns the tree of a page, and false if it would be too deep or too large.
func parse(text string) (doc *html.Node, ok bool) {
	doc = &html.Node{Type: html.DocumentNode}
	root, head, body := element("html"), element("head"), element("body")
	doc.AppendChild(root)
	root.AppendChild(head)
	root.AppendChild(body)
	head.AppendChild(fixedTitle())
	t := tree{open: []*html.Node{body}}
	s := newShown(text)
	for s.next() {
		switch s.token {
		case html.TextToken:
			t.text(s.z.Text())
		case html.EndTagToken:
			t.end(string(s.name), s.kind)
		default:
			t.start(s)
		}
		if len(t.open) > maxDepth || t.nodes > maxNodes || t.work > maxWork {
			return nil, false
		}
	}
	return doc, true
}

func element(name string) *html.Node {
	return &html.Node{Type: html.ElementNode, Data: name, DataAtom: atom.Lookup([]byte(name))}
}

// fixedTitle is the title of every tree, which no heading repeats. The library leaves out a heading that repeats the title and, if there
// is no title, takes the first heading as the title. So the same article would lose its heading on one site and keep it on another.
func fixedTitle() *html.Node {
	title := element("title")
	title.AppendChild(&html.Node{Type: html.TextNode, Data: "qjxzqjxzqjxzqjxz"})
	return title
}

func (t *tree) top() *html.Node { return t.open[len(t.open)-1] }

func (t *tree) append(n *html.Node) {
	t.top().AppendChild(n)
	t.nodes++
}

func (t *tree) text(text []byte) {
	if t.top().Data == "title" {
		return // the title names the site as often as the page
	}
	t.append(&html.Node{Type: html.TextNode, Data: string(text)})
	t.work += len(text) * len(t.open)
}

// ends says which open elements a start tag ends, and within which element it looks for them.
var ends = map[string]struct{ ended, within []string }{
	"li":       {[]string{"li"}, []string{"ul", "ol", "menu", "dir"}},
	"dt":       {[]string{"dt", "dd"}, []string{"dl"}},
	"dd":       {[]string{"dt", "dd"}, []string{"dl"}},
	"td":       {[]string{"td", "th"}, []string{"tr", "table"}},
	"th":       {[]string{"td", "th"}, []string{"tr", "table"}},
	"tr":       {[]string{"tr"}, []string{"table"}},
	"thead":    {[]string{"thead", "tbody", "tfoot"}, []string{"table"}},
	"tbody":    {[]string{"thead", "tbody", "tfoot"}, []string{"table"}},
	"tfoot":    {[]string{"thead", "tbody", "tfoot"}, []string{"table"}},
	"option":   {[]string{"option"}, []string{"select"}},
	"optgroup": {[]string{"option", "optgroup"}, []string{"select"}},
	"a":        {[]string{"a"}, []string{"p", "div", "li", "td", "th"}},
}

func (t *tree) start(s *shown) {
	name := string(s.name)
	switch name {
	case "html", "head", "body", "base", "link", "meta", "param", "source", "track", "area", "col", "embed", "frame", "frameset":
		return
	}
	if s.kind&paragraph != 0 {
		t.close([]string{"p"}, []string{"td", "th", "table", "button"})
	}
	if e, ok := ends[name]; ok {
		t.close(e.ended, e.within)
	}
	node := element(name)
	node.Attr = attributes(s)
	for _, a := range node.Attr {
		t.work += len(a.Val) * attributeWork
	}
	t.append(node)
	if s.kind&void == 0 {
		t.open = append(t.open, node)
	}
}

// attributes returns the attributes that help to recognise useful content. Of a link it keeps only whether it leads out of the
// page, so that no address changes what is found.
func attributes(s *shown) []html.Attribute {
	var list []html.Attribute
	for more := s.attrs; more; {
		var key, value []byte
		key, value, more = s.z.TagAttr()
		a := html.Attribute{Key: string(key)}
		switch a.Key {
		case "class", "id", "role", "style", "hidden", "aria-hidden", "aria-modal", "itemprop", "rel", "summary":
			a.Val = string(value)
		case "href":
			a.Val = "/"
			if strings.HasPrefix(strings.TrimSpace(string(value)), "#") {
				a.Val = "#"
			}
		default:
			continue
		}
		if !slices.ContainsFunc(list, func(b html.Attribute) bool { return a.Key == b.Key }) {
			list = append(list, a)
		}
	}
	return list
}

// end closes the element that an end tag names, and all in it. An inline element is not looked for outside its block, nor
// another one outside its table cell.
func (t *tree) end(name string, k kind) {
	switch {
	case strings.HasPrefix(name, "t") && ends[name].within != nil:
		t.close([]string{name}, []string{"table"})
	case name == "table":
		t.close([]string{name}, nil)
	case k&block != 0:
		t.close([]string{name}, []string{"td", "th", "table"})
	default:
		for i := len(t.open) - 1; i > 0; i-- {
			if t.open[i].Data == name {
				t.open = t.open[:i]
				return
			}
			if elements[t.open[i].Data]&block != 0 {
				return
			}
		}
	}
}

// close closes the innermost open element that is one of ended, unless one of within is further in.
func (t *tree) close(ended, within []string) {
	for i := len(t.open) - 1; i > 0; i-- {
		switch name := t.open[i].Data; {
		case slices.Contains(ended, name):
			t.open = t.open[:i]
			return
		case slices.Contains(within, name):
			return
		}
	}
}
