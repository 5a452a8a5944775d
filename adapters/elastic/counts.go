package elastic

import (
	"bytes"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Aggregations count groups in one of two ways. At query time the client's own are asked for again, over the documents that the collapsed list shows: the
// engine's semantics are those of the client's request, whatever it asks for. In native mode each bucket gets a further aggregation, the cardinality of
// the ids of clusters, whose value takes the place of the bucket's doc_count.

// mostCounted is of how many documents aggregations are asked for at most: engines grant as many ids in one query.
const mostCounted = 10000

// countable are the keys of a search's body that its aggregations depend on beside its query, countableParams the parameters of its URL.
var (
	countable       = []string{"aggs", "aggregations", "runtime_mappings", "derived", "pit"}
	countableParams = strings.Fields(`
		routing preference typed_keys ignore_unavailable allow_no_indices expand_wildcards ignore_throttled ccs_minimize_roundtrips
		allow_partial_search_results pretty human error_trace index`)
)

// uncountable are words of aggregations that depend on more than which documents they are over: on all of the index, or on scores.
var uncountable = []string{`"global"`, `"significant_t`, `"top_hits"`, `sampler"`, "_score", `\u00`}

// readCounts reads whether aggregations are to count groups, and says why the search is left alone, or nothing.
func (q *clientSearch) readCounts() adapters.Reason {
	wanted := q.asked.Scope.CountsGroups && q.aggregates()
	return q.asked.Count(q, wanted, wanted && q.countable())
}

// aggregates reports whether the search has aggregations.
func (q *clientSearch) aggregates() bool {
	_, own, err := q.aggregations()
	return err == nil && len(own) > 0
}

// countable reports whether the aggregations of the search are over its list, and depend on nothing but the documents in it.
func (q *clientSearch) countable() bool {
	filter := jsonedit.Get(q.members, "post_filter")
	if filter != nil && string(filter) != "null" || q.after != nil || q.asked.Neighbours != nil || q.fused != nil || remote(q.asked.Target) {
		return false
	}
	if q.asked.Limit < q.asked.Scope.Window { // the first ranks of its list are all that can be read
		return false
	}
	key, _, _ := q.aggregations()
	own := jsonedit.Get(q.members, key)
	return !slices.ContainsFunc(uncountable, func(word string) bool { return bytes.Contains(own, []byte(word)) })
}

// requestCounts returns the request for the client's aggregations over the documents of a reading's ranks.
func (q *clientSearch) requestCounts(r *adapters.Reading) ([]*adapters.Request, error) {
	if known := hitOf(&r.Known[0]).in; known.numbered && known.shards != 1 { // several shards share numbers
		return nil, errUnnumbered
	}
	if len(r.Ranks) > mostCounted || !tellable(r) {
		return nil, adapters.Alone{Reason: adapters.ReasonUncountable, Searched: true}
	}
	body, err := jsonedit.Cut(q.body, func(key string) bool { return !slices.Contains(countable, key) })
	if err == nil {
		body, err = jsonedit.Append(body, slices.Concat([]byte(`"size":0,"track_total_hits":false,"query":`), only(r)))
	}
	request := q.sentWith(body, nil, false)
	request.RawQuery = adapters.RawQuery(q.params, func(name string) bool { return slices.Contains(countableParams, name) })
	return []*adapters.Request{request}, err
}

// WithCounts implements adapters.Counting.
func (q *clientSearch) WithCounts(result []byte, counts *adapters.Listing) ([]byte, error) {
	reply := counts.Parsed.(*parsedReply).text
	counted := jsonedit.Lookup(reply, "aggregations")
	if counted == nil {
		return nil, adapters.ErrNotUnderstood
	}
	if failedShards(reply) > failedShards(result) || timedOut(reply) && !timedOut(result) { // it lacks documents of the page
		return nil, adapters.ErrMoved
	}
	return jsonedit.Set(result, "aggregations", counted)
}

// failedShards returns how many shards a reply lacks.
func failedShards(reply []byte) int {
	n, _ := numberOf(jsonedit.Lookup(reply, "_shards"), "failed")
	return n
}

// timedOut reports whether the engine cut a reply short.
func timedOut(reply []byte) bool { return string(jsonedit.Lookup(reply, "timed_out")) == "true" }

// clusterCount is the name of the aggregation that counts the clusters in a bucket. It is nearly exact up to 3,000, and takes 16 KB for each bucket. Up to
// 40,000 it would take 256 KB: some hundred buckets then exceed what an engine grants a request.
const (
	clusterCount     = rule.FieldPrefix + "clusters"
	clusterCountBody = `{"cardinality":{"field":"` + rule.ClusterField + `","precision_threshold":3000}}`
)

// buckets are the aggregations whose buckets can count clusters.
var buckets = []string{"terms", "date_histogram", "histogram", "range", "date_range", "filter", "filters", "missing"}

// byCluster returns aggregations with one in each bucket that counts its clusters. It is not ok where there is one whose result would not be right.
func byCluster(aggregations []byte, inBucket bool) (_ []byte, ok bool) {
	list, err := jsonedit.Members(aggregations)
	if err != nil || len(list) > mostAggregations {
		return nil, false
	}
	for _, m := range list {
		one, ok := bucketsByCluster(m.Value)
		if !ok {
			return nil, false
		}
		if aggregations, err = jsonedit.Set(aggregations, m.Key, one); err != nil {
			return nil, false
		}
	}
	if inBucket {
		aggregations, err = jsonedit.Set(aggregations, clusterCount, []byte(clusterCountBody))
	}
	return aggregations, err == nil
}

// bucketsByCluster returns one aggregation whose buckets count clusters. Buckets in the order of their counts are in that of the clusters then: a terms
// aggregation returns the first ones alone.
func bucketsByCluster(one []byte) (_ []byte, ok bool) {
	members, err := jsonedit.Members(one)
	if err != nil {
		return nil, false
	}
	key, inside := "aggs", []byte("{}")
	for _, m := range members {
		switch {
		case m.Key == "meta":
		case m.Key == "aggs" || m.Key == "aggregations":
			key, inside = m.Key, m.Value
		case !slices.Contains(buckets, m.Key):
			return nil, false
		case m.Key == "terms":
			if m.Value, ok = termsByCluster(m.Value); !ok {
				return nil, false
			}
			if one, err = jsonedit.Set(one, m.Key, m.Value); err != nil {
				return nil, false
			}
		case !anyCount(m.Value) || jsonedit.Lookup(m.Value, "order") != nil:
			return nil, false
		}
	}
	if inside, ok = byCluster(inside, true); !ok {
		return nil, false
	}
	one, err = jsonedit.Set(one, key, inside)
	return one, err == nil
}

// countsClusters reports whether the engine can count clusters for all of the client's aggregations.
func (q *clientSearch) countsClusters() bool {
	key, _, _ := q.aggregations()
	_, ok := byCluster(jsonedit.Get(q.members, key), false)
	return ok
}

// anyCount reports whether buckets are returned whatever their count, or unless it is 0.
func anyCount(body []byte) bool {
	least := string(jsonedit.Lookup(body, "min_doc_count"))
	return least == "" || least == "0" || least == "1"
}

// termsByCluster returns a terms aggregation in the order of clusters, or in that of its terms where the client asks for it.
func termsByCluster(body []byte) (_ []byte, ok bool) {
	order := jsonedit.Lookup(body, "order")
	switch strings.Join(strings.Fields(string(order)), "") {
	case "", `{"_count":"desc"}`:
		var err error
		if body, err = jsonedit.Set(body, "order", []byte(`[{"`+clusterCount+`":"desc"},{"_key":"asc"}]`)); err != nil {
			return nil, false
		}
	case `{"_key":"asc"}`, `{"_key":"desc"}`:
	default:
		return nil, false
	}
	return body, anyCount(body) && jsonedit.Lookup(body, "show_term_doc_count_error") == nil
}

// withClusters returns the aggregations of a reply with the number of clusters in each bucket as its doc_count.
func withClusters(aggregations []byte) ([]byte, error) {
	var c clusterCounts
	r := jsonedit.NewReader(aggregations)
	c.read(&r)
	if !r.Done() {
		return nil, jsonedit.ErrMalformed
	}
	return c.edits.Apply(aggregations), nil
}

// clusterCounts collects what changes in the aggregations of a reply.
type clusterCounts struct{ edits jsonedit.Edits }

// read reads the value that comes next, with all buckets in it.
func (c *clusterCounts) read(r *jsonedit.Reader) {
	switch {
	case r.Enter('['):
		for r.Next() {
			c.read(r)
		}
	case r.Enter('{'):
		c.bucket(r)
	default:
		r.Value()
	}
}

// bucket reads the members of an object, which is a bucket if its clusters were counted.
func (c *clusterCounts) bucket(r *jsonedit.Reader) {
	var count extent
	var clusters []byte
	for end := r.At(); r.Next(); end = r.At() {
		key, from := string(r.Key()), r.At()
		switch {
		case key == "doc_count" && !r.Enter('{'):
			r.Value()
			count = span(from, r.At())
		case key == "doc_count": // an aggregation or a filter of that name
			c.bucket(r)
		case count.to > 0 && (key == clusterCount || strings.HasSuffix(key, "#"+clusterCount)): // typed_keys puts a type before each name
			clusters = jsonedit.Lookup(r.Value(), "value")
			c.edits = append(c.edits, jsonedit.Edit{From: end, To: r.At()})
		default:
			c.read(r)
		}
	}
	if clusters != nil {
		c.edits = append(c.edits, jsonedit.Edit{From: int(count.from), To: int(count.to), With: clusters})
	}
}
