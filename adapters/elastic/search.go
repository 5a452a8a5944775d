package elastic

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// maxResultWindow is the engine's default limit on from + size (index.max_result_window).
const maxResultWindow = 10000

// clientSearch is one search as the client means it, less our controls. It implements adapters.Search.
type clientSearch struct {
	d         Dialect
	asked     adapters.Asked
	controls  adapters.Controls
	sent      *adapters.Request // as the client sent it; nil in a multi-search
	params    []adapters.Param  // of the URL; nil in a multi-search
	header    []byte            // the line in front of it in a multi-search, not nil there
	body      []byte            // a JSON object
	members   []jsonedit.Member
	namesOurs bool // the client names a field of ours
	// picks says that hits can be picked by a filter, narrows that it can be a part of the query, numbers that hits can be identified by their
	// sequence numbers.
	picks, narrows, numbers bool
	base                    []byte // the body that readings are made from: the list that it asks for does not depend on the size of a reading
	raised                  []byte // the same for more neighbours, nil for most searches
	fused                   *fused // nil for most searches
	piped                   piped  // its zero value for most searches
	after                   []byte // the sort values of a cursor (search_after), nil where the list is read from its beginning
}

// ParseSearch implements adapters.Dialect.
func (d Dialect) ParseSearch(c adapters.Class, r *adapters.Request, p adapters.Plan) *adapters.Searches {
	controls, plain, err := adapters.TakeControls(r)
	if err != nil {
		return &adapters.Searches{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	switch c.Form {
	case formMulti:
		return d.multi(c, plain, controls, p)
	case formTemplate:
		return d.template(c, plain, controls, p)
	}
	request := unpacked(plain)
	if reason := format(request); reason != "" {
		return &adapters.Searches{Plain: plain, Reason: reason}
	}
	q, err := d.parseOne(c.Target, adapters.Params(request.RawQuery), request.Body, controls, p, "")
	if err != nil {
		return &adapters.Searches{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	switch {
	case request != plain && len(q.body) < len(request.Body): // controls were taken out
		rest := adapters.RawQuery(adapters.Params(plain.RawQuery), func(name string) bool { return name != "source" })
		plain.RawQuery = strings.TrimPrefix(rest+"&source="+url.QueryEscape(string(q.body)), "&")
	case len(plain.Body) > 0:
		plain.Body = q.body
	}
	if q.asked.Reason == "" && !d.canFilter(q.params) {
		q.asked.Reason = "filter_path"
	}
	s := &adapters.Searches{Plain: plain, Reason: q.asked.Reason, NamesOurs: q.namesOurs, Plan: p}
	if s.Reason == "" {
		if q.sent = request; q.allowsPoint(segments(request.Path)) {
			q.asked.Point = q
		}
		if q.usesCursor() {
			q.asked.Cursor = q
		}
		if q.after == nil && q.fused == nil && !q.has("knn", "rescore", "retriever") {
			q.asked.Sequence = q
		}
		s.List, s.Single = []adapters.Search{q}, true
		if q.hasParam("filter_path") {
			s.Envelope = &envelope{q: q, deadline: p.Deadline}
		}
		if q.piped.name != "" {
			return &adapters.Searches{Plain: plain, NamesOurs: q.namesOurs, Plan: p, Ahead: &byPipeline{q, s}}
		}
	}
	return s
}

// parseOne reads one search, and how its hits can be read under the rules of its indices. left, if not empty, is a reason to
// leave it alone that is known before. asked.Reason says in the end why it is left alone; if it is set, only the query's body is of use. An error is
// a bad control.
func (d Dialect) parseOne(
	target string, params []adapters.Param, body []byte, outer adapters.Controls, p adapters.Plan, left adapters.Reason,
) (*clientSearch, error) {
	q := &clientSearch{d: d, params: params, body: body, controls: outer}
	q.asked = adapters.Asked{Target: target, Size: 10, Reason: left}
	if len(body) == 0 {
		q.body = []byte("{}")
	}
	members, err := jsonedit.FewMembers(q.body)
	if err != nil || jsonedit.Repeated(members) || !jsonedit.Shallow(q.body, maxDepth) { // the engine says so
		q.asked.Reason = cmp.Or(left, adapters.ReasonNotUnderstood)
		return q, nil
	}
	if q.members, err = q.takeControls(members); err != nil {
		return nil, err
	}
	q.namesOurs = rule.NamesOurs(body) || slices.ContainsFunc(params, func(p adapters.Param) bool { return rule.NamesOurs(p.Value) })
	if q.asked.Reason == "" {
		q.asked.Reason = q.check()
	}
	if q.asked.Reason == "" {
		q.asked.Reason = q.readPage()
	}
	if q.asked.Reason == "" {
		q.asked.Scope = p.Scope(target).Under(q.controls, p.MaxWindow)
		q.asked.Reason = q.readRules()
	}
	return q, nil
}

// check returns why a search that the client wrote so is left alone, or nothing.
func (q *clientSearch) check() adapters.Reason {
	if q.controls.Off {
		return "off"
	}
	for _, m := range q.members {
		if !slices.Contains(bodyKeys, m.Key) {
			return cmp.Or(leftFor[m.Key], "not_understood")
		}
	}
	if percolates(q.body) {
		return "percolate"
	}
	return cmp.Or(q.readFused(), q.readPipeline(), paramsReason(q.params))
}

// percolates reports whether a search has a percolate query. Its hits are saved searches: two that look alike are still two, of two people.
func percolates(body []byte) bool {
	words := []string{"percolate", "wrapper", `\u`} // or one of the first two, escaped
	if !slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(body, []byte(word)) }) {
		return false
	}
	r := jsonedit.NewReader(body)
	return percolatesIn(&r, "")
}

// percolatesIn reports whether the value below a key is a percolate query or has one in it. A percolate query has a field: a query on a field of
// that name has none. The text of a wrapper query can be of any format: the word is enough there.
func percolatesIn(r *jsonedit.Reader, key string) bool {
	switch {
	case r.Enter('{'):
		for r.Next() {
			switch in := string(r.Key()); {
			case key == "percolate" && in == "field":
				return true
			case key == "wrapper" && in == "query":
				text, _ := jsonedit.TextBytes(r.Value())
				if query, _ := base64.StdEncoding.DecodeString(string(text)); bytes.Contains(query, []byte("percolate")) {
					return true
				}
			case percolatesIn(r, in):
				return true
			}
		}
	case r.Enter('['):
		for r.Next() {
			if percolatesIn(r, "") {
				return true
			}
		}
	default:
		r.Skip()
	}
	return false
}

// has reports whether the search's body has one of the keys.
func (q *clientSearch) has(keys ...string) bool {
	return slices.ContainsFunc(q.members, func(m jsonedit.Member) bool { return slices.Contains(keys, m.Key) })
}

// hasParam reports whether its URL has one of the parameters.
func (q *clientSearch) hasParam(names ...string) bool {
	return slices.ContainsFunc(q.params, func(p adapters.Param) bool { return slices.Contains(names, p.Name) })
}

// readPage reads from and size, and says why a page can't be collapsed. It sets how many ranks can be read (Limit) and the cursor (after) too.
func (q *clientSearch) readPage() adapters.Reason {
	for _, n := range []struct {
		key string
		to  *int
	}{{"from", &q.asked.From}, {"size", &q.asked.Size}} {
		value, inURL := adapters.Last(q.params, n.key)
		if !inURL {
			value = strings.Trim(string(jsonedit.Get(q.members, n.key)), `"`) // engines take 10 and "10"
		}
		if value == "" && !inURL {
			continue
		}
		v, err := strconv.Atoi(value)
		if err != nil || v < 0 {
			return "not_understood" // the engine says what is wrong with it
		}
		*n.to = v
	}
	a := &q.asked
	if a.Size == 0 && !q.aggregates() {
		return adapters.ReasonSizeZero
	}
	if a.From > maxResultWindow || a.Size > maxResultWindow-a.From {
		return "engine_limit"
	}
	if q.has("slice") || q.unsorted() {
		return "export"
	}
	if q.after = jsonedit.Get(q.members, "search_after"); string(q.after) == "null" {
		q.after = nil
	}
	if a.Limit = rescored(jsonedit.Get(q.members, "rescore")); a.From+a.Size > a.Limit {
		return "rescore"
	}
	if strings.Contains(q.value("stored_fields"), "_none_") {
		return "not_understood" // such hits have no id to tell them by
	}
	if q.fused != nil {
		return q.readFusedPage()
	}
	return ""
}

// wholeSource reports whether hits come with their whole source, from which a missing sketch can be computed.
func (q *clientSearch) wholeSource() bool {
	source := q.value("_source")
	return (source == "true" || source == "" && !q.has("script_fields")) && // which come in place of the source
		q.value("stored_fields") == "" && q.value("_source_includes") == "" && q.value("_source_excludes") == ""
}

// showsTexts reports whether hits come with all sketched texts. Elasticsearch hides vectors since 9.2, unless they are named.
func (q *clientSearch) showsTexts() bool {
	return q.wholeSource() && (q.d.OpenSearch || !q.asked.Scope.Vectors)
}

// readRules reads how the hits of the search can be read under the rules of its indices. It returns why the search is left alone, or nothing.
func (q *clientSearch) readRules() adapters.Reason {
	d, a := q.d, &q.asked
	if !a.Scope.Configured {
		return adapters.ReasonUnconfigured
	}
	if reason := cmp.Or(q.pipelineReason(), q.cursorReason()); reason != "" {
		return reason
	}
	q.base = q.body
	if err := q.readNeighbours(a.Scope.VectorWindow); err != nil {
		return adapters.ReasonNotUnderstood
	}
	if q.after != nil && q.raised != nil {
		return "cursor"
	}
	a.Scope.Deciding = decidingOf(a.Scope.Deciding)
	if a.Scope.Group && a.Scope.Clusters {
		a.Scope.Deciding = append(a.Scope.Deciding, rule.Deciding{Field: rule.ClusterField})
	}
	a.Scope.Texts = slices.Clone(a.Scope.Texts)
	slices.Sort(a.Scope.Texts)
	a.Scope.Texts = slices.Compact(a.Scope.Texts)
	q.picks = q.raised == nil && q.pickable()
	q.narrows = q.picks && q.narrowable()
	q.numbers = q.picks && !d.Named && a.Scope.Expand == rule.ExpandOff && !a.Scope.Group && q.after == nil &&
		!bytes.Contains(q.body, []byte(`"inner_hits"`)) // which go by their hit's id
	a.Ways = q.ways()
	if a.Limit < maxResultWindow && q.fused == nil {
		a.Short = "rescore"
	}
	if reason := q.readCounts(); reason != "" {
		return reason
	}
	if a.Scope.Native != nil && d.collapsesOver(q) && (a.Counting == nil || q.countsClusters()) {
		a.Native = q
	}
	return ""
}

// decidingOf returns the fields to extract for the conditions and choices of the rules, each once: as a date, if it is wanted
// as one too.
func decidingOf(list []rule.Deciding) (fields []rule.Deciding) {
	for _, d := range list {
		same := func(other rule.Deciding) bool { return other.Field == d.Field }
		if at := slices.IndexFunc(fields, same); at >= 0 {
			fields[at].Date = fields[at].Date || d.Date
		} else {
			fields = append(fields, d)
		}
	}
	return fields
}

// ways returns how the hits of the search can be read.
func (q *clientSearch) ways() adapters.Ways {
	whole := q.wholeSource()
	return adapters.Ways{Apart: q.d.judgedApart(q, q.asked.Scope.Deciding), TextsApart: !q.showsTexts(), Scattered: true, Weighed: whole && q.narrows}
}

// Asked implements adapters.Search.
func (q *clientSearch) Asked() *adapters.Asked { return &q.asked }

// Targets implements adapters.Dialect.
func (Dialect) Targets(c adapters.Class, r *adapters.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Form != formMulti {
			yield(c.Target)
			return
		}
		for lines := r.Body; len(lines) > 0; {
			var header []byte
			header, lines, _ = bytes.Cut(lines, []byte("\n"))
			_, lines, _ = bytes.Cut(lines, []byte("\n"))
			members, _ := jsonedit.Members(header) // without a name where there are none
			if !yield(cmp.Or(targetOf(members), c.Target)) {
				return
			}
		}
	}
}

// unpacked returns a search whose body is in its URL, for clients that can't send one otherwise, with the body where it
// belongs; any other as it is.
func unpacked(r *adapters.Request) *adapters.Request {
	params := adapters.Params(r.RawQuery)
	source, ok1 := adapters.Last(params, "source")
	kind, ok2 := adapters.Last(params, "source_content_type")
	if !ok1 || !ok2 || len(r.Body) > 0 {
		return r
	}
	out := *r
	out.Body = []byte(source)
	out.RawQuery = adapters.RawQuery(params, func(name string) bool { return name != "source" && name != "source_content_type" })
	out.Header = maps.Clone(r.Header)
	out.Header["Content-Type"] = []string{kind}
	return &out
}

// format returns "format" for a search whose body or reply is not JSON. The engines answer in another format if it is all that is
// accepted, and with JSON for any type that they can't write and for a list of several (measured, `TestAcceptOfSearches`).
func format(r *adapters.Request) adapters.Reason {
	for _, value := range r.Header["Content-Type"] {
		if lower := strings.ToLower(value); value != "" && !strings.Contains(lower, "json") && !strings.Contains(lower, "*/*") {
			return "format"
		}
	}
	for _, value := range r.Header["Accept"] {
		lower := strings.ToLower(value)
		other := slices.ContainsFunc([]string{"yaml", "cbor", "smile"}, func(name string) bool { return strings.Contains(lower, name) })
		if other && (len(r.Header["Accept"]) > 1 || !strings.Contains(value, ",")) {
			return "format"
		}
	}
	if adapters.Signed(r.Header, r.RawQuery) {
		return "signed"
	}
	return ""
}

// maxDepth is how deep the engine lets a search nest. Each level of one costs us another look at all that is within it.
const maxDepth = 1000

// takeControls takes our controls out of the body and puts them over those of the request.
func (q *clientSearch) takeControls(members []jsonedit.Member) ([]jsonedit.Member, error) {
	narrow, found, err := adapters.MemberControls(members)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	if !found {
		return members, nil
	}
	q.controls = q.controls.Merge(narrow)
	if q.body, err = jsonedit.Cut(q.body, adapters.IsControl); err != nil {
		return nil, err
	}
	return jsonedit.Members(q.body)
}

// bodyKeys are the keys that the body of a collapsed search may have, and urlParams the parameters of its URL.
var (
	bodyKeys = strings.Fields(`
		query post_filter sort from size _source fields docvalue_fields stored_fields script_fields highlight aggs aggregations suggest
		track_total_hits track_scores min_score timeout terminate_after explain version seq_no_primary_term indices_boost runtime_mappings
		stats profile pit rescore search_after slice knn retriever rank sub_searches search_pipeline derived`)
	urlParams = strings.Fields(`
		q df analyzer analyze_wildcard default_operator lenient from size sort _source _source_includes _source_excludes stored_fields
		docvalue_fields routing preference timeout track_total_hits track_scores rest_total_hits_as_int typed_keys ignore_unavailable
		allow_no_indices expand_wildcards ignore_throttled request_cache batched_reduce_size max_concurrent_shard_requests
		pre_filter_shard_size ccs_minimize_roundtrips allow_partial_search_results terminate_after explain version seq_no_primary_term stats
		search_type pretty human error_trace suggest_field suggest_mode suggest_size suggest_text max_concurrent_searches index
		force_synthetic_source include_named_queries_score min_compatible_shard_node cancel_after_time_interval phase_took filter_path search_pipeline`)
)

// leftFor are keys and parameters for which a search is left alone, with the reason where that is known.
var leftFor = map[string]adapters.Reason{
	"collapse": "client_collapse", "scroll": "export", "format": "format", "ext": "ext",
}

// canFilter reports whether we can filter a reply by the filter_path of the request as the engine does.
func (d Dialect) canFilter(params []adapters.Param) bool {
	path, given := adapters.Last(params, "filter_path")
	if !given {
		return true
	}
	_, ok := parseFilter(path, d.OpenSearch)
	return ok
}

// paramsReason returns why URL parameters leave a search alone, or nothing.
func paramsReason(params []adapters.Param) adapters.Reason {
	for _, p := range params {
		known := p.Raw == "" || slices.Contains(urlParams, p.Name) || p.Name == "format" && p.Value == "json" // "" is between two &
		if !known {
			return cmp.Or(leftFor[p.Name], "not_understood")
		}
	}
	return ""
}

// rescored returns how many ranks of a list do not depend on the size that is asked for. Each shard rescores the best hits of
// a window, 10 where it is not given, and collects at least as many; with a size beyond that, hits come in with their first
// score, and can end up in between.
func rescored(value []byte) int {
	if value == nil {
		return maxResultWindow
	}
	rescorers, err := jsonedit.Elements(value)
	if err != nil {
		rescorers = [][]byte{value}
	}
	limit := 0
	for _, rescorer := range rescorers {
		members, err := jsonedit.Members(rescorer)
		if err != nil {
			return 0
		}
		window := 10
		if given := jsonedit.Get(members, "window_size"); given != nil {
			if window, err = strconv.Atoi(string(given)); err != nil {
				return 0
			}
		}
		limit = max(limit, window)
	}
	return min(limit, maxResultWindow)
}

// value returns a key's value in the URL or else in the body, or nothing.
func (q *clientSearch) value(key string) string {
	if value, ok := adapters.Last(q.params, key); ok {
		return value
	}
	return string(jsonedit.Get(q.members, key))
}

// unsorted reports whether hits are sorted by index order alone. Such a search, like a slice, is one of many readings of a whole index rather than
// of a page, and is never collapsed: who copies an index wants all of it. A scroll can't even be tried: each page can be asked for but once.
func (q *clientSearch) unsorted() bool {
	if value, ok := adapters.Last(q.params, "sort"); ok {
		field, _, _ := strings.Cut(value, ":")
		return indexOrder(field)
	}
	return unsorted(jsonedit.Get(q.members, "sort"))
}

// unsorted reports whether such a sort is by index order alone.
func unsorted(sort []byte) bool {
	if list, err := jsonedit.Elements(sort); err == nil {
		if len(list) != 1 {
			return false
		}
		sort = list[0]
	}
	if members, err := jsonedit.Members(sort); err == nil {
		return len(members) == 1 && indexOrder(members[0].Key)
	}
	field, _ := jsonedit.Text(sort)
	return indexOrder(field)
}

func indexOrder(field string) bool { return field == "_doc" || field == "_shard_doc" }
