package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed breaks.go.txt
var switches string

// writeOverlay writes the broken files and returns the overlay for the go command: each file as it is but for its sites, which ask whether they are
// switched on, and the package breaks that answers.
func writeOverlay(dir string, sites []*site) (string, error) {
	replace := map[string]string{}
	put := func(path, text string) error {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		replace[path] = copied
		return os.WriteFile(copied, []byte(text), 0o600)
	}
	byFile := map[string][]*site{}
	for _, s := range sites {
		byFile[s.path] = append(byFile[s.path], s)
	}
	for path, list := range byFile {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		sortSites(list)
		broken := render(string(text), 0, len(text), list)
		if err := put(path, imported(broken)); err != nil {
			return "", err
		}
	}
	path, err := filepath.Abs(filepath.Join("internal", "breaks", "breaks.go"))
	if err != nil {
		return "", err
	}
	if err := put(path, switches); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}

// sortSites sorts the sites of a file by where they begin, outer ones first. Of two over the same text the one that takes it whole is the outer one.
func sortSites(list []*site) {
	whole := func(s *site) int {
		if len(s.parts) == 1 {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *site) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(whole(a), whole(b)))
	})
}

// imported adds the import of breaks on the line of the package clause, so that lines keep their numbers.
func imported(text string) string {
	var at int
	for line := range strings.Lines(text) {
		at += len(line)
		if strings.HasPrefix(line, "package ") {
			name := strings.TrimRight(line, "\n")
			return text[:at-len(line)] + name + "; import breaks \"github.com/neardup/sidecar/internal/breaks\"\n" + text[at:]
		}
	}
	return text
}

// render returns text[start:end] with the sites in it broken. Sites are sorted, outer ones first, and nest like the syntax that they are.
func render(text string, start, end int, sites []*site) string {
	var b strings.Builder
	at := start
	for i := 0; i < len(sites); i++ {
		s := sites[i]
		if s.start < at || s.end > end {
			continue
		}
		b.WriteString(text[at:s.start])
		parts := make([]string, len(s.parts))
		for j, p := range s.parts {
			parts[j] = render(text, p[0], p[1], sites[i+1:])
		}
		b.WriteString(s.write(s.ID, parts))
		at = s.end
	}
	b.WriteString(text[at:end])
	return b.String()
}
