package typesense

import (
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestQueryOf holds what the server was seen to make of queries.
func TestQueryOf(t *testing.T) {
	for query, want := range map[string][]string{
		"q=a&page=2":      {"q=a", "page=2"},
		"?q=a":            {"?q=a"},
		"&q=a":            {"=", "q=a"},
		"q=a&":            {"q=a", "="},
		"f=a&&b&page=2":   {"f=a&&b", "page=2"},
		"facet_by=k&&":    {"facet_by=k&"},
		"facet_by=k&&&":   {"facet_by=k&&"},
		"q=%61+b&p%61ge=": {"q=a b", "p%61ge="},
	} {
		params, got := paramsOf(query), []string(nil)
		for _, p := range params {
			got = append(got, p.Name+"="+p.Value)
		}
		expect.Same(t, want, got, "%s", query)
		expect.Same(t, query, adapters.RawQuery(params, func(string) bool { return true }), "put together")
	}
}
