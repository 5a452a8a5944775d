package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// pair is a sequence that is sent directly and through a sidecar, each to an index of its own.
type pair struct {
	direct, through api
	one, two        string // what INDEX stands for
}

// newPair returns a pair whose indices, and whatever else begins with their names, are dropped when the test ends.
func newPair(t *testing.T, e *engines.Engine, base, name string) pair {
	t.Helper()
	p := pair{api{e, e.URL}, api{e, base}, name + "-direct", name + "-ourown"}
	p.drop(t, "INDEX")
	return p
}

// drop removes an index of the pair when the test ends.
func (p pair) drop(t *testing.T, name string) {
	t.Helper()
	p.direct.drop(t, strings.ReplaceAll(name, "INDEX", p.one))
	p.direct.drop(t, strings.ReplaceAll(name, "INDEX", p.two))
}

// set sends a request to the engine for both sides.
func (p pair) set(t *testing.T, step string) {
	t.Helper()
	for _, index := range []string{p.one, p.two} {
		if r := p.direct.send(t, step, index); r.status >= 300 {
			t.Fatalf("%s: %d %s", step, r.status, r.body)
		}
	}
}

// later deletes something from the engine for both sides when the test ends.
func (p pair) later(t *testing.T, path string) {
	t.Helper()
	t.Cleanup(func() {
		for _, index := range []string{p.one, p.two} {
			p.direct.clear(t, strings.ReplaceAll(path, "INDEX", index))
		}
	})
}

// send sends the steps to both sides and fails the test where the answers differ. It returns the last status.
func (p pair) send(t *testing.T, steps ...string) (status int) {
	t.Helper()
	for _, step := range steps {
		a, b := p.direct.send(t, step, p.one), p.through.send(t, step, p.two)
		same(t, a.status, b.status, "%.300s: status, with %.300s, directly %.300s", step, b.body, a.body)
		same(t, plain(a, p.one), plain(b, p.two), "%.300s (-directly +through)", step)
		status = b.status
	}
	return status
}

// same holds what is stored behind a name on both sides against each other; the documents named lack a sketch.
func (p pair) same(t *testing.T, name string, lacks ...string) {
	t.Helper()
	at := func(index string) map[string]hit {
		return kept(t, p.direct, strings.ReplaceAll(name, "INDEX", index))
	}
	sameStored(t, ruleOfTests(t), at(p.one), at(p.two), lacks)
}

// mapping returns the root properties of an index, sorted, less ours, and whether ours is declared.
func (a api) mapping(t *testing.T, index string) (fields []string, ours bool) {
	t.Helper()
	var all map[string]struct {
		Mappings struct{ Properties map[string]json.RawMessage }
	}
	decode(t, call(t, a.e, "GET", a.e.URL+"/"+index+"/_mapping", "").want(t, 200).body, &all)
	for _, one := range all {
		for field := range one.Mappings.Properties {
			if rule.Our(field) {
				ours = true
			} else {
				fields = append(fields, field)
			}
		}
	}
	slices.Sort(fields)
	return fields, ours
}

