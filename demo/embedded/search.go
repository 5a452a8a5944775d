package embedded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// searchRequest is a parsed search.
type searchRequest struct {
	query             query
	from, size        int
	sort              []sortKey
	source            sourceFilter
	docValues, fields []string
	millis            []string // the doc values that are shown as such
	after             query    // a second query that hits must match; nil for none
	track             int      // up to which number hits are counted; -1 to not count them
	version, seqNo    bool
	trackScores       bool
}

// sortKey is one key of a sort: a field, _score or _doc.
type sortKey struct {
	field        string
	desc         bool
	missingFirst bool
	unmapped     bool // a field that is not mapped sorts as missing
}

// hit is a matching document with what it is sorted by.
type hit struct {
	*document
	score float32
	keys  []any
}

// found is the outcome of a search before it is cut into pages.
type found struct {
	hits     []hit
	maxScore float32
	shards   int
}

// bodyKeys are the keys of a search's body with the tokens that their values may begin with.
var bodyKeys = map[string]string{"query": "START_OBJECT", "from": "VALUE_NUMBER VALUE_STRING", "size": "VALUE_NUMBER VALUE_STRING",
	"sort": "START_OBJECT START_ARRAY VALUE_STRING", "_source": "START_OBJECT START_ARRAY VALUE_STRING VALUE_BOOLEAN",
	"docvalue_fields": "START_ARRAY", "fields": "START_ARRAY", "track_total_hits": "VALUE_BOOLEAN VALUE_NUMBER VALUE_STRING",
	"version": "VALUE_BOOLEAN", "seq_no_primary_term": "VALUE_BOOLEAN", "track_scores": "VALUE_BOOLEAN", "timeout": "VALUE_STRING",
	"post_filter": "START_OBJECT"}

// refusedKeys are keys that Elasticsearch takes.
var refusedKeys = strings.Fields("aggs aggregations highlight suggest collapse knn rescore min_score pit script_fields stored_fields " +
	"explain profile indices_boost runtime_mappings slice rank retriever ext stats terminate_after search_after")

