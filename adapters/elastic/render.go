package elastic

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// innerHits is the name of a hit's folded ones among its inner hits, labelMember that of a hit's member which says what group it belongs to.
	innerHits   = "neardup"
	labelMember = "neardup"
	// agreementField and explainField are where further things are said of a hit, as if they were fields of it.
	agreementField = rule.FieldPrefix + "agreement"
	explainField   = rule.FieldPrefix + "explain"
)

// Render implements adapters.Search.
func (q *clientSearch) Render(in *adapters.Listing, page []*rule.Seen, groups []*adapters.Group, total int) (adapters.Pieces, error) {
	list := make([][]byte, len(page))
	for i, shown := range page {
		hit, err := q.clientHit(shown)
		if err == nil && groups != nil {
			hit, err = q.withGroup(hit, groups[i])
		}
		if err != nil {
			return nil, err
		}
		list[i] = hit
	}
	frame := in.Parsed.(*parsedReply)
	var count []byte
	if total >= 0 {
		count = totalOf(frame.of(frame.count), total)
	}
	if pieces, ok := frame.pieces(list, count, !q.namesOurs); ok {
		return pieces, nil
	}
	// Not all of our fields could be marked, as in a pretty-printed reply, or a hit is not one of the frame's as it came.
	return adapters.Pieces{jsonedit.CleanedInPlace(frame.with(list, count), inDocument)}, nil
}

// Clean implements adapters.Search.
func (q *clientSearch) Clean(raw []byte) []byte {
	if q.namesOurs {
		return raw
	}
	return jsonedit.Cleaned(raw, inDocument)
}

// withLabel returns a hit with the group that it belongs to.
func withLabel(hit []byte, l *adapters.Label) ([]byte, error) {
	return jsonedit.Set(hit, labelMember, slices.Concat([]byte("{"), l.Members(), []byte("}")))
}

// withGroup returns a hit of the page with its group: the group's id and size, the folded hits, and why the hit is shown, as far as these were asked for.
func (q *clientSearch) withGroup(hit []byte, g *adapters.Group) (_ []byte, err error) {
	if g.Label != nil {
		if hit, err = withLabel(hit, g.Label); err != nil {
			return nil, err
		}
	}
	if q.asked.Scope.Expand == rule.ExpandOff {
		return hit, nil
	}
	for _, why := range [][]byte{g.Why, g.Beside} {
		if hit, err = withField(hit, explainField, why); err != nil {
			return nil, err
		}
	}
	folded, err := q.folded(g)
	if err != nil {
		return nil, err
	}
	members, err := jsonedit.Members(hit)
	if err != nil {
		return nil, err
	}
	if own, _ := jsonedit.Members(jsonedit.Get(members, "inner_hits")); jsonedit.Get(own, innerHits) != nil { // the client's own stay
		return hit, nil
	}
	return setWithin(hit, "inner_hits", innerHits, folded)
}

