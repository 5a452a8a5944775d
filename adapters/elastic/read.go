package elastic

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// A read is an endpoint whose reply can hold documents or mappings, and that is no search to us. What is not here passes: replies
// about the whole cluster, and those that show a field only to who names it.
type read struct {
	methods string // GET, POST or both
	// rest is what follows the endpoint's own name: parts divided by slashes, "*" for any one, "**" for any number of them.
	rest string
	form string
	// reason says why a search is left alone that we don't take apart.
	reason adapters.Reason
}

// both are the methods of what takes a body.
const both = "GET POST"

// reads are the reads by the first part of the path that is no name of an index.
var reads = map[string][]read{
	"_doc":          {{methods: "GET HEAD", rest: "*"}},
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
	"_component_template": {{methods: "GET", rest: "**", form: formMapping}},
	"_template":           {{methods: "GET", rest: "**", form: formMapping}},
	"_field_caps":         {{methods: both, form: formFields}},
	"_field_usage_stats":  {{methods: "GET", form: formFields}},
	"_disk_usage":         {{methods: "POST", form: formFields}},
	"_validate":           {{methods: both, rest: "query", form: formFields}},
	"_update_by_query":    {{methods: "POST", form: formByQuery}},
	"_delete_by_query":    {{methods: "POST", form: formByQuery}},
	"_reindex":            {{methods: "POST", form: formByQuery}},
	"_query": {
		{methods: "POST", form: formTable}, {methods: "POST", rest: "async", form: formTable}, {methods: "GET", rest: "async/*", form: formTable},
	},

	"_search":       {{methods: both, rest: "scroll", reason: "export"}, {methods: both, rest: "scroll/*", reason: "export"}},
	"_msearch":      {{methods: both, rest: "template", reason: "template"}},
	"_application":  {{methods: both, rest: "search_application/*/_search", reason: "template"}},
	"_async_search": {{methods: both, rest: "**", reason: "async"}},
	"_plugins":      {{methods: both, rest: "_asynchronous_search/**", reason: "async"}},
	"_opendistro":   {{methods: both, rest: "_asynchronous_search/**", reason: "async"}},
	"_eql":          {{methods: both, rest: "search", reason: "eql"}, {methods: "GET", rest: "search/*", reason: "eql"}},
	"_knn_search":   {{methods: both, reason: "vector"}},
	"_rank_eval":    {{methods: both, reason: "rank_eval"}},
	"_fleet": {
		{methods: both, rest: "_fleet_search", reason: "not_understood"},
		{methods: both, rest: "_fleet_msearch", reason: "not_understood"},
	},
}

// classifyRead finds the read that a request is, if it is one.
func classifyRead(method, target string, path []string) adapters.Class {
	for _, r := range reads[path[0]] {
		if slices.Contains(strings.Fields(r.methods), method) && follows(path[1:], r.rest) {
			return adapters.Class{
				Kind: adapters.KindRead, Target: target, Form: r.form, Reason: r.reason, Alters: path[0] == "_reindex",
				Elsewhere: path[0] == "_mget" || path[0] == "_mtermvectors" || path[0] == "_msearch",
			}
		}
	}
	return adapters.Class{}
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
