package elastic

import (
	"regexp"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// isTable reports whether a form is that of a query language's table.
func isTable(form string) bool {
	return form == formTable || form == formRows || form == formColumns || isSQL(form)
}

// ReadBody implements adapters.Dialect: it reads the request of a query language, in JSON, CBOR or SMILE.
func (Dialect) ReadBody(c adapters.Class, body []byte) (adapters.Class, []byte) {
	if !isTable(c.Form) {
		return c, body
	}
	text, p := body, packedOf(body)
	if p != nil {
		text, _ = packedAsJSON(p, body, len(body))
	}
	members, err := jsonedit.FewMembers(text)
	if err != nil {
		return c, body
	}
	if query, ok := jsonedit.Text(jsonedit.Get(members, "query")); ok {
		c.Target = readFrom(query)
		c.NamesOurs = c.NamesOurs || rule.NamesOurs(query) // the body may have it escaped
	}
	cursor, _ := jsonedit.Text(jsonedit.Get(members, "cursor"))
	theirs, places, marked := strings.Cut(cursor, cursorMark)
	switch {
	case !isSQL(c.Form):
		switch strings.Trim(string(jsonedit.Get(members, "columnar")), `"`) { // engines take true and "true"
		case "true":
			c.Form = formColumns
		case "", "false":
			c.Form = formRows
		} // anything else they refuse
	case cursor != "":
		c.Form, c.Always = formSQL+cursorMark+places, marked
		if !marked {
			return c, body
		}
		unmarked := jsonedit.Cuts{Drop: func([]string) bool { return false }, Edit: func(path []string, quoted []byte) []byte {
			if len(path) == 1 && path[0] == "cursor" {
				return jsonedit.AppendString(nil, theirs)
			}
			return quoted
		}}
		if p != nil {
			return c, cutPacked(p, body, len(body), unmarked, nil)
		}
		return c, jsonedit.Cleaned(body, unmarked)
	}
	return c, body
}

var (
	// sources are the words of the languages in front of the names of indices, and indexNames are such names.
	sources    = regexp.MustCompile(`(?i)\b(?:from|ts|join|enrich|lookup|describe)\b|\b(?:source|index)\s*=`)
	indexNames = regexp.MustCompile("^\\s*([\"'`]*[^\\s,|()\"'`]+[\"'`]*(?:\\s*,\\s*[\"'`]*[^\\s,|()\"'`]+[\"'`]*)*)")
)

// readFrom returns the names of the indices that a query reads, in a list, and nothing if the query names several lists or may do so.
func readFrom(query string) string {
	found := sources.FindAllStringIndex(query, 2)
	if len(found) != 1 {
		return ""
	}
	list := indexNames.FindStringSubmatch(query[found[0][1]:])
	if list == nil {
		return ""
	}
	return strings.Join(strings.FieldsFunc(list[1], func(r rune) bool { return strings.ContainsRune("\"'` \t\r\n", r) }), "")
}
