package elastic

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestPrepareAllOfOurs prepares an index for a rule with bands and clusters: what lacks is declared, with a place for each, and what is
// there otherwise than needed leaves the index as it is.
func TestPrepareAllOfOurs(t *testing.T) {
	const (
		all    = "GET /a-1/_mapping/field/neardup_sketch,neardup_bands,neardup_cluster"
		sketch = `"neardup_sketch":` + ourField
		bands  = `"neardup_bands":{"type":"long"}`
		clusts = `"neardup_cluster":{"type":"keyword"}`
		put    = "PUT /a-1/_mapping"
	)
	shown := func(fields ...string) string {
		list := ""
		for i := 0; i+1 < len(fields); i += 2 {
			if i > 0 {
				list += ","
			}
			list += `"` + fields[i] + `":{"mapping":{"` + fields[i] + `":` + fields[i+1] + `}}`
		}
		return `{"a-1":{"mappings":{` + list + `}}}`
	}
	index := func(limit, fields string) string {
		return `{"a-1":{"settings":{` + limit + `},"mappings":{"properties":{` + fields + `}}}}`
	}
	for _, c := range []struct {
		name, want string
		answers    map[string]string
		changes    []string
	}{
		{"nothing", "a-1 ready", map[string]string{all: shown(), itsSettings: index("", ""), put: "{}"},
			[]string{put + ` {"properties":{` + sketch + `,` + bands + `,` + clusts + `}}`}},
		{"the sketch, and a limit", "a-1 ready", map[string]string{all: shown("neardup_sketch", ourField),
			itsSettings:          index(`"index.mapping.total_fields.limit":"9"`, sketch),
			"PUT /a-1/_settings": "{}", put: "{}"},
			[]string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":11}`, put + ` {"properties":{` + bands + `,` + clusts + `}}`}},
		{"all", "a-1 ready", map[string]string{all: shown("neardup_sketch", ourField, "neardup_bands", `{"type":"long"}`,
			"neardup_cluster", `{"type":"keyword","ignore_above":256}`)}, nil},
		{"bands without doc values", "a-1 mapped", map[string]string{
			all:         shown("neardup_sketch", ourField, "neardup_bands", `{"type":"long","doc_values":false}`),
			itsSettings: index("", sketch+`,"neardup_bands":{"type":"long","doc_values":false}`)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &prompted{answers: c.answers, rules: rule.Rules{jobsRule(t, "a-*")}}
			list := expect.Value(s.store().Prepare(t.Context(), "a-1", false))(t)
			expect.Same(t, c.want, state(list), "")
			expect.Same(t, list[0].Why == "", list[0].Ready, "ready: %+v", list[0])
			expect.Same(t, c.changes, s.changes, "")
		})
	}
}
