package config

import (
	"fmt"

	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
)

// Case is a test of a rule: two documents that must be near-duplicates under it (Same), or must not be (Different).
type Case struct {
	Same      []CaseDocument `yaml:"same"`
	Different []CaseDocument `yaml:"different"`

	// Line is its line in the file.
	Line int `yaml:"-"`
}

// CaseDocument is a document of a case: a text, or a section that names a stored document.
type CaseDocument struct {
	// Text is the text; empty for a section.
	Text string `yaml:"-"`

	ID string `yaml:"id"`
	// Index is where it is stored. If it is empty the id is looked up in all indices of the rule.
	Index string `yaml:"index"`
}

// Documents returns the two documents of a valid case, and whether they must be near-duplicates.
func (c Case) Documents() (documents []CaseDocument, same bool) {
	if len(c.Same) > 0 {
		return c.Same, true
	}
	return c.Different, false
}

// MarshalYAML implements [yaml.Marshaler].
func (c Case) MarshalYAML() (any, error) {
	if len(c.Same) > 0 {
		return map[string]any{"same": c.Same}, nil
	}
	return map[string]any{"different": c.Different}, nil
}

// MarshalYAML implements [yaml.Marshaler].
func (d CaseDocument) MarshalYAML() (any, error) {
	switch {
	case d.ID == "":
		return d.Text, nil
	case d.Index == "":
		return map[string]any{"id": d.ID}, nil
	}
	return map[string]any{"id": d.ID, "index": d.Index}, nil
}

// String describes the document in messages.
func (d CaseDocument) String() string {
	if d.ID == "" {
		return fmt.Sprintf("the text %.40q", d.Text)
	}
	return "document " + d.ID
}

// validateCases checks the cases of an entry.
func (i Index) validateCases(f *faults, key string) {
	for n, c := range i.Cases {
		at := fmt.Sprintf("%s[%d]", key, n)
		switch {
		case len(c.Same) > 0 && len(c.Different) > 0:
			f.add(at, "has both same and different: make two cases of it")
		case len(c.Same)+len(c.Different) == 0:
			f.add(at, `has neither same nor different: write {same: ["one text", "another"]}, or different`)
		}
		validateCase(f, at+".same", c.Same, i.Match)
		validateCase(f, at+".different", c.Different, i.Match)
	}
}

func validateCase(f *faults, key string, documents []CaseDocument, match string) {
	f.when(len(documents) != 0 && len(documents) != 2, key, "has %d of 2 documents: write one case for each pair", len(documents))
	for n, d := range documents {
		at := fmt.Sprintf("%s[%d]", key, n)
		f.when(d == CaseDocument{}, at, "is empty: write a text, or {id: …} for a stored document")
		f.when(d.ID == "" && d.Index != "", at+".id", "is empty: name the document in index %s", d.Index)
		f.when(d.Index != "" && !rule.Matches(match, d.Index), at+".index", "%q is not under this rule: name an index that %s matches", d.Index, match)
	}
}

// validateStoredCases checks that no case names a document of an engine that only serve can reach.
func (e *Engine) validateStoredCases(f *faults, key string, cases []Case) {
	for n, c := range cases {
		documents, _ := c.Documents()
		for _, d := range documents {
			f.when(e.Kind == kind.Embedded && d.ID != "", fmt.Sprintf("%s[%d]", key, n),
				"names document %s, which only serve can read: write texts for an embedded engine", d.ID)
		}
	}
}

// setCaseLines sets the lines of all cases.
func (c *Config) setCaseLines(lines keyLines) {
	for i, e := range c.Engines {
		for j, index := range e.Indices {
			for n := range index.Cases {
				index.Cases[n].Line = lines.of(fmt.Sprintf("engines[%d].indices[%d].cases[%d]", i, j, n))
			}
		}
	}
}
