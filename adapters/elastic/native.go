package elastic

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// In native mode a search goes to the engine once, as the client wrote it, with the engine's own collapse over ids of clusters.
// Beside the page it counts over the whole list: how many hits and clusters there are, and how many hits lack an id of the rule.
// If there is one, the engine may have hidden what is no near-duplicate: then the search is collapsed at query time.

// nativeCounts is the name of our aggregation, alien and clusters those of its parts.
const (
	nativeCounts = rule.FieldPrefix + "native"
	alien        = "alien"
	clusters     = "clusters"
)

// mostAggregations is how many aggregations of the client's may come with ours: engines answer them in the order of a hash
// table, which changes when that grows, at 12.
const mostAggregations = 10

// collapsesOver reports whether the engine's own collapse of a search is what ours would be, and its reply the client's own but
// for what can be taken out again.
func (d Dialect) collapsesOver(q *clientSearch) bool {
	switch {
	case q.after != nil, q.asked.Limit != maxResultWindow, q.fused != nil, q.namesOurs, remote(q.asked.Target),
		q.has("pit", "knn", "retriever", "rescore", "min_score", "terminate_after", "profile", "indices_boost"),
		d.judgedApart(q, []rule.Deciding{{Field: rule.ClusterField}}), q.hasParam("terminate_after", "search_type"):
		return false
	}
	// A list of neighbours differs with how many are asked for; and what the client says of a field of ours is for the engine alone.
	// Nobody writes a letter as an escape, from \u005f on, but who may mean one of these words.
	for _, word := range []string{`"knn"`, `"neural"`, `"hybrid"`, rule.FieldPrefix, `\u005`, `\u006`, `\u007`} {
		if bytes.Contains(q.body, []byte(word)) {
			return false
		}
	}
	_, own, err := q.aggregations()
	return err == nil && len(own) <= mostAggregations
}

// aggregations returns the key of the client's aggregations, or of those to add, and what it holds.
func (q *clientSearch) aggregations() (key string, own []jsonedit.Member, err error) {
	key = "aggs"
	if q.has("aggregations") {
		if key = "aggregations"; q.has("aggs") {
			return key, nil, adapters.ErrNotUnderstood
		}
	}
	if value := jsonedit.Get(q.members, key); value != nil {
		own, err = jsonedit.Members(value)
	}
	return key, own, err
}

// Natively implements adapters.Native.
func (q *clientSearch) Natively() ([]*adapters.Request, error) {
	body, err := jsonedit.Set(q.body, "collapse", []byte(`{"field":"`+rule.ClusterField+`"}`))
	if err != nil {
		return nil, err
	}
	key, _, err := q.aggregations()
	own := jsonedit.Get(q.members, key)
	if own == nil {
		own = []byte("{}")
	}
	if q.asked.Counting != nil {
		own, _ = byCluster(own, false)
	}
	if err == nil {
		own, err = jsonedit.Set(own, nativeCounts, q.counts())
	}
	if err == nil {
		body, err = jsonedit.Set(body, key, own)
	}
	request := q.sentWith(body, []string{"filter_path"}, false)
	request.Hits, request.Raw = q.asked.Size, true
	return []*adapters.Request{request}, err
}

// counts returns our aggregation: over what is collapsed, which is what the client's post_filter lets through. Ids of the rule
// begin with its mark; all others sort before it, or after all that do.
func (q *clientSearch) counts() []byte {
	filter := jsonedit.Get(q.members, "post_filter")
	if filter == nil || string(filter) == "null" {
		filter = []byte(`{"match_all":{}}`)
	}
	mark := q.asked.Scope.Native.ClusterMark()
	behind := mark[:len(mark)-1] + string(mark[len(mark)-1]+1)
	const field = `"` + rule.ClusterField + `"`
	out := append([]byte(`{"filter":`), filter...)
	out = append(out, `,"aggs":{"`+alien+`":{"filter":{"bool":{"should":[{"bool":{"must_not":{"exists":{"field":`+field+`}}}},`+
		`{"range":{`+field+`:{"lt":"`+mark+`"}}},{"range":{`+field+`:{"gte":"`+behind+`"}}}]}}},`+
		`"`+clusters+`":{"cardinality":{"field":`+field+`}}}}`...)
	return out
}

