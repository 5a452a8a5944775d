package typesense

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// In native mode a search is asked twice in one request: as the client wrote it, with the engine's own group_by over the ids of
// clusters and one hit of each group; and for no hit, ungrouped. The second shows what grouping would change, the client's facets
// and the number of hits, and counts the clusters among them: engines up to 0.24 put all documents without an id into one group,
// so that there is a group more than clusters where there is such a document.

// nativeSearch is one search that the engine groups. A nil one is of a search for query time alone.
type nativeSearch struct {
	q    *query
	rule *adapters.Rule
	// everything says that the search lists all documents in no order of the client's, and faceted what it wants counted.
	everything bool
	faceted    string

	asked bool
	raw   int
	found int // groups
	fell  string
	unfit bool
}

const (
	// none is the id of no cluster.
	none = adapters.FieldPrefix + "none"
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
	rule, fell := scope.NativeUnder(q.controls)
	if rule == nil && fell == "" || q.unseen() || q.near != nil || q.shown {
		return nil
	}
	members, err := adapters.Members(q.body)
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
		if value != "" && slices.Contains(notNative, name) || strings.Contains(value, adapters.FieldPrefix) {
			return nil
		}
	}
	for name := range q.fixed { // what a key imposes counts before what we ask
		if slices.Contains(steered, name) || strings.HasPrefix(name, "group_") || name == "max_facet_values" {
			return nil
		}
	}
	return &nativeSearch{
		q: q, rule: rule, fell: fell, faceted: values["facet_by"],
		everything: strings.TrimSpace(values["q"]) == "*" && filter == "" && values["sort_by"] == "",
	}
}

// open reports whether the engine has the search.
func (n *nativeSearch) open() bool { return n != nil && n.fell == "" }

// next returns what to ask: the page, and what is counted.
func (n *nativeSearch) next() (bodies [][]byte) {
	text := func(s string) []byte { return adapters.AppendString(nil, s) }
	type set struct {
		name  string
		value []byte
	}
	page := []set{{"group_by", text(adapters.ClusterField)}, {"group_limit", []byte("1")}}
	if n.everything { // engines up to 0.24 group no more than the first hits of a search that nothing narrows or sorts
		page = append(page, set{"filter_by", text(adapters.ClusterField + ":!=" + none)})
	}
	facets := strings.TrimPrefix(n.faceted+","+adapters.ClusterField, ",")
	counts := []set{
		{"page", []byte("1")}, {"per_page", []byte("0")}, {"facet_by", text(facets)}, {"enable_analytics", text("false")},
	}
	if n.faceted == "" {
		counts = append(counts, set{"max_facet_values", strconv.AppendInt(nil, mostListed, 10)})
	}
	var err error
	bodies = make([][]byte, 2)
	for i, list := range [][]set{page, counts} {
		if bodies[i] = n.q.base; i == 0 {
			bodies[i], err = adapters.Cut(bodies[i], func(key string) bool { return key == "facet_by" })
		}
		for _, s := range list {
			if err == nil {
				bodies[i], err = with(bodies[i], s.name, s.value)
			}
		}
	}
	if err != nil {
		n.fall(err)
		return nil
	}
	n.asked = true
	return bodies
}

// errUnclustered: documents have no id of a cluster, or one of another rule.
var errUnclustered = errors.New("documents without the id of a cluster")

// errCurated: the operator put hits in their places, each of which is a group of its own.
var errCurated = errors.New("hits with a place of their own")

// take returns the result that the client gets, nothing if the search goes on at query time.
func (n *nativeSearch) take(results [][]byte) []byte {
	result, err := n.collapsed(results)
	if err != nil {
		n.fall(err)
		return nil
	}
	return result
}

// fall has the search go on at query time.
func (n *nativeSearch) fall(err error) {
	_, refused := errors.AsType[*refusal](err)
	switch n.fell = "not_understood"; {
	case errors.Is(err, errUnclustered):
		n.fell, n.unfit = adapters.Unclustered, true
	case errors.Is(err, errMoved):
		n.fell = adapters.Moved
	case errors.Is(err, errCurated):
		n.fell = "curated"
	case refused: // at query time it is seen whose fault that is
		n.fell, n.unfit = adapters.NativeRefused, true
	}
}

