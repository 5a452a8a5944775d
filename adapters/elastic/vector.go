package elastic

import (
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
)

// maxNeighbours is the engines' limit on k and num_candidates.
const maxNeighbours = 10000

// raised returns the search with the number of neighbours of every vector clause raised to least, where the client asks for
// fewer: a list of neighbours is no longer than k, so there is nothing behind it to fill a page from which hits are folded.
// The body itself comes back where there is nothing to raise. Clauses that only filter are left: there k decides which
// documents match.
func raised(body []byte, size, least int) ([]byte, error) {
	r := raise{size: size, least: min(least, maxNeighbours)}
	return r.members(body, func(key string, value []byte) ([]byte, error) {
		switch key {
		case "knn":
			return r.each(value, r.clause)
		case "query":
			return r.query(value)
		case "retriever":
			return r.retriever(value)
		}
		return value, nil
	})
}

// raise holds what a clause without a k of its own takes for it, and what k is to be at least.
type raise struct{ size, least int }

// members returns the object with each value as edit returns it.
func (r raise) members(object []byte, edit func(key string, value []byte) ([]byte, error)) ([]byte, error) {
	members, err := adapters.Members(object)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		value, err := edit(m.Key, m.Value)
		if err != nil {
			return nil, err
		}
		if string(value) == string(m.Value) {
			continue
		}
		if object, err = adapters.Set(object, m.Key, value); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// each returns a value, or each of a list of values, as edit returns it.
func (r raise) each(value []byte, edit func([]byte) ([]byte, error)) ([]byte, error) {
	if value[0] != '[' {
		return edit(value)
	}
	elements, err := adapters.Elements(value)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, element := range elements {
		edited, err := edit(element)
		if err != nil {
			return nil, err
		}
		changed = changed || string(edited) != string(element)
		elements[i] = edited
	}
	if !changed {
		return value, nil
	}
	return joinLike(value, elements), nil
}

// query descends a query to its vector clauses.
func (r raise) query(value []byte) ([]byte, error) {
	switch value[0] {
	case '[':
		return r.each(value, r.query)
	case '{':
		return r.members(value, func(key string, value []byte) ([]byte, error) {
			switch key {
			case "filter", "must_not":
				return value, nil
			case "knn":
				if value[0] == '{' {
					return r.clause(value)
				}
			}
			return r.query(value)
		})
	}
	return value, nil
}

// simpleRetriever reports whether a retriever's list is the same for every size. Those that rank or rescore the lists of
// others take a window, often the size itself, over which they do so.
func simpleRetriever(value []byte) bool {
	members, err := adapters.Members(value)
	if err != nil || len(members) != 1 {
		return false
	}
	if members[0].Key != "standard" {
		return members[0].Key == "knn"
	}
	inner, err := adapters.Members(members[0].Value) // where a cursor, a sort and a collapse of the client's may stand
	return err == nil && !slices.ContainsFunc(inner, func(m adapters.Member) bool {
		return m.Key != "query" && m.Key != "filter" && m.Key != "min_score" && m.Key != "_name"
	})
}

// retriever descends the retrievers whose list is that of a query or of neighbours.
func (r raise) retriever(value []byte) ([]byte, error) {
	return r.members(value, func(key string, value []byte) ([]byte, error) {
		switch key {
		case "knn":
			return r.clause(value)
		case "standard":
			return r.query(value)
		}
		return value, nil
	})
}

// clause raises the number of neighbours of one clause: {"field", "query_vector", "k", "num_candidates"} on Elasticsearch,
// where a clause without k asks for as many as the search's size; {field: {"vector", "k"}} on OpenSearch, where one without k
// goes by distance.
func (r raise) clause(value []byte) ([]byte, error) {
	members, err := adapters.Members(value)
	if err != nil {
		return nil, err
	}
	if adapters.Get(members, "query_vector") == nil && adapters.Get(members, "query_vector_builder") == nil {
		return r.members(value, func(_ string, value []byte) ([]byte, error) {
			members, err := adapters.Members(value)
			if err == nil && adapters.Get(members, "vector") != nil && adapters.Get(members, "k") != nil {
				return r.number(value, "k", 0)
			}
			return value, nil
		})
	}
	raised, err := r.number(value, "k", r.size)
	if err != nil || adapters.Get(members, "num_candidates") == nil {
		return raised, err
	}
	return r.number(raised, "num_candidates", 0)
}

// number raises a number in the object. Where it lacks, what the engine takes instead is written down, if that is not 0: it
// would grow with the size that we ask for.
func (r raise) number(object []byte, key string, instead int) ([]byte, error) {
	members, err := adapters.Members(object)
	if err != nil {
		return nil, err
	}
	n := instead
	if value := adapters.Get(members, key); value != nil {
		if n, err = strconv.Atoi(string(value)); err != nil {
			return nil, err
		}
	}
	n = max(n, r.least)
	if value := strconv.AppendInt(nil, int64(n), 10); string(value) != string(adapters.Get(members, key)) {
		return adapters.Set(object, key, value)
	}
	return object, nil
}
