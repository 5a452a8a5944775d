package elastic

import (
	"net/url"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// Forms of endpoint, as they stand in adapters.Class.Form.
const (
	formBulk    = "bulk"
	formDoc     = "doc"
	formUpdate  = "update"
	formSearch  = "search"
	formMulti   = "msearch"
	formSource  = "source"
	formMapping = "mapping"
)

// Dialect is the pure half of the adapter.
type Dialect struct {
	// OpenSearch says that the engine is OpenSearch.
	OpenSearch bool
}

var _ adapters.Dialect = Dialect{}

// Classify implements adapters.Dialect.
func (d Dialect) Classify(r *adapters.Request) adapters.Class {
	path := segments(r.Path)
	c := classify(r.Method, path)
	if c.Kind == adapters.Pass {
		c.Alters = alters(r.Method, path)
		return c
	}
	params := adapters.Params(r.RawQuery)
	c.Params = params
	for _, p := range params {
		c.Shown = c.Shown || strings.Contains(p.Value, adapters.SketchField)
	}
	return c
}

// segments cuts an escaped path and unescapes each part. Like the engine it leaves out an empty part in front of the first slash
// and any behind the last one.
func segments(path string) []string {
	parts := strings.Split(strings.TrimRight(strings.TrimPrefix(path, "/"), "/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			parts[i] = plain
		}
	}
	return parts
}

// steady are the endpoints that change no index, alias or template, whatever the method. What is not listed may do so: a look-up
// too many costs little, a change that is missed costs documents.
var steady = map[string]bool{
	"_analyze": true, "_async_search": true, "_bulk": true, "_cache": true, "_count": true, "_create": true, "_delete_by_query": true,
	"_doc": true, "_eql": true, "_explain": true, "_field_caps": true, "_flush": true, "_forcemerge": true, "_graph": true, "_knn_search": true,
	"_mget": true, "_msearch": true, "_mtermvectors": true, "_mvt": true, "_pit": true, "_query": true, "_rank_eval": true, "_refresh": true,
	"_render": true, "_search": true, "_search_shards": true, "_sql": true, "_tasks": true, "_terms_enum": true, "_termvectors": true,
	"_update": true, "_update_by_query": true, "_validate": true,
}

// alters reports whether a request that passes may change what stands behind a name.
func alters(method string, path []string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS":
		return false
	}
	if path[0] == "_all" || !strings.HasPrefix(path[0], "_") {
		path = path[1:]
	}
	return len(path) == 0 || !steady[path[0]]
}

func classify(method string, path []string) adapters.Class {
	read, write := method == "GET", method == "POST" || method == "PUT"
	target, all := "", path[0] == "_all"
	switch {
	case all: // as if nothing were named
		path = path[1:]
	case !strings.HasPrefix(path[0], "_"):
		target, path = path[0], path[1:]
	}
	if len(path) == 0 {
		if read && (target != "" || all) { // GET /index answers its mapping
			return adapters.Class{Kind: adapters.Read, Target: target, Form: formMapping}
		}
		return adapters.Class{}
	}
	named := target != ""
	switch endpoint, rest := path[0], len(path)-1; {
	case endpoint == "_bulk" && write && rest == 0:
		return adapters.Class{Kind: adapters.Write, Target: target, Form: formBulk, CleanWrite: true}
	case endpoint == "_doc" && named && (method == "POST" && rest <= 1 || method == "PUT" && rest == 1):
		return adapters.Class{Kind: adapters.Write, Target: target, Form: formDoc}
	case endpoint == "_create" && named && write && rest == 1:
		return adapters.Class{Kind: adapters.Write, Target: target, Form: formDoc}
	case endpoint == "_update" && named && method == "POST" && rest == 1:
		return adapters.Class{Kind: adapters.Write, Target: target, Form: formUpdate, CleanWrite: true}
	case endpoint == "_search" && rest == 0 && (read || method == "POST"):
		return adapters.Class{Kind: adapters.Search, Target: target, Form: formSearch}
	case endpoint == "_msearch" && rest == 0 && (read || method == "POST"):
		return adapters.Class{Kind: adapters.Search, Target: target, Form: formMulti}
	}
	return classifyRead(method, target, path)
}

// classifyRead finds the endpoints whose replies can hold documents or mappings.
func classifyRead(method, target string, path []string) adapters.Class {
	read := method == "GET"
	c := adapters.Class{Kind: adapters.Read, Target: target}
	switch endpoint, rest := path[0], len(path)-1; {
	case endpoint == "_doc" && read && rest == 1:
	case endpoint == "_source" && read && rest == 1:
		c.Form = formSource
	case endpoint == "_mget" && (read || method == "POST") && rest == 0:
	case endpoint == "_search" && rest >= 1 && (path[1] == "scroll" || path[1] == "template") && (read || method == "POST"):
	case endpoint == "_msearch" && rest == 1 && path[1] == "template" && (read || method == "POST"):
	case endpoint == "_async_search" && (read || method == "POST"):
	case endpoint == "_explain" && (read || method == "POST") && rest == 1:
	case endpoint == "_field_caps" && (read || method == "POST") && rest == 0:
	case (endpoint == "_mapping" || endpoint == "_mappings") && read:
		c.Form = formMapping
	default:
		return adapters.Class{}
	}
	return c
}
