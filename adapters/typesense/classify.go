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
	// The engine knows no empty parts of a path: doubled slashes and one at the end count for nothing. It compares its own words without
	// decoding them, and reads escapes in names and ids alone.
	path := strings.FieldsFunc(r.Path, func(c rune) bool { return c == '/' })
	pattern := slices.Clone(path)
	if len(path) > 1 {
		pattern[1] = "*"
	}
	c, known := endpoints[r.Method+" /"+strings.Join(pattern, "/")]
	if !known && len(path) == 4 {
		pattern[3] = "*"
		c = endpoints[r.Method+" /"+strings.Join(pattern, "/")]
	}
	action, given := adapters.Last(params, "action")
	if !given {
		action = "create"
	}
	if c.Kind == adapters.KindWrite && r.Method == "POST" && len(path) > 2 && !slices.Contains(actions, action) { // the engine will refuse it
		c = adapters.Class{}
	}
	c.Verbatim, c.Hasty = true, true
	c.Alters = !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method) && len(path) > 0 &&
		(path[0] == "aliases" || path[0] == "collections" && len(path) <= 2)
	if c.Kind == adapters.KindPass {
		return c
	}
	gone := c.Form == formSchema && r.Method != "GET" // what it named may be gone when the reply comes
	if len(path) > 1 && path[0] == "collections" && !gone {
		if c.Target, given = adapters.Last(params, "collection"); !given { // which comes before the path
			c.Target = decode(path[1])
		}
	}
	if c.Kind == adapters.KindWrite {
		if len(path) == 4 && c.Form == formDocument {
			c.ID = decode(path[3])
		}
		dirty, _ := adapters.Last(params, "dirty_values")
		dirty = strings.ToLower(dirty)
		returned, _ := adapters.Last(params, "return_id")
		c.Params = writing{
			partial: r.Method == "PATCH" || action == "update" || action == "emplace",
			creates: r.Method != "PATCH" && action == "emplace",
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

// actions are what a write can do with its documents.
var actions = []string{"create", "upsert", "update", "emplace"}

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
