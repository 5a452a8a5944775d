package elastic

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
)

// Forms of endpoint, in adapters.Class.Form.
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
	formPreview  = "preview"
	formNodes    = "nodes"
	formTable    = "table"   // of ES|QL, either way up
	formRows     = "rows"    // the same with a list for each row
	formColumns  = "columns" // or for each column
	formSQL      = "sql"     // of SQL or PPL; the places of our columns can follow
)

// Dialect is the pure half of the adapter.
type Dialect struct {
	// OpenSearch says that the engine is OpenSearch.
	OpenSearch bool
	// RewriteSniffing tells clients that ask for the nodes' addresses ours in their place: Advertise, a host and port, or where that
	// is empty the address under which the client reached us.
	RewriteSniffing bool
	Advertise       string
	// Named has hits identified by their ids alone, for engines that keep no sequence numbers to search by.
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
	method := r.Method
	if d.OpenSearch && method == "HEAD" && len(path) == 1 { // of an index it tells the length of what GET answers
		method = "GET"
	}
	e, target, own := endpointOf(method, path)
	if e == nil {
		return adapters.Class{Alters: alters(r.Method, path), NewIndex: makesIndex(r.Method, path)}
	}
	c := adapters.Class{
		Kind: cmp.Or(e.kind, adapters.KindRead), Target: target, Form: e.form, Reason: e.reason, Params: adapters.Params(r.RawQuery),
	}
	if len(own) > 0 {
		c.Elsewhere, c.Alters = slices.Contains(elsewhere, own[0]), own[0] == "_reindex" || own[0] == "_data_stream" && method == "PUT"
	}
	if c.Kind == adapters.KindWrite {
		if c.ReplyMayHoldOurs = true; len(own) == 2 {
			c.ID = own[1]
		}
		c.Format = formatOf(r)
		c.MayLeaveOut = c.Format == "" && c.Form != formUpdate && plainReply(r, c.Params)
	}
	c.NamesOurs = c.Form == formMapping && rule.NamesOurs(path[len(path)-1])
	if isSQL(c.Form) { // we could not take the places out of a cursor again
		c.NamesOurs = adapters.Signed(r.Header, r.RawQuery) || strings.Contains(strings.Join(r.Header["Content-Type"], ","), "yaml")
	}
	for _, p := range c.Params {
		c.NamesOurs = c.NamesOurs || rule.NamesOurs(p.Value)
	}
	return c
}

// segments cuts an escaped path and unescapes each part. Like the engine it leaves out an empty part in front of the first slash
// and any after the last one.
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

// alters reports whether a request that passes may change what a name leads to.
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

// endpoint is a kind of request that can hold documents on its way in, or documents or mappings on its way out. What is not listed passes:
// replies about the whole cluster, and those that show a field only to who names it.
type endpoint struct {
	methods string // divided by spaces
	// rest is what follows the endpoint's own name: parts divided by slashes, "*" for any one, "**" for any number of them.
	rest string
	kind adapters.Kind // zero stands for KindRead: requests that pass are not in the table
	form string
	// reason says why a search is left alone that we don't parse.
	reason adapters.Reason
}

const (
	both       = "GET POST" // what takes a body
	kindWrite  = adapters.KindWrite
	kindSearch = adapters.KindSearch
)

