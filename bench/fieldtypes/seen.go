package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// probe is a request of a client that does not know our field. INDEX is replaced by the index.
type probe struct{ name, method, path, body string }

// probes look at all fields at once or list them. The texts are analysed as English, whose stop words show where another field
// has an analyser without any.
var probes = []probe{
	{"`q=word`", "GET", "INDEX/_search?q=system", ""},
	{"`q=word*`", "GET", "INDEX/_search?q=sys*", ""},
	{"`q=A*`", "GET", "INDEX/_search?q=A*", ""},
	{"`q=*ab*`", "GET", "INDEX/_search?q=*ab*", ""},
	{"`q=word~`", "GET", "INDEX/_search?q=systen~", ""},
	{"`q=/regexp/`", "GET", "INDEX/_search?q=/[AB].*x.*/", ""},
	{"`q=[A TO B]`", "GET", "INDEX/_search?q=%5BA+TO+B%5D", ""},
	{"`q=`, all words, a stop word", "GET", "INDEX/_search?default_operator=AND&q=the+system", ""},
	{"`q=`, all words, a lone `&`", "GET", "INDEX/_search?default_operator=AND&q=file+%26+system", ""},
	{"`q=_exists_:*`", "GET", "INDEX/_search?q=_exists_:*", ""},
	{"`query_string` of `*`, most fields", "POST", "INDEX/_search",
		`{"query":{"query_string":{"query":"file system error","fields":["*"],"type":"most_fields"}}}`},
	{"`query_string`, minimum 100 %", "POST", "INDEX/_search",
		`{"query":{"query_string":{"query":"the file of a system","minimum_should_match":"100%"}}}`},
	{"`multi_match` of `*`", "POST", "INDEX/_search", `{"query":{"multi_match":{"query":"file system","fields":["*"]}}}`},
	{"`multi_match` without fields", "POST", "INDEX/_search", `{"query":{"multi_match":{"query":"file system"}}}`},
	{"`multi_match`, cross fields, and", "POST", "INDEX/_search",
		`{"query":{"multi_match":{"query":"the file system","fields":["*"],"type":"cross_fields","operator":"and"}}}`},
	{"`multi_match`, phrase prefix", "POST", "INDEX/_search",
		`{"query":{"multi_match":{"query":"AQ","fields":["*"],"type":"phrase_prefix"}}}`},
	{"`multi_match`, fuzzy", "POST", "INDEX/_search",
		`{"query":{"multi_match":{"query":"systen","fields":["*"],"fuzziness":"AUTO"}}}`},
	{"`simple_query_string`", "POST", "INDEX/_search", `{"query":{"simple_query_string":{"query":"file system"}}}`},
	{"`simple_query_string`, `A*`", "POST", "INDEX/_search", `{"query":{"simple_query_string":{"query":"A*"}}}`},
	{"`simple_query_string`, and, a stop word", "POST", "INDEX/_search",
		`{"query":{"simple_query_string":{"query":"the file","fields":["*"],"default_operator":"and"}}}`},
	{"`simple_query_string`, and, a lone `&`", "POST", "INDEX/_search",
		`{"query":{"simple_query_string":{"query":"file & system","default_operator":"and"}}}`},
	{"`more_like_this` without fields", "POST", "INDEX/_search",
		`{"query":{"more_like_this":{"like":[{"_id":"7"}],"min_term_freq":1,"minimum_should_match":"5%"}}}`},
	{"`exists` of `*`", "POST", "INDEX/_search", `{"query":{"exists":{"field":"*"}}}`},
	{"`exists` of `n*`", "POST", "INDEX/_search", `{"query":{"exists":{"field":"n*"}}}`},
	{"highlight `*`", "POST", "INDEX/_search",
		`{"query":{"query_string":{"query":"system OR A*"}},"highlight":{"fields":{"*":{"require_field_match":false}}}}`},
	{"`fields: [*]`", "POST", "INDEX/_search", `{"fields":["*"],"query":{"match":{"text":"system"}}}`},
	{"`docvalue_fields: [*]`", "POST", "INDEX/_search", `{"docvalue_fields":["*"],"query":{"match":{"text":"system"}}}`},
	{"`docvalue_fields: [n*]`", "POST", "INDEX/_search", `{"docvalue_fields":["n*"],"query":{"match":{"text":"system"}}}`},
	{"`stored_fields: [*]`", "POST", "INDEX/_search", `{"stored_fields":["*"],"query":{"match":{"text":"system"}}}`},
	{"`_source: [t*]`", "POST", "INDEX/_search", `{"_source":["t*"],"query":{"match":{"text":"system"}}}`},
	{"explain in a search", "POST", "INDEX/_search", `{"explain":true,"query":{"query_string":{"query":"system"}}}`},
	{"`_explain`", "GET", "INDEX/_explain/7?q=the", ""},
	{"`_validate/query?explain`", "GET", "INDEX/_validate/query?explain=true&q=system", ""},
	{"`_count?q=A*`", "GET", "INDEX/_count?q=A*", ""},
	{"`_termvectors`", "GET", "INDEX/_termvectors/7", ""},
	{"`_termvectors?fields=*`", "GET", "INDEX/_termvectors/7?fields=*&realtime=false", ""},
	{"`_doc?stored_fields=*`", "GET", "INDEX/_doc/7?stored_fields=*&_source=true", ""},
	{"`_field_caps?fields=*`", "GET", "INDEX/_field_caps?fields=*", ""},
	{"`_mapping`", "GET", "INDEX/_mapping", ""},
	{"`_mapping/field/*`", "GET", "INDEX/_mapping/field/*", ""},
}

