package embedded

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// query is a parsed query; it finds the matching documents of one index.
type query func(*index) (scores, error)

// parameters are the body of one query.
type parameters map[string]any

// parsers is filled by init, because queries contain queries.
var parsers map[string]func(parameters) (query, error)

func init() {
	parsers = map[string]func(parameters) (query, error){
		"match_all":  func(p parameters) (query, error) { return matchAll, p.only("match_all", "boost") },
		"match_none": func(p parameters) (query, error) { return matchNone, p.only("match_none", "boost") },
		"match":      func(p parameters) (query, error) { return parseMatch("match", p) }, "match_phrase": parsePhrase,
		"multi_match": parseMultiMatch, "term": parseTerm, "terms": parseTerms, "range": parseRange, "bool": parseBool,
		"exists": parseExists, "ids": parseIDs,
		"query_string":        func(p parameters) (query, error) { return parseQueryString("query_string", p) },
		"simple_query_string": func(p parameters) (query, error) { return parseQueryString("simple_query_string", p) },
	}
}

func matchAll(x *index) (scores, error) {
	return x.where(func(*document) bool { return true }), nil
}

func matchNone(*index) (scores, error) { return nil, nil }

// parseQuery reads a query object.
func parseQuery(v any) (query, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, parsing("[_na] query malformed, must start with start_object")
	}
	if len(object) == 0 {
		return nil, illegal("query malformed, empty clause found at [1:1]")
	}
	name := slices.Sorted(maps.Keys(object))[0]
	if len(object) > 1 {
		return nil, parsing("[%s] malformed query, expected [END_OBJECT] but found [FIELD_NAME]", name)
	}
	parse := parsers[name]
	if parse == nil && slices.Contains(refusedQueries, name) {
		return nil, unsupported("the query " + name)
	}
	if parse == nil {
		return nil, parsing("unknown query [%s]", name)
	}
	p, ok := object[name].(map[string]any)
	if !ok {
		return nil, parsing("[%s] query malformed, no start_object after query name", name)
	}
	q, err := parse(p)
	if err != nil {
		return nil, err
	}
	return boosted(q, p["boost"])
}

var refusedQueries = strings.Fields("boosting combined_fields constant_score dis_max distance_feature function_score fuzzy geo_bounding_box " +
	"geo_distance geo_shape has_child has_parent intervals knn match_bool_prefix match_phrase_prefix more_like_this nested percolate " +
	"pinned prefix rank_feature regexp rule script script_score semantic span_near span_term sparse_vector terms_set wildcard wrapper")

// boosted multiplies a query's scores.
func boosted(q query, boost any) (query, error) {
	if boost == nil {
		return q, nil
	}
	by, err := strconv.ParseFloat(text(boost), 64)
	if err != nil || by < 0 {
		return nil, illegal("negative or malformed [boost]: [%s]", text(boost))
	}
	return func(x *index) (scores, error) {
		s, err := q(x)
		for d := range s {
			s[d] *= by
		}
		return s, err
	}, nil
}

// only refuses the parameters that a query does not take.
func (p parameters) only(name string, allowed ...string) error {
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(allowed, key) {
			return parsing("[%s] query does not support [%s]", name, key)
		}
	}
	return nil
}

// field splits {field: value} or {field: {key: value, ...}} in two.
func (p parameters) field(name, key string, allowed ...string) (path string, inner parameters, err error) {
	if _, ok := p["boost"]; ok && len(p) == 2 {
		p = maps.Clone(p)
		delete(p, "boost")
	}
	if len(p) != 1 {
		return "", nil, parsing("[%s] query needs one field, found %d", name, len(p))
	}
	path = slices.Sorted(maps.Keys(p))[0]
	inner, ok := p[path].(map[string]any)
	if !ok {
		return path, parameters{key: p[path]}, nil
	}
	return path, inner, inner.only(name, append(allowed, key, "boost")...)
}

func (p parameters) str(key, otherwise string) string {
	if v, ok := p[key]; ok {
		return text(v)
	}
	return otherwise
}

func parseMatch(name string, p parameters) (query, error) {
	path, inner, err := p.field(name, "query", "operator", "minimum_should_match", "zero_terms_query", "lenient")
	if err != nil {
		return nil, err
	}
	m, err := newMatcher(inner)
	if err != nil {
		return nil, err
	}
	return boosted(func(x *index) (scores, error) { return m.match(x, path) }, inner["boost"])
}