// readSearch reads a search's body.
func readSearch(body []byte) (*searchRequest, error) {
	s := &searchRequest{query: matchAll, size: 10, track: maxWindow}
	if len(bytes.TrimSpace(body)) == 0 {
		return s, nil
	}
	list, err := members(body)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if slices.Contains(refusedKeys, m.key) {
			return nil, unsupported(m.key + " in a search")
		}
		if !slices.Contains(strings.Fields(bodyKeys[m.key]), tokenName(m.value)) {
			before := body[:m.at]
			f := parsing("Unknown key for a %s in [%s].", tokenName(m.value), m.key)
			f.cause.Line, f.cause.Col = 1+bytes.Count(before, []byte("\n")), m.at-bytes.LastIndexByte(before, '\n')
			return nil, f
		}
		if err := s.read(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// read reads one key of the body. Its value has an allowed type.
func (s *searchRequest) read(m member) error {
	var v any
	err := decode(m.value, &v)
	if err != nil {
		return err
	}
	yes := v == true
	switch m.key {
	case "query":
		s.query, err = parseQuery(v)
	case "post_filter":
		s.after, err = parseQuery(v)
	case "from":
		s.from, err = atoi(m.key, text(v))
	case "size":
		s.size, err = atoi(m.key, text(v))
	case "sort":
		s.sort, err = readSort(v)
	case "_source":
		s.source, err = sourceFilterOf(m.value)
	case "docvalue_fields":
		s.docValues, s.millis, err = fieldNames(m.key, v)
	case "fields":
		var formatted []string
		if s.fields, formatted, err = fieldNames(m.key, v); err == nil && formatted != nil {
			err = unsupported("format in " + m.key)
		}
	case "track_total_hits":
		s.track, err = readTrack(text(v))
	case "version":
		s.version = yes
	case "seq_no_primary_term":
		s.seqNo = yes
	case "track_scores":
		s.trackScores = yes
	}
	return err
}

func atoi(name, s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 {
		return n, nil
	}
	if err == nil {
		return 0, illegal("[%s] parameter cannot be negative but was [%d]", name, n)
	}
	return 0, illegal("Failed to parse int parameter [%s] with value [%s]", name, s)
}

func readTrack(s string) (int, error) {
	switch s {
	case "true":
		return math.MaxInt, nil
	case "false":
		return -1, nil
	}
	return atoi("track_total_hits", s)
}

// fieldNames reads a list of names or {"field": name}, where some ask for dates in milliseconds.
func fieldNames(key string, v any) (names, millis []string, err error) {
	for _, e := range v.([]any) {
		if o, ok := e.(map[string]any); ok {
			format := o["format"]
			if format != nil && format != "epoch_millis" || len(o) > 2 || o["field"] == nil {
				return nil, nil, unsupported("format in " + key)
			}
			if e = o["field"]; format != nil {
				millis = append(millis, text(e))
			}
		}
		names = append(names, text(e))
	}
	return names, millis, nil
}

func readSort(v any) ([]sortKey, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var keys []sortKey
	for _, e := range list {
		options, ok := e.(map[string]any)
		if !ok {
			options = map[string]any{text(e): nil}
		}
		if len(options) != 1 {
			return nil, unsupported("several fields in one element of a sort")
		}
		for name, how := range options {
			key, err := readSortKey(name, how)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func readSortKey(name string, how any) (sortKey, error) {
	key := sortKey{field: name, desc: name == "_score"}
	options, ok := how.(map[string]any)
	if !ok && how != nil {
		options = map[string]any{"order": how}
	}
	for option, v := range options {
		switch value := text(v); {
		case option == "order" && (strings.EqualFold(value, "asc") || strings.EqualFold(value, "desc")):
			key.desc = strings.EqualFold(value, "desc")
		case option == "order":
			return key, illegal("Unknown SortOrder [%s]", value)
		case option == "missing" && (value == "_first" || value == "_last"):
			key.missingFirst = value == "_first"
		case option == "unmapped_type":
			key.unmapped = true
		default:
			return key, unsupported("sort option " + option)
		}
	}
	return key, nil
}

// override takes the URL's parameters, which win over the body.
func (s *searchRequest) override(r *request) (err error) {
	p := r.params
	for name, set := range map[string]func(string) error{
		"from":             func(v string) (err error) { s.from, err = atoi("from", v); return },
		"size":             func(v string) (err error) { s.size, err = atoi("size", v); return },
		"track_total_hits": func(v string) (err error) { s.track, err = readTrack(v); return },
		"docvalue_fields":  func(v string) error { s.docValues = strings.Split(v, ","); return nil },
		"sort": func(v string) error {
			s.sort = nil
			for part := range strings.SplitSeq(v, ",") {
				field, order, _ := strings.Cut(part, ":")
				var how any
				if order != "" {
					how = order
				}
				key, err := readSortKey(field, how)
				if err != nil {
					return err
				}
				s.sort = append(s.sort, key)
			}
			return nil
		},
	} {
		if p.Has(name) {
			if err := set(p.Get(name)); err != nil {
				return err
			}
		}
	}
	if p.Has("q") {
		if s.query, err = queryOfURL(r); err != nil {
			return err
		}
	}
	s.version = s.version || r.flag("version")
	s.seqNo = s.seqNo || r.flag("seq_no_primary_term")
	s.trackScores = s.trackScores || r.flag("track_scores")
	s.source.override(r)
	return nil
}

func queryOfURL(r *request) (query, error) {
	q := parameters{"query": r.params.Get("q")}
	for from, to := range map[string]string{"df": "default_field", "default_operator": "default_operator"} {
		if r.params.Has(from) {
			q[to] = r.params.Get(from)
		}
	}
	return parseQueryString("query_string", q)
}

// find runs the search on the indices and sorts all that matches; ties go by insertion.
func (s *searchRequest) find(indices []*index) (found, error) {
	out := found{shards: len(indices)}
	for _, x := range indices {
		if err := s.check(x); err != nil {
			return out, err
		}
		matches, err := s.matches(x)
		if err != nil {
			return out, err
		}
		for d, score := range matches {
			h := hit{document: d, score: float32(score), keys: make([]any, len(s.sort))}
			for i, k := range s.sort {
				h.keys[i] = k.of(h)
			}
			out.maxScore = max(out.maxScore, h.score)
			out.hits = append(out.hits, h)
		}
	}
	slices.SortFunc(out.hits, func(a, b hit) int {
		for i, k := range s.sort {
			if c := k.compare(a.keys[i], b.keys[i]); c != 0 {
				return c
			}
		}
		if len(s.sort) == 0 && a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return cmp.Compare(a.order, b.order)
	})
	return out, nil
}

// matches returns the documents of an index that match.
func (s *searchRequest) matches(x *index) (scores, error) {
	matches, err := s.query(x)
	if err != nil || s.after == nil {
		return matches, err
	}
	left, err := s.after(x)
	maps.DeleteFunc(matches, func(d *document, _ float64) bool { _, stays := left[d]; return !stays })
	return matches, err
}

// check refuses what Elasticsearch refuses for this index.
func (s *searchRequest) check(x *index) error {
	if s.from+s.size > maxWindow {
		return x.onShard("illegal_argument_exception", "Result window is too large, from + size must be less than or equal to: [%d] but was [%d]. "+
			"See the scroll api for a more efficient way to request large data sets.", maxWindow, s.from+s.size)
	}
	for _, k := range s.sort {
		f := x.lookup(k.field)
		switch {
		case strings.HasPrefix(k.field, "_"), f == nil && k.unmapped:
		case f == nil:
			return x.onShard("query_shard_exception", "No mapping found for [%s] in order to sort on", k.field)
		case !f.docValues():
			return x.noDocValues(k.field)
		}
	}
	for _, name := range s.docValues {
		if f := x.lookup(name); f != nil && !f.docValues() {
			return x.noDocValues(name)
		}
	}
	return nil
}

func (x *index) noDocValues(path string) error {
	if x.lookup(path).Type == "text" {
		return x.onShard("illegal_argument_exception", "Fielddata is disabled on [%s] in [%s]. Text fields are not optimised for operations that require "+
			"per-document field data like aggregations and sorting, so these operations are disabled by default. "+
			"Please use a keyword field instead.", path, x.name)
	}
	return x.onShard("illegal_argument_exception", "Can't load fielddata on [%s] because fielddata is unsupported on fields of type [%s]. "+
		"Use doc values instead.", path, x.lookup(path).Type)
}

// of returns the sort value of a hit: of several values the lowest, or descending the highest; nil if there is none.
func (k sortKey) of(h hit) any {
	switch k.field {
	case "_score":
		return float64(h.score)
	case "_doc", "_shard_doc":
		return h.order
	case "_id":
		return h.id
	}
	values := h.document.fields[k.field]
	if len(values) == 0 {
		return nil
	}
	if k.desc {
		return slices.MaxFunc(values, compare)
	}
	return slices.MinFunc(values, compare)
}

func (k sortKey) compare(a, b any) int {
	if a == nil || b == nil {
		c := 0
		if a == nil {
			c++
		}
		if b == nil {
			c--
		}
		if k.missingFirst {
			return -c
		}
		return c
	}
	if k.desc {
		return compare(b, a)
	}
	return compare(a, b)
}

func (e *Engine) count(r *request) (int, any, error) {
	list, err := e.resolve(r)
	if err != nil {
		return 0, nil, err
	}
	s, err := readSearch(r.body)
	if err == nil && len(r.body) > 0 {
		keys, _ := members(r.body)
		if i := slices.IndexFunc(keys, func(m member) bool { return m.key != "query" }); i >= 0 {
			err = parsing("request does not support [%s]", keys[i].key)
		}
	}
	if err == nil && r.params.Has("q") {
		s.query, err = queryOfURL(r)
	}
	if err != nil {
		return 0, nil, err
	}
	s.from, s.size = 0, 0
	out, err := s.find(list)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, []byte(`{"count":` + strconv.Itoa(len(out.hits)) + `,"_shards":` + searchShards(len(list)) + `}`), nil
}

func (e *Engine) search(r *request) (int, any, error) {
	s, err := readSearch(r.body)
	if err == nil {
		err = s.override(r)
	}
	if err != nil {
		return 0, nil, err
	}
	list, err := e.resolve(r)
	if err != nil {
		return 0, nil, err
	}
	if r.params.Has("scroll") {
		return e.startScroll(r, s, list)
	}
	out, err := s.find(list)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, s.page(out, s.from, "", r.start), nil
}

// multiSearch reads the whole body first: a malformed search refuses them all, a failing one only itself.
func (e *Engine) multiSearch(r *request) (int, any, error) {
	type search struct {
		expr          string
		ignoreMissing bool
		*searchRequest
	}
	var searches []search
	lines := bytes.Split(bytes.TrimSuffix(r.body, []byte("\n")), []byte("\n"))
	for i := 0; i+1 < len(lines); i += 2 {
		one := search{expr: r.PathValue("index"), ignoreMissing: r.flag("ignore_unavailable")}
		var header map[string]json.RawMessage
		if len(lines[i]) > 0 { // an empty line is an empty header
			if err := decode(lines[i], &header); err != nil {
				return 0, nil, err
			}
		}
		for key, v := range header {
			switch key {
			case "index":
				names, err := stringList(v)
				if err != nil {
					return 0, nil, err
				}
				one.expr = strings.Join(names, ",")
			case "ignore_unavailable":
				one.ignoreMissing = string(v) == "true"
			case "search_type", "preference", "allow_no_indices", "expand_wildcards", "request_cache", "ccs_minimize_roundtrips":
			default:
				return 0, nil, illegal("key [%s] is not supported in the metadata section", key)
			}
		}
		var err error
		if one.searchRequest, err = readSearch(lines[i+1]); err != nil {
			return 0, nil, err
		}
		searches = append(searches, one)
	}
	if len(searches) == 0 {
		return 0, nil, invalid("no requests added")
	}
	b := []byte(`{"took":` + strconv.FormatInt(time.Since(r.start).Milliseconds(), 10) + `,"responses":[`)
	for i, s := range searches {
		if i > 0 {
			b = append(b, ',')
		}
		list, err := e.expand(s.expr, s.ignoreMissing, false)
		var out found
		if err == nil {
			out, err = s.find(list)
		}
		if err != nil {
			b = appendJSON(b, asFailure(err))
			continue
		}
		b = append(bytes.TrimSuffix(append(b, s.page(out, s.from, "", r.start)...), []byte("}")), `,"status":200}`...)
	}
	return http.StatusOK, append(b, "]}"...), nil
}
