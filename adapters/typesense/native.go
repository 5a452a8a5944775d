package typesense

import (
	"errors"
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

// mostListed is how many clusters are looked at for their mark beside those of the page, the largest first.
const mostListed = 100

// notNative are parameters that a search with groups takes otherwise, or that make its counts differ from those of one without.
var notNative = []string{
	"pinned_hits", "hidden_hits", "vector_query", "facet_query", "facet_sample_percent", "facet_sample_threshold", "facet_strategy",
	"group_limit", "group_missing_values", "preset", "limit", "offset", "search_cutoff_ms",
}

// groupable reports whether the engine may collapse the search.
func (q *query) groupable() bool {
	if q.asked.Unseen != "" || q.vector != nil || q.namesOurs {
		return false
	}
	filter, given := q.values["filter_by"]
	if _, grouped := q.values["group_by"]; grouped || given && filter == "" { // in the query string it would override ours
		return false
	}
	for name, value := range q.values {
		if value != "" && slices.Contains(notNative, name) || strings.Contains(value, rule.FieldPrefix) {
			return false
		}
	}
	for name := range q.key.fixed { // what a key imposes counts before what we ask
		if slices.Contains(steered, name) || strings.HasPrefix(name, "group_") || name == "max_facet_values" {
			return false
		}
	}
	return true
}

// Natively implements adapters.Native: the requests are for the page, and for what is counted.
func (q *query) Natively() (requests []*adapters.Request, err error) {
	page, faceted := []string{"group_by", rule.ClusterField, "group_limit", "1"}, q.values["facet_by"]
	if q.asked.Counting == nil {
		page = append(page, "facet_by", "")
	} else { // in a search with groups, facets count these
		faceted = ""
	}
	// Engines up to 0.24 group no more than the first hits of a search that nothing narrows or sorts.
	if strings.TrimSpace(q.values["q"]) == "*" && q.values["filter_by"]+q.values["sort_by"] == "" {
		page = append(page, "filter_by", rule.ClusterField+":!="+noField)
	}
	facets := strings.TrimPrefix(faceted+","+rule.ClusterField, ",")
	counts := []string{"page", "1", "per_page", "0", "facet_by", facets, "enable_analytics", "false"}
	if faceted == "" {
		counts = append(counts, "max_facet_values", strconv.Itoa(mostListed))
	}
	for _, params := range [][]string{page, counts} {
		body, err := put(q.base, false, params...)
		if err != nil {
			return nil, err
		}
		requests = append(requests, &adapters.Request{Body: body, Raw: true})
	}
	return requests, nil
}

// NativePage implements adapters.Native.
func (q *query) NativePage(replies []*adapters.Reply) (*adapters.NativePage, error) {
	if len(replies) != 2 {
		return nil, errors.New("not as many results as searches")
	}
	grouped := replies[0].Body
	counted, err := parseResult(replies[1].Body, &enginePage{number: 1})
	if err != nil {
		return nil, err
	}
	by := q.asked.Scope.Native
	frame, clusters, err := counts(by, counted.raw)
	if err != nil {
		return nil, err
	}
	hits, groups, err := q.groups(by, grouped)
	switch {
	case err != nil:
		return nil, err
	case groups == clusters+1:
		return nil, adapters.ErrUnclustered
	case groups != clusters:
		return nil, adapters.ErrMoved
	}
	reader, found := jsonedit.NewReader(frame), -1
	if collapsed := q.controls.Collapsed; collapsed == nil || *collapsed {
		found = groups
	}
	frame = q.withHits(readResult(&reader, frame, 0, nil), adapters.Pieces{jsonedit.Array(hits)}, found).Bytes()
	names := []string{"search_cutoff", "search_time_ms"}
	if q.asked.Counting != nil {
		names = append(names, "facet_counts")
	}
	for _, name := range names { // which the search for the hits says
		if value := member(grouped, name); value != nil && err == nil {
			frame, err = jsonedit.Set(frame, name, value)
		}
	}
	return &adapters.NativePage{Result: frame, Raw: counted.found, Shown: groups, Exact: true, Counts: adapters.CountsExact}, err
}

// counts takes what was counted for us out of a result, and returns how many clusters there are among the hits.
func counts(by *rule.Rule, raw []byte) (frame []byte, clusters int, err error) {
	fields, _ := jsonedit.Elements(member(raw, "facet_counts"))
	last := len(fields) - 1
	if last < 0 {
		return nil, 0, errors.New("a result without our facet")
	}
	ours := fields[last]
	values, err := jsonedit.Elements(member(ours, "counts"))
	clusters = whole(member(ours, "stats", "total_values"))
	if name, _ := jsonedit.Text(member(ours, "field_name")); name != rule.ClusterField || err != nil || clusters < 0 {
		return nil, 0, errors.New("a result without our facet, or one of another form")
	}
	for _, value := range values {
		if id, _ := jsonedit.Text(member(value, "value")); !by.Clustered(id) {
			return nil, 0, adapters.ErrUnclustered
		}
	}
	frame, err = jsonedit.Set(raw, "facet_counts", jsonedit.Array(fields[:last]))
	return frame, clusters, err
}

// groups returns the hits of a result in groups, one of each, and how many groups there are in all.
func (q *query) groups(by *rule.Rule, raw []byte) (hits [][]byte, found int, err error) {
	reader := jsonedit.NewReader(raw)
	r := readResult(&reader, raw, 0, nil)
	if r.err != nil {
		return nil, 0, r.err
	}
	list, err := jsonedit.Elements(member(raw, "grouped_hits"))
	if err != nil || r.found < 0 || r.page != q.page || len(list) > q.page.size {
		return nil, 0, errors.New("the reply is of another page than was asked for")
	}
	for _, group := range list {
		key, _ := jsonedit.Elements(member(group, "group_key"))
		inside, _ := jsonedit.Elements(member(group, "hits"))
		if len(key) != 1 || len(inside) != 1 {
			return nil, 0, adapters.ErrUnclustered
		}
		id, _ := jsonedit.Text(key[0])
		if !by.Clustered(id) {
			return nil, 0, adapters.ErrUnclustered
		}
		h, err := parseHit(inside[0])
		switch {
		case err != nil:
			return nil, 0, err
		case h.curated: // the operator put it in its place, where it is a group of its own
			return nil, 0, adapters.Alone{Reason: "curated"}
		case h.neighbour || h.fused:
			return nil, 0, errors.New("the list is one of neighbours")
		}
		pieces, err := q.appendHit(nil, &h)
		if err != nil {
			return nil, 0, err
		}
		hit := pieces.Bytes()
		if q.asked.Scope.Group {
			if hit, err = withMember(hit, (&adapters.Label{ID: id}).Members()); err != nil {
				return nil, 0, err
			}
		}
		hits = append(hits, hit)
	}
	return hits, r.found, nil
}
