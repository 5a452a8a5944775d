package elastic

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// prompted is an engine that answers from a list, "METHOD path" to a body in which a status may stand in front, and 404 to all
// else. It keeps a log of what would change something.
type prompted struct {
	answers map[string]string
	changes []string
	rules   rule.Rules
}

func (s *prompted) store() adapters.EngineStore {
	return Dialect{}.Open(handled(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		key := r.Method + " " + r.URL.EscapedPath()
		body, err := io.ReadAll(readerOf(r))
		if r.Method != "GET" && !strings.Contains(key, "_simulate") {
			s.changes = append(s.changes, strings.TrimSpace(key+" "+string(body)))
		}
		answer, ok := s.answers[key]
		if later, changed := s.answers[key+" in the end"]; changed && len(s.changes) > 0 {
			answer = later
		}
		if !ok || err != nil {
			answer = `404 {"error":{"type":"missing","reason":"no"}}`
		}
		var status int
		if n, _ := fmt.Sscanf(answer, "%d ", &status); n == 1 {
			w.WriteHeader(status)
			_, answer, _ = strings.Cut(answer, " ")
		}
		_, _ = io.WriteString(w, answer)
	}), []*url.URL{{Scheme: "http", Host: "engine"}}, s.rules)(nil, "")
}

func readerOf(r *http.Request) io.Reader {
	if r.Body == nil {
		return strings.NewReader("")
	}
	return r.Body
}

