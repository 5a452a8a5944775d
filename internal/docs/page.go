package docs

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Page is a Markdown document, taken apart as far as its checks need.
type Page struct {
	Path    string // from the root, with slashes
	Links   []Link
	Spans   []Span
	Blocks  []*Block
	Faults  []Fault
	anchors map[string]bool
}

// Link is a reference to something, of any form.
type Link struct {
	Target string
	Line   int
}

// Span is a text between backticks.
type Span struct {
	Text string
	Line int
}

// Block is a fenced block.
type Block struct {
	Language string // the first word behind the fence; "" if there is none
	Text     string // with a newline at its end, without the fence's own indentation
	Line     int    // of the fence, from 1 on
	Markers  []Marker
}

// Marker is an HTML comment right before a block.
type Marker struct {
	Name, Value string // "run", "elasticsearch"
	Line        int
}

// Marker returns the block's marker of the name, and whether it has one.
func (b *Block) Marker(name string) (string, bool) {
	for _, m := range b.Markers {
		if m.Name == name {
			return m.Value, true
		}
	}
	return "", false
}

// Fault is something that is wrong with a page.
type Fault struct {
	Line int
	What string
}

func (p *Page) fault(line int, format string, args ...any) {
	p.Faults = append(p.Faults, Fault{line, fmt.Sprintf(format, args...)})
}

// Local returns the links that lead to something on the reader's own machine.
func (p *Page) Local() (urls []string) {
	for _, l := range p.Links {
		if u, err := url.Parse(l.Target); err == nil && (u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1") {
			urls = append(urls, l.Target)
		}
	}
	return urls
}

// HasAnchor reports whether a link can lead to #name in the page.
func (p *Page) HasAnchor(name string) bool { return p.anchors[name] }

var (
	fence      = regexp.MustCompile("^(\\s*)(`{3,}|~{3,})\\s*([^`]*)$")
	comment    = regexp.MustCompile(`^\s*<!--\s*(.*?)\s*-->\s*$`)
	heading    = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$`)
	target     = regexp.MustCompile(`\]\(\s*<?([^)\s>]*)>?[^)]*\)`)
	definition = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+.*)?$`)
	attribute  = regexp.MustCompile(`<[a-zA-Z][^>]*?\b(href|src|srcset|id|name)="([^"]*)"`)
	autolink   = regexp.MustCompile(`<(https?://[^>\s]+)>`)
	linked     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// markers are the names that a marker may have.
var markers = map[string]bool{
	"run": true, "not run": true, "first minute": true, "output": true, "config": true, "yaml": true, "file": true,
}

// Parse takes a page apart. What it can't read is among the page's faults.
func Parse(path, text string) *Page {
	p := &Page{Path: path, anchors: map[string]bool{}}
	var pending []Marker
	var prose []string // lines; those of blocks and comments are empty
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := comment.FindStringSubmatch(line); m != nil {
			pending = append(pending, marker(m[1], i+1))
			prose = append(prose, "")
			continue
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			b := &Block{Line: i + 1, Markers: pending}
			if words := strings.Fields(m[3]); len(words) > 0 {
				b.Language = words[0]
			}
			end := p.body(b, lines[i+1:], len(m[1]), m[2])
			p.Blocks, pending = append(p.Blocks, b), nil
			prose = append(prose, make([]string, end+1)...)
			i += end
			continue
		}
		p.strays(pending)
		pending = nil
		prose = append(prose, line)
	}
	p.strays(pending)
	p.read(prose)
	return p
}

// body reads a block's text, and returns how many lines it and its end take.
func (p *Page) body(b *Block, lines []string, indent int, open string) int {
	var text strings.Builder
	for i, line := range lines {
		if end := strings.TrimSpace(line); len(end) >= len(open) && strings.Trim(end, open[:1]) == "" {
			b.Text = text.String()
			return i + 1
		}
		cut := 0
		for cut < indent && cut < len(line) && (line[cut] == ' ' || line[cut] == '\t') {
			cut++
		}
		text.WriteString(line[cut:] + "\n")
	}
	p.fault(b.Line, "the block has no end")
	b.Text = text.String()
	return len(lines)
}

// marker reads a comment.
func marker(text string, line int) Marker {
	name, value, _ := strings.Cut(text, ":")
	return Marker{strings.TrimSpace(name), strings.TrimSpace(value), line}
}

// strays complains of markers that stand before no block.
func (p *Page) strays(pending []Marker) {
	for _, m := range pending {
		if markers[m.Name] {
			p.fault(m.Line, "the marker %q stands right before no block", m.Name)
		}
	}
}

// read finds headings, spans and links in what is neither block nor comment.
func (p *Page) read(prose []string) {
	seen := map[string]int{}
	for _, line := range prose {
		if m := heading.FindStringSubmatch(line); m != nil {
			name := slug(m[1])
			if n := seen[name]; n > 0 {
				p.anchors[fmt.Sprintf("%s-%d", name, n)] = true
			} else {
				p.anchors[name] = true
			}
			seen[name]++
		}
	}
	for i, line := range p.unspan(prose) {
		for _, m := range target.FindAllStringSubmatch(line, -1) {
			p.Links = append(p.Links, Link{m[1], i + 1})
		}
		for _, m := range autolink.FindAllStringSubmatch(line, -1) {
			p.Links = append(p.Links, Link{m[1], i + 1})
		}
		if m := definition.FindStringSubmatch(line); m != nil {
			p.Links = append(p.Links, Link{m[1], i + 1})
		}
		for _, m := range attribute.FindAllStringSubmatch(line, -1) {
			if m[1] == "id" || m[1] == "name" {
				p.anchors[m[2]] = true
			} else {
				p.Links = append(p.Links, Link{m[2], i + 1})
			}
		}
	}
}

// unspan takes what stands between backticks out of the lines, paragraph by paragraph, and remembers it.
func (p *Page) unspan(lines []string) []string {
	var out []string
	for i := 0; i < len(lines); {
		end := i + 1
		for lines[i] != "" && end < len(lines) && lines[end] != "" {
			end++
		}
		out = append(out, strings.Split(p.spans(strings.Join(lines[i:end], "\n"), i+1), "\n")...)
		i = end
	}
	return out
}

// spans does so with a paragraph that begins in the line.
func (p *Page) spans(text string, line int) string {
	var out strings.Builder
	for {
		open := strings.IndexByte(text, '`')
		if open < 0 {
			return out.String() + text
		}
		out.WriteString(text[:open])
		line += strings.Count(text[:open], "\n")
		ticks := leading(text[open:])
		rest := text[open+ticks:]
		length := closing(rest, ticks)
		if length < 0 { // no span: backticks that stand for themselves
			out.WriteString(text[open : open+ticks])
			text = rest
			continue
		}
		span := rest[:length]
		p.Spans = append(p.Spans, Span{strings.Join(strings.Fields(span), " "), line})
		line += strings.Count(span, "\n")
		out.WriteString(strings.Repeat("\n", strings.Count(span, "\n")))
		text = rest[length+ticks:]
	}
}

// leading counts the backticks at the beginning.
func leading(text string) int { return len(text) - len(strings.TrimLeft(text, "`")) }

// closing returns where a run of so many backticks begins, or -1.
func closing(text string, ticks int) int {
	for i := 0; i < len(text); {
		if text[i] != '`' {
			i++
			continue
		}
		if n := leading(text[i:]); n == ticks {
			return i
		} else {
			i += n
		}
	}
	return -1
}

// slug returns the anchor that forges give to a heading: letters, digits, - and _ in lower case, and - for each blank.
func slug(title string) string {
	title = linked.ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
