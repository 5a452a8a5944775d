package typesense

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// In native mode a search is asked twice in one request: as the client wrote it, with the engine's own group_by over the ids of
// clusters and one hit of each group; and for no hit, ungrouped. The second shows what grouping would change, the client's facets
// and the number of hits, and counts the clusters among them: engines up to 0.24 put all documents without an id into one group,
// so that there is a group more than clusters where there is such a document.

// nativeSearch is how the engine groups one search. A nil one is of a search for query time alone.
type nativeSearch struct {
	rule *rule.Rule
	// everything says that the search lists all documents in no order of the client's, and faceted what it wants counted.
	everything bool
	faceted    string
}

const (
	// none is the id of no cluster.
	none = rule.FieldPrefix + "none"
	// mostListed is how many clusters are looked at for their mark beside those of the page, the largest first.
	mostListed = 100
)

// notNative are parameters that a search with groups takes otherwise, or that make its counts differ from those of one without.
var notNative = []string{
	"pinned_hits", "hidden_hits", "vector_query", "facet_query", "facet_sample_percent", "facet_sample_threshold", "facet_strategy",
	"group_limit", "group_missing_values", "preset", "limit", "offset", "search_cutoff_ms",
}

// newNative returns nil for a search that is none for the engine.
func newNative(q *query, params []adapters.Param, scope adapters.Scope) *nativeSearch {
	r := scope.Native
	if r == nil || q.unseen() || q.vector != nil || q.shown {
		return nil
	}
	members, err := jsonedit.Members(q.body)
	if err != nil {
		return nil
	}
	values, _ := effective(members, params)
	maps.Copy(values, q.fixed)
	filter, given := values["filter_by"]
	if _, grouped := values["group_by"]; grouped || given && filter == "" { // in the query string it would stand in the way of ours
		return nil
	}
	for name, value := range values {
		if value != "" && slices.Contains(notNative, name) || strings.Contains(value, rule.FieldPrefix) {
			return nil
		}
	}
	for name := range q.fixed { // what a key imposes counts before what we ask
		if slices.Contains(steered, name) || strings.HasPrefix(name, "group_") || name == "max_facet_values" {
			return nil
		}
	}
	return &nativeSearch{
		rule: r, faceted: values["facet_by"],
		everything: strings.TrimSpace(values["q"]) == "*" && filter == "" && values["sort_by"] == "",
	}
}

// Natively implements adapters.Native: the queries are for the page, and for what is counted.
func (q *query) Natively() (queries []adapters.Query, err error) {
	n := q.native
	text := func(s string) []byte { return jsonedit.AppendString(nil, s) }
	type set struct {
		name  string
		value []byte
	}
	page := []set{{"group_by", text(rule.ClusterField)}, {"group_limit", []byte("1")}}
	if n.everything { // engines up to 0.24 group no more than the first hits of a search that nothing narrows or sorts
		page = append(page, set{"filter_by", text(rule.ClusterField + ":!=" + none)})
	}
	facets := strings.TrimPrefix(n.faceted+","+rule.ClusterField, ",")
	counts := []set{
		{"page", []byte("1")}, {"per_page", []byte("0")}, {"facet_by", text(facets)}, {"enable_analytics", text("false")},
	}
	if n.faceted == "" {
		counts = append(counts, set{"max_facet_values", strconv.AppendInt(nil, mostListed, 10)})
	}
	for i, list := range [][]set{page, counts} {
		body := q.base
		if i == 0 {
			body, err = jsonedit.Cut(body, func(key string) bool { return key == "facet_by" })
		}
		for _, s := range list {
			if err == nil {
				body, err = with(body, s.name, s.value)
			}
		}
		queries = append(queries, adapters.Query{Body: body, Raw: true})
	}
	return queries, err
}

// errCurated: the operator put hits in their places, each of which is a group of its own.
var errCurated = adapters.Alone{Reason: "curated"}

// NativePage implements adapters.Native.
func (q *query) NativePage(results []adapters.QueryResult) (*adapters.NativePage, error) {
	if len(results) != 2 {
		return nil, errors.New("not as many results as searches")
	}
	grouped := results[0].Raw()
	counted, err := parseResult(results[1].Raw(), ask{page: 1})
	if err != nil {
		return nil, counted.declined(err)
	}
	frame, ids, err := q.native.counts(counted.raw)
	if err != nil {
		return nil, err
	}
	hits, groups, err := q.groups(grouped)
	switch {
	case err != nil:
		return nil, err
	case groups == ids+1:
		return nil, adapters.ErrUnclustered
	case groups != ids:
		return nil, adapters.ErrMoved
	}
	page := &adapters.NativePage{Raw: counted.found, Shown: groups, Exact: true}
	page.Result, err = q.presentGroups(frame, grouped, hits, groups)
	return page, err
}