func parsePhrase(p parameters) (query, error) {
	path, inner, err := p.field("match_phrase", "query", "slop")
	if err == nil && inner.str("slop", "0") != "0" {
		err = unsupported("slop")
	}
	if err != nil {
		return nil, err
	}
	m := matcher{text: inner.str("query", ""), phrase: true}
	return boosted(func(x *index) (scores, error) { return m.match(x, path) }, inner["boost"])
}

func parseMultiMatch(p parameters) (query, error) {
	if err := p.only("multi_match", "query", "fields", "type", "operator", "minimum_should_match", "tie_breaker", "boost", "lenient"); err != nil {
		return nil, err
	}
	m, err := newMatcher(p)
	if err != nil {
		return nil, err
	}
	tie := 0.0
	switch kind := p.str("type", "best_fields"); kind {
	case "best_fields":
	case "phrase":
		m.phrase = true
	case "most_fields":
		tie = 1
	default:
		return nil, unsupported("multi_match type " + kind)
	}
	if t, ok := p["tie_breaker"]; ok {
		if tie, err = strconv.ParseFloat(text(t), 64); err != nil {
			return nil, illegal("malformed [tie_breaker]: [%s]", text(t))
		}
	}
	fields, err := strs(p["fields"], "fields")
	return m.over(fields, tie), err
}

// strs reads a string or a list of scalars; an absent one is an empty list.
func strs(v any, name string) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, text(e))
		}
		return out, nil
	case map[string]any:
		return nil, parsing("[%s] must be a list", name)
	}
	return []string{text(v)}, nil
}

func parseTerm(p parameters) (query, error) {
	path, inner, err := p.field("term", "value")
	if err != nil {
		return nil, err
	}
	return boosted(func(x *index) (scores, error) { return x.exact(path, text(inner["value"])) }, inner["boost"])
}

func parseTerms(p parameters) (query, error) {
	path, inner, err := p.field("terms", "values")
	if err != nil {
		return nil, err
	}
	list, ok := inner["values"].([]any)
	if !ok {
		return nil, parsing("[terms] query requires an array of terms")
	}
	return func(x *index) (scores, error) {
		out := scores{}
		for _, v := range list {
			s, err := x.exact(path, text(v))
			if err != nil {
				return nil, err
			}
			for d := range s {
				out[d] = 1
			}
		}
		return out, nil
	}, nil
}

// exact finds the documents with this very value.
func (x *index) exact(path, value string) (scores, error) {
	if path == "_id" {
		return x.where(func(d *document) bool { return d.id == value }), nil
	}
	if path == "_index" {
		return x.where(func(*document) bool { return x.name == value }), nil
	}
	f := x.lookup(path)
	if f == nil || f.Type == "object" {
		return nil, nil
	}
	if !f.searchable() {
		return nil, x.onShard("query_shard_exception", "failed to create query: Cannot search on field [%s] since it is not indexed.", path)
	}
	if f.kind() == "text" || f.kind() == "keyword" {
		return x.word(path, value), nil
	}
	if first, last, ok := parseDate(value); ok && f.Type == "date" {
		return x.having(path, func(v any) bool { return v.(int64) >= first && v.(int64) <= last }), nil
	}
	want, ok := f.convert(value)
	if !ok {
		return nil, x.onShard("query_shard_exception", "failed to create query: For input string: \"%s\"", value)
	}
	return x.having(path, func(v any) bool { return v == want }), nil
}

func parseRange(p parameters) (query, error) {
	path, inner, err := p.field("range", "gte", "gt", "lt", "lte")
	if err != nil {
		return nil, err
	}
	return boosted(func(x *index) (scores, error) {
		f := x.lookup(path)
		if f == nil || f.Type == "object" {
			return nil, nil
		}
		type bound struct {
			value any
			keep  func(c int) bool
		}
		var bounds []bound
		for op, keep := range map[string]func(int) bool{"gte": func(c int) bool { return c >= 0 }, "gt": func(c int) bool { return c > 0 },
			"lt": func(c int) bool { return c < 0 }, "lte": func(c int) bool { return c <= 0 }} {
			if inner[op] == nil {
				continue
			}
			v, err := x.bound(path, f, text(inner[op]), op == "gt" || op == "lte")
			if err != nil {
				return nil, err
			}
			bounds = append(bounds, bound{v, keep})
		}
		return x.having(path, func(v any) bool {
			return !slices.ContainsFunc(bounds, func(b bound) bool { return !b.keep(compare(v, b.value)) })
		}), nil
	}, inner["boost"])
}

