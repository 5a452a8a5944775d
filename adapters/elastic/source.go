package elastic

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// sourceFilter is what of the source a client wants.
type sourceFilter struct {
	none               bool
	includes, excludes []string
}

// sourceFilter reads the client's source filter. It returns false for a form that it does not know. The one in the
// URL replaces the one in the body.
func (q *clientSearch) sourceFilter() (f sourceFilter, ok bool) {
	inURL := false
	for _, key := range ofSource {
		value, given := adapters.Last(q.params, key)
		if !given {
			continue
		}
		inURL = true
		list := strings.Split(value, ",")
		switch {
		case slices.Contains(list, ""):
			return f, false
		case key == ofSource[2]:
			f.excludes = list
		case key == ofSource[1]:
			f.includes = list
		case value == "false":
			f.none = true
		case value != "true":
			f.includes = list
		}
	}
	if inURL {
		return f, true
	}
	value := jsonedit.Get(q.members, "_source")
	switch string(value) {
	case "":
		f.none = jsonedit.Get(q.members, "script_fields") != nil
		return f, true
	case "true":
		return f, true
	case "false":
		f.none = true
		return f, true
	}
	if value[0] != '{' {
		f.includes, ok = filterNames(value)
		return f, ok
	}
	members, err := jsonedit.Members(value)
	if err != nil || jsonedit.Repeated(members) {
		return f, false
	}
	for _, m := range members {
		switch m.Key {
		case "includes":
			f.includes, ok = filterNames(m.Value)
		case "excludes":
			f.excludes, ok = filterNames(m.Value)
		default:
			ok = false
		}
		if !ok {
			return f, false
		}
	}
	return f, true
}

// filterNames returns a string, or a list of strings.
func filterNames(value []byte) (names []string, ok bool) {
	names, ok = fieldNames(value)
	return names, ok && !slices.Contains(names, "")
}

// texts is how the sketched texts of hits come in the client's own reading.
type texts struct {
	// known says that it is certain which of them the client sees.
	known bool
	// filter is the source filter that lets all of them through; nil if the client's does.
	filter []byte
	// hidden are those that the client does not see; all says that it sees no source at all.
	hidden []string
	all    bool
}

// textsOf returns how the fields come, or can come, with the client's own hits. What is not certain, such as what a pattern
// with a wildcard in the middle lets through, is left open.
func (q *clientSearch) textsOf(fields []string) (t texts) {
	if q.wholeSource() {
		return texts{known: true}
	}
	f, ok := q.sourceFilter()
	_, synthetic := adapters.Last(q.params, "force_synthetic_source")
	if !ok || synthetic || q.namesOurs || q.inherits() || q.value("stored_fields") != "" || len(fields) == 0 {
		return t
	}
	if slices.ContainsFunc(fields, func(field string) bool { return strings.Contains(field, ".") }) {
		return t
	}
	if f.none {
		return texts{known: true, filter: sourceOf(fields), all: true}
	}
	wider := f
	for _, field := range fields {
		included, known1 := f.lets(field)
		excluded, known2 := f.bars(field)
		if !known1 || !known2 {
			return texts{}
		}
		if excluded {
			wider.excludes = slices.DeleteFunc(slices.Clone(wider.excludes), func(name string) bool { return name == field })
		}
		if !included {
			wider.includes = append(slices.Clone(wider.includes), field)
		}
		if excluded || !included {
			t.hidden = append(t.hidden, field)
		}
	}
	t.known = true
	if len(t.hidden) > 0 {
		t.filter = wider.json()
	}
	return t
}

// lets reports whether the names to include let a field through that is not within an object, and whether that is certain.
func (f sourceFilter) lets(field string) (included, known bool) {
	known, included = true, len(f.includes) == 0
	for _, name := range f.includes {
		stem, wild := strings.CutSuffix(name, "*")
		switch {
		case strings.Contains(stem, "*"), leadsBelow(stem, field):
			known = false
		case name == field, wild && strings.HasPrefix(field, stem):
			included = true
		}
	}
	return included, known
}

// bars reports whether the names to exclude take a field away, and whether that is certain.
func (f sourceFilter) bars(field string) (excluded, known bool) {
	known = true
	for _, name := range f.excludes {
		known = known && !strings.Contains(name, "*") && !leadsBelow(name, field)
		excluded = excluded || name == field
	}
	return excluded, known
}

// leadsBelow reports whether a name is of something within the field.
func leadsBelow(name, field string) bool { return strings.HasPrefix(name, field+".") }

// json returns the filter as JSON. It is never one that lets everything through: the engine writes a source
// anew that it filters, and gives any other as it was stored.
func (f sourceFilter) json() []byte {
	if len(f.includes)+len(f.excludes) == 0 {
		f.excludes = ourFields
	}
	out := append([]byte(`{"includes":`), stringsOf(f.includes)...)
	return append(append(append(out, `,"excludes":`...), stringsOf(f.excludes)...), '}')
}

// cut returns a hit less what its source shows only because we asked for it.
func (t texts) cut(hit []byte) []byte {
	return jsonedit.Cleaned(hit, jsonedit.Cuts{Drop: func(path []string) bool {
		if path[0] != "_source" {
			return false
		}
		return t.all || len(path) == 2 && slices.ContainsFunc(t.hidden, func(field string) bool {
			return path[1] == field || leadsBelow(path[1], field)
		})
	}})
}
