package elastic

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// likely is the share of hits that fold from which on the longer list is asked for first, where the order is free.
const likely = 0.03

// neighbours is what is special about a search for nearest neighbours, until it is settled which list is collapsed: the
// client's own, or, if something folds in its first ranks, that of more neighbours, on every page alike and at most as long
// as the client's own.
type neighbours struct {
	// raised is the body with more neighbours, of which it asks for ranks.
	raised []byte
	// ranks is also down to where the client's own list is looked at.
	ranks int
	// mixed says that the list holds other hits than neighbours, so that it can be long.
	mixed bool
	// k is how many neighbours the client asks for where these are all of its list, each says of each shard; 0 where they are
	// not. All that it asks for beside its hits then follows from the longer list, in whose first ranks it is seen whether
	// something folds.
	k    int
	each bool
	// begins says that the client's own list is the beginning of the longer one: it is looked through as well for what folds.
	begins bool
	// first says that the longer list is asked for first.
	first bool
	// own is the client's search with what depends on its size written down.
	own *query
}

// newNeighbours returns what is special about a search, nil if nothing is, and the search with what depends on its size
// written down.
func newNeighbours(q *query, least int) (*neighbours, *query, error) {
	pinned := *q
	var err error
	if pinned.body, err = raised(q.body, q.size, 0); err != nil {
		return nil, nil, err
	}
	n := &neighbours{ranks: least, own: &pinned}
	if n.raised, err = raised(q.body, q.size, least); err != nil || bytes.Equal(n.raised, pinned.body) {
		return nil, &pinned, err
	}
	query := adapters.Get(q.members, "query")
	alone, _ := adapters.Members(query)
	n.mixed = query != nil && (adapters.Get(q.members, "knn") != nil || len(alone) != 1 || alone[0].Key != "knn")
	n.readClause(q)
	return n, &pinned, nil
}

// longer returns the search for more neighbours.
func (n *neighbours) longer() *query {
	longer := *n.own
	longer.body = n.raised
	return &longer
}

// besideNeighbours are the keys of a search's body that leave its list as its one vector clause has it, and its reply free of
// all but hits and their number.
var besideNeighbours = []string{
	"from", "size", "_source", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "version",
	"seq_no_primary_term", "timeout", "track_scores", "track_total_hits", "min_score", "stats", "runtime_mappings", "derived", "pit",
}

// withinClause are the keys of a vector clause whose list of k is as long as k and what matches have it.
var withinClause = []string{
	"field", "query_vector", "query_vector_builder", "vector", "k", "num_candidates", "filter", "similarity", "boost", "_name",
	"ignore_unmapped", "method_parameters",
}

// readClause reads how many neighbours are asked for, if they are all that is.
func (n *neighbours) readClause(q *query) {
	for _, name := range []string{"q", "sort", "terminate_after", "suggest_field"} {
		if _, given := adapters.Last(q.params, name); given {
			return
		}
	}
	if counted := q.named("track_total_hits"); counted != "" && counted != "true" {
		return
	}
	var list []adapters.Member
	for _, m := range q.members {
		if !slices.Contains(besideNeighbours, m.Key) {
			list = append(list, m)
		}
	}
	if len(list) != 1 {
		return
	}
	clause := list[0].Value
	if list[0].Key != "knn" { // within the query or the retriever
		inner, err := adapters.Members(clause)
		if err != nil || len(inner) != 1 || inner[0].Key != "knn" {
			return
		}
		clause = inner[0].Value
	}
	n.each = list[0].Key == "query"
	members, err := adapters.Members(clause)
	if err == nil && len(members) == 1 { // below the field's name
		members, err = adapters.Members(members[0].Value)
	}
	unknown := func(m adapters.Member) bool { return !slices.Contains(withinClause, m.Key) }
	if err != nil || slices.ContainsFunc(members, unknown) {
		return
	}
	n.readNumbers(members, q.size)
}

// readNumbers reads those of a clause; a search that the engine refuses for them is one that it has to see as it stands.
func (n *neighbours) readNumbers(clause []adapters.Member, size int) {
	k, candidates := 0, 0
	for _, number := range []struct {
		key string
		to  *int
	}{{"k", &k}, {"num_candidates", &candidates}} {
		if value := adapters.Get(clause, number.key); value != nil {
			var err error
			if *number.to, err = strconv.Atoi(string(value)); err != nil || *number.to < 1 || *number.to > maxNeighbours {
				return
			}
		}
	}
	if k == 0 && adapters.Get(clause, "vector") == nil && !n.each {
		k = size
	}
	if candidates > 0 && candidates < k {
		return
	}
	n.k, n.begins = k, candidates >= n.ranks && !n.each
}

