package elastic

import (
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// Forms of endpoint, as they stand in adapters.Class.Form.
const (
	formBulk     = "bulk"
	formDoc      = "doc"
	formUpdate   = "update"
	formSearch   = "search"
	formMulti    = "msearch"
	formTemplate = "template"
	formSource   = "source"
	formMapping  = "mapping"
	formIndex    = "index"
	formFields   = "fields"
	formByQuery  = "by_query"
	formNodes    = "nodes"
	formTable    = "table"
)

// Dialect is the pure half of the adapter.
type Dialect struct {
	// OpenSearch says that the engine is OpenSearch.
	OpenSearch bool
	// RewriteSniffing tells clients that ask for the nodes' addresses ours in their place: Advertise, a host and port, or where that
	// is empty the address under which the client reached us.
	RewriteSniffing bool
	Advertise       string
	// Named has hits told by their ids alone, for engines that keep no sequence numbers to search by.
	Named bool
}

var _ adapters.Dialect = Dialect{}

// RewritingNodes returns the dialect that tells sniffing clients our address.
func (d Dialect) RewritingNodes(advertise string) adapters.Dialect {
	d.RewriteSniffing, d.Advertise = true, advertise
	return d
}

// Classify implements adapters.Dialect.
func (d Dialect) Classify(r *adapters.Request) adapters.Class {
	path := segments(r.Path)
	if d.RewriteSniffing && asksForNodes(r.Method, path) {
		return d.classifyNodes(r)
	}
	if speaksSeven(r) {
		path = untyped(path)
	}
	c := classify(r.Method, path)
	if d.OpenSearch && r.Method == "HEAD" && len(path) == 1 { // of an index it tells the length of what GET answers
		c = classify("GET", path)
	}
	if c.Kind == adapters.KindPass {
		c.Alters, c.Makes = alters(r.Method, path), makesIndex(r.Method, path)
		return c
	}
	params := adapters.Params(r.RawQuery)
	c.Params = params
	if c.Kind == adapters.KindWrite {
		c.Format = formatOf(r)
	}
	c.Splices = c.Format == "" && (c.Form == formBulk || c.Form == formDoc) && splices(r, params)
	c.Shown = c.Form == formMapping && adapters.NamesOurs(path[len(path)-1])
	for _, p := range params {
		c.Shown = c.Shown || adapters.NamesOurs(p.Value)
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
	"_analyze": true, "_async_search": true, "_bulk": true, "_cache": true, "_count": true, "_create": true,
	"_delete_by_query": true, "_doc": true, "_eql": true, "_explain": true, "_field_caps": true, "_flush": true, "_forcemerge": true,
	"_graph": true, "_knn_search": true, "_mget": true, "_msearch": true, "_mtermvectors": true, "_mvt": true, "_pit": true,
	"_query": true, "_rank_eval": true, "_refresh": true, "_render": true, "_search": true, "_search_shards": true, "_sql": true,
	"_tasks": true, "_terms_enum": true, "_termvectors": true, "_update": true, "_update_by_query": true, "_validate": true,
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
		if read && (target != "" || all) { // GET /index answers its mapping too
			return adapters.Class{Kind: adapters.KindRead, Target: target, Form: formIndex}
		}
		return adapters.Class{}
	}
	named, id := target != "", ""
	if len(path) == 2 {
		id = path[1]
	}
	switch endpoint, rest := path[0], len(path)-1; {
	case endpoint == "_bulk" && write && rest == 0:
		return adapters.Class{Kind: adapters.KindWrite, Target: target, Form: formBulk, CleanWrite: true, Elsewhere: true}
	case endpoint == "_doc" && named && (method == "POST" && rest <= 1 || method == "PUT" && rest == 1):
		return adapters.Class{Kind: adapters.KindWrite, Target: target, ID: id, Form: formDoc, CleanWrite: true}
	case endpoint == "_create" && named && write && rest == 1:
		return adapters.Class{Kind: adapters.KindWrite, Target: target, ID: id, Form: formDoc, CleanWrite: true}
	case endpoint == "_update" && named && method == "POST" && rest == 1:
		return adapters.Class{Kind: adapters.KindWrite, Target: target, ID: id, Form: formUpdate, CleanWrite: true}
	case endpoint == "_search" && rest == 0 && (read || method == "POST"):
		return adapters.Class{Kind: adapters.KindSearch, Target: target, Form: formSearch}
	case endpoint == "_search" && rest == 1 && path[1] == "template" && (read || method == "POST"):
		return adapters.Class{Kind: adapters.KindSearch, Target: target, Form: formTemplate}
	case endpoint == "_msearch" && rest == 0 && (read || method == "POST"):
		return adapters.Class{Kind: adapters.KindSearch, Target: target, Form: formMulti, Elsewhere: true}
	}
	return classifyRead(method, target, path)
}

// typed are the endpoints that take a type between index and endpoint.
var typed = map[string]bool{
	"_bulk": true, "_count": true, "_delete_by_query": true, "_mapping": true, "_mappings": true, "_mget": true, "_msearch": true,
	"_mtermvectors": true, "_search": true, "_termvectors": true, "_update_by_query": true,
}

// ofDocument are the endpoints that stand behind a document's type and id.
var ofDocument = map[string]bool{"_create": true, "_explain": true, "_source": true, "_termvectors": true, "_update": true}

// speaksSeven reports whether a client speaks version 7 of the API to an engine of version 8.
func speaksSeven(r *adapters.Request) bool {
	for _, key := range []string{"Accept", "Content-Type"} {
		if slices.ContainsFunc(r.Header[key], func(value string) bool { return strings.Contains(value, "compatible-with=7") }) {
			return true
		}
	}
	return false
}

// untyped returns a path of version 7 of the API, in which a type stands behind the index, as one of version 8, in which none
// does.
func untyped(path []string) []string {
	if len(path) == 3 && strings.HasPrefix(path[1], "_mapping") && path[2] != "field" {
		return path[:2]
	}
	if len(path) < 2 || strings.HasPrefix(path[0], "_") && path[0] != "_all" ||
		strings.HasPrefix(path[1], "_") && path[1] != "_doc" {
		return path
	}
	index, own := path[0], path[1] == "_doc"
	switch rest := path[2:]; {
	case len(rest) == 2 && ofDocument[rest[1]]:
		return []string{index, rest[1], rest[0]}
	case own:
	case len(rest) > 0 && typed[rest[0]]:
		return append([]string{index}, rest...)
	case len(rest) < 2:
		return append([]string{index, "_doc"}, rest...)
	}
	return path
}
