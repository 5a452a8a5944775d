package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

//go:embed articles/*.txt lookalikes/*.txt sites.txt
var texts embed.FS

// section is the lines below one "== name key=value …" line.
type section struct {
	name  string
	attrs map[string]string
	lines []string
}

// site is what a host puts around each page that it stores.
type site struct{ menu, footer string }

// read returns all documents in the order of the files.
func read() ([]Document, error) {
	sites, err := readSites()
	if err != nil {
		return nil, err
	}
	var documents []Document
	for _, folder := range []struct {
		pattern string
		expand  func(slug string, sections []section) ([]Document, error)
	}{
		{"articles/*.txt", expandArticle},
		{"lookalikes/*.txt", expandLookalikes},
	} {
		names, err := fs.Glob(texts, folder.pattern) // sorted
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", folder.pattern, err)
		}
		for _, name := range names {
			sections, err := readSections(name)
			if err != nil {
				return nil, err
			}
			expanded, err := folder.expand(strings.TrimSuffix(path.Base(name), ".txt"), sections)
			if err != nil {
				return nil, fmt.Errorf("expand %s: %w", name, err)
			}
			documents = append(documents, expanded...)
		}
	}
	for i, d := range documents {
		if s, wraps := sites[d.Host]; wraps {
			documents[i].Body = s.menu + "\n\n" + d.Body + "\n\n" + s.footer
		}
	}
	return documents, nil
}

func readSites() (map[string]site, error) {
	sections, err := readSections("sites.txt")
	if err != nil {
		return nil, err
	}
	sites := make(map[string]site, len(sections))
	for _, s := range sections {
		p := paragraphs(s.lines)
		if len(p) != 2 {
			return nil, fmt.Errorf("read sites.txt: %s: want menu and footer, got %d paragraphs", s.name, len(p))
		}
		sites[s.name] = site{menu: p[0], footer: p[1]}
	}
	return sites, nil
}

func readSections(name string) ([]section, error) {
	text, err := texts.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read texts: %w", err)
	}
	var sections []section
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		header, isHeader := strings.CutPrefix(line, "== ")
		switch {
		case isHeader:
			sections = append(sections, newSection(header))
		case len(sections) > 0:
			last := &sections[len(sections)-1]
			last.lines = append(last.lines, line)
		case line != "":
			return nil, fmt.Errorf("read %s: %q is before the first section", name, line)
		}
	}
	return sections, nil
}

func newSection(header string) section {
	fields := strings.Fields(header)
	s := section{attrs: map[string]string{}}
	for i, f := range fields {
		if i == 0 {
			s.name = f
			continue
		}
		key, value, _ := strings.Cut(f, "=")
		s.attrs[key] = value
	}
	return s
}

// document returns a document with what every section has: host, URL and date.
func (s section) document(slug string) (Document, error) {
	at, err := time.Parse("2006-01-02T15:04", s.attrs["date"])
	if err != nil {
		return Document{}, fmt.Errorf("read date of %s: %w", s.name, err)
	}
	host := s.attrs["host"]
	if host == "" {
		return Document{}, fmt.Errorf("%s: no host", s.name)
	}
	return Document{
		Host:        host,
		URL:         "https://" + host + at.Format("/2006/01/02/") + slug,
		PublishedAt: at.Format(time.RFC3339),
	}, nil
}

// paragraphs joins lines, which are wrapped for reading, up to each empty one.
func paragraphs(lines []string) []string {
	var result []string
	open := false
	for _, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			open = false
		case open:
			result[len(result)-1] += " " + line
		default:
			result = append(result, line)
			open = true
		}
	}
	return result
}
