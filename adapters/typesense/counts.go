package typesense

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Facets count groups in one of two ways. At query time they are asked for again, over the documents that the collapsed list shows. In native mode they
// are those of the search with groups, where the engine counts each group once (0.24.1, `TestCountsByGroup`).

// mostCounted is over how many documents facets are asked for at most: a filter names them all.
const mostCounted = 10000

// countSteered are the parameters that a request for facets sets beside those that any reading does.
var countSteered = []string{"q", "filter_by", "pinned_hits", "hidden_hits", "enable_overrides"}

// readCounts reads whether facets are to count groups, and says why the search is left alone, or nothing.
func (q *query) readCounts() adapters.Reason {
	wanted := q.asked.Scope.CountsGroups && (q.values["facet_by"] != "" || q.preset())
	return q.asked.Count(q, wanted, wanted && q.countable())
}

// countable reports whether the documents of the search's list can be named, and the facets over them be asked for.
func (q *query) countable() bool {
	if q.asked.Unseen != "" || q.vector != nil || q.fuses || q.hidesID() {
		return false
	}
	if q.asked.Limit < q.asked.Scope.Window { // the first ranks of its list are all that can be read
		return false
	}
	for name := range q.values {
		if strings.HasPrefix(name, "facet_sample") {
			return false
		}
	}
	if _, imposed := q.key.fixed["per_page"]; imposed {
		return false
	}
	return !slices.ContainsFunc(countSteered, func(name string) bool {
		_, imposed := q.key.fixed[name]
		return imposed && name != "filter_by" || !utf8.ValidString(q.values[name]) // an imposed filter_by is added to ours
	})
}

// requestCounts returns the request for the client's facets over the documents of a reading's ranks.
func (q *query) requestCounts(r *adapters.Reading) ([]*adapters.Request, error) {
	ids := make([]string, len(r.Ranks))
	for i, rank := range r.Ranks {
		ids[i] = r.Known[rank].ID
	}
	if len(ids) > mostCounted || slices.ContainsFunc(ids, unnameable) {
		return nil, adapters.Alone{Reason: adapters.ReasonUncountable, Searched: true}
	}
	body, err := jsonedit.Cut(q.base, func(key string) bool {
		return key != "collection" && key != keyParam && key != "max_facet_values" && !strings.HasPrefix(key, "facet_")
	})
	if err != nil {
		return nil, err
	}
	body, err = put(body, true, "q", "*", "filter_by", "id:[`"+strings.Join(ids, "`,`")+"`]", "page", "1", "per_page", "0",
		"enable_overrides", "false", "enable_analytics", "false")
	return []*adapters.Request{{Body: body, For: enginePage{1, 0}}}, err
}

// WithCounts implements adapters.Counting.
func (q *query) WithCounts(page []byte, counts *adapters.Listing) ([]byte, error) {
	counted := member(counts.Parsed.(*result).raw, "facet_counts")
	if counted == nil {
		return nil, errShape
	}
	return jsonedit.Set(page, "facet_counts", counted)
}