// NativePage implements adapters.Native.
func (q *clientSearch) NativePage(replies []*adapters.Reply) (*adapters.NativePage, error) {
	reply := replies[0].Body
	if err := q.declined(reply, false); err != nil {
		return nil, err
	}
	root, err := jsonedit.Members(reply)
	if err != nil {
		return nil, err
	}
	shards, err := jsonedit.Members(jsonedit.Get(root, "_shards"))
	if failed := jsonedit.Get(shards, "failed"); err != nil || failed != nil && string(failed) != "0" {
		return nil, adapters.ErrWidened
	}
	p := &adapters.NativePage{Counts: adapters.CountsApproximate}
	if reply, err = q.takeCounts(p, reply, jsonedit.Get(root, "aggregations")); err != nil {
		return nil, err
	}
	read, err := parseReply(reply, nil)
	if err != nil {
		return nil, err
	}
	alien := func(h hit) bool { return !q.asked.Scope.Native.Clustered(clusterOf(&h)) }
	if len(read.hits) > p.Raw || len(read.hits) > q.asked.Size || slices.ContainsFunc(read.hits, alien) {
		return nil, adapters.ErrUnclustered
	}
	list, total := rawOf(read.hits), []byte(nil)
	if q.asked.Scope.Group {
		for i := range read.hits {
			if list[i], err = withLabel(list[i], &adapters.Label{ID: clusterOf(&read.hits[i])}); err != nil {
				return nil, err
			}
		}
	}
	// Where the engine counts up to a limit alone, and there are more clusters than that, its own total stays true.
	if q.asked.Scope.CollapsedTotals && !(read.lowest && p.Shown >= read.total) {
		total = totalOf(read.of(read.count), p.Shown)
		if read.lowest {
			total, err = jsonedit.Set(total, "relation", []byte(`"eq"`))
		}
	}
	if total != nil || q.asked.Scope.Group {
		reply = read.with(list, total)
	}
	p.Result = jsonedit.Cleaned(reply, inDocument)
	return p, err
}

// takeCounts reads what was counted and returns the reply without it.
func (q *clientSearch) takeCounts(p *adapters.NativePage, reply, counted []byte) ([]byte, error) {
	ours := func(key string) bool { // typed_keys puts a type before each name
		return key == nativeCounts || strings.HasSuffix(key, "#"+nativeCounts)
	}
	members, err := jsonedit.Members(counted)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(members, func(m jsonedit.Member) bool { return ours(m.Key) })
	if at < 0 {
		return nil, adapters.ErrNotUnderstood
	}
	aliens := -1
	parts, err := jsonedit.Members(members[at].Value)
	for _, part := range parts {
		switch {
		case part.Key == "doc_count":
			p.Raw, err = strconv.Atoi(string(part.Value))
		case strings.HasSuffix(part.Key, alien):
			aliens, err = numberOf(part.Value, "doc_count")
		case strings.HasSuffix(part.Key, clusters):
			p.Shown, err = numberOf(part.Value, "value")
		}
		if err != nil {
			return nil, err
		}
	}
	p.Shown = min(p.Shown, p.Raw)
	switch {
	case err != nil:
		return nil, err
	case aliens != 0:
		return nil, adapters.ErrUnclustered
	case len(members) == 1:
		return jsonedit.Cut(reply, func(key string) bool { return key == "aggregations" })
	}
	left, err := jsonedit.Cut(counted, ours)
	if err == nil && q.asked.Counting != nil {
		left, err = withClusters(left)
	}
	if err != nil {
		return nil, err
	}
	return jsonedit.Set(reply, "aggregations", left)
}

// numberOf returns a whole number in an object.
func numberOf(object []byte, key string) (int, error) {
	members, err := jsonedit.Members(object)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(jsonedit.Get(members, key)))
}

// clusterOf returns the id of a hit's cluster, which the engine extracts by itself; nothing if there is not one.
func clusterOf(h *hit) string {
	fields, _ := jsonedit.Members(h.at(h.fields))
	values, err := jsonedit.Elements(jsonedit.Get(fields, rule.ClusterField))
	if err != nil || len(values) != 1 {
		return ""
	}
	id, _ := jsonedit.Text(values[0])
	return id
}

// blamesCollapse reports whether the engine's failure can be for what we asked.
func blamesCollapse(reply *adapters.Reply) bool {
	return reply.Status >= 500 && slices.ContainsFunc([]string{"collapse", rule.FieldPrefix}, func(word string) bool {
		return bytes.Contains(reply.Body, []byte(word))
	})
}

// breaks reports whether the engine refuses what would take too much of its memory.
func breaks(reply *adapters.Reply) bool {
	return (reply.Status == 429 || reply.Status >= 500) && bytes.Contains(reply.Body, []byte(`"circuit_breaking_exception"`))
}
