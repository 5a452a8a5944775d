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
	// sketches are the id, our field and the deciding fields alone.
	sketches
	// texts are the sketched texts with them.
	texts
	// frame is all of the reply but hits.
	frame
	// asSent is the client's own search as it stands.
	asSent
)

// ask is one search of a multi-search: one page of the engine's list.
type ask struct {
	content
	page, perPage int
	// facets says that the client's facets are asked for, as they are once.
	facets bool
	// own says that as many neighbours are asked for as the client does.
	own bool
}

// nothing is the name of no field. It stands where no field is to be highlighted, which costs more than reading sketches or texts, or
// where a list of fields that was not empty would be.
const nothing = adapters.FieldPrefix + "none"

// fields are those that are read of each hit whatever the client asks for.
type fields struct{ texts, deciding []string }

// ask returns the ask as an element of a multi-search. Where a preset can hold more, what is to be left out is asked for empty.
func (q *query) ask(a ask, needed fields) ([]byte, error) {
	if a.content == asSent {
		return q.base, nil
	}
	set := map[string]string{"page": strconv.Itoa(a.page), "per_page": strconv.Itoa(a.perPage)}
	drop := []string{"page", "per_page"}
	if !a.facets { // nor does it count a second time among what people search for, to releases from 0.26 on
		drop = append(drop, "facet_by", "facet_query", "enable_analytics")
		set["enable_analytics"] = "false"
	}
	if a.content != full {
		drop = append(drop, "highlight_fields", "highlight_full_fields")
		set["highlight_fields"] = nothing
	}
	if a.content != full || !q.preset {
		drop = append(drop, "include_fields", "exclude_fields")
		include, exclude := q.visible(a.content, needed)
		set["include_fields"], set["exclude_fields"] = strings.Join(include, ","), strings.Join(exclude, ",")
	}
	if q.near != nil && !a.own {
		drop = append(drop, "vector_query")
		set["vector_query"] = q.near.raised()
	}
	body, err := adapters.Cut(q.base, func(key string) bool { return key == "limit" || key == "offset" || slices.Contains(drop, key) })
	for _, name := range drop {
		if err == nil && (set[name] != "" || q.preset) {
			body, err = adapters.Set(body, name, adapters.AppendString(nil, set[name]))
		}
	}
	return body, err
}

// visible returns the fields to include and to exclude for a content.
func (q *query) visible(c content, needed fields) (include, exclude []string) {
	switch c {
	case sketches:
		return append([]string{"id", adapters.SketchField}, needed.deciding...), nil
	case texts:
		return slices.Concat([]string{"id", adapters.SketchField}, needed.deciding, needed.texts), nil
	case frame:
		include = []string{"id"}
	default:
		include = append(include, q.include...)
		for _, ours := range []string{"id", adapters.SketchField} {
			if len(q.include) > 0 && !slices.Contains(include, ours) {
				include = append(include, ours)
			}
		}
	}
	for _, name := range q.exclude { // some of them are members of the reply
		if name != "id" && !adapters.Our(name) {
			exclude = append(exclude, name)
		}
	}
	if len(q.exclude) > 0 && len(exclude) == 0 { // the engine looks into nested documents where something is excluded
		exclude = []string{nothing}
	}
	return include, exclude
}

// textFields returns the sketched fields of all rules that compute, each with the object that it stands in.
func textFields(rules adapters.Rules) []string {
	var fields []string
	for _, rule := range rules {
		if rule.Compute {
			fields = append(fields, rule.Fields...)
		}
	}
	return rooted(fields)
}

// sketched returns the sketched fields of all rules.
func sketched(rules adapters.Rules) (fields []string) {
	for _, rule := range rules {
		fields = append(fields, rule.Fields...)
	}
	return fields
}
