package typesense

import (
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// content is what a reading shows of each hit.
type content int

const (
	// full is what the client asked for, and the id and our field with it.
	full content = iota
	// sketches are the id and our field alone.
	sketches
	// texts are the sketched texts with them.
	texts
	// frame is all of the reply but hits.
	frame
)

// ask is one search of a multi-search: one page of the engine's list.
type ask struct {
	content
	page, perPage int
	// facets says that the client's facets are asked for, as they are once.
	facets bool
}

// pages returns the page number and size of as few pages as hold the ranks [from, to): one page if there is one that is not too large,
// else full ones in a row.
func pages(from, to int) (first, last, perPage int) {
	for size := max(to-from, 1); size <= maxPerPage; size++ {
		if first = from/size + 1; first*size >= to {
			return first, first, size
		}
	}
	return from/maxPerPage + 1, (to + maxPerPage - 1) / maxPerPage, maxPerPage
}

// noHighlight names no field. A reading of sketches or texts has no use for highlights, which cost more than the fields themselves.
const noHighlight = "none"

// body returns the ask as an element of a multi-search.
func (q *query) ask(a ask, fields []string) ([]byte, error) {
	drop := map[string]bool{"page": true, "per_page": true, "include_fields": true, "exclude_fields": true}
	if !a.facets {
		drop["facet_by"], drop["facet_query"] = true, true
	}
	if a.content == sketches || a.content == texts {
		drop["highlight_fields"], drop["highlight_full_fields"] = true, true
	}
	body, err := adapters.Cut(q.base, func(key string) bool { return drop[key] })
	if err != nil {
		return nil, err
	}
	include, exclude := q.visible(a.content, fields)
	set := func(name string, value []byte) {
		if err == nil && len(value) > 0 {
			body, err = adapters.Set(body, name, value)
		}
	}
	set("page", strconv.AppendInt(nil, int64(a.page), 10))
	set("per_page", strconv.AppendInt(nil, int64(a.perPage), 10))
	set("include_fields", list(include))
	set("exclude_fields", list(exclude))
	if drop["highlight_fields"] {
		set("highlight_fields", adapters.AppendString(nil, noHighlight))
	}
	return body, err
}

// visible returns the fields to include and to exclude for a content.
func (q *query) visible(c content, fields []string) (include, exclude []string) {
	if c != full && c != frame {
		include = []string{"id", adapters.SketchField}
		if c == texts {
			include = append(include, fields...)
		}
		return include, nil
	}
	include = append(include, q.include...)
	for _, ours := range []string{"id", adapters.SketchField} {
		if len(q.include) > 0 && !slices.Contains(include, ours) {
			include = append(include, ours)
		}
	}
	for _, name := range q.exclude {
		if name != "id" && !adapters.Our(name) {
			exclude = append(exclude, name)
		}
	}
	return include, exclude
}

// list returns field names as a parameter's JSON string, or nil for none.
func list(fields []string) []byte {
	if len(fields) == 0 {
		return nil
	}
	return adapters.AppendString(nil, strings.Join(fields, ","))
}

// textFields returns the sketched fields of all rules that compute, each with the object that it stands in: a collection without nested
// fields takes a dotted name for a name.
func textFields(rules adapters.Rules) []string {
	var fields []string
	add := func(name string) {
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	for _, rule := range rules {
		if !rule.Compute {
			continue
		}
		for _, field := range rule.Fields {
			add(field)
			if root, _, dotted := strings.Cut(field, "."); dotted {
				add(root)
			}
		}
	}
	return fields
}
