package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// spanAlways is how many ranks are read in a row rather than picked where all hits are scored again either way: the ids would be no
	// shorter.
	spanAlways = 50
	// mostPicked is how many are picked at most from a row that is no longer than that or not much longer than they are.
	mostPicked = 1000
)

// document is what tells a document from all others.
type document struct{ index, id string }

// pick says how to read ranks whose hits were judged: picked by a filter, or in a row.
func (q *clientSearch) pick(r *adapters.Reading) error {
	if len(r.Known) == 0 || r.Picked { // in a point in time it was decided before
		return nil
	}
	wide := r.To-r.From > max(spanAlways, 3*len(r.Ranks)) // else it is not worth to have hits scored again
	if !wide && !(q.narrows && len(r.Ranks) <= mostPicked) || !q.picks || !tellable(r) {
		return nil
	}
	if known := hitOf(&r.Known[0]).in; known.numbered && known.shards != 1 { // several shards share numbers
		if scope := &q.asked.Scope; wide && (scope.Chooses || scope.Transitive || scope.CollapsedTotals) { // they can be anywhere in the window
			return errUnnumbered
		}
		return nil
	}
	r.Picked = true
	return nil
}

// mostIndices is of how many indices hits are picked at most: each takes a clause, of which engines grant 1,024.
const mostIndices = 64

// tellable reports whether the ranks' hits can be named: they were read, and no other hit has the id of one of them. (Documents that
// were written with different routing can have one id between them.)
func tellable(r *adapters.Reading) bool {
	wanted, indices := make(map[string]int, len(r.Ranks)), map[string]bool{}
	for _, rank := range r.Ranks {
		if rank >= len(r.Known) {
			return false
		}
		wanted[r.Known[rank].ID] = 0
		indices[documentOf(&r.Known[rank]).index] = true
	}
	for i := range r.Known {
		if n, ok := wanted[r.Known[i].ID]; ok {
			if n > 0 {
				return false
			}
			wanted[r.Known[i].ID] = 1
		}
	}
	return len(indices) <= mostIndices
}

// documentOf returns which document a hit is of, one that is not identified by numbers.
func documentOf(hit *rule.Seen) document {
	index, id, _ := strings.Cut(hit.ID, "\x00")
	return document{index, id}
}

// only returns a filter for the documents of a reading's ranks: by their ids or, those of one shard, by their sequence numbers.
func only(r *adapters.Reading) []byte {
	if !hitOf(&r.Known[0]).in.numbered {
		list := make([]document, len(r.Ranks))
		for i, rank := range r.Ranks {
			list[i] = documentOf(&r.Known[rank])
		}
		return theseDocuments(list)
	}
	out := []byte(`{"terms":{"_seq_no":[`)
	for i, rank := range r.Ranks {
		if i > 0 {
			out = append(out, ',')
		}
		known := hitOf(&r.Known[rank])
		out = append(out, known.at(known.number)...)
	}
	return append(out, `]}}`...)
}

// pickable reports whether a search with a further filter after its query leaves the remaining hits as they were: with the
// same scores, in the same order, and nothing else of the reply needed. A list of neighbours, one that is rescored and one
// that ends early depend on what is collected, and so do hits in aggregations; one can't filter by the name of
// another cluster's index.
func (q *clientSearch) pickable() bool {
	return q.fused == nil && !q.has("rescore", "retriever", "profile", "terminate_after") && !q.hasParam("terminate_after") && !q.inherits() && !bytes.Contains(q.body, []byte(`"knn"`)) && !remote(q.asked.Target)
}

// narrowable reports whether a search that picks can do so within its query, so that no other hits are scored: each that is left has the
// score it had, since nothing else in the query counts. It can't where the query itself shows in a hit, as what is highlighted or
// explained does, where the engine takes the query at the top alone, or where it looks for one of its clauses there.
func (q *clientSearch) narrowable() bool {
	return !q.has("highlight", "explain") && !q.hasParam("q", "explain") &&
		!slices.ContainsFunc(topClauses, func(clause string) bool { return bytes.Contains(q.body, []byte(clause)) })
}

// topClauses are valid at the top of a query alone, or mean something else within another one.
var topClauses = []string{`"hybrid"`, `"neural"`, `"semantic"`, `"inner_hits"`}

// within returns the client's query, less all hits that a filter leaves out.
func within(client, filter []byte) []byte {
	if client == nil || string(client) == "null" {
		client = []byte(`{"match_all":{}}`)
	}
	return slices.Concat([]byte(`{"bool":{"must":[`), client, []byte(`],"filter":[`), filter, []byte(`]}}`))
}

// theseDocuments returns a filter for documents by their ids.
func theseDocuments(list []document) []byte {
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
		out = append(jsonedit.AppendString(append(out, `{"bool":{"filter":[{"term":{"_index":`...), index), `}},`...)
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

// keepSort gives hits that were picked in a client's point in time the sort values that they were listed with. Elasticsearch tells ties apart
// there by the number of the shard among those that the search needs, which are fewer where a filter leaves an index out: in the client's
// next page, which needs them all, such a value would mean another shard.
func (q *clientSearch) keepSort(r *adapters.Reading, list []hit) []hit {
	if !q.inPIT() {
		return list
	}
	for i := range list {
		own, listed := &list[i], hitOf(&r.Known[r.Ranks[i]])
		values := listed.at(listed.sort)
		if values == nil || canonical(values) == canonical(own.at(own.sort)) {
			continue
		}
		if raw, err := jsonedit.Set(own.raw, "sort", values); err == nil {
			r := jsonedit.NewReader(raw)
			*own = new(parsedReply).readHit(&r, raw)
		}
	}
	return list
}

// For a hit's id the engine unpacks its stored document, which takes several times as long as all else that a reading of sketches
// costs it. So where no one sees their ids, hits are identified by their sequence numbers. These are read as fast as the sketches. No
// two documents of a shard share them, and a document that changes gets new ones. Documents of several shards can share them, and
// even what they are sorted by: that two such change places between two readings, and nothing else does, is all that would not be
// seen. (Their scores would tell them apart too, but those of one document differ between copies of a shard.)

// errUnnumbered: hits came without sequence numbers, or are to be picked from several shards, which share numbers.
var errUnnumbered = errors.New("hits that can't be told by sequence numbers")

// Narrowed implements adapters.Search: with hits that are identified by their ids.
func (q *clientSearch) Narrowed(err error) adapters.Search {
	if !errors.Is(err, errUnnumbered) || !q.numbers {
		return nil
	}
	named := *q
	named.numbers = false
	if q.asked.Point != nil {
		named.asked.Point = &named
	}
	return &named
}

// asksNumbers reports whether the client itself asks for sequence numbers.
func (q *clientSearch) asksNumbers() bool {
	value, inURL := adapters.Last(q.params, "seq_no_primary_term")
	if !inURL {
		value = strings.Trim(string(jsonedit.Get(q.members, "seq_no_primary_term")), `"`)
	}
	return value == "true" || inURL && value == ""
}