// TestFieldLimit grows mappings field by field over their limit: what is refused through the sidecar is what is refused without
// it, and our field takes no place.
func TestFieldLimit(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		base := serve(t, e, setup{match: "wlim-*"})
		for _, c := range []struct {
			name, settings, mapping string
			fields                  int // brought one by one
			kind                    string
		}{
			{"explicit", `"index.mapping.total_fields.limit":8`, `"properties":{"title":{"type":"text"}}`, 10, ""},
			{"no place left", `"index.mapping.total_fields.limit":2`, `"properties":{"title":{"type":"text"},"o":{"properties":{}}}`, 2, ""},
			{"one place left", `"index.mapping.total_fields.limit":4`, `"properties":{"title":{"type":"text","fields":{"k":{"type":"keyword"}}},"a":{"type":"alias","path":"title"}}`, 3, ""},
			{"nothing mapped", `"index.mapping.total_fields.limit":3`, ``, 5, ""},
			{"ignored beyond", `"index.mapping.total_fields.limit":4,"index.mapping.total_fields.ignore_dynamic_beyond_limit":true`, `"properties":{"title":{"type":"text"}}`, 6, engines.Elasticsearch},
			{"the default, nearly full", ``, `"properties":{` + manyFields(996) + `}`, 8, ""},
			{"depth", `"index.mapping.depth.limit":1`, ``, 2, ""},
			{"names", `"index.mapping.field_name_length.limit":5`, ``, 2, engines.Elasticsearch},
		} {
			if c.kind != "" && c.kind != e.Kind {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				p := newPair(t, e, base, "wlim-"+strings.ReplaceAll(strings.ReplaceAll(c.name, " ", ""), ",", ""))
				p.set(t, "PUT /INDEX | {\"settings\":{"+c.settings+"},\"mappings\":{"+c.mapping+"}}")
				for i := range c.fields {
					p.send(t, fmt.Sprintf("PUT /INDEX/_doc/%d | {\"n%d\":%d}", i, i, i))
				}
				p.send(t, "PUT /INDEX/_doc/t | {\"title\":\"a b c\"}", "POST /INDEX/_bulk | {\"index\":{}}¶{\"o\":{\"p\":{\"q\":1}}}¶{\"index\":{}}¶{\"z1\":1,\"z2\":2}¶")
				one, _ := p.direct.mapping(t, p.one)
				two, ours := p.direct.mapping(t, p.two)
				same(t, one, two, "")
				if ours == (c.name == "names") {
					t.Errorf("our field is declared: %v", ours)
				}
			})
		}
	})
}

