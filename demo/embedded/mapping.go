package embedded

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// field is the definition of a mapped field. Its parameters have the order of Elasticsearch.
type field struct {
	Dynamic     any               `json:"dynamic,omitempty"`
	Type        string            `json:"type,omitempty"`
	Enabled     *bool             `json:"enabled,omitempty"`
	Index       *bool             `json:"index,omitempty"`
	DocValues   *bool             `json:"doc_values,omitempty"`
	Store       *bool             `json:"store,omitempty"`
	Norms       *bool             `json:"norms,omitempty"`
	Analyzer    string            `json:"analyzer,omitempty"`
	IgnoreAbove *int              `json:"ignore_above,omitempty"`
	Fields      map[string]*field `json:"fields,omitempty"`
	Meta        json.RawMessage   `json:"_meta,omitempty"`
	Properties  map[string]*field `json:"properties,omitempty"`
}

// kinds groups the types by how their values are kept.
var kinds = map[string]string{"text": "text", "keyword": "keyword", "binary": "binary", "boolean": "boolean", "date": "date", "object": "object",
	"long": "long", "integer": "long", "short": "long", "byte": "long", "double": "double", "float": "double", "half_float": "double"}

func (f *field) kind() string     { return kinds[f.Type] }
func (f *field) searchable() bool { return f.kind() != "binary" && (f.Index == nil || *f.Index) }
func (f *field) disabled() bool   { return f.Enabled != nil && !*f.Enabled }

// docValues says whether the field can be sorted by and read as a doc value.
func (f *field) docValues() bool {
	if f.DocValues != nil {
		return *f.DocValues
	}
	return f.Type != "text" && f.Type != "binary"
}

// lookup returns the field of that full name, or nil.
func (x *index) lookup(path string) *field {
	if f := x.fields[path]; f != nil {
		return f
	}
	if dot := strings.LastIndexByte(path, '.'); dot > 0 && x.fields[path[:dot]] != nil {
		return x.fields[path[:dot]].Fields[path[dot+1:]]
	}
	return nil
}

// names returns the full names of all fields but objects, sub-fields included, that match one of the patterns.
func (x *index) names(patterns ...string) []string {
	var out []string
	for path, f := range x.fields {
		if f.Type != "object" && matchesAny(patterns, path) {
			out = append(out, path)
		}
		for sub := range f.Fields {
			if matchesAny(patterns, path+"."+sub) {
				out = append(out, path+"."+sub)
			}
		}
	}
	slices.Sort(out)
	return out
}

// putMappings merges the definitions of a request into the index, all of them or none.
func (x *index) putMappings(raw []byte) error {
	var root field
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&root); err != nil {
		return fail(http.StatusBadRequest, "mapper_parsing_exception",
			"Failed to parse mapping: %v (the embedded demo engine takes simple mappings only; use a real Elasticsearch for this)", err)
	}
	added := map[string]*field{}
	if err := x.flatten(root.Properties, "", added); err != nil {
		return err
	}
	maps.Copy(x.fields, added)
	if root.Dynamic != nil {
		x.dynamic = text(root.Dynamic)
	}
	if root.Meta != nil {
		x.meta = compact(root.Meta)
	}
	return nil
}

func (x *index) flatten(props map[string]*field, prefix string, to map[string]*field) error {
	for name, f := range props {
		path := prefix + name
		if f == nil || name == "" {
			return fail(http.StatusBadRequest, "mapper_parsing_exception", "Failed to parse mapping: no definition of field [%s]", path)
		}
		if f.Type == "" {
			f.Type = "object"
		}
		for _, g := range append(slices.Collect(maps.Values(f.Fields)), f) {
			if g.kind() == "" || g.Dynamic != nil || g.Analyzer != "" && g.Analyzer != "standard" {
				return fail(http.StatusBadRequest, "mapper_parsing_exception", "Failed to parse mapping: the embedded demo engine cannot map "+
					"field [%s] of type [%s] so: use a real Elasticsearch for this", path, g.Type)
			}
		}
		if old := x.fields[path]; old != nil {
			if old.Type != f.Type {
				return illegal("mapper [%s] cannot be changed from type [%s] to [%s]", path, old.Type, f.Type)
			}
			subs := maps.Clone(old.Fields)
			if subs == nil {
				subs = map[string]*field{}
			}
			maps.Copy(subs, f.Fields)
			f.Fields = subs
		}
		if err := x.flatten(f.Properties, path+".", to); err != nil {
			return err
		}
		f.Properties = nil
		for dot := strings.LastIndexByte(path, '.'); dot > 0 && to[path[:dot]] == nil && x.fields[path[:dot]] == nil; dot = strings.LastIndexByte(path[:dot], '.') {
			to[path[:dot]] = &field{Type: "object"}
		}
		to[path] = f
	}
	return nil
}