func (n *nativeSearch) collapsed(results [][]byte) ([]byte, error) {
	if len(results) != 2 {
		return nil, errors.New("not as many results as searches")
	}
	counted, err := parseResult(results[1], ask{page: 1})
	if err != nil {
		return nil, err
	}
	frame, ids, err := n.counts(counted.raw)
	if err != nil {
		return nil, err
	}
	hits, err := n.groups(results[0])
	if err != nil {
		return nil, err
	}
	switch n.raw = counted.found; {
	case n.found == ids+1:
		return nil, errUnclustered
	case n.found != ids:
		return nil, errMoved
	}
	reader, found := adapters.NewReader(frame), -1
	if n.q.controls.Collapsed == nil || *n.q.controls.Collapsed {
		found = n.found
	}
	frame, err = n.q.present(readResult(&reader, frame, element{}), found, func(dst []byte) ([]byte, error) {
		return append(dst, bytes.Join(hits, []byte{','})...), nil
	})
	if err != nil {
		return nil, err
	}
	grouped, err := adapters.Members(results[0])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"search_cutoff", "search_time_ms"} {
		if value := adapters.Get(grouped, name); value != nil && err == nil {
			frame, err = adapters.Set(frame, name, value)
		}
	}
	return frame, err
}

// counts takes what was counted for us out of a result; ids is how many clusters there are among the hits.
func (n *nativeSearch) counts(raw []byte) (frame []byte, ids int, err error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return nil, 0, err
	}
	fields, err := adapters.Elements(adapters.Get(members, "facet_counts"))
	if err != nil || len(fields) == 0 {
		return nil, 0, errors.New("a result without our facet")
	}
	ours, err := adapters.Members(fields[len(fields)-1])
	if err != nil {
		return nil, 0, err
	}
	if name, _ := adapters.Text(adapters.Get(ours, "field_name")); name != adapters.ClusterField {
		return nil, 0, errors.New("a result without our facet")
	}
	stats, err := adapters.Members(adapters.Get(ours, "stats"))
	if err != nil {
		return nil, 0, err
	}
	if ids = count(stats, "total_values"); ids < 0 {
		return nil, 0, errors.New("a facet without total_values")
	}
	values, err := adapters.Elements(adapters.Get(ours, "counts"))
	if err != nil {
		return nil, 0, err
	}
	for _, value := range values {
		members, err := adapters.Members(value)
		if err != nil {
			return nil, 0, err
		}
		if id, _ := adapters.Text(adapters.Get(members, "value")); !n.rule.Clustered(id) {
			return nil, 0, errUnclustered
		}
	}
	frame, err = adapters.Set(raw, "facet_counts", array(fields[:len(fields)-1]))
	return frame, ids, err
}

// groups returns the hits of a result in groups, one of each.
func (n *nativeSearch) groups(raw []byte) (hits [][]byte, err error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return nil, err
	}
	if err := refusalIn(members); err != nil {
		return nil, err
	}
	asked, err := adapters.Members(adapters.Get(members, "request_params"))
	if err != nil {
		return nil, err
	}
	n.found = count(members, "found")
	if n.found < 0 || count(members, "page") != n.q.page || count(asked, "per_page") != n.q.perPage {
		return nil, errors.New("the reply is of another page than was asked for")
	}
	list, err := adapters.Elements(adapters.Get(members, "grouped_hits"))
	if err != nil || len(list) > n.q.perPage {
		return nil, errors.New("more groups than were asked for, or none")
	}
	for _, group := range list {
		hit, err := n.hitOf(group)
		if err != nil {
			return nil, err
		}
		hits = append(hits, hit)
	}
	return hits, nil
}

// hitOf returns a group's hit as the client asked for it.
func (n *nativeSearch) hitOf(group []byte) ([]byte, error) {
	members, err := adapters.Members(group)
	if err != nil {
		return nil, err
	}
	key, err := adapters.Elements(adapters.Get(members, "group_key"))
	if err != nil {
		return nil, err
	}
	list, err := adapters.Elements(adapters.Get(members, "hits"))
	if err != nil {
		return nil, err
	}
	if len(key) != 1 || len(list) != 1 {
		return nil, errUnclustered
	}
	if id, _ := adapters.Text(key[0]); !n.rule.Clustered(id) {
		return nil, errUnclustered
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
	return n.q.bare(&h)
}

// outcome returns what was done, of the search at query time where it went on there.
func (n *nativeSearch) outcome(c *collapse) adapters.Outcome {
	if n.open() {
		return adapters.Outcome{
			Target: n.q.target, Raw: n.raw, Folded: n.raw - n.found, Exact: true, Rounds: 1, Native: true,
		}
	}
	o := c.outcome()
	if n != nil {
		if o.Fell, o.Tried, o.Unfit = n.fell, n.asked, n.unfit; n.asked {
			o.Rounds++
		}
	}
	return o
}
