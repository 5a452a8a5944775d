package typesense

import (
	"slices"
	"strings"
)

// fieldList takes a list of fields apart.
func fieldList(text string) []string {
	var list []string
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field != "" {
			list = append(list, field)
		}
	}
	return list
}

// sees reports whether the client sees a top-level field that is named whole or not at all, such as id.
func (q *query) sees(field string) bool {
	return (len(q.include) == 0 || slices.Contains(q.include, field)) && !slices.Contains(q.exclude, field)
}

// seesText reports whether the hits that the client asked for are known to hold all of the fields' texts.
func (q *query) seesText(fields []string) bool {
	return !q.preset && shows(q.include, q.exclude, fields)
}

// mayRead reports whether the client's key lets all of the fields' texts be seen.
func (q *query) mayRead(fields []string) bool {
	return shows(fieldList(q.fixed["include_fields"]), fieldList(q.fixed["exclude_fields"]), fields)
}

// hidesID reports whether the client's key keeps the id out of every hit.
func (q *query) hidesID() bool {
	return !shows(fieldList(q.fixed["include_fields"]), fieldList(q.fixed["exclude_fields"]), []string{"id"})
}

// shows reports whether lists of included and excluded names let all of the fields be seen whole.
func shows(include, exclude, fields []string) bool {
	for _, field := range fields {
		inside := func(name string) bool { return field == name || strings.HasPrefix(field, name+".") }
		// A dotted field is a name to a collection without nested fields and a path to one with them: both have to be included.
		root, _, _ := strings.Cut(field, ".")
		if len(include) > 0 && !(slices.Contains(include, field) && slices.Contains(include, root)) {
			return false
		}
		if slices.ContainsFunc(exclude, func(name string) bool { return inside(name) || strings.HasPrefix(name, field+".") }) {
			return false
		}
	}
	return true
}
