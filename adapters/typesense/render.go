package typesense

import (
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Render implements adapters.Search.
func (q *query) Render(frame adapters.Hits, page []adapters.PageHit, total int) (adapters.Pieces, error) {
	in, err := frame.(*hits).in, error(nil)
	list := append(make([]byte, 0, in.atHits.to-in.atHits.from), '[')
	for i := range page {
		if i > 0 {
			list = append(list, ',')
		}
		if list, err = q.appendHit(list, &page[i]); err != nil {
			return nil, err
		}
	}
	return q.present(in, total, append(list, ']')), nil
}

// hitAt returns the hit of a place, nil for none.
func hitAt(p adapters.Place) *hit {
	if p.Hits == nil {
		return nil
	}
	return &p.Hits.(*hits).list[p.At]
}

// appendHit appends a hit of the page as the client gets it, with what is folded into it.
func (q *query) appendHit(dst []byte, h *adapters.PageHit) ([]byte, error) {
	if h.Group == nil {
		return q.appendBare(dst, hitAt(h.Place))
	}
	raw, err := q.appendBare(nil, hitAt(h.Place))
	if err != nil {
		return nil, err
	}
	g := h.Group
	out := strconv.AppendInt([]byte(`{"found":`), int64(len(g.Folded)), 10)
	out = append(strconv.AppendBool(append(out, `,"exact":`...), g.Exact), `,"hits":[`...)
	for i := range g.Folded {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = q.appendFolded(out, &g.Folded[i]); err != nil {
			return nil, err
		}
	}
	out = append(out, ']')
	if g.Why != nil {
		out = append(append(out, `,"explain":`...), g.Why...)
	}
	raw, err = jsonedit.Set(raw, "neardup", append(out, '}'))
	return append(dst, raw...), err
}

// appendID appends the id of a hit's document as a member, nothing if the client's key hides it.
func appendID(dst []byte, h *hit) []byte {
	if h == nil || h.id == "" {
		return dst
	}
	return jsonedit.AppendString(append(dst, `"id":`...), h.id)
}

// appendFolded appends what is shown of a folded hit.
func (q *query) appendFolded(dst []byte, f *adapters.Folded) ([]byte, error) {
	open := len(dst)
	if dst = appendID(append(dst, '{'), hitAt(f.Judged)); len(dst) > open+1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, `"agreement":`...), f.Agreement...)
	if h := hitAt(f.Source); h != nil {
		document, err := q.bareDocument(h)
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

// appendBare appends the hit as the client asked for it.
func (q *query) appendBare(dst []byte, h *hit) ([]byte, error) {
	if !h.scattered && !q.shown && (q.preset || q.sees("id")) {
		return append(append(dst, h.raw[:h.ours.from]...), h.raw[h.ours.to:]...), nil
	}
	document, err := q.bareDocument(h)
	return append(append(append(dst, h.raw[:h.at]...), document...), h.raw[h.at+len(h.document):]...), err
}

// bareDocument returns the hit's document as the client asked for it.
func (q *query) bareDocument(h *hit) ([]byte, error) {
	return jsonedit.Cut(h.document, func(key string) bool {
		return key == "id" && !q.preset && !q.sees("id") || rule.Our(key) && !(q.shown && q.sees(key))
	})
}

// Clean implements adapters.Search.
func (q *query) Clean(raw []byte) []byte {
	if q.shown {
		return raw
	}
	return jsonedit.Cleaned(raw, inHit)
}

// present puts other hits into a result and makes it one of the client's own page. A found below 0 stays as it is.
func (q *query) present(r *result, found int, hits []byte) adapters.Pieces {
	var edits jsonedit.Edits
	put := func(at extent, value []byte) {
		if at != (extent{}) {
			edits = append(edits, jsonedit.Edit{From: at.from, To: at.to, With: value})
		}
	}
	number := func(at extent, n int) { put(at, strconv.AppendInt(nil, int64(n), 10)) }
	put(r.atHits, hits)
	if !q.unseen() { // else it is the client's own already
		number(r.atPage, q.page)
		number(r.atPerPage, q.perPage)
		number(r.atCopy, q.page)
	}
	if found >= 0 {
		number(r.atFound, found)
	}
	return edits.Pieces(r.raw)
}