// english are the fields of a document other than the sketch.
const english = `"title":{"type":"text","analyzer":"english"},"text":{"type":"text","analyzer":"english"}`

// seen compares the replies to each probe with those of the index without sketches, less what the sidecar takes out of replies:
// our field in sources and in extracted fields.
func (e *engine) seen(_ options, c *corpus) error {
	documents := c.documents[:min(2000, len(c.documents))]
	for i, v := range variants {
		index := v.index("seen")
		if err := e.create(index, "default", v.properties(english)); err != nil {
			return err
		}
		if _, err := e.bulk(index, lines(documents, 0, i > 0)); err != nil {
			return err
		}
		if err := e.settle(index); err != nil {
			return err
		}
	}
	columns := []string{"request"}
	for _, v := range variants {
		columns = append(columns, v.name)
	}
	head(fmt.Sprintf("What a client sees, %d documents, beside an index without the field", len(documents)), columns...)
	for _, p := range probes {
		var none answer
		cells := []string{p.name}
		for i, v := range variants {
			a, err := e.answer(p, v.index("seen"))
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i == 0 {
				none = a
				cells = append(cells, a.String())
				continue
			}
			cells = append(cells, a.beside(none))
		}
		row(cells...)
	}
	e.dropAll()
	return nil
}

// answer is a reply made comparable.
type answer struct {
	status int
	body   any
	hits   []hit
	total  any
}

type hit struct {
	id    any
	score any
}

func (e *engine) answer(p probe, index string) (answer, error) {
	in := strings.NewReplacer("INDEX", index)
	status, data, err := e.send(p.method, in.Replace(p.path), []byte(in.Replace(p.body)))
	if err != nil {
		return answer{}, err
	}
	a := answer{status: status}
	if err := json.Unmarshal(bytes.ReplaceAll(data, []byte(index), []byte("INDEX")), &a.body); err != nil {
		return a, fmt.Errorf("%w in %.200s", err, data)
	}
	a.body = cleaned("", a.body)
	root, _ := a.body.(map[string]any)
	a.total = root["count"]
	if outer, ok := root["hits"].(map[string]any); ok {
		a.total, _ = outer["total"].(map[string]any)["value"]
		list, _ := outer["hits"].([]any)
		for _, h := range list {
			one, _ := h.(map[string]any)
			a.hits = append(a.hits, hit{one["_id"], one["_score"]})
		}
	}
	return a, nil
}

// cleaned drops what differs from one request to the next, and our field where the sidecar cuts it out.
func cleaned(parent string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "took")
		delete(v, "index_uuid")
		if slices.Contains([]string{"_source", "fields", "properties", "mappings"}, parent) {
			delete(v, field)
		}
		for key, inner := range v {
			v[key] = cleaned(key, inner)
		}
		if empty, ok := v["fields"].(map[string]any); ok && len(empty) == 0 {
			delete(v, "fields")
		}
		return v
	case []any:
		for i := range v {
			v[i] = cleaned(parent, v[i])
		}
	}
	return value
}

func (a answer) String() string {
	if a.total != nil {
		return fmt.Sprint(a.total)
	}
	return fmt.Sprintf("status %d", a.status)
}

// beside describes how an answer differs from that of the index without sketches.
func (a answer) beside(none answer) string {
	named := ""
	if text, err := json.Marshal(a.body); err == nil && bytes.Contains(text, []byte(field)) {
		named = ", names it"
	}
	switch {
	case a.status != none.status:
		return fmt.Sprintf("**status %d**%s", a.status, named)
	case a.status >= 400 && named == "": // the reason tells of whichever field the engine met first
		return "refused too"
	case !reflect.DeepEqual(a.total, none.total):
		return fmt.Sprintf("**%v**%s", a.total, named)
	case !reflect.DeepEqual(ids(a.hits), ids(none.hits)):
		return "**other hits**" + named
	case !reflect.DeepEqual(a.hits, none.hits):
		return "**other scores**" + named
	case !reflect.DeepEqual(a.body, none.body):
		return "**differs**" + named + differing("", a.body, none.body)
	}
	return "alike"
}

func ids(hits []hit) map[any]bool {
	set := map[any]bool{}
	for _, h := range hits {
		set[h.id] = true
	}
	return set
}

// differing returns the path of one difference.
func differing(path string, a, b any) string {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if !ok1 || !ok2 {
		return " at " + strings.TrimPrefix(path, ".")
	}
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if !reflect.DeepEqual(x[key], y[key]) {
			return differing(path+"."+key, x[key], y[key])
		}
	}
	return " at " + strings.TrimPrefix(path, ".")
}