// begin sets out with one of the two lists. Where the engine looks at other candidates for the longer one its first ranks can
// be others than those of the client's own, and what folds is looked for in the longer one alone, lest pages decide by
// different lists.
func (c *collapse) begin(rate float64) {
	near := c.near
	if near == nil || near.k == 0 || near.begins && rate < likely {
		return
	}
	near.first, c.longer, c.q = true, true, near.longer()
	c.most, c.page.Length = near.k, near.k
}

// settle decides, by ranks that are looked at on every page, which list of neighbours is collapsed, and reports whether another
// reading is to be taken in place of this one.
func (c *collapse) settle(reply *adapters.Reply, total int, hits []rerank.Hit) bool {
	near := c.near
	if near.first {
		return c.settleLonger(reply, total, hits)
	}
	c.near = nil
	if !c.folds(hits[:min(near.ranks, len(hits))]) {
		return false
	}
	c.q, c.longer = near.longer(), true
	if len(hits) < c.span.To {
		c.page.Length = len(hits)
	}
	c.page.First = 0
	c.readTexts(c.texts)
	return true
}

// folds reports whether something folds in the ranks, as far as they lie within the window.
func (c *collapse) folds(hits []rerank.Hit) bool {
	hits = hits[:min(len(hits), c.page.Window)]
	collapse := rerank.Collapse
	if c.page.Transitive {
		collapse = rerank.CollapseTransitive
	}
	return len(collapse(hits, c.page.Window).Shown) < len(hits)
}

// settleLonger is settle where the longer list is read.
func (c *collapse) settleLonger(reply *adapters.Reply, total int, hits []rerank.Hit) bool {
	near := c.near
	length, known := near.length(total, shardsOf(reply.Body))
	ranks := min(length, near.ranks, c.page.Window)
	switch folds := c.folds(hits[:min(ranks, len(hits))]); {
	case folds && !known:
		c.uncounted = &uncounted{near: near, span: c.span, hits: hits}
		return true
	case folds && length == c.page.Length:
		c.near = nil
		return false
	case folds:
		c.most = length
		c.goOn(c.span, hits, length)
		return true
	case len(hits) < ranks && len(hits) >= c.span.To && c.page.First < ranks:
		c.page.First = ranks
		c.readTexts(c.texts)
		return true
	}
	c.askOwn()
	return true
}

// askOwn begins anew with the client's own list, as if there were no other.
func (c *collapse) askOwn() {
	c.q, c.longer, c.baseReply = c.near.own, false, nil
	c.near, c.most, c.page.Length, c.page.First = nil, 0, 0, 0
	c.readTexts(c.texts)
}

// length returns how long the client's own list is at most, by the total of the longer one, and whether it is as long where
// the longer one is. Several shards have k neighbours each, if they have as many, and with some engines so have the segments
// of one.
func (n *neighbours) length(total, shards int) (length int, known bool) {
	switch {
	case !n.each || total <= n.k:
		return n.k, true
	case total == n.ranks*shards:
		return n.k * shards, true
	}
	return n.ranks, false
}

// goOn begins the page anew, in a list that is no longer than length, with what is read already if that goes far enough.
func (c *collapse) goOn(read rerank.Span, hits []rerank.Hit, length int) {
	c.near, c.page.Length = nil, length
	c.readTexts(c.texts)
	span, more := c.pager.Next()
	if !more || span.SketchOnly != read.SketchOnly || span.To > read.To && len(hits) >= read.To {
		return
	}
	if c.span = span; !span.SketchOnly {
		c.full = c.read
	}
	c.pager.Take(span, hits)
}

// shardsOf returns how many shards answered a search.
func shardsOf(reply []byte) int {
	r := adapters.NewReader(reply)
	for r.Enter('{'); r.Next(); { // they stand in front of the hits
		if string(r.Key()) == "_shards" {
			shards, _ := adapters.Members(r.Value())
			n, _ := strconv.Atoi(string(adapters.Get(shards, "total"))) // 0 is none known
			return n
		}
	}
	return 0
}

// uncounted is a longer list in which something folds, when it is to be found out how long the client's own is.
type uncounted struct {
	near *neighbours
	span rerank.Span
	hits []rerank.Hit
}

// askCount returns the request for the length of the client's own list.
func (c *collapse) askCount() (body []byte, void []string, err error) {
	c.rounds++
	return c.uncounted.near.own.ask(reading{size: 1, sketchOnly: true})
}

// takeCount takes its reply, which holds all that stands beside the client's hits.
func (c *collapse) takeCount(reply *adapters.Reply) error {
	l, err := readListing(reply.Body, nil)
	if err != nil {
		return err
	}
	total := l.total
	read := c.uncounted
	c.uncounted = nil
	if !c.folds(read.hits[:min(len(read.hits), max(total, 0), read.near.ranks)]) {
		c.askOwn()
		return nil
	}
	c.baseReply, c.base, c.total, c.most = reply, l.frame, total, 0
	c.goOn(read.span, read.hits, total)
	return nil
}