func manyFields(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"f%d":{"type":"keyword"}`, i))
	}
	return strings.Join(list, ",")
}

// TestAutoCreation has first writes make indices in whatever way templates and mappings say, or not make them.
func TestAutoCreation(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		base := serve(t, e, setup{match: "wac-*"})
		for _, c := range []struct {
			name, template, legacy string
			enriched               bool
			kind                   string
		}{
			{"plain", "", "", true, ""},
			{"strict", `"template":{"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"},"body":{"type":"text"}}}}`, "", true, ""},
			{"unmapped", `"template":{"mappings":{"dynamic":false}}`, "", true, ""},
			{"without source", `"template":{"mappings":{"_source":{"excludes":["n"]}}}`, "", true, ""},
			{"legacy strict", "", `"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"},"body":{"type":"text"}}}`, true, ""},
			{"not by itself", `"allow_auto_create":false`, "", false, engines.Elasticsearch},
			{"of another type", `"template":{"mappings":{"properties":{"neardup_sketch":{"type":"integer"}}}}`, "", false, ""},
			{"declared", `"template":{"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"},"body":{"type":"text"},"neardup_sketch":{"type":"binary","doc_values":true}}}}`, "", true, ""},
		} {
			if c.kind != "" && c.kind != e.Kind {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				p := newPair(t, e, base, "wac-"+strings.ReplaceAll(c.name, " ", ""))
				for path, body := range map[string]string{"/_index_template/INDEX": c.template, "/_template/INDEX": c.legacy} {
					if body != "" {
						p.set(t, "PUT "+path+" | {\"index_patterns\":[\"INDEX\"],"+body+"}")
						p.later(t, path)
					}
				}
				status := p.send(t, "POST /_bulk | {\"index\":{\"_index\":\"INDEX\",\"_id\":\"1\"}}¶{"+wordsA+"}¶")
				p.send(t, "PUT /INDEX/_doc/2 | {"+wordsB+"}", "PUT /INDEX/_doc/3 | {\"neardup_sketch_2\":1}")
				if c.name == "not by itself" {
					if s := p.send(t, "PUT /INDEX/_doc/2 | {"+wordsB+"}"); s != 404 || status != 200 {
						t.Fatalf("%d %d", s, status)
					}
					return
				}
				lacks := []string{"3"}
				if !c.enriched {
					lacks = []string{"1", "2", "3"}
				}
				p.same(t, "INDEX", lacks...)
			})
		}
	})
}

// TestNoAutoCreation has the cluster's settings refuse what a first write would make: it is refused through the sidecar as well.
func TestNoAutoCreation(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	base := serve(t, e, setup{match: "wnac-*"})
	settings := e.URL + "/_cluster/settings"
	call(t, e, "PUT", settings, `{"persistent":{"action.auto_create_index":"-wnac-no*,+*"}}`).want(t, 200)
	defer call(t, e, "PUT", settings, `{"persistent":{"action.auto_create_index":null}}`)
	no, yes := newPair(t, e, base, "wnac-no"), newPair(t, e, base, "wnac-yes")
	if status := no.send(t, "PUT /INDEX/_doc/1 | {"+wordsA+"}", "POST /INDEX/_bulk | {\"index\":{}}¶{"+wordsA+"}¶", "PUT /INDEX/_doc/1 | {"+wordsA+"}"); status != 404 {
		t.Errorf("status %d", status)
	}
	yes.send(t, "PUT /INDEX/_doc/1 | {"+wordsA+"}")
	yes.same(t, "INDEX")
}

// TestAliases writes through aliases of several kinds.
func TestAliases(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	base := serve(t, e, setup{match: "wali-*"})
	p := newPair(t, e, base, "wali-x")
	for _, name := range []string{"INDEX-2", "INDEX-3", "other-INDEX"} {
		p.drop(t, name)
	}
	p.set(t, "PUT /INDEX | {\"aliases\":{\"one-INDEX\":{},\"some-INDEX\":{\"filter\":{\"term\":{\"n\":1}}}}}")
	p.set(t, "PUT /other-INDEX | {\"mappings\":{\"dynamic\":\"strict\",\"properties\":{\"title\":{\"type\":\"text\"}}},\"aliases\":{\"many-INDEX\":{},\"two-INDEX\":{}}}")
	p.set(t, "PUT /INDEX-2 | {\"aliases\":{\"many-INDEX\":{\"is_write_index\":true},\"two-INDEX\":{}}}")
	p.set(t, "PUT /INDEX-3 | {\"aliases\":{\"away-INDEX\":{}}}")
	p.set(t, "POST /_aliases | {\"actions\":[{\"add\":{\"index\":\"other-INDEX\",\"alias\":\"away-INDEX\",\"is_write_index\":true}}]}")
	p.send(t, "PUT /one-INDEX/_doc/1 | {"+wordsA+"}", "PUT /some-INDEX/_doc/2 | {"+wordsB+"}", "POST /one-INDEX/_update/2 | {\"doc\":{\"title\":\"a part\"}}",
		"PUT /many-INDEX/_doc/1 | {"+wordsA+"}", "POST /_bulk?require_alias=true | {\"index\":{\"_index\":\"many-INDEX\",\"_id\":\"2\"}}¶{"+wordsA+"}¶{\"update\":{\"_index\":\"many-INDEX\",\"_id\":\"2\"}}¶{\"doc\":{\"body\":\"a part\"}}¶",
		"PUT /two-INDEX/_doc/1 | {"+wordsA+"}", "PUT /away-INDEX/_doc/1 | {\"title\":\"a b\"}")
	p.same(t, "INDEX", "2")
	p.same(t, "INDEX-2", "2")
	p.same(t, "other-INDEX", "1")
	p.set(t, "POST /_aliases | {\"actions\":[{\"remove\":{\"index\":\"INDEX-2\",\"alias\":\"many-INDEX\"}},{\"add\":{\"index\":\"INDEX-3\",\"alias\":\"many-INDEX\",\"is_write_index\":true}}]}")
	time.Sleep(2100 * time.Millisecond) // past us: it is believed for two seconds
	p.send(t, "PUT /many-INDEX/_doc/1 | {"+wordsA+"}")
	p.same(t, "INDEX-3")
}

// TestDateMath writes to names that the engine evaluates.
func TestDateMath(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	if now := time.Now().UTC(); now.Add(2*time.Minute).Day() != now.Add(-10*time.Second).Day() {
		t.Skip("it is about midnight")
	}
	base := serve(t, e, setup{match: "wdm-*"})
	p := newPair(t, e, base, "wdm-x")
	day := time.Now().UTC().Format("2006.01.02")
	for _, name := range []string{"a-INDEX-", "b-INDEX-", "INDEX-c-", "INDEX-d-", "INDEX-e-", "INDEX-f-"} {
		p.drop(t, name+day)
	}
	name := func(prefix string) string { return "%3C" + prefix + "-%7Bnow%2Fd%7D%3E" }
	p.set(t, "PUT /INDEX-e-"+day+" |")
	p.send(t, "PUT /"+name("INDEX-c")+"/_doc/1 | {"+wordsA+"}", "PUT /"+name("INDEX-c")+"/_doc/2 | {"+wordsB+"}", "POST /"+name("INDEX-c")+"/_update/2 | {\"doc\":{\"title\":\"a part\"}}",
		"POST /_bulk | {\"index\":{\"_index\":\"<INDEX-d-{now/d}>\",\"_id\":\"1\"}}¶{"+wordsA+"}¶{\"create\":{\"_index\":\"<INDEX-d-{now/d}>\",\"_id\":\"2\"}}¶{"+wordsA+"}¶",
		"PUT /"+name("INDEX-e")+"/_doc/1 | {"+wordsA+"}", "PUT /"+name("INDEX-f")+" | {\"mappings\":{\"dynamic\":\"strict\",\"properties\":{\"title\":{\"type\":\"text\"}}}}",
		"PUT /"+name("INDEX-f")+"/_doc/1 | {\"title\":\"a b\"}", "PUT /"+name("a-INDEX")+"/_doc/1 | {"+wordsA+"}")
	p.same(t, "INDEX-c-"+day, "2")
	p.same(t, "INDEX-d-"+day)
	p.same(t, "INDEX-e-"+day)
	p.same(t, "INDEX-f-"+day)
	p.same(t, "a-INDEX-"+day, "1")
}

// TestIndicesThatRefuse writes to indices that take nothing, or take it in their own way.
func TestIndicesThatRefuse(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	base := serve(t, e, setup{match: "wref-*"})
	for i, c := range []struct{ before, settings, after string }{
		{"", `"index.blocks.write":true`, `"index.blocks.write":false`}, {"", `"index.blocks.read_only":true`, `"index.blocks.read_only":false`},
		{"", `"index.blocks.metadata":true`, `"index.blocks.metadata":false`}, {"", `"index.blocks.read_only_allow_delete":true`, `"index.blocks.read_only_allow_delete":null`},
		{`"settings":{"index.mapping.coerce":false},"mappings":{"properties":{"n":{"type":"integer"}}}`, "", ""},
		{`"settings":{"index.mapping.ignore_malformed":true},"mappings":{"properties":{"n":{"type":"integer"},"neardup_sketch":{"type":"integer"}}}`, "", ""},
		{`"mappings":{"_routing":{"required":true}}`, "", ""},
		{`"mappings":{"properties":{"neardup_sketch":{"properties":{"x":{"type":"text"}}}}}`, "", ""},
	} {
		p := newPair(t, e, base, fmt.Sprint("wref-", i))
		p.set(t, "PUT /INDEX | {"+c.before+"}")
		if c.settings != "" {
			p.set(t, "PUT /INDEX/_settings | {"+c.settings+"}")
		}
		p.send(t, "PUT /INDEX/_doc/1 | {"+wordsA+",\"n\":\"1\"}", "POST /INDEX/_bulk | {\"index\":{\"_id\":\"2\"}}¶{"+wordsA+",\"n\":\"x\"}¶{\"update\":{\"_id\":\"1\"}}¶{\"doc\":{\"n\":3}}¶{\"index\":{\"_id\":\"3\",\"routing\":\"1\"}}¶{"+wordsA+"}¶")
		if c.after != "" {
			p.set(t, "PUT /INDEX/_settings | {"+c.after+"}")
		}
		p.send(t, "PUT /INDEX/_doc/4?routing=1 | {"+wordsB+"}")
	}
}
