package elastic

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// innerHits is the name under which a hit's folded ones stand among its inner hits.
const innerHits = "neardup"

// shower puts what was folded into the hits of a page.
type shower struct {
	d     Dialect
	judge *adapters.Judge
	show  adapters.Show
	views *adapters.Views
	// read returns a rank's hit as its sketch was read, full as the client's own request shows it; nil where it was not read so.
	read, full func(rank int) ([]byte, error)
	// source returns a rank's source with all sketched texts, nil where they are not at hand.
	source func(rank int) []byte
}

// hit returns the hit of a rank with its folded hits and, where that is asked for, why it is shown.
func (s *shower) hit(rank int, hit []byte) ([]byte, error) {
	if s.show.Expand == adapters.ExpandOff { // to explain is to expand
		return hit, nil
	}
	var err error
	if s.show.Explain {
		if hit, err = withField(hit, adapters.ExplainField, s.why(rank)); err != nil {
			return nil, err
		}
	}
	folded, err := s.folded(rank)
	if err != nil {
		return nil, err
	}
	members, err := adapters.Members(hit)
	if err != nil {
		return nil, err
	}
	inner := adapters.Get(members, "inner_hits")
	if inner == nil {
		inner = []byte("{}")
	}
	own, err := adapters.Members(inner)
	if err != nil || adapters.Get(own, innerHits) != nil { // the client's own stay
		return hit, err
	}
	if inner, err = adapters.Set(inner, innerHits, folded); err != nil {
		return nil, err
	}
	return adapters.Set(hit, "inner_hits", inner)
}

// why returns why a rank is shown: as the representative of its group, or as a further member.
func (s *shower) why(rank int) []byte {
	if !s.views.Represents(rank) {
		return s.pair(rank).AppendExplanation(nil)
	}
	var leader []byte
	if first := s.views.Leader(rank); first != rank {
		index, id := s.names(first)
		leader = adapters.AppendString(append(adapters.AppendString([]byte(`{"_index":`), index), `,"_id":`...), id)
		leader = append(leader, '}')
	}
	index, _ := s.names(rank)
	return s.views.AppendExplanation(nil, rank, s.judge.Rule(s.d.ruleName(index)), leader)
}

// names returns the index and the id of a rank's hit.
func (s *shower) names(rank int) (index, id string) {
	if hit := s.views.Hit(rank); hit != nil {
		index, id, _ = strings.Cut(hit.ID, "\x00")
	}
	return index, id
}

// pair returns what is to be said of a rank beside its representative, with shingles that they share where both texts are at
// hand.
func (s *shower) pair(rank int) adapters.Pair {
	pair := s.views.Pair(rank)
	if !s.show.Explain {
		return pair
	}
	index, _ := s.names(rank)
	rule := s.judge.Rule(s.d.ruleName(index))
	a, b := s.source(rank), s.source(s.views.With(rank))
	if rule != nil && a != nil && b != nil {
		pair.Shared = rule.Shared(a, b, adapters.MaxShared)
	}
	return pair
}

// folded returns the hits folded into a rank, in the shape of inner hits.
func (s *shower) folded(rank int) ([]byte, error) {
	ranks, exact := s.views.Folded(rank)
	var hits []byte
	best := []byte("null")
	for i, member := range ranks {
		hit, err := s.member(member)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			hits = append(hits, ',')
		}
		hits, best = append(hits, hit...), better(best, hit)
	}
	relation := "gte"
	if exact {
		relation = "eq"
	}
	out := strconv.AppendInt([]byte(`{"hits":{"total":{"value":`), int64(len(ranks)), 10)
	out = append(out, `,"relation":"`+relation+`"},"max_score":`...)
	out = append(append(out, best...), `,"hits":[`...)
	return append(append(out, hits...), `]}}`...), nil
}

// better returns the greater of a score and that of a hit.
func better(best, hit []byte) []byte {
	members, err := adapters.Members(hit)
	if err != nil {
		return best
	}
	score := adapters.Get(members, "_score")
	value, err := strconv.ParseFloat(string(score), 64)
	if err != nil {
		return best
	}
	if so, err := strconv.ParseFloat(string(best), 64); err == nil && so >= value {
		return best
	}
	return score
}

// identity are the members of a hit that say which it is and why it stands where it does.
var identity = []string{"_index", "_type", "_id", "_score", "_routing", "_ignored", "sort"}

// member returns a folded hit as it is shown.
func (s *shower) member(rank int) ([]byte, error) {
	var hit []byte
	var err error
	if s.show.Expand == adapters.ExpandSource {
		hit, err = s.full(rank)
	} else if hit, err = s.read(rank); err == nil {
		hit, err = adapters.Cut(hit, func(key string) bool { return !slices.Contains(identity, key) })
	}
	if err != nil {
		return nil, err
	}
	pair := s.pair(rank)
	hit, err = withField(hit, adapters.AgreementField, adapters.AppendAgreement(nil, pair.Agreement))
	if err != nil || !s.show.Explain {
		return hit, err
	}
	return withField(hit, adapters.ExplainField, pair.AppendExplanation(nil))
}

// withField returns a hit with one more field, of one value, among those extracted from it.
func withField(hit []byte, name string, value []byte) ([]byte, error) {
	members, err := adapters.Members(hit)
	if err != nil {
		return nil, err
	}
	fields := adapters.Get(members, "fields")
	if fields == nil {
		fields = []byte("{}")
	}
	if fields, err = adapters.Set(fields, name, slices.Concat([]byte("["), value, []byte("]"))); err != nil {
		return nil, err
	}
	return adapters.Set(hit, "fields", fields)
}

// joinLike returns an array of the elements with the white space of the array that they stood in, so that a pretty-printed reply
// stays one.
func joinLike(array []byte, elements [][]byte) []byte {
	lead, between, tail := []byte("["), []byte(","), []byte("]")
	old, err := adapters.Elements(array)
	switch {
	case err == nil && len(old) == 0 && len(elements) == 0:
		return array
	case len(elements) == 0 && bytes.IndexByte(array, '\n') >= 0:
		return []byte("[ ]")
	case len(elements) == 0:
		return []byte("[]")
	case err == nil && len(old) > 0:
		at := func(i int) int { return cap(array) - cap(old[i]) } // elements share the array's memory
		lead, tail = array[:at(0)], array[at(len(old)-1)+len(old[len(old)-1]):]
		if len(old) > 1 {
			between = array[at(0)+len(old[0]) : at(1)]
		}
	}
	size := len(lead) + len(tail)
	for _, element := range elements {
		size += len(between) + len(element)
	}
	out := append(make([]byte, 0, size), lead...)
	for i, element := range elements {
		if i > 0 {
			out = append(out, between...)
		}
		out = append(out, element...)
	}
	return append(out, tail...)
}
