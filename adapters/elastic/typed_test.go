package elastic

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestUntyped(t *testing.T) {
	for typed, want := range map[string]string{
		"i/t/1": "i/_doc/1", "i/t": "i/_doc", "i/t/1/_update": "i/_update/1", "i/_doc/1/_update": "i/_update/1",
		"i/t/1/_create": "i/_create/1",
		"i/t/1/_source": "i/_source/1", "i/t/1/_explain": "i/_explain/1", "i/t/_bulk": "i/_bulk", "i/t/_search": "i/_search",
		"i/t/_search/template": "i/_search/template", "i/t/_mapping": "i/_mapping", "i/t/_count": "i/_count",
		"_all/t/_search": "_all/_search",
		"i":              "i", "i/_doc/1": "i/_doc/1", "i/_doc": "i/_doc", "i/_search": "i/_search", "i/_mapping/t": "i/_mapping",
		"i/_mapping/field": "i/_mapping/field", "_search/template": "_search/template",
		"i/_doc/_search": "i/_doc/_search", "_nodes/a/stats": "_nodes/a/stats", "i/t/1/2": "i/t/1/2", "": "",
	} {
		expect.Same(t, want, strings.Join(untyped(strings.Split(typed, "/")), "/"), "%s", typed)
	}
}
