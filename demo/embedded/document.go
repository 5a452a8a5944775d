package embedded

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// document is one version of a stored document. It never changes, so a scroll can keep it.
type document struct {
	index                 *index
	id                    string
	version, seqNo, order int64
	source                []byte
	fields                map[string][]any // string, int64 (dates are milliseconds), float64 or bool, in the source's order
	words                 map[term][]spot  // the positions of each word
	lengths               map[string]int   // words in each text field
	ignored               []string         // fields that left a value out for its length
}

// reader reads one document's fields and collects the mappings that its new fields need.
type reader struct {
	index *index
	doc   *document
	added map[string]*field
}

// read checks a document's source and puts it into d; the index's mapping grows only if the whole document is good.
func (x *index) read(d *document) error {
	var values map[string]any
	if tokenName(d.source) != "START_OBJECT" {
		return fail(http.StatusBadRequest, "document_parsing_exception", "Malformed content, must start with an object")
	}
	err := decode(d.source, &values)
	if err == nil && !json.Valid(d.source) {
		err = errors.New("characters after the object")
	}
	if err != nil {
		return fail(http.StatusBadRequest, "document_parsing_exception", "[1:2] failed to parse: %v", err)
	}
	d.fields, d.words, d.lengths = map[string][]any{}, map[term][]spot{}, map[string]int{}
	r := reader{x, d, map[string]*field{}}
	if err := r.object("", values); err != nil {
		return err
	}
	maps.Copy(x.fields, r.added)
	return nil
}

func (r *reader) object(prefix string, values map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := r.value(prefix+key, values[key]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) value(path string, v any) error {
	if list, ok := v.([]any); ok {
		for _, v := range list {
			if err := r.value(path, v); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := r.define(path, v)
	if f == nil || err != nil || v == nil || f.disabled() {
		return err
	}
	nested, isObject := v.(map[string]any)
	if isObject != (f.Type == "object") {
		return r.bad(path, f, v)
	}
	if isObject {
		return r.object(path+".", nested)
	}
	if err := r.leaf(path, f, v); err != nil {
		return err
	}
	for sub, g := range f.Fields {
		if err := r.leaf(path+"."+sub, g, v); err != nil {
			return err
		}
	}
	return nil
}

// define finds the definition of a field, or makes one as the index's dynamic setting says.
func (r *reader) define(path string, v any) (*field, error) {
	if f := r.index.lookup(path); f != nil {
		return f, nil
	}
	if f := r.added[path]; f != nil {
		return f, nil
	}
	f := guess(v)
	switch {
	case f == nil || r.index.dynamic == "false":
		return nil, nil
	case r.index.dynamic == "strict":
		return nil, fail(http.StatusBadRequest, "strict_dynamic_mapping_exception",
			"[1:1] mapping set to strict, dynamic introduction of [%s] within [_doc] is not allowed", path)
	}
	return f, r.index.flatten(map[string]*field{path: f}, "", r.added)
}

// leaf keeps one value, and its words where it can be searched for by them.
func (r *reader) leaf(path string, f *field, v any) error {
	kept, ok := f.convert(v)
	if !ok {
		return r.bad(path, f, v)
	}
	s, _ := kept.(string)
	if f.IgnoreAbove != nil && len([]rune(s)) > *f.IgnoreAbove {
		if !slices.Contains(r.doc.ignored, path) {
			r.doc.ignored = append(r.doc.ignored, path)
		}
		return nil
	}
	r.doc.fields[path] = append(r.doc.fields[path], kept)
	if !f.searchable() {
		return nil
	}
	number := len(r.doc.fields[path]) - 1
	switch f.kind() {
	case "text":
		for position, word := range words(s) {
			t := term{path, word}
			r.doc.words[t] = append(r.doc.words[t], spot{number, position})
			r.doc.lengths[path]++
		}
	case "keyword":
		if t := (term{path, s}); r.doc.words[t] == nil { // a keyword is there or not
			r.doc.words[t] = []spot{{number, 0}}
			r.doc.lengths[path]++
		}
	}
	return nil
}

func (r *reader) bad(path string, f *field, v any) error {
	shown, isString := v.(string)
	if !isString {
		shown = string(appendJSON(nil, v))
	}
	return fail(http.StatusBadRequest, "document_parsing_exception",
		"[1:1] failed to parse field [%s] of type [%s] in document with id '%s'. Preview of field's value: '%s'", path, f.Type, r.doc.id, shown)
}

// convert converts a JSON scalar to the form that a field of this type stores.
func (f *field) convert(v any) (any, bool) {
	s := text(v)
	switch f.kind() {
	case "long":
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, true
		}
		n, err := strconv.ParseFloat(s, 64)
		return int64(n), err == nil
	case "double":
		n, err := strconv.ParseFloat(s, 64)
		return n, err == nil
	case "boolean":
		return s == "true", s == "true" || s == "false" || s == ""
	case "date":
		first, _, ok := parseDate(s)
		return first, ok && s != "now"
	}
	return s, true
}

// show is a kept value as doc values and fields give it.
func (f *field) show(v any) any {
	if millis, ok := v.(int64); ok && f.Type == "date" {
		return showDate(millis)
	}
	return v
}
