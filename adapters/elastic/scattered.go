package elastic

import (
	"bytes"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

const (
	// spanAlways is how many ranks are read in a row rather than picked where all hits are scored again either way: the ids would be no
	// shorter.
	spanAlways = 50
	// mostPicked is how many are picked at most from a row that is no longer than that or not much longer than they are.
	mostPicked = 1000
)

// fetch is how the sources of some ranks are read: in a row from a rank on, or picked.
type fetch struct {
	ranks    []int // all that are wanted, ascending
	from, to int
	picked   bool
}

// fetchFor returns how to read the sources of the page's ranks and of further ones.
func (c *collapse) fetchFor(span rerank.Span, more []int) fetch {
	f := fetch{ranks: slices.Concat(span.Ranks, more)}
	slices.Sort(f.ranks)
	f.ranks = slices.Compact(f.ranks)
	f.from, f.to = min(span.From, f.ranks[0]), max(span.To, f.ranks[len(f.ranks)-1]+1)
	worth := f.wide() || c.q.narrows() && len(f.ranks) <= mostPicked
	f.picked = worth && (!c.numbered || c.alone) && c.pickable(&f)
	return f
}

// wide reports whether the ranks lie so far apart that it is worth to have hits scored again to pick them.
func (f *fetch) wide() bool { return f.to-f.from > max(spanAlways, 3*len(f.ranks)) }

// pickable reports whether it is known which documents the ranks hold, and the search can pick them.
func (c *collapse) pickable(f *fetch) bool {
	return c.picks && !slices.ContainsFunc(f.ranks, func(rank int) bool { return c.pager.Hit(rank) == nil }) &&
		c.indices(f.ranks) <= mostIndices && !c.shared(f.ranks)
}

// shared reports whether one of the ranks' hits is told by what another hit is told by, too: documents that were written with different
// routing can have one id between them.
func (c *collapse) shared(ranks []int) bool {
	wanted := make(map[string]int, len(ranks))
	for _, rank := range ranks {
		wanted[c.pager.Hit(rank).ID] = 0
	}
	for rank := 0; c.pager.Hit(rank) != nil; rank++ {
		id := c.pager.Hit(rank).ID
		if n, ok := wanted[id]; ok {
			if n > 0 {
				return true
			}
			wanted[id] = 1
		}
	}
	return false
}

// mostIndices is of how many indices hits are picked at most: each takes a clause, of which engines grant 1,024.
const mostIndices = 64

// indices returns in how many indices the hits of the ranks stand.
func (c *collapse) indices(ranks []int) int {
	names := map[string]bool{}
	for _, d := range c.documents(ranks) {
		names[d.index] = true
	}
	return len(names)
}

// documents returns which documents the ranks hold.
func (c *collapse) documents(ranks []int) (list []document) {
	for _, rank := range ranks {
		index, id, _ := strings.Cut(c.pager.Hit(rank).ID, "\x00")
		list = append(list, document{index, id})
	}
	return list
}

// picks reports whether a search with a further filter behind its query has the hits that are left as they were: with the
// same scores, in the same order, and nothing else of the reply needed. A list of neighbours, one that is rescored and one
// that ends early depend on what is collected, and so do hits in aggregations; the name of another cluster's index is none to
// filter by.
func (q *query) picks() bool {
	for _, key := range []string{"rescore", "retriever", "profile", "terminate_after"} {
		if adapters.Get(q.members, key) != nil {
			return false
		}
	}
	_, early := adapters.Last(q.params, "terminate_after")
	return !early && !q.inherits() && !bytes.Contains(q.body, []byte(`"knn"`)) && !remote(q.target)
}

// narrows reports whether a search that picks can do so within its query, so that no other hits are scored: each that is left has the
// score it had, since nothing else in the query counts. It can't where the query itself shows in a hit, as what is highlighted or
// explained does, where the engine takes the query at the top alone, or where it looks for one of its clauses there.
func (q *query) narrows() bool {
	for _, key := range []string{"highlight", "explain"} {
		if adapters.Get(q.members, key) != nil {
			return false
		}
	}
	return !slices.ContainsFunc(q.params, func(p adapters.Param) bool { return p.Name == "q" || p.Name == "explain" }) &&
		!slices.ContainsFunc(topClauses, func(clause string) bool { return bytes.Contains(q.body, []byte(clause)) })
}

// topClauses stand at the top of a query, or mean something else within another one.
var topClauses = []string{`"hybrid"`, `"percolate"`, `"neural"`, `"semantic"`, `"inner_hits"`}

// within returns the client's query, less all hits that a filter leaves out.
func within(client, filter []byte) []byte {
	if client == nil || string(client) == "null" {
		client = []byte(`{"match_all":{}}`)
	}
	return slices.Concat([]byte(`{"bool":{"must":[`), client, []byte(`],"filter":[`), filter, []byte(`]}}`))
}

// theseDocuments returns a filter for the documents, told by their ids or, those of one shard, by their sequence numbers.
func theseDocuments(list []document, numbered bool) []byte {
	if numbered {
		return numbersOf(list)
	}
	byIndex := map[string][]string{}
	var indices []string
	for _, d := range list {
		if byIndex[d.index] == nil {
			indices = append(indices, d.index)
		}
		byIndex[d.index] = append(byIndex[d.index], d.id)
	}
	out := []byte(`{"bool":{"should":[`)
	for i, index := range indices {
		if i > 0 {
			out = append(out, ',')
		}
		ids := slices.Concat([]byte(`{"ids":{"values":`), stringsOf(byIndex[index]), []byte(`}}`))
		out = append(adapters.AppendString(append(out, `{"bool":{"filter":[{"term":{"_index":`...), index), `}},`...)
		out = append(append(out, ids...), `]}}`...)
	}
	return append(out, `]}}`...)
}

// filteredToo returns a filter that lets through what the client's does, if there is one, and ours does as well.
func filteredToo(client, ours []byte) []byte {
	out := []byte(`{"bool":{"filter":[`)
	if client != nil && string(client) != "null" {
		out = append(append(out, client...), ',')
	}
	return append(append(out, ours...), `]}}`...)
}

// sources are hits that were read as the client asked for them.
type sources struct {
	from  int
	ranks []int // nil where they are in a row
	list  [][]byte
	texts bool // they show all sketched texts
}

// at returns the hit of a rank, nil if it is not there.
func (s *sources) at(rank int) []byte {
	place := rank - s.from
	if s.ranks != nil {
		found := false
		if place, found = slices.BinarySearch(s.ranks, rank); !found {
			return nil
		}
	}
	if place < 0 || place >= len(s.list) {
		return nil
	}
	return s.list[place]
}

// keepSort gives hits that were picked in a client's point in time the sort values that they were listed with. Elasticsearch tells ties apart
// there by the number of the shard among those that the search needs, which are fewer where a filter leaves an index out: in the client's
// next page, which needs them all, such a value would stand for another shard.
func (c *collapse) keepSort() {
	if !c.q.inPIT() {
		return
	}
	for i, rank := range c.full.ranks {
		if i >= len(c.full.list) {
			return
		}
		listed := sortOf(c.read.at(rank))
		if listed == nil || canonical(listed) == canonical(sortOf(c.full.list[i])) {
			continue
		}
		if hit, err := adapters.Set(c.full.list[i], "sort", listed); err == nil {
			c.full.list[i] = hit
		}
	}
}

// takeSources hands the hits of a reading of sources over, if they are of the documents whose sketches were read.
func (c *collapse) takeSources(list [][]byte, hits []rerank.Hit) {
	f := c.fetch
	c.full = sources{from: f.from, list: list, texts: c.atHand()}
	if f.picked {
		c.full.ranks = f.ranks
		c.keepSort()
	}
	for i, hit := range hits {
		rank := f.from + i
		if f.picked && i < len(f.ranks) {
			rank = f.ranks[i]
		}
		if read := c.pager.Hit(rank); read != nil && read.ID != hit.ID {
			c.pager.Pick(c.span, nil)
			return
		}
	}
	missing := func(rank int) bool { return c.full.at(rank) == nil && c.pager.Hit(rank) != nil }
	if f.picked && len(hits) != len(f.ranks) || slices.ContainsFunc(f.ranks, missing) {
		c.pager.Pick(c.span, nil)
		return
	}
	if !f.picked {
		first := min(c.span.From-f.from, len(hits))
		c.pager.Take(c.span, hits[first:min(c.span.To-f.from, len(hits))])
		return
	}
	picked := make([]rerank.Hit, len(c.span.Ranks))
	for i, rank := range c.span.Ranks {
		at, _ := slices.BinarySearch(f.ranks, rank)
		picked[i] = hits[at]
	}
	c.pager.Pick(c.span, picked)
}