// bound converts the end of a range; a date such as 2024-05-01 becomes its first or its last millisecond.
func (x *index) bound(path string, f *field, s string, last bool) (any, error) {
	switch f.kind() {
	case "date":
		from, to, ok := parseDate(s)
		if !ok {
			return nil, x.onShard("parse_exception", "failed to parse date field [%s] with format [strict_date_optional_time||epoch_millis] "+
				"(the embedded demo engine does no date arithmetic)", s)
		}
		if last {
			return to, nil
		}
		return from, nil
	case "long": // not rounded: 1.5 is between 1 and 2
		f = &field{Type: "double"}
	case "text":
		return nil, unsupported("range on the text field " + path)
	}
	v, ok := f.convert(s)
	if !ok {
		return nil, x.onShard("query_shard_exception", "failed to create query: For input string: \"%s\"", s)
	}
	return v, nil
}

// compare orders two kept values: numbers by size, all else (and a field that has another type in another index) as text,
// which puts false before true.
func compare(a, b any) int {
	if a, ok := a.(int64); ok {
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	}
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return cmp.Compare(x, y)
	}
	return strings.Compare(text(a), text(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func parseExists(p parameters) (query, error) {
	path := p.str("field", "")
	return func(x *index) (scores, error) {
		names := x.names(path, path+".*")
		return x.where(func(d *document) bool {
			return slices.ContainsFunc(names, func(n string) bool { return len(d.fields[n]) > 0 })
		}), nil
	}, p.only("exists", "field", "boost")
}

func parseIDs(p parameters) (query, error) {
	values, err := strs(p["values"], "ids")
	if err == nil {
		err = p.only("ids", "values", "boost")
	}
	return func(x *index) (scores, error) {
		out := scores{}
		for _, id := range values {
			if d := x.docs[id]; d != nil {
				out[d] = 1
			}
		}
		return out, nil
	}, err
}

// boolean is a bool query.
type boolean struct {
	must, filter, should, mustNot []query
	atLeast                       any // minimum_should_match
}

func parseBool(p parameters) (query, error) {
	var b boolean
	clauses := map[string]*[]query{"must": &b.must, "filter": &b.filter, "should": &b.should, "must_not": &b.mustNot}
	for key, v := range p {
		to := clauses[key]
		switch {
		case to == nil && key == "minimum_should_match":
			b.atLeast = v
		case to == nil && key != "boost":
			return nil, fail(http.StatusBadRequest, "x_content_parse_exception", "[bool] unknown field [%s]", key)
		case to != nil:
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for _, c := range list {
				q, err := parseQuery(c)
				if err != nil {
					return nil, err
				}
				*to = append(*to, q)
			}
		}
	}
	if _, err := atLeast(b.atLeast, len(b.should), 0); err != nil {
		return nil, err
	}
	return b.find, nil
}

func (b boolean) find(x *index) (scores, error) {
	out, err := matchAll(x)
	if err != nil || len(b.must)+len(b.filter)+len(b.should)+len(b.mustNot) == 0 {
		return out, err
	}
	for d := range out {
		out[d] = 0
	}
	for i, q := range slices.Concat(b.must, b.filter) {
		found, err := q(x)
		if err != nil {
			return nil, err
		}
		for d := range out {
			if score, ok := found[d]; !ok {
				delete(out, d)
			} else if i < len(b.must) {
				out[d] += score
			}
		}
	}
	for _, q := range b.mustNot {
		found, err := q(x)
		if err != nil {
			return nil, err
		}
		for d := range found {
			delete(out, d)
		}
	}
	least := 0
	if len(b.should) > 0 && len(b.must)+len(b.filter) == 0 {
		least = 1
	}
	if least, err = atLeast(b.atLeast, len(b.should), least); err != nil {
		return nil, err
	}
	return some(x, b.should, out, least)
}

// some adds to the scores of out those of the queries, and leaves only documents that match enough of them.
func some(x *index, queries []query, out scores, least int) (scores, error) {
	matched := map[*document]int{}
	for _, q := range queries {
		found, err := q(x)
		if err != nil {
			return nil, err
		}
		for d, score := range found {
			if _, ok := out[d]; ok {
				out[d] += score
				matched[d]++
			}
		}
	}
	for d := range out {
		if matched[d] < least {
			delete(out, d)
		}
	}
	return out, nil
}

// atLeast reads minimum_should_match as a number or percentage of n clauses.
func atLeast(v any, n, otherwise int) (int, error) {
	if v == nil {
		return otherwise, nil
	}
	s, percent := strings.CutSuffix(text(v), "%")
	least, err := json.Number(s).Int64()
	if err != nil {
		return 0, unsupported("minimum_should_match " + text(v))
	}
	if percent {
		least = int64(math.Trunc(float64(n) * float64(least) / 100))
	}
	if least < 0 {
		least += int64(n)
	}
	return int(max(least, 0)), nil
}
