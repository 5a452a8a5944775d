package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// In native mode a search goes to the engine once, as the client wrote it, with the engine's own collapse over ids of clusters.
// Beside the page it counts over the whole list: how many hits and clusters there are, and how many hits lack an id of the rule.
// If there is one, the engine may have hidden what is no near-duplicate: then the search is collapsed at query time.

// nativeCounts is the name of our aggregation, alien and clusters those of its parts.
const (
	nativeCounts = adapters.FieldPrefix + "native"
	alien        = "alien"
	clusters     = "clusters"
)

// mostAggregations is how many aggregations of the client's can stand beside ours: engines answer them in the order of a hash
// table, which changes when that grows, at 12.
const mostAggregations = 10

// nativeList is one search that the engine collapses.
type nativeList struct {
	q    *query
	rule *adapters.Rule
	show adapters.Show

	raw, clusters int
}

// newNative returns the search as one that the engine collapses, nil if it is one for query time; fell says why it is that for a
// while.
func (d Dialect) newNative(q *query, scope adapters.Scope) (n *nativeList, fell adapters.Reason) {
	rule, fell := scope.NativeUnder(q.controls)
	if rule == nil && fell == "" || !d.collapsesOver(q) {
		return nil, ""
	}
	if rule == nil {
		return nil, fell
	}
	return &nativeList{q: q, rule: rule, show: scope.Show(q.controls)}, ""
}

// collapsesOver reports whether the engine's own collapse of a search is what ours would be, and its reply the client's own but
// for what can be taken out again.
func (d Dialect) collapsesOver(q *query) bool {
	switch {
	case q.after != nil, q.limit != maxResultWindow, q.shown, remote(q.target),
		q.has("pit", "knn", "retriever", "rescore", "min_score", "terminate_after", "profile", "indices_boost"),
		d.apart(q, []adapters.Deciding{{Field: adapters.ClusterField}}):
		return false
	}
	for _, name := range []string{"terminate_after", "search_type"} {
		if _, given := adapters.Last(q.params, name); given {
			return false
		}
	}
	// A list of neighbours differs with how many are asked for; and what the client says of a field of ours is for the engine alone.
	// Nobody writes a letter as an escape, from \u005f on, but who may mean one of these words.
	for _, word := range []string{`"knn"`, `"neural"`, `"hybrid"`, adapters.FieldPrefix, `\u005`, `\u006`, `\u007`} {
		if bytes.Contains(q.body, []byte(word)) {
			return false
		}
	}
	_, own, err := q.aggregations()
	return err == nil && len(own) <= mostAggregations
}

// aggregations returns the key under which the client's aggregations stand, or would, and these.
func (q *query) aggregations() (key string, own []adapters.Member, err error) {
	key = "aggs"
	if q.has("aggregations") {
		if key = "aggregations"; q.has("aggs") {
			return key, nil, adapters.ErrNotUnderstood
		}
	}
	if value := adapters.Get(q.members, key); value != nil {
		own, err = adapters.Members(value)
	}
	return key, own, err
}

// ask returns the body to ask, and the names of URL parameters that it makes void.
func (n *nativeList) ask() (body []byte, void []string, err error) {
	body, err = adapters.Set(n.q.body, "collapse", []byte(`{"field":"`+adapters.ClusterField+`"}`))
	if err != nil {
		return nil, nil, err
	}
	key, _, err := n.q.aggregations()
	own := adapters.Get(n.q.members, key)
	if own == nil {
		own = []byte("{}")
	}
	if err == nil {
		own, err = adapters.Set(own, nativeCounts, n.counts())
	}
	if err == nil {
		body, err = adapters.Set(body, key, own)
	}
	return body, []string{"filter_path"}, err
}

// counts returns our aggregation: over what is collapsed, which is what the client's post_filter lets through. Ids of the rule
// begin with its mark; all others sort before it, or behind all that do.
func (n *nativeList) counts() []byte {
	filter := adapters.Get(n.q.members, "post_filter")
	if filter == nil || string(filter) == "null" {
		filter = []byte(`{"match_all":{}}`)
	}
	mark := n.rule.ClusterMark()
	behind := mark[:len(mark)-1] + string(mark[len(mark)-1]+1)
	const field = `"` + adapters.ClusterField + `"`
	out := append([]byte(`{"filter":`), filter...)
	out = append(out, `,"aggs":{"`+alien+`":{"filter":{"bool":{"should":[{"bool":{"must_not":{"exists":{"field":`+field+`}}}},`+
		`{"range":{`+field+`:{"lt":"`+mark+`"}}},{"range":{`+field+`:{"gte":"`+behind+`"}}}]}}},`+
		`"`+clusters+`":{"cardinality":{"field":`+field+`}}}}`...)
	return out
}

// errUnclustered: hits have no id of a cluster, or one of another rule.
var errUnclustered = errors.New("hits without the id of a cluster")

