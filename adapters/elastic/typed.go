package elastic

import (
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

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
