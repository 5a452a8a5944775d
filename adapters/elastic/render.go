package elastic

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// innerHits is the name under which a hit's folded ones stand among its inner hits.
	innerHits = "neardup"
	// agreementField and explainField are where further things are said of a hit, as if they were fields of it.
	agreementField = rule.FieldPrefix + "agreement"
	explainField   = rule.FieldPrefix + "explain"
)

// Render implements adapters.Search.
func (q *query) Render(in adapters.Hits, page []adapters.PageHit, total int) (adapters.Pieces, error) {
	list := make([][]byte, len(page))
	for i := range page {
		var err error
		if list[i], err = q.hit(&page[i]); err != nil {
			return nil, err
		}
	}
	frame := &in.(*hits).listing
	var count []byte
	if total >= 0 {
		count = totalOf(frame.of(frame.count), total)
	}
	if pieces, ok := frame.pieces(list, count, !q.shown); ok {
		return pieces, nil
	}
	return adapters.Pieces{jsonedit.CleanedInPlace(frame.with(list, count), inDocument)}, nil
}

// Clean implements adapters.Search.
func (q *query) Clean(raw []byte) []byte {
	if q.shown {
		return raw
	}
	return jsonedit.Cleaned(raw, inDocument)
}

// hit returns a hit of the page with its folded hits and, where that is asked for, why it is shown.
func (q *query) hit(h *adapters.PageHit) ([]byte, error) {
	hit, err := plain(h.Place)
	if err != nil || h.Group == nil {
		return hit, err
	}
	for _, why := range [][]byte{h.Group.Why, h.Group.Beside} {
		if hit, err = withField(hit, explainField, why); err != nil {
			return nil, err
		}
	}
	folded, err := q.folded(h.Group)
	if err != nil {
		return nil, err
	}
	members, err := jsonedit.Members(hit)
	if err != nil {
		return nil, err
	}
	inner := jsonedit.Get(members, "inner_hits")
	if inner == nil {
		inner = []byte("{}")
	}
	own, err := jsonedit.Members(inner)
	if err != nil || jsonedit.Get(own, innerHits) != nil { // the client's own stay
		return hit, err
	}
	if inner, err = jsonedit.Set(inner, innerHits, folded); err != nil {
		return nil, err
	}
	return jsonedit.Set(hit, "inner_hits", inner)
}

// folded returns the hits folded into one, in the shape of inner hits.
func (q *query) folded(g *adapters.Group) ([]byte, error) {
	var list []byte
	best := []byte("null")
	for i := range g.Folded {
		hit, err := member(&g.Folded[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list, best = append(list, hit...), better(best, hit)
	}
	relation := "gte"
	if g.Exact {
		relation = "eq"
	}
	out := strconv.AppendInt([]byte(`{"hits":{"total":{"value":`), int64(len(g.Folded)), 10)
	out = append(out, `,"relation":"`+relation+`"},"max_score":`...)
	out = append(append(out, best...), `,"hits":[`...)
	return append(append(out, list...), `]}}`...), nil
}

// better returns the greater of a score and that of a hit.
func better(best, hit []byte) []byte {
	members, err := jsonedit.Members(hit)
	if err != nil {
		return best
	}
	score := jsonedit.Get(members, "_score")
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
func member(f *adapters.Folded) ([]byte, error) {
	var hit []byte
	var err error
	if f.Source.Hits != nil {
		hit, err = plain(f.Source)
	} else if hit, err = plain(f.Judged); err == nil {
		hit, err = jsonedit.Cut(hit, func(key string) bool { return !slices.Contains(identity, key) })
	}
	if err != nil {
		return nil, err
	}
	if hit, err = withField(hit, agreementField, f.Agreement); err != nil {
		return nil, err
	}
	return withField(hit, explainField, f.Why)
}

// plain returns a hit less what we asked for beside what the client did: fields extracted, numbers, and texts that it does not see.
func plain(p adapters.Place) ([]byte, error) {
	if p.Hits == nil {
		return nil, adapters.ErrMoved
	}
	h := p.Hits.(*hits)
	q, raw := h.q, h.hits[p.At].raw
	if h.sources && h.source != nil {
		raw = q.texts.cut(raw)
	}
	var err error
	if h.numbered && !q.asksNumbers() {
		if raw, err = jsonedit.Cut(raw, func(key string) bool { return key == "_seq_no" || key == "_primary_term" }); err != nil {
			return nil, err
		}
	}
	if !q.shown && q.show.Expand == rule.ExpandOff && (q.asked.Ways.Apart || len(q.deciding) == 0) {
		return raw, nil // our fields are all that was extracted for us: they go from the whole reply at once
	}
	members, err := jsonedit.Members(raw)
	if err != nil {
		return nil, err
	}
	fields := jsonedit.Get(members, "fields")
	if fields == nil {
		return raw, nil
	}
	left, err := jsonedit.Cut(fields, q.ours)
	if err != nil || bytes.Equal(left, fields) {
		return raw, err
	}
	if rest, err := jsonedit.Members(left); err != nil {
		return nil, err
	} else if len(rest) == 0 {
		return jsonedit.Cut(raw, func(key string) bool { return key == "fields" })
	}
	return jsonedit.Set(raw, "fields", left)
}

// ours reports whether a field is extracted from the hits for us alone.
func (q *query) ours(field string) bool {
	switch {
	case field == rule.SketchField:
		return !q.extracted
	case rule.Our(field):
		return !q.shown
	}
	return !q.asked.Ways.Apart && slices.ContainsFunc(q.deciding, func(d rule.Deciding) bool { return d.Field == field })
}

// withField returns a hit with one more field, of one value if there is one, among those extracted from it.
func withField(hit []byte, name string, value []byte) ([]byte, error) {
	if value == nil {
		return hit, nil
	}
	members, err := jsonedit.Members(hit)
	if err != nil {
		return nil, err
	}
	fields := jsonedit.Get(members, "fields")
	if fields == nil {
		fields = []byte("{}")
	}
	if fields, err = jsonedit.Set(fields, name, slices.Concat([]byte("["), value, []byte("]"))); err != nil {
		return nil, err
	}
	return jsonedit.Set(hit, "fields", fields)
}