// take returns the reply as the client asked for it. With errUnclustered, or another error, it is no answer.
func (n *nativeList) take(reply []byte) ([]byte, error) {
	root, err := adapters.Members(reply)
	if err != nil {
		return nil, err
	}
	shards, err := adapters.Members(adapters.Get(root, "_shards"))
	if failed := adapters.Get(shards, "failed"); err != nil || failed != nil && string(failed) != "0" {
		return nil, adapters.ErrWidened
	}
	if reply, err = n.takeCounts(reply, adapters.Get(root, "aggregations")); err != nil {
		return nil, err
	}
	list, _, err := hitsOf(reply)
	if err != nil {
		return nil, err
	}
	if !n.q.counted(list, n.raw) || slices.ContainsFunc(list, func(hit []byte) bool { return !n.rule.Clustered(clusterOf(hit)) }) {
		return nil, errUnclustered
	}
	if n.show.Collapsed {
		outer, err := withClusters(adapters.Get(root, "hits"), n.clusters)
		if err != nil {
			return nil, err
		}
		if reply, err = adapters.Set(reply, "hits", outer); err != nil {
			return nil, err
		}
	}
	return adapters.Cleaned(reply, inDocument), nil
}

// counted reports whether as many hits as are shown were counted.
func (q *query) counted(list [][]byte, raw int) bool { return len(list) <= raw && len(list) <= q.size }

// takeCounts reads what was counted and returns the reply without it.
func (n *nativeList) takeCounts(reply, counted []byte) ([]byte, error) {
	ours := func(key string) bool { // with typed_keys, a type stands in front of each name
		return key == nativeCounts || strings.HasSuffix(key, "#"+nativeCounts)
	}
	members, err := adapters.Members(counted)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(members, func(m adapters.Member) bool { return ours(m.Key) })
	if at < 0 {
		return nil, adapters.ErrNotUnderstood
	}
	aliens := -1
	parts, err := adapters.Members(members[at].Value)
	for _, part := range parts {
		switch {
		case part.Key == "doc_count":
			n.raw, err = strconv.Atoi(string(part.Value))
		case strings.HasSuffix(part.Key, alien):
			aliens, err = numberOf(part.Value, "doc_count")
		case strings.HasSuffix(part.Key, clusters):
			n.clusters, err = numberOf(part.Value, "value")
		}
		if err != nil {
			return nil, err
		}
	}
	n.clusters = min(n.clusters, n.raw)
	switch {
	case err != nil:
		return nil, err
	case aliens != 0:
		return nil, errUnclustered
	case len(members) == 1:
		return adapters.Cut(reply, func(key string) bool { return key == "aggregations" })
	}
	left, err := adapters.Cut(counted, ours)
	if err != nil {
		return nil, err
	}
	return adapters.Set(reply, "aggregations", left)
}

// numberOf returns a whole number in an object.
func numberOf(object []byte, key string) (int, error) {
	members, err := adapters.Members(object)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(adapters.Get(members, key)))
}

// clusterOf returns the id of a hit's cluster, which the engine extracts by itself; nothing if there is not one.
func clusterOf(hit []byte) string {
	members, err := adapters.Members(hit)
	if err != nil {
		return ""
	}
	fields, err := adapters.Members(adapters.Get(members, "fields"))
	if err != nil {
		return ""
	}
	values, err := adapters.Elements(adapters.Get(fields, adapters.ClusterField))
	if err != nil || len(values) != 1 {
		return ""
	}
	id, _ := adapters.Text(values[0])
	return id
}

// withClusters returns the object around a reply's hits with the number of clusters for its total, in whichever form it has one.
// Where the engine counts up to a limit alone, and there are more clusters than that, its own stays true.
func withClusters(outer []byte, clusters int) ([]byte, error) {
	members, err := adapters.Members(outer)
	if err != nil {
		return nil, err
	}
	total := adapters.Get(members, "total")
	value := strconv.AppendInt(nil, int64(clusters), 10)
	form, err := adapters.Members(total)
	switch n, _ := strconv.Atoi(string(adapters.Get(form, "value"))); {
	case total == nil:
		return outer, nil
	case err != nil:
		return adapters.Set(outer, "total", value)
	case string(adapters.Get(form, "relation")) == `"gte"` && clusters >= n:
		return outer, nil
	}
	if total, err = adapters.Set(total, "value", value); err == nil {
		total, err = adapters.Set(total, "relation", []byte(`"eq"`))
	}
	if err != nil {
		return nil, err
	}
	return adapters.Set(outer, "total", total)
}

// outcome returns what was done.
func (n *nativeList) outcome() adapters.Outcome {
	return adapters.Outcome{Target: n.q.target, Raw: n.raw, Folded: n.raw - n.clusters, Rounds: 1, Native: true}
}
