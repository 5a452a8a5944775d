package typesense

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Forms of endpoint, in adapters.Class.Form.
const (
	formDocument = "document" // one document
	formImport   = "import"   // a document on each line
	formExport   = "export"
	formDeleted  = "deleted" // documents that matched a filter
	formSchema   = "schema"
	formCreate   = "create" // a collection's schema on its way in
	formAlias    = "alias"
	formSearch   = "search"
	formMulti    = "multi_search"
)

// Dialect is the pure half of the adapter.
type Dialect struct{}

var _ adapters.Dialect = Dialect{}

// Classify implements adapters.Dialect.
func (Dialect) Classify(r *adapters.Request) adapters.Class {
	params := queryOf(r.RawQuery)
	path := segments(r.Path)
	c := classify(r.Method, path, params)
	c.Verbatim, c.Hasty, c.Alters = true, true, alters(r.Method, path)
	if c.Kind == adapters.KindPass {
		return c
	}
	if c.Kind == adapters.KindWrite {
		name, _ := action(params)
		dirty, _ := adapters.Last(params, "dirty_values")
		dirty = strings.ToLower(dirty)
		returned, _ := adapters.Last(params, "return_id")
		c.Params = writing{
			partial: r.Method == "PATCH" || name == "update" || name == "emplace",
			creates: r.Method != "PATCH" && name == "emplace",
			drops:   strings.Contains(dirty, "drop"),
			keeps:   dirty == "reject",
			named:   returned == "true",
			splices: splices(c.Form, r.Method, params),
		}
	}
	include, _ := adapters.Last(params, "include_fields")
	c.Shown = slices.ContainsFunc(fieldList(include), rule.Our)
	return c
}

// segments cuts an escaped path into its parts. The engine knows no empty ones: doubled slashes and one at the end count for
// nothing. It compares its own words without decoding them, and reads escapes in names and ids alone.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// alters reports whether a request may change a collection or an alias.
func alters(method string, path []string) bool {
	switch {
	case method == "GET", method == "HEAD", method == "OPTIONS", len(path) == 0:
		return false
	case path[0] == "aliases":
		return true
	}
	return path[0] == "collections" && len(path) <= 2
}

// endpoints are the requests that can hold documents or schemas, on their way in or out. A "*" is a name or an id; all else passes.
var endpoints = map[string]adapters.Class{
	"POST /multi_search":    {Kind: adapters.KindSearch, Form: formMulti},
	"PUT /aliases/*":        {Kind: adapters.KindWrite, Form: formAlias},
	"GET /collections":      {Kind: adapters.KindRead, Form: formSchema},
	"POST /collections":     {Kind: adapters.KindWrite, Form: formCreate, CleanWrite: true},
	"GET /collections/*":    {Kind: adapters.KindRead, Form: formSchema},
	"DELETE /collections/*": {Kind: adapters.KindRead, Form: formSchema},
	"PATCH /collections/*":  {Kind: adapters.KindRead, Form: formSchema},

	"POST /collections/*/documents": {Kind: adapters.KindWrite, Form: formDocument, CleanWrite: true},
	// Newer engines merge what it holds into all documents that match a filter.
	"PATCH /collections/*/documents":  {Kind: adapters.KindWrite, Form: formDocument, CleanWrite: true},
	"DELETE /collections/*/documents": {Kind: adapters.KindRead, Form: formDeleted},

	"GET /collections/*/documents/search":  {Kind: adapters.KindSearch, Form: formSearch},
	"GET /collections/*/documents/export":  {Kind: adapters.KindRead, Form: formExport},
	"POST /collections/*/documents/import": {Kind: adapters.KindWrite, Form: formImport, CleanWrite: true},
	"GET /collections/*/documents/*":       {Kind: adapters.KindRead, Form: formDocument},
	"DELETE /collections/*/documents/*":    {Kind: adapters.KindRead, Form: formDocument},
	"PATCH /collections/*/documents/*":     {Kind: adapters.KindWrite, Form: formDocument, CleanWrite: true},
}

func classify(method string, path []string, params []adapters.Param) adapters.Class {
	pattern := slices.Clone(path)
	if len(path) > 1 {
		pattern[1] = "*"
	}
	c, known := endpoints[method+" /"+strings.Join(pattern, "/")]
	if !known && len(path) == 4 {
		pattern[3] = "*"
		c = endpoints[method+" /"+strings.Join(pattern, "/")]
	}
	if len(path) == 4 && c.Kind == adapters.KindWrite && c.Form == formDocument {
		c.ID = decode(path[3])
	}
	_, valid := action(params)
	if c.Kind == adapters.KindWrite && method == "POST" && len(path) > 2 && !valid { // the engine will refuse it
		return adapters.Class{}
	}
	gone := c.Form == formSchema && method != "GET" // what it named may be gone when the reply comes
	if c.Kind != adapters.KindPass && len(path) > 1 && path[0] == "collections" && !gone {
		c.Target = collectionOf(path[1], params)
	}
	return c
}

// collectionOf returns the collection, or its alias, that the engine takes for the one meant: a parameter of the query comes before
// the path.
func collectionOf(part string, params []adapters.Param) string {
	if name, ok := adapters.Last(params, "collection"); ok {
		return name
	}
	return decode(part)
}

// action returns what a write does with its documents, and false for what the engine will refuse.
func action(params []adapters.Param) (name string, known bool) {
	name, given := adapters.Last(params, "action")
	if !given {
		name = "create"
	}
	switch name {
	case "create", "upsert", "update", "emplace":
		return name, true
	}
	return name, false
}