// presentGroups puts the hits into a result in place of its own, with what the engine says of the search for them.
func (q *query) presentGroups(frame, grouped []byte, hits [][]byte, groups int) ([]byte, error) {
	reader, found := jsonedit.NewReader(frame), -1
	if collapsed := q.asked.Controls.Collapsed; collapsed == nil || *collapsed {
		found = groups
	}
	frame = q.present(readResult(&reader, frame, 0, nil), found, jsonedit.Array(hits)).Bytes()
	members, err := jsonedit.Members(grouped)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"search_cutoff", "search_time_ms"} {
		if value := jsonedit.Get(members, name); value != nil && err == nil {
			frame, err = jsonedit.Set(frame, name, value)
		}
	}
	return frame, err
}

// counts takes what was counted for us out of a result; ids is how many clusters there are among the hits.
func (n *nativeSearch) counts(raw []byte) (frame []byte, ids int, err error) {
	members, err := jsonedit.Members(raw)
	if err != nil {
		return nil, 0, err
	}
	fields, err := jsonedit.Elements(jsonedit.Get(members, "facet_counts"))
	if err != nil || len(fields) == 0 {
		return nil, 0, errors.New("a result without our facet")
	}
	ours, err := jsonedit.Members(fields[len(fields)-1])
	if err != nil {
		return nil, 0, err
	}
	if name, _ := jsonedit.Text(jsonedit.Get(ours, "field_name")); name != rule.ClusterField {
		return nil, 0, errors.New("a result without our facet")
	}
	stats, err := jsonedit.Members(jsonedit.Get(ours, "stats"))
	if err != nil {
		return nil, 0, err
	}
	if ids = count(stats, "total_values"); ids < 0 {
		return nil, 0, errors.New("a facet without total_values")
	}
	values, err := jsonedit.Elements(jsonedit.Get(ours, "counts"))
	if err != nil {
		return nil, 0, err
	}
	for _, value := range values {
		members, err := jsonedit.Members(value)
		if err != nil {
			return nil, 0, err
		}
		if id, _ := jsonedit.Text(jsonedit.Get(members, "value")); !n.rule.Clustered(id) {
			return nil, 0, adapters.ErrUnclustered
		}
	}
	frame, err = jsonedit.Set(raw, "facet_counts", jsonedit.Array(fields[:len(fields)-1]))
	return frame, ids, err
}

// groups returns the hits of a result in groups, one of each, and how many groups there are in all.
func (q *query) groups(raw []byte) (hits [][]byte, found int, err error) {
	members, err := jsonedit.Members(raw)
	if err != nil {
		return nil, 0, err
	}
	if err := refusalIn(members); err != nil {
		return nil, 0, (&result{raw: raw}).declined(err)
	}
	asked, err := jsonedit.Members(jsonedit.Get(members, "request_params"))
	if err != nil {
		return nil, 0, err
	}
	found = count(members, "found")
	if found < 0 || count(members, "page") != q.page || count(asked, "per_page") != q.perPage {
		return nil, 0, errors.New("the reply is of another page than was asked for")
	}
	list, err := jsonedit.Elements(jsonedit.Get(members, "grouped_hits"))
	if err != nil || len(list) > q.perPage {
		return nil, 0, errors.New("more groups than were asked for, or none")
	}
	for _, group := range list {
		hit, err := q.hitOf(group)
		if err != nil {
			return nil, 0, err
		}
		hits = append(hits, hit)
	}
	return hits, found, nil
}

// hitOf returns a group's hit as the client asked for it.
func (q *query) hitOf(group []byte) ([]byte, error) {
	members, err := jsonedit.Members(group)
	if err != nil {
		return nil, err
	}
	key, err := jsonedit.Elements(jsonedit.Get(members, "group_key"))
	if err != nil {
		return nil, err
	}
	list, err := jsonedit.Elements(jsonedit.Get(members, "hits"))
	if err != nil {
		return nil, err
	}
	if len(key) != 1 || len(list) != 1 {
		return nil, adapters.ErrUnclustered
	}
	if id, _ := jsonedit.Text(key[0]); !q.native.rule.Clustered(id) {
		return nil, adapters.ErrUnclustered
	}
	h, err := parseHit(list[0])
	switch {
	case err != nil:
		return nil, err
	case h.curated:
		return nil, errCurated
	case h.near:
		return nil, errors.New("the list is one of neighbours")
	}
	return q.bare(&h)
}
