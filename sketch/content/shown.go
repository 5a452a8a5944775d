package content

import (
	"strings"

	"golang.org/x/net/html"
)

// shown walks over the tags and texts of a page that a reader is shown, and skips comments and the content of hidden elements.
// It takes one pass and no memory beyond the tokenizer's, which is at most a few times the text.
type shown struct {
	text   string
	z      *html.Tokenizer
	offset int // of the end of the current token

	token html.TokenType // of the current token: text, start, self-closing or end
	name  []byte         // of its element, for a tag; valid until the next call of next
	kind  kind           // of its element
	attrs bool           // it has attributes still to be read from z

	skipped string         // the hidden element whose content is being skipped; empty outside
	depth   int            // how many of its name are open
	last    map[string]int // where the last end tag of a hidden element begins; −1 for none
}

func newShown(text string) *shown {
	return &shown{text: text, z: html.NewTokenizer(strings.NewReader(text))}
}

// next moves to the next token that is shown, and reports whether there is one.
func (s *shown) next() bool {
	for {
		s.token = s.z.Next()
		begin := s.offset
		s.offset += len(s.z.Raw())
		switch s.token {
		case html.ErrorToken:
			return false
		case html.TextToken:
			if s.skipped == "" {
				return true
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			s.name, s.attrs = s.z.TagName()
			s.kind = elements[string(s.name)]
			if s.skipped != "" {
				s.skip(begin)
			} else if !s.hide() {
				return true
			}
		}
	}
}

// hide starts to skip a hidden element, and reports whether the current tag belongs to one. An element without an end tag hides
// nothing, or one forgotten end tag would hide the rest of the page. Raw text is the exception: it is not text for readers.
func (s *shown) hide() bool {
	if s.kind&hidden == 0 {
		return false
	}
	selfClosed := s.token == html.SelfClosingTagToken && s.kind&raw == 0
	if s.token != html.EndTagToken && !selfClosed && (s.kind&raw != 0 || s.lastEnd(string(s.name)) >= s.offset) {
		s.skipped, s.depth = string(s.name), 1
	}
	return true
}

// skip looks at a tag inside a hidden element for its end.
func (s *shown) skip(begin int) {
	k := elements[s.skipped]
	if k&gloss != 0 && s.token == html.EndTagToken {
		s.skipped = ""
		return
	}
	if string(s.name) != s.skipped {
		return
	}
	switch s.token {
	case html.StartTagToken:
		s.depth++
	case html.EndTagToken:
		s.depth--
		if s.depth == 0 || k&raw != 0 || begin >= s.lastEnd(s.skipped) {
			s.skipped = ""
		}
	}
}

// lastEnd returns where the last end tag of an element begins, or −1. It searches once for each name.
func (s *shown) lastEnd(name string) int {
	if at, ok := s.last[name]; ok {
		return at
	}
	if s.last == nil {
		s.last = make(map[string]int)
	}
	at := len(s.text)
	for {
		at = strings.LastIndex(s.text[:at], "</")
		if at < 0 {
			break
		}
		rest := s.text[at+2:]
		if len(rest) > len(name) && strings.EqualFold(rest[:len(name)], name) && !isAlphanumeric(rest[len(name)]) {
			break
		}
	}
	s.last[name] = at
	return at
}
