package corpus

import (
	"fmt"
	"strconv"
	"strings"
)

// expandArticle makes the documents of one article. Its first section is the original: a title and paragraphs. Each further section
// is a list of directives, "key: value", a value going on in indented lines:
//
//	title: …       another headline
//	lead: …        another first paragraph
//	before: …      a paragraph before the first (dateline, agency)
//	after: …       a paragraph after the last (correction note)
//	swap: a => b   other words in the body; a must occur in it once
//	cut: n         without the last n paragraphs
//	style: …       another way of writing the whole, see styles
//
// A section without any is an exact copy. Style is always applied last.
func expandArticle(slug string, sections []section) ([]Document, error) {
	number, name, found := strings.Cut(slug, "-")
	if !found || len(sections) == 0 || sections[0].name != "original" {
		return nil, fmt.Errorf("want NNN-slug.txt that begins with the original")
	}
	base := paragraphs(sections[0].lines)
	if len(base) < 2 {
		return nil, fmt.Errorf("the original needs a title and a body")
	}
	seen := map[string]int{}
	var documents []Document
	for i, s := range sections {
		d, err := s.document(name)
		if err != nil {
			return nil, err
		}
		d.Group = "a" + number
		d.Version = s.name
		d.ID = d.Group + "-" + s.name
		if seen[s.name]++; seen[s.name] > 1 {
			d.ID += fmt.Sprintf("-%d", seen[s.name])
		}
		text := text{title: base[0], body: append([]string(nil), base[1:]...)}
		if i > 0 {
			if err := text.change(s.lines); err != nil {
				return nil, fmt.Errorf("change %s: %w", d.ID, err)
			}
		}
		d.Title, d.Body = text.title, strings.Join(text.body, "\n\n")
		documents = append(documents, d)
	}
	return documents, nil
}

// expandLookalikes makes one document, a group to itself, of each section.
func expandLookalikes(_ string, sections []section) ([]Document, error) {
	var documents []Document
	for _, s := range sections {
		d, err := s.document(s.name)
		if err != nil {
			return nil, err
		}
		p := paragraphs(s.lines)
		if len(p) < 2 {
			return nil, fmt.Errorf("%s needs a title and a body", s.name)
		}
		d.ID = "x-" + s.name
		d.Group = d.ID
		d.Version = "lookalike"
		d.Title, d.Body = p[0], strings.Join(p[1:], "\n\n")
		documents = append(documents, d)
	}
	return documents, nil
}

type text struct {
	title string
	body  []string
}

func (t *text) change(lines []string) error {
	style := func(s string) string { return s }
	for _, directive := range directives(lines) {
		key, value, _ := strings.Cut(directive, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "title":
			t.title = value
		case "lead":
			t.body[0] = value
		case "before":
			t.body = append([]string{value}, t.body...)
		case "after":
			t.body = append(t.body, value)
		case "swap":
			if err := t.swap(value); err != nil {
				return err
			}
		case "cut":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n >= len(t.body) {
				return fmt.Errorf("cut %q: want 1 to %d paragraphs", value, len(t.body)-1)
			}
			t.body = t.body[:len(t.body)-n]
		case "style":
			var known bool
			if style, known = styles[value]; !known {
				return fmt.Errorf("no style %q", value)
			}
		default:
			return fmt.Errorf("no directive %q", key)
		}
	}
	t.title = style(t.title)
	for i, p := range t.body {
		t.body[i] = style(p)
	}
	return nil
}

func (t *text) swap(value string) error {
	before, after, found := strings.Cut(value, " => ")
	if n := strings.Count(strings.Join(t.body, "\n"), before); !found || n != 1 {
		return fmt.Errorf("swap %q: occurs %d times, want one", value, n)
	}
	for i, p := range t.body {
		t.body[i] = strings.Replace(p, before, after, 1)
	}
	return nil
}

func directives(lines []string) []string {
	var result []string
	for _, line := range lines {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, " ") && len(result) > 0:
			result[len(result)-1] += " " + strings.TrimSpace(line)
		default:
			result = append(result, line)
		}
	}
	return result
}
