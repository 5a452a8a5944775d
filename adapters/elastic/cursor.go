package elastic

import (
	"slices"

	"github.com/neardup/sidecar/adapters"
)

// cursor is where the list begins.
type cursor struct {
	after []byte // the sort values of a cursor (search_after), nil where the list is read from its beginning
	walks bool   // clients go on from its last hit by a cursor, and what was shown is remembered for that
}

// readCursor reads whether the list begins behind a cursor.
func (q *query) readCursor() {
	q.after = adapters.Get(q.members, "search_after")
	if string(q.after) == "null" {
		q.after = nil
	}
}

// left returns why a search has to be left alone that begins behind a cursor, or nothing.
func (q *query) left(scope adapters.Scope) adapters.Reason {
	switch {
	case scope.Piped:
		return "search_pipeline"
	case q.after != nil && (scope.Chooses || scope.Transitive): // the last hit shown tells where the next page begins, the best one does not
		return "cursor"
	case q.after != nil && q.asked.From > 0: // the engine says so
		return "not_understood"
	case q.after != nil && q.has("knn", "rescore", "retriever"):
		return "cursor"
	}
	return ""
}

// has reports whether one of the keys stands in the search's body.
func (q *query) has(keys ...string) bool {
	return slices.ContainsFunc(q.members, func(m adapters.Member) bool { return slices.Contains(keys, m.Key) })
}

// Cursor implements adapters.Walker.
func (q *query) Cursor() string {
	if q.after == nil {
		return ""
	}
	return q.cursorKey(q.pit(), q.after)
}

// Next implements adapters.Walker. The reply may name the client's point in time anew.
func (q *query) Next(in adapters.Hits, last adapters.Place) string {
	hit := &last.Hits.(*hits).list[last.At]
	sort := hit.at(hit.sort)
	if !q.walks || sort == nil {
		return ""
	}
	pit := q.pit()
	if root, err := adapters.Members(in.(*hits).reply); err == nil {
		if id, ok := adapters.Text(adapters.Get(root, "pit_id")); ok {
			pit = id
		}
	}
	return q.cursorKey(pit, sort)
}

// AtCursor implements adapters.Walker.
func (q *query) AtCursor(p adapters.Place) bool {
	hit := &p.Hits.(*hits).list[p.At]
	return canonical(hit.at(hit.sort)) == canonical(q.after)
}
