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

// Classify implements adapters.Dialect. The engine knows no empty parts of a path: doubled slashes and one at the end count for nothing. It
// compares its own words without decoding them, and reads escapes in names and ids alone.
func (Dialect) Classify(r *adapters.Request) adapters.Class {
	params, path := paramsOf(r.RawQuery), strings.FieldsFunc(r.Path, func(c rune) bool { return c == '/' })
	c := endpoint(r.Method, path)
	c.Verbatim, c.Hasty = true, true
	c.Alters = !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, r.Method) && len(path) > 0 &&
		(path[0] == "aliases" || path[0] == "collections" && len(path) <= 2)
	gone := c.Form == formSchema && r.Method != "GET" // what it named may be gone when the reply comes
	if c.Kind != adapters.KindPass && len(path) > 1 && path[0] == "collections" && !gone {
		var given bool
		if c.Target, given = adapters.Last(params, "collection"); !given { // which comes before the path
			c.Target = decode(path[1])
		}
	}
	include, _ := adapters.Last(params, "include_fields")
	c.NamesOurs = c.Kind != adapters.KindPass && slices.ContainsFunc(fieldList(include), rule.Our)
	if c.Kind == adapters.KindWrite {
		return classifyWrite(c, r.Method, path, params)
	}
	return c
}

// endpoint looks a request up in the endpoints.
func endpoint(method string, path []string) adapters.Class {
	var room [64]byte
	pattern := append(append(room[:0], method...), ' ')
	for i, part := range path {
		if i == 1 {
			part = "*"
		}
		if i == 3 && len(path) == 4 {
			if c, known := endpoints[string(pattern)+"/"+part]; known {
				return c
			}
			part = "*"
		}
		pattern = append(append(pattern, '/'), part...)
	}
	return endpoints[string(pattern)]
}

// classifyWrite adds what is particular to a write.
func classifyWrite(c adapters.Class, method string, path []string, params []adapters.Param) adapters.Class {
	action, given := adapters.Last(params, "action")
	if !given {
		action = "create"
	}
	if method == "POST" && len(path) > 2 && !slices.Contains(actions, action) { // the engine will refuse it
		return adapters.Class{Verbatim: true, Hasty: true}
	}
	if len(path) == 4 && c.Form == formDocument {
		c.ID = decode(path[3])
	}
	if method == "PATCH" { // is one, whatever the query names
		params = append(params, adapters.Param{Name: "action", Value: "update"})
	}
	c.Params, c.MayLeaveOut = params, plainReply(c.Form, method, params)
	return c
}

// actions are what a write can do with its documents.
var actions = []string{"create", "upsert", "update", "emplace"}

// endpoints are the requests that can hold documents or schemas, on their way in or out. A "*" is a name or an id; all else passes.
var endpoints = map[string]adapters.Class{
	"POST /multi_search":    {Kind: adapters.KindSearch, Form: formMulti},
	"PUT /aliases/*":        {Kind: adapters.KindWrite, Form: formAlias},
	"GET /collections":      {Kind: adapters.KindRead, Form: formSchema},
	"POST /collections":     {Kind: adapters.KindWrite, Form: formCreate, ReplyMayHoldOurs: true},
	"GET /collections/*":    {Kind: adapters.KindRead, Form: formSchema},
	"DELETE /collections/*": {Kind: adapters.KindRead, Form: formSchema},
	"PATCH /collections/*":  {Kind: adapters.KindRead, Form: formSchema},

	"POST /collections/*/documents": {Kind: adapters.KindWrite, Form: formDocument, ReplyMayHoldOurs: true},
	// Newer engines merge what it holds into all documents that match a filter.
	"PATCH /collections/*/documents":  {Kind: adapters.KindWrite, Form: formDocument, ReplyMayHoldOurs: true},
	"DELETE /collections/*/documents": {Kind: adapters.KindRead, Form: formDeleted},

	"GET /collections/*/documents/search":  {Kind: adapters.KindSearch, Form: formSearch},
	"GET /collections/*/documents/export":  {Kind: adapters.KindRead, Form: formExport},
	"POST /collections/*/documents/import": {Kind: adapters.KindWrite, Form: formImport, ReplyMayHoldOurs: true},
	"GET /collections/*/documents/*":       {Kind: adapters.KindRead, Form: formDocument},
	"DELETE /collections/*/documents/*":    {Kind: adapters.KindRead, Form: formDocument},
	"PATCH /collections/*/documents/*":     {Kind: adapters.KindWrite, Form: formDocument, ReplyMayHoldOurs: true},
}