// folded returns the hits folded into one, in the shape of inner hits.
func (q *clientSearch) folded(g *adapters.Group) ([]byte, error) {
	var list []byte
	best := []byte("null")
	for i := range g.Folded {
		hit, err := q.member(&g.Folded[i])
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

// identity are the members of a hit that say which it is and why it has its rank.
var identity = []string{"_index", "_type", "_id", "_score", "_routing", "_ignored", "sort"}

// member returns a folded hit as it is shown.
func (q *clientSearch) member(f *adapters.Folded) ([]byte, error) {
	var hit []byte
	var err error
	if f.Source != nil {
		hit, err = q.clientHit(f.Source)
	} else if hit, err = q.clientHit(f.Judged); err == nil {
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

// clientHit returns a hit as the client asked for it. Ordinarily it is unchanged, and pieces leaves our fields out. Otherwise what the client did not
// ask for is cut out: sequence numbers, deciding fields, our fields.
func (q *clientSearch) clientHit(seen *rule.Seen) (_ []byte, err error) {
	if seen == nil {
		return nil, adapters.ErrMoved
	}
	h := hitOf(seen)
	raw := h.raw
	if h.in.numbered && !q.asksNumbers() {
		if raw, err = jsonedit.Cut(raw, func(key string) bool { return key == "_seq_no" || key == "_primary_term" }); err != nil {
			return nil, err
		}
	}
	if !q.namesOurs && q.asked.Scope.Expand == rule.ExpandOff && (q.asked.Ways.Apart || len(q.asked.Scope.Deciding) == 0) {
		return raw, nil // the hit has no deciding fields in it: the rule names none, or they were read in a request of their own
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
func (q *clientSearch) ours(field string) bool {
	switch {
	case field == rule.SketchField:
		return !slices.ContainsFunc([]string{"fields", "docvalue_fields", "stored_fields"}, func(key string) bool {
			return strings.Contains(q.value(key), rule.SketchField) // the client itself has it extracted
		})
	case rule.Our(field):
		return !q.namesOurs
	}
	return !q.asked.Ways.Apart && slices.ContainsFunc(q.asked.Scope.Deciding, func(d rule.Deciding) bool { return d.Field == field })
}

// withField returns a hit with one more field, of one value if there is one, among those extracted from it.
func withField(hit []byte, name string, value []byte) ([]byte, error) {
	if value == nil {
		return hit, nil
	}
	return setWithin(hit, "fields", name, slices.Concat([]byte("["), value, []byte("]")))
}

// setWithin sets a member of the object under a key, and makes that object if it is missing.
func setWithin(object []byte, key, name string, value []byte) ([]byte, error) {
	members, err := jsonedit.Members(object)
	if err != nil {
		return nil, err
	}
	inner := jsonedit.Get(members, key)
	if inner == nil {
		inner = []byte("{}")
	}
	if inner, err = jsonedit.Set(inner, name, value); err != nil {
		return nil, err
	}
	return jsonedit.Set(object, key, inner)
}

// of returns an extent of the reply, nil for the zero extent.
func (l *parsedReply) of(e extent) []byte {
	if e.to == 0 {
		return nil
	}
	return l.text[e.from:e.to]
}

// with returns pieces, joined, with our fields.
func (l *parsedReply) with(hits [][]byte, total []byte) []byte {
	out, _ := l.pieces(hits, total, false)
	return out.Bytes()
}

// pieces returns the reply with the hits in place of its own, and with another total if that is not nil. Between the hits is the white space that
// was between its own, so that a pretty-printed reply stays one. withoutOurs leaves out our fields: that is not ok where it is not known where all of
// them are, or where a hit is not one of the reply's.
func (l *parsedReply) pieces(hits [][]byte, total []byte, withoutOurs bool) (out adapters.Pieces, ok bool) {
	if withoutOurs && !l.sure {
		return nil, false
	}
	lead, between, tail := l.around(len(hits))
	out, at := make(adapters.Pieces, 0, 2*len(hits)+len(l.gone)+7), int32(0)
	if total != nil && l.count.to <= l.array.from {
		out, at = append(out, l.text[:l.count.from], total), l.count.to
	}
	out = append(out, l.text[at:l.array.from], lead)
	for i, hit := range hits {
		if i > 0 {
			out = append(out, between)
		}
		if !withoutOurs {
			out = append(out, hit)
		} else if out, ok = l.appendWithoutOurs(out, hit); !ok {
			return nil, false
		}
	}
	out, at = append(out, tail), l.array.to
	if total != nil && l.count.from >= at {
		out, at = append(out, l.text[at:l.count.from], total), l.count.to
	}
	return append(out, l.text[at:]), true
}

// appendWithoutOurs appends one of the reply's hits, without our fields.
func (l *parsedReply) appendWithoutOurs(out adapters.Pieces, hit []byte) (adapters.Pieces, bool) {
	start := cap(l.text) - cap(hit) // a hit is a slice of the reply, so the difference of their capacities is its offset
	if len(hit) == 0 || start < 0 || start+len(hit) > len(l.text) || &l.text[start] != &hit[0] {
		return nil, false
	}
	from, to := int32(start), int32(start+len(hit))
	i, _ := slices.BinarySearchFunc(l.gone, from, func(g extent, from int32) int { return cmp.Compare(g.from, from) })
	for ; i < len(l.gone) && l.gone[i].from < to; i++ {
		out, from = append(out, l.text[from:l.gone[i].from]), l.gone[i].to
	}
	return append(out, l.text[from:to]), true
}

// around returns what comes before, between and after n hits in the list.
func (l *parsedReply) around(n int) (lead, between, tail []byte) {
	array := l.of(l.array)
	switch held := l.first.to > 0; {
	case n == 0 && !held:
		return array, nil, nil
	case n == 0 && bytes.IndexByte(array, '\n') >= 0:
		return []byte("[ ]"), nil, nil
	case n == 0 || !held:
		return []byte("["), []byte(","), []byte("]")
	}
	lead, between, tail = l.text[l.array.from:l.first.from], []byte(","), l.text[l.last.to:l.array.to]
	if l.second.to > 0 {
		between = l.text[l.first.to:l.second.from]
	}
	return lead, between, tail
}

// withHits returns a reply with the hits in place of its own.
func withHits(reply []byte, hits [][]byte) ([]byte, error) {
	l, err := parseReply(reply, nil)
	if err != nil {
		return nil, err
	}
	return l.with(hits, nil), nil
}

// totalOf returns a number in the form of a reply's total, nil where the reply has none.
func totalOf(total []byte, n int) []byte {
	count := total
	form, err := jsonedit.Members(total)
	if err == nil {
		count = jsonedit.Get(form, "value")
	}
	if known, invalid := strconv.Atoi(string(count)); invalid != nil || known < 0 {
		return nil
	}
	value := strconv.AppendInt(nil, int64(n), 10)
	if err != nil {
		return value
	}
	if value, err = jsonedit.Set(total, "value", value); err != nil {
		return nil
	}
	return value
}

// joinLike returns an array of the elements with the white space of the array that they stood in, so that a pretty-printed reply
// stays one.
func joinLike(array []byte, elements [][]byte) []byte {
	f := parsedReply{text: array, array: span(0, len(array))}
	old, _ := jsonedit.Elements(array)
	for i, e := range old {
		from := cap(array) - cap(e) // elements share the array's memory
		switch f.last = span(from, from+len(e)); i {
		case 0:
			f.first = f.last
		case 1:
			f.second = f.last
		}
	}
	return f.with(elements, nil)
}