// endpoints are what a request can be, by the first part of the path that is no name of an index.
var endpoints = map[string][]endpoint{
	"_bulk":   {{methods: "POST PUT", kind: kindWrite, form: formBulk}},
	"_create": {{methods: "POST PUT", rest: "*", kind: kindWrite, form: formDoc}},
	"_update": {{methods: "POST", rest: "*", kind: kindWrite, form: formUpdate}},
	"_search": {
		{methods: both, kind: kindSearch, form: formSearch}, {methods: both, rest: "template", kind: kindSearch, form: formTemplate},
		{methods: both, rest: "scroll", reason: "export"}, {methods: both, rest: "scroll/*", reason: "export"},
	},
	"_msearch": {{methods: both, kind: kindSearch, form: formMulti}, {methods: both, rest: "template", reason: "template"}},

	"_doc": {
		{methods: "POST", kind: kindWrite, form: formDoc}, {methods: "POST PUT", rest: "*", kind: kindWrite, form: formDoc},
		{methods: "GET HEAD", rest: "*"},
	},
	"_source":       {{methods: "GET HEAD", rest: "*", form: formSource}},
	"_mget":         {{methods: both}},
	"_explain":      {{methods: both, rest: "*"}},
	"_termvectors":  {{methods: both}, {methods: both, rest: "*"}},
	"_mtermvectors": {{methods: both}},
	"_mapping":      {{methods: "GET", rest: "**", form: formMapping}},
	"_mappings":     {{methods: "GET", rest: "**", form: formMapping}},
	"_index_template": {
		{methods: "GET", rest: "**", form: formMapping}, {methods: "POST", rest: "_simulate/**", form: formMapping},
		{methods: "POST", rest: "_simulate_index/*", form: formMapping},
	},
	"_data_stream":        {{methods: "GET PUT", rest: "*/_mappings", form: formMapping}},
	"_ingest":             {{methods: both, rest: "_simulate", form: formMapping}, {methods: both, rest: "*/_simulate", form: formMapping}},
	"_component_template": {{methods: "GET", rest: "**", form: formMapping}},
	"_template":           {{methods: "GET", rest: "**", form: formMapping}},
	"_field_caps":         {{methods: both, form: formFields}},
	"_field_usage_stats":  {{methods: "GET", form: formFields}},
	"_disk_usage":         {{methods: "POST", form: formFields}},
	"_validate":           {{methods: both, rest: "query", form: formFields}},
	"_update_by_query":    {{methods: "POST", form: formByQuery}},
	"_delete_by_query":    {{methods: "POST", form: formByQuery}},
	"_reindex":            {{methods: "POST", form: formByQuery}},
	"_transform":          {{methods: both, rest: "_preview", form: formPreview}, {methods: both, rest: "*/_preview", form: formPreview}},
	"_ml": {
		{methods: both, rest: "data_frame/analytics/_preview", form: formPreview},
		{methods: both, rest: "data_frame/analytics/*/_preview", form: formPreview},
	},
	"_sample":  {{methods: "GET", form: formPreview}},
	"_watcher": {{methods: "POST PUT", rest: "watch/_execute"}, {methods: "POST PUT", rest: "watch/*/_execute"}},
	"_query": {
		{methods: "POST", form: formTable, reason: "esql"}, {methods: "POST", rest: "async", form: formTable, reason: "esql"},
		{methods: "GET", rest: "async/*", form: formTable, reason: "esql"}, {methods: "POST", rest: "async/*/stop", form: formTable, reason: "esql"},
	},
	"_sql": {
		{methods: both, form: formSQL, reason: "sql"}, {methods: "GET", rest: "async/*", form: formSQL, reason: "sql"},
		{methods: "POST", rest: "close", form: formSQL},
	},

	"_application":  {{methods: both, rest: "search_application/*/_search", reason: "template"}},
	"_async_search": {{methods: both, rest: "**", reason: "async"}},
	"_plugins":      plugins,
	"_opendistro":   plugins,
	"_eql":          {{methods: both, rest: "search", reason: "eql"}, {methods: "GET", rest: "search/*", reason: "eql"}},
	"_knn_search":   {{methods: both, reason: "vector"}},
	"_rank_eval":    {{methods: both, reason: "rank_eval"}},
	"_fleet": {
		{methods: both, rest: "_fleet_search", reason: "not_understood"},
		{methods: both, rest: "_fleet_msearch", reason: "not_understood"},
	},
}

// plugins are the endpoints of OpenSearch's plugins.
var plugins = []endpoint{
	{methods: both, rest: "_asynchronous_search/**", reason: "async"},
	{methods: both, rest: "_sql", form: formSQL, reason: "sql"}, {methods: "POST", rest: "_ppl", form: formSQL, reason: "ppl"},
	{methods: "POST", rest: "_sql/close", form: formSQL},
}

// elsewhere are the endpoints whose bodies name indices of their own.
var elsewhere = []string{"_bulk", "_mget", "_msearch", "_mtermvectors"}

// endpointOf returns the endpoint that a request goes to, nil for one that is not listed. target is the name of the index in front of it, own the path
// from the endpoint's own name on.
func endpointOf(method string, path []string) (e *endpoint, target string, own []string) {
	own = path
	switch {
	case path[0] == "_all": // as if nothing were named
		own = path[1:]
	case !strings.HasPrefix(path[0], "_"):
		target, own = path[0], path[1:]
	}
	if len(own) == 0 {
		if method == "GET" && path[0] != "" { // GET /index answers its mapping too
			e = &endpoint{form: formIndex}
		}
		return e, target, own
	}
	list := endpoints[own[0]]
	for i := range list {
		e = &list[i]
		ofIndex := e.kind == kindWrite && e.form != formBulk // else it names no index to write to
		if slices.Contains(strings.Fields(e.methods), method) && follows(own[1:], e.rest) && !(ofIndex && target == "") {
			return e, target, own
		}
	}
	return nil, target, own
}

// follows reports whether the parts of a path are of the pattern.
func follows(parts []string, pattern string) bool {
	for pattern != "" {
		var first string
		switch first, pattern, _ = strings.Cut(pattern, "/"); {
		case first == "**":
			return true
		case len(parts) == 0 || first != "*" && first != parts[0]:
			return false
		}
		parts = parts[1:]
	}
	return len(parts) == 0
}

// typed are the endpoints that take a type between index and endpoint.
var typed = map[string]bool{
	"_bulk": true, "_count": true, "_delete_by_query": true, "_mapping": true, "_mappings": true, "_mget": true, "_msearch": true,
	"_mtermvectors": true, "_search": true, "_termvectors": true, "_update_by_query": true,
}

// ofDocument are the endpoints that follow a document's type and id.
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

// untyped returns a path of version 7 of the API, in which a type follows the index, as one of version 8, in which none
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
