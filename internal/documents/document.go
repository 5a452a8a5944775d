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

// Read reads a document with the id and the texts of the fields in it: a string, or each of a list of strings; a dot leads into an object.
func Read(line []byte, id string, fields []string) (d Document, err error) {
	if d.Members, err = jsonedit.Members(line); err != nil {
		return d, errors.New(`is no JSON object: write one document in each line, such as {"id": "a", "text": "some words"}`)
	}
	if jsonedit.Get(d.Members, id) == nil {
		return d, fmt.Errorf("has no field %q: %w", id, ErrNoID)
	}
	if err := d.takeID(id); err != nil {
		return d, err
	}
	for _, field := range fields {
		if err := d.descend(d.Members, field, field); err != nil {
			return d, err
		}
	}
	return d, nil
}

// ErrNoID is the error of a document without an id.
var ErrNoID = errors.New("give each document one, a text or a number")

// takeID takes the id that a field holds, a text or a number.
func (d *Document) takeID(field string) error {
	d.RawID = jsonedit.Get(d.Members, field)
	switch {
	case d.RawID[0] == '"':
		d.ID, _ = jsonedit.Text(d.RawID)
	case strings.IndexByte("-0123456789", d.RawID[0]) >= 0:
		d.ID = string(d.RawID)
	default:
		return fmt.Errorf("%s: %.40s is no id: give a text or a number", field, d.RawID)
	}
	return nil
}

// descend takes the texts at the path below an object. A dotted field is found as nested objects and as a dotted key.
func (d *Document) descend(members []jsonedit.Member, path, field string) error {
	for i, m := range members {
		for _, other := range members[:i] {
			if other.Key == m.Key && (m.Key == path || strings.HasPrefix(path, m.Key+".")) {
				return fmt.Errorf("field %s: %q stands twice in one object: drop one", field, m.Key)
			}
		}
		var err error
		if m.Key == path {
			err = d.collect(m.Value, field)
		} else if rest, ok := strings.CutPrefix(path, m.Key+"."); ok {
			err = d.into(m.Value, rest, field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// into follows the rest of a path into a value: an object, or a list of them. Anything else has no field below it.
func (d *Document) into(value []byte, path, field string) error {
	switch value[0] {
	case '{':
		members, err := jsonedit.Members(value)
		if err != nil {
			return err
		}
		return d.descend(members, path, field)
	case '[':
		elements, err := jsonedit.Elements(value)
		if err != nil {
			return err
		}
		for _, element := range elements {
			if err := d.into(element, path, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect takes the texts of a value. Null is no text.
func (d *Document) collect(value []byte, field string) error {
	d.Held = true
	switch value[0] {
	case '"':
		text, ok := jsonedit.Text(value)
		if !ok {
			return fmt.Errorf("field %s: is no well-formed text", field)
		}
		d.Texts = append(d.Texts, text)
	case '[':
		elements, err := jsonedit.Elements(value)
		if err != nil {
			return err
		}
		for _, element := range elements {
			if err := d.collect(element, field); err != nil {
				return err
			}
		}
	case 'n':
	default:
		return fmt.Errorf("field %s: %.40s is no text: write it in quotes, or leave the field out of --fields", field, value)
	}
	return nil
}

// Texts returns the texts of a stored document under a rule; none where they can't be read, and there is no sketch either.
func Texts(rule *rule.Rule, source []byte) []string {
	members, err := jsonedit.Members(source)
	if err != nil {
		return nil
	}
	var d Document
	for _, field := range rule.Fields {
		if d.descend(members, field, field) != nil {
			return nil
		}
	}
	return d.Texts
}

// HostIn returns the host that stands in a field of a document, or the one of the URL there; nothing where there is none. A field
// such as host.keyword, which an engine indexes beside the one that documents have, is found under the name of that one.
func HostIn(members []jsonedit.Member, field string) string {
	var d Document
	if field == "" || d.descend(members, field, field) != nil {
		return ""
	}
	if parent, has := ParentOf(field); len(d.Texts) == 0 && (!has || d.descend(members, parent, parent) != nil || len(d.Texts) == 0) {
		return ""
	}
	text := strings.TrimSpace(d.Texts[0])
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