// fieldMapping is the answer to how our field is mapped, for indices "name" (unmapped), "name!" (ready) and "name*" (marked).
func fieldMapping(indices ...string) string {
	var list []string
	for _, index := range indices {
		name := strings.TrimRight(index, "!*")
		switch index[len(name):] {
		case "":
			list = append(list, fmt.Sprintf(`%q:{"mappings":{}}`, name))
		case "!":
			list = append(list, fmt.Sprintf(`%q:{"mappings":{%q:{"mapping":{%q:%s}}}}`, name, rule.SketchField,
				rule.SketchField, ourField))
		default:
			list = append(list, fmt.Sprintf(`%q:{"mappings":{%q:{"mapping":{%q:%s}}}}`, name, rule.SketchField,
				rule.SketchField, declaration(rule.SketchField, mark)))
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

// state is an index in short: its name and rule name, and what a write to it finds.
func state(list []adapters.Index) string {
	var out []string
	for _, i := range list {
		word := i.Name
		if i.As != "" {
			word += "=" + i.As
		}
		for _, f := range []struct {
			is   bool
			mark string
		}{{i.Ready, "ready"}, {i.Mapped && !i.Ready, "mapped"}, {i.NoWrite, "nowrite"}, {i.Moves, "moves"}, {i.Absent, "absent"}} {
			if f.is {
				word += " " + f.mark
			}
		}
		out = append(out, word)
	}
	return strings.Join(out, "; ")
}

const lookUp = "/_mapping/field/" + rule.SketchField

func TestResolve(t *testing.T) {
	const managed = `{"a-000002":{"settings":{"index.lifecycle.name":"p"},"mappings":{}}}`
	for _, c := range []struct {
		name, asked, want string
		answers           map[string]string
	}{
		{"an index", "a-1", "a-1 ready", map[string]string{"GET /a-1" + lookUp: fieldMapping("a-1!")}},
		{"of another type", "a-1", "a-1 mapped",
			map[string]string{"GET /a-1" + lookUp: `{"a-1":{"mappings":{"neardup_sketch":{"mapping":{"neardup_sketch":{"type":"text` +
				`"}}}}}}`}},
		{"a pattern", "a-%2A", "a-1 ready; a-2", map[string]string{"GET /a-%2A" + lookUp: fieldMapping("a-1!", "a-2")}},
		{"an alias of one", "a", "a-1 ready", map[string]string{"GET /a" + lookUp: fieldMapping("a-1!"),
			"GET /_alias/a": `{"a-1":{"aliases":{"a":{}}}}`}},
		{"an alias of several", "a", "a-1 nowrite; a-2 ready", map[string]string{
			"GET /a" + lookUp: fieldMapping("a-1", "a-2!"),
			"GET /_alias/a":   `{"a-1":{"aliases":{"a":{}}},"a-2":{"aliases":{"a":{"is_write_index":true}}}}`,
			"GET /a-2":        `{"a-2":{"settings":{},"mappings":{}}}`}},
		{"an alias that the engine won't tell of", "a", "a-1; a-2 ready", map[string]string{"GET /a" + lookUp: fieldMapping("a-1",
			"a-2!"), "GET /_alias/a": `403 {}`}},
		{"an alias that the engine rolls over", "a", "a-000001 ready nowrite; a-000002 ready moves", map[string]string{
			"GET /a" + lookUp: fieldMapping("a-000001!", "a-000002!"),
			"GET /_alias/a":   `{"a-000001":{"aliases":{"a":{}}},"a-000002":{"aliases":{"a":{"is_write_index":true}}}}`,
			"GET /a-000002":   managed}},
		{"a data stream", "l-a", ".ds-l-a-2026.01.01-000001=l-a nowrite; .ds-l-a-2026.01.01-000002=l-a ready moves", map[string]string{
			"GET /l-a" + lookUp: fieldMapping(".ds-l-a-2026.01.01-000001", ".ds-l-a-2026.01.01-000002!")}},
		{"a data stream by a template", "l-a", ".ds-l-a-2026.01.01-000001=l-a nowrite; .ds-l-a-2026.01.01-1000000=l-a ready; " +
			".ds-l-a-2026.01.01-999999=l-a ready nowrite", map[string]string{
			"GET /l-a" + lookUp: fieldMapping(".ds-l-a-2026.01.01-000001", ".ds-l-a-2026.01.01-1000000*", ".ds-l-a-2026.01.01-999999*")}},
		{"the alias of data streams", "all", ".ds-l-a-2026.01.01-000001=l-a ready nowrite; .ds-l-b-2026.01.01-000003=l-b ready",
			map[string]string{
				"GET /all" + lookUp: fieldMapping(".ds-l-a-2026.01.01-000001*", ".ds-l-b-2026.01.01-000003*"),
				"GET /_alias/all":   `{"l-a":{"aliases":{"all":{}}},"l-b":{"aliases":{"all":{"is_write_index":true}}}}`}},
		{"a backing index", ".ds-l-a-2026.01.01-000001", ".ds-l-a-2026.01.01-000001=l-a ready", map[string]string{
			"GET /.ds-l-a-2026.01.01-000001" + lookUp: fieldMapping(".ds-l-a-2026.01.01-000001!")}},
		{"date math", "%3Ca-%7Bnow%2Fd%7D%3E", "a-2026.01.01 absent", map[string]string{
			"GET /%3Ca-%7Bnow%2Fd%7D%3E" + lookUp: `404 {"error":{"type":"index_not_found_exception","reason":"no such index",` +
				`"index":"a-2026.01.01"}}`}},
		{"date math finer than a day", "%3Ca-%7Bnow%2Fh%7D%3E", "a-2026.01.01 ready moves",
			map[string]string{"GET /%3Ca-%7Bnow%2Fh%7D%3E" + lookUp: fieldMapping("a-2026.01.01!")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := expect.Value(url.PathUnescape(c.asked))(t)
			list := expect.Value((&prompted{answers: c.answers}).store().Resolve(t.Context(), asked))(t)
			expect.Same(t, c.want, state(list), "the indices")
		})
	}
}

// TestDateMathAtMidnight: what is enriched for today must not arrive tomorrow.
func TestDateMathAtMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins at midnight
		s := &prompted{answers: map[string]string{"GET /%3Ca-%7Bnow%2Fd%7D%3E" + lookUp: fieldMapping("a-2000.01.01!")}}
		for _, c := range []struct {
			wait time.Duration
			want string
		}{{0, "a-2000.01.01 ready moves"}, {10 * time.Second, "a-2000.01.01 ready"}, {23*time.Hour + 58*time.Minute,
			"a-2000.01.01 ready"}, {time.Minute, "a-2000.01.01 ready moves"}} {
			time.Sleep(c.wait)
			expect.Same(t, c.want, state(expect.Value(s.store().Resolve(t.Context(), "<a-{now/d}>"))(t)), "at %v", time.Now())
		}
	})
}

