package typesense

import (
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Render implements adapters.Search.
func (q *query) Render(frame *adapters.Listing, page []*rule.Seen, groups []*adapters.Group, total int) (_ adapters.Pieces, err error) {
	comma := []byte(",")
	list := append(make(adapters.Pieces, 0, 3*len(page)+2), []byte("["))
	for i, shown := range page {
		if i > 0 {
			list = append(list, comma)
		}
		if groups == nil {
			list, err = q.appendHit(list, hitOf(shown))
		} else {
			list, err = q.appendWithGroup(list, hitOf(shown), groups[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return q.withHits(frame.Parsed.(*result), append(list, []byte("]")), total), nil
}

// withHits returns a result with other hits, as the client's own page. A total below 0 leaves found as it is.
func (q *query) withHits(r *result, hits adapters.Pieces, total int) adapters.Pieces {
	before, after, digits := make(jsonedit.Edits, 0, 4), make(jsonedit.Edits, 0, 4), make([]byte, 0, 64)
	number := func(at extent, n int) {
		start := len(digits)
		digits = strconv.AppendInt(digits, int64(n), 10)
		switch {
		case at == (extent{}):
		case at.from < r.atHits.from:
			before = append(before, jsonedit.Edit{From: at.from, To: at.to, With: digits[start:]})
		default:
			after = append(after, jsonedit.Edit{From: at.from - r.atHits.to, To: at.to - r.atHits.to, With: digits[start:]})
		}
	}
	if q.asked.Unseen == "" { // else it is the client's own already
		number(r.atPage, q.page.number)
		number(r.atPerPage, q.page.size)
		for _, at := range r.atPerPages {
			number(at, q.page.size)
		}
		number(r.atCopy, q.page.number)
	}
	if total >= 0 {
		number(r.atFound, total)
	}
	return slices.Concat(before.Pieces(r.raw[:r.atHits.from]), hits, after.Pieces(r.raw[r.atHits.to:]))
}

// appendHit appends a hit as the client asked for it.
func (q *query) appendHit(dst adapters.Pieces, h *hit) (adapters.Pieces, error) {
	if !h.scattered && !q.namesOurs && (q.preset() || q.fields.sees("id")) {
		return append(dst, h.raw[:h.ours.from], h.raw[h.ours.to:]), nil
	}
	document, err := q.documentOf(h)
	return append(dst, h.raw[:h.at], document, h.raw[h.at+len(h.document):]), err
}

// documentOf returns a hit's document as the client asked for it.
func (q *query) documentOf(h *hit) ([]byte, error) {
	return jsonedit.Cut(h.document, func(key string) bool {
		return key == "id" && !q.preset() && !q.fields.sees("id") || rule.Our(key) && !(q.namesOurs && q.fields.sees(key))
	})
}

// appendWithGroup appends a hit with its group, all in one member.
func (q *query) appendWithGroup(dst adapters.Pieces, h *hit, g *adapters.Group) (adapters.Pieces, error) {
	pieces, err := q.appendHit(nil, h)
	if err != nil {
		return nil, err
	}
	var out []byte
	if g.Label != nil {
		out = append(out, g.Label.Members()...)
	}
	if q.asked.Scope.Expand > rule.ExpandOff {
		if out, err = q.appendList(out, g); err != nil {
			return nil, err
		}
	}
	whole, err := withMember(pieces.Bytes(), out)
	return append(dst, whole), err
}

// withMember returns a hit with the member of ours that has these members.
func withMember(hit, members []byte) ([]byte, error) {
	return jsonedit.Set(hit, "neardup", slices.Concat([]byte("{"), members, []byte("}")))
}

// appendList appends, as members, the hits that are folded into one, and why it is shown.
func (q *query) appendList(dst []byte, g *adapters.Group) (_ []byte, err error) {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	dst = strconv.AppendInt(append(dst, `"found":`...), int64(len(g.Folded)), 10)
	if g.Label == nil || g.Label.Size == 0 { // a size says whether both are exact
		dst = strconv.AppendBool(append(dst, `,"exact":`...), g.Exact)
	}
	dst = append(dst, `,"hits":[`...)
	for i := range g.Folded {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = q.appendFolded(dst, &g.Folded[i]); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if g.Why != nil {
		dst = append(append(dst, `,"explain":`...), g.Why...)
	}
	return dst, nil
}

// appendFolded appends what is shown of a folded hit.
func (q *query) appendFolded(dst []byte, f *adapters.Folded) ([]byte, error) {
	open := len(dst)
	if dst = appendID(append(dst, '{'), hitOf(f.Judged)); len(dst) > open+1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, `"agreement":`...), f.Agreement...)
	if h := hitOf(f.Source); h != nil {
		document, err := q.documentOf(h)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"document":`...), document...)
	}
	if f.Why != nil {
		dst = append(append(dst, `,"explain":`...), f.Why...)
	}
	return append(dst, '}'), nil
}

// appendID appends the id of a hit's document as a member, nothing if the client's key hides it.
func appendID(dst []byte, h *hit) []byte {
	if h == nil || h.id == "" {
		return dst
	}
	return jsonedit.AppendString(append(dst, `"id":`...), h.id)
}

// hitOf returns a hit as it was read, nil for none.
func hitOf(seen *rule.Seen) *hit {
	if seen == nil {
		return nil
	}
	return seen.Shown.(*hit)
}

// Clean implements adapters.Search.
func (q *query) Clean(raw []byte) []byte {
	if q.namesOurs {
		return raw
	}
	return jsonedit.Cleaned(raw, inHit)
}
