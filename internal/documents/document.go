// Package documents reads the texts of documents, from the lines of a file or as an engine stores them, and says which passages two texts share.
package documents

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Document is one line of a file of documents.
type Document struct {
	// Line is the line itself.
	Line []byte
	// ID is the id, a number as it is written; RawID is the same as JSON.
	ID    string
	RawID []byte
	// Texts are those of the fields, in their order.
	Texts []string
	// Held says that it has one of the fields.
	Held bool
	// Members are all that it has.
	Members []jsonedit.Member
}

// Read reads a document with the id and the texts of the rule's fields in it, as [rule.Rule.TextsIn] has them. With an empty id it needs none.
func Read(line []byte, id string, r *rule.Rule) (d Document, err error) {
	d.Line = line
	if d.Members, err = jsonedit.Members(line); err != nil {
		return d, errors.New(`is no JSON object: write one document in each line, such as {"id": "a", "text": "some words"}`)
	}
	if id != "" {
		if err := d.takeID(id); err != nil {
			return d, err
		}
	}
	for _, field := range r.Fields {
		texts, set, err := r.TextsIn(d.Members, field)
		if err != nil {
			return d, fmt.Errorf("field %s: %w, or leave the field out of --fields", field, err)
		}
		d.Texts, d.Held = append(d.Texts, texts...), d.Held || set
	}
	return d, nil
}

// ErrNoID is the error of a document without an id.
var ErrNoID = errors.New("give each document one, a text or a number")

// takeID takes the id that a field holds, a text or a number.
func (d *Document) takeID(field string) error {
	d.RawID = jsonedit.Get(d.Members, field)
	switch {
	case d.RawID == nil:
		return fmt.Errorf("has no field %q: %w", field, ErrNoID)
	case d.RawID[0] == '"':
		d.ID, _ = jsonedit.Text(d.RawID)
	case strings.IndexByte("-0123456789", d.RawID[0]) >= 0:
		d.ID = string(d.RawID)
	default:
		return fmt.Errorf("%s: %.40s is no id: give a text or a number", field, d.RawID)
	}
	return nil
}

// HostIn returns the host that stands in a field of a document, or the one of the URL there; nothing where there is none. A field
// such as host.keyword, which an engine indexes beside the one that documents have, is found under the name of that one.
func HostIn(members []jsonedit.Member, field string) string {
	texts, _, err := rule.TextsIn(members, field)
	if parent, has := ParentOf(field); err == nil && len(texts) == 0 && has {
		texts, _, err = rule.TextsIn(members, parent)
	}
	if err != nil || len(texts) == 0 {
		return ""
	}
	text := strings.TrimSpace(texts[0])
	if strings.Contains(text, "//") {
		u, err := url.Parse(text)
		if err != nil {
			return ""
		}
		text = u.Host
	}
	text, _, _ = strings.Cut(text, "/")
	return strings.ToLower(text)
}

// ParentOf returns the path without its last step.
func ParentOf(field string) (string, bool) {
	last := strings.LastIndexByte(field, '.')
	return field[:max(last, 0)], last > 0
}