func TestPrepare(t *testing.T) {
	for _, c := range preparations {
		t.Run(c.name, func(t *testing.T) {
			s := &prompted{answers: c.answers}
			expect.Same(t, c.want, state(expect.Value(s.store().Prepare(t.Context(), "a-1", c.create))(t)), "the indices")
			expect.Same(t, c.changes, s.changes, "the requests that change")
		})
	}
}

// preparations are what a writer finds of an index and does about it.
var preparations = []struct {
	name, want string
	create     bool
	answers    map[string]string
	changes    []string
}{
	{"a limit that was set", "a-1 ready", false, map[string]string{
		lookedUp: unmappedIndex, itsSettings: `{"a-1":{"settings":{"index.mapping.total_fields.limit":"7"},` +
			`"mappings":{"properties":{"a":{}}}}}`,
		"PUT /a-1/_settings": "{}", "PUT /a-1/_mapping": "{}",
	}, []string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":8}`, putField}},
	{"many fields", "a-1 ready", false, map[string]string{
		lookedUp: unmappedIndex,
		itsSettings: `{"a-1":{"settings":{},"mappings":{"properties":{` + strings.TrimSuffix(manyProperties(500),
			",") + `}}}}`, "PUT /a-1/_settings": "{}", "PUT /a-1/_mapping": "{}",
	}, []string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":1001}`, putField}},
	{"a limit that may not be raised", "a-1", false, map[string]string{
		lookedUp: unmappedIndex, itsSettings: `{"a-1":{"settings":{"index.mapping.total_fields.limit":"7"},"mappings":{}}}`,
		"PUT /a-1/_settings": "403 {}",
	}, []string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":8}`}},
	{"a mapping that may not be changed", "a-1", false, map[string]string{
		lookedUp: unmappedIndex, itsSettings: `{"a-1":{"settings":{"index.mapping.total_fields.limit":"7"},"mappings":{}}}`,
		"PUT /a-1/_settings": "{}", "PUT /a-1/_mapping": "403 {}",
		itsSettings + " in the end": `{"a-1":{"settings":{"index.mapping.total_fields.limit":"8"},"mappings":{}}}`,
	}, []string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":8}`, putField,
		`PUT /a-1/_settings {"index.mapping.total_fields.limit":"7"}`}},
	{"a mapping that may not be changed, and a limit that somebody set meanwhile", "a-1", false, map[string]string{
		lookedUp: unmappedIndex, itsSettings: `{"a-1":{"settings":{"index.mapping.total_fields.limit":"7"},"mappings":{}}}`,
		"PUT /a-1/_settings": "{}", "PUT /a-1/_mapping": "403 {}",
		itsSettings + " in the end": `{"a-1":{"settings":{"index.mapping.total_fields.limit":"90"},"mappings":{}}}`,
	}, []string{`PUT /a-1/_settings {"index.mapping.total_fields.limit":8}`, putField}},
	{"to be made", "a-1 ready", true, map[string]string{
		mayCreate: `{"defaults":{"action.auto_create_index":"true"}}`, itsTemplate: `{"index_templates":[]}`, "PUT /a-1": "{}",
		itsSettings: `{"a-1":{"settings":{},"mappings":{}}}`, "PUT /a-1/_mapping": "{}",
	}, []string{"PUT /a-1", putField}},
	{"not to be made by a pattern", "", true, map[string]string{
		mayCreate: `{"persistent":{"action":{"auto_create_index":"-a-*,+*"}},"defaults":{}}`, itsTemplate: `{"index_templates":[]}`,
	}, nil},
	{"nothing known of templates", "", true, map[string]string{mayCreate: `{"defaults":{"action.auto_create_index":"true"}}`,
		itsTemplate: `403 {}`}, nil},
	{"the template declares it", "a-1 ready absent", true, map[string]string{
		itsTemplate: `{"index_templates":[{"name":"t","index_template":{"index_patterns":["a-*"],"data_stream":{}}}]}`,
		"POST /_index_template/_simulate_index/a-1": `{"template":{"mappings":{"properties":{"neardup_sketch":` + ourField + `}}}}`,
	}, nil},
	{"a template without a pipeline", "a-1 ready", true, map[string]string{
		mayCreate:   `{"defaults":{"action.auto_create_index":"true"}}`,
		itsTemplate: `{"index_templates":[{"name":"t","index_template":{"index_patterns":["a-*"]}}]}`,
		"POST /_index_template/_simulate_index/a-1": `{"template":{"settings":{"index":{"default_pipeline":"_none"}}}}`,
		"PUT /a-1": "{}", itsSettings: `{"a-1":{"settings":{},"mappings":{}}}`, "PUT /a-1/_mapping": "{}",
	}, []string{"PUT /a-1", putField}},
	{"a template with a pipeline", "", true, map[string]string{
		mayCreate:   `{"defaults":{"action.auto_create_index":"true"}}`,
		itsTemplate: `{"index_templates":[{"name":"t","index_template":{"index_patterns":["a-*"],"_meta":{"managed":"by us"}}}]}`,
		"POST /_index_template/_simulate_index/a-1": `{"template":{"settings":{"index":{"default_pipeline":"p"}}}}`,
	}, nil},
	{"a legacy template with a pipeline, and another with a limit", "", true, map[string]string{
		mayCreate: `{"defaults":{"action.auto_create_index":"true"}}`, itsTemplate: `{"index_templates":[]}`,
		"GET /_template": `{"t":{"index_patterns":["a-*"],"order":1,"settings":{"index":{"default_pipeline":"p"}}},` +
			`"u":{"index_patterns":["*"],"settings":{"index.mapping.total_fields.limit":"5"}}}`,
	}, nil},
	{"a data stream", "", true, map[string]string{
		itsTemplate: `{"index_templates":[{"name":"t","index_template":{"index_patterns":["a-*"],"data_stream":{}}},{"name":"u",` +
			`"index_template":{"index_patterns":["*"],"priority":-1,"allow_auto_create":true}}]}`,
		"POST /_index_template/_simulate_index/a-1": `{"template":{}}`,
	}, nil},
}

// TestTemplatesMarkTheNewestIndex declares nothing in a template that declares our field already, and marks the index whose successor is made
// from it. Where the templates can't be read it says so.
func TestTemplatesMarkTheNewestIndex(t *testing.T) {
	s := &prompted{rules: exchangeRules(t), answers: map[string]string{
		itsTemplate: `{"index_templates":[{"name":"t","index_template":{"index_patterns":["news-*"]}}]}`, "GET /_template": `{}`,
		"POST /_index_template/_simulate/t": `{"template":{"mappings":{"properties":{"neardup_sketch":` + declaration(rule.SketchField, mark) + `}}}}`,
		"GET " + lookUp:                     fieldMapping("news-000001!", "news-000002*", "news-a!", "other-000001!"), "PUT /news-000001/_mapping": `{}`,
	}}
	list, err := s.store().(*Store).Templates(t.Context(), s.rules, false)
	if err != nil || len(list) != 1 || !list[0].Ready || list[0].Added {
		t.Errorf("%+v %v", list, err)
	}
	expect.Same(t, []string{`PUT /news-000001/_mapping {"properties":{"neardup_sketch":` + declaration(rule.SketchField, mark) + `}}`}, s.changes, "")
	for _, templates := range []string{itsTemplate, "GET /_template"} {
		s.answers[templates] = `403 {}`
		if list, err := s.store().(*Store).Templates(t.Context(), s.rules, false); err == nil {
			t.Errorf("without %s: %+v", templates, list)
		}
		s.answers[templates] = `{}`
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"f%d":{"type":"keyword"},`, i)
	}
	return b.String()
}

// ourField is how the sketch is declared.
const ourField = `{"type":"binary","doc_values":true}`

const (
	putField    = `PUT /a-1/_mapping {"properties":{"neardup_sketch":` + ourField + `}}`
	mayCreate   = "GET /_cluster/settings"
	itsTemplate = "GET /_index_template"
	lookedUp    = "GET /a-1" + lookUp
	itsSettings = "GET /a-1"
)

var unmappedIndex = fieldMapping("a-1")

func TestMeet(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a*", "ab", true}, {"a*", "*b", true}, {"a*c", "ab*", true}, {"a*", "b*", false},
		{"*", "", true}, {"", "a", false},
		{"logs-*-x", "logs-a-*", true}, {"logs-*-x", "logs-a", false}, {"**", "*", true},
	} {
		expect.Same(t, [2]bool{c.want, c.want}, [2]bool{meet(c.a, c.b), meet(c.b, c.a)}, "%q and %q", c.a, c.b)
	}
}