// mappings is the index's mapping as Elasticsearch shows it.
func (x *index) mappings() *field {
	root := &field{Meta: x.meta}
	if x.dynamic != "true" {
		root.Dynamic = x.dynamic
	}
	for _, path := range slices.Sorted(maps.Keys(x.fields)) { // a parent sorts before its children
		at := root
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			at = at.Properties[step]
			at.Type = ""
		}
		if at.Properties == nil {
			at.Properties = map[string]*field{}
		}
		f := *x.fields[path]
		at.Properties[steps[len(steps)-1]] = &f
	}
	return root
}

// guess is the definition that Elasticsearch gives a new field with this value, or nil where it waits for another.
func guess(v any) *field {
	switch v := v.(type) {
	case bool:
		return &field{Type: "boolean"}
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return &field{Type: "float"}
		}
		return &field{Type: "long"}
	case map[string]any:
		return &field{Type: "object"}
	case string:
		if _, _, ok := parseDate(v); ok && strings.ContainsAny(v, ":-/") {
			return &field{Type: "date"}
		}
		limit := 256
		return &field{Type: "text", Fields: map[string]*field{"keyword": {Type: "keyword", IgnoreAbove: &limit}}}
	}
	return nil
}

var dateLayouts = []struct {
	layout string
	last   func(time.Time) time.Time // the beginning of what comes after
}{
	{"2006-01-02T15:04:05.999999999Z07:00", func(t time.Time) time.Time { return t.Add(time.Millisecond) }},
	{"2006-01-02T15:04:05.999999999", func(t time.Time) time.Time { return t.Add(time.Millisecond) }},
	{"2006-01-02T15:04:05.999999999Z0700", func(t time.Time) time.Time { return t.Add(time.Millisecond) }},
	{"2006-01-02T15:04Z07:00", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }}, // one day, as in Elasticsearch
	{"2006", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
}

var millisPattern = regexp.MustCompile(`^-?\d{5,}$`)

// parseDate reads a date in strict_date_optional_time or epoch_millis, and returns its first and last millisecond.
func parseDate(s string) (first, last int64, ok bool) {
	if s == "now" {
		n := time.Now().UnixMilli()
		return n, n, true
	}
	if millisPattern.MatchString(s) {
		n, err := json.Number(s).Int64()
		return n, n, err == nil
	}
	for _, l := range dateLayouts {
		if t, err := time.Parse(l.layout, s); err == nil {
			return t.UnixMilli(), l.last(t).UnixMilli() - 1, true
		}
	}
	return 0, 0, false
}

// showDate is a date as doc values and fields give it.
func showDate(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (e *Engine) getMapping(r *request) (int, any, error) {
	list, err := e.resolve(r)
	out := map[string]any{}
	for _, x := range list {
		out[x.name] = map[string]any{"mappings": x.mappings()}
	}
	return http.StatusOK, out, err
}

func (e *Engine) putMapping(r *request) (int, any, error) {
	list, err := e.resolve(r)
	for _, x := range list {
		if err := x.putMappings(r.body); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, []byte(`{"acknowledged":true}`), err
}

func (e *Engine) getFieldMapping(r *request) (int, any, error) {
	type shown struct {
		FullName string            `json:"full_name"`
		Mapping  map[string]*field `json:"mapping"`
	}
	list, err := e.resolve(r)
	out := map[string]any{}
	for _, x := range list {
		found := map[string]shown{}
		for _, path := range x.names(strings.Split(r.PathValue("field"), ",")...) {
			found[path] = shown{path, map[string]*field{path[strings.LastIndexByte(path, '.')+1:]: x.lookup(path)}}
		}
		out[x.name] = map[string]any{"mappings": found}
	}
	if len(out) == 0 { // as Elasticsearch answers a wildcard that matches nothing
		return http.StatusNotFound, out, err
	}
	return http.StatusOK, out, err
}
