package typesense

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
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
	if c.Kind == adapters.KindPass {
		c = adapters.Class{}
	}
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
		}
		c.Splices = splices(c.Form, r.Method, params)
	}
	include, _ := adapters.Last(params, "include_fields")
	c.Shown = slices.ContainsFunc(fieldList(include), adapters.Our)
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

func classify(method string, path []string, params []adapters.Param) adapters.Class {
	switch {
	case len(path) == 1 && path[0] == "multi_search" && method == "POST":
		return adapters.Class{Kind: adapters.KindSearch, Form: formMulti}
	case len(path) == 2 && path[0] == "aliases" && method == "PUT":
		return adapters.Class{Kind: adapters.KindWrite, Form: formAlias}
	case len(path) == 0 || path[0] != "collections":
		return adapters.Class{}
	case len(path) == 1:
		return classifyAll(method)
	}
	c := adapters.Class{Target: collectionOf(path[1], params)}
	switch {
	case len(path) == 2:
		switch method {
		case "GET":
			c.Kind, c.Form = adapters.KindRead, formSchema
		case "DELETE", "PATCH": // what it named may be gone when the reply comes
			c.Kind, c.Form, c.Target = adapters.KindRead, formSchema, ""
		}
	case path[2] != "documents":
	case len(path) == 3 && method == "DELETE":
		c.Kind, c.Form = adapters.KindRead, formDeleted
	case len(path) == 3:
		c.Kind, c.Form = writeKind(method, params), formDocument
		c.CleanWrite = true
	case len(path) == 4:
		classifyOne(&c, method, path[3], params)
	}
	return c
}

// classifyAll classifies what goes to the list of collections.
func classifyAll(method string) adapters.Class {
	switch method {
	case "GET":
		return adapters.Class{Kind: adapters.KindRead, Form: formSchema}
	case "POST":
		return adapters.Class{Kind: adapters.KindWrite, Form: formCreate, CleanWrite: true}
	}
	return adapters.Class{}
}

// collectionOf returns the collection, or its alias, that the engine takes for the one meant: a parameter of the query comes before
// the path.
func collectionOf(part string, params []adapters.Param) string {
	if name, ok := adapters.Last(params, "collection"); ok {
		return name
	}
	return decode(part)
}

// writeKind classifies what is sent to a collection's documents: one document, or with PATCH (newer engines) members to be merged
// into all that match a filter.
func writeKind(method string, params []adapters.Param) adapters.Kind {
	if _, known := action(params); method == "POST" && known || method == "PATCH" {
		return adapters.KindWrite
	}
	return adapters.KindPass
}

// classifyOne classifies what goes to one document or to one of the endpoints beside documents.
func classifyOne(c *adapters.Class, method, name string, params []adapters.Param) {
	_, known := action(params)
	switch {
	case method == "GET" && name == "search":
		c.Kind, c.Form = adapters.KindSearch, formSearch
	case method == "GET" && name == "export":
		c.Kind, c.Form = adapters.KindRead, formExport
	case method == "GET" || method == "DELETE":
		c.Kind, c.Form = adapters.KindRead, formDocument
	case method == "POST" && name == "import" && known:
		c.Kind, c.Form, c.CleanWrite = adapters.KindWrite, formImport, true
	case method == "PATCH":
		c.Kind, c.Form, c.CleanWrite, c.ID = adapters.KindWrite, formDocument, true, decode(name)
	}
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
