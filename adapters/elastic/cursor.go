package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// cursorReason returns why a search that begins after a cursor is left alone, or nothing.
func (q *clientSearch) cursorReason() adapters.Reason {
	switch scope := &q.asked.Scope; {
	case q.after == nil:
	case scope.Chooses, scope.Transitive: // the last hit shown tells where the next page begins, the best one does not
		return "cursor"
	case q.asked.From > 0: // the engine says so
		return "not_understood"
	case q.fused != nil, q.has("knn", "rescore", "retriever"):
		return "cursor"
	}
	return ""
}

// Key implements adapters.Cursor.
func (q *clientSearch) Key() string {
	if q.after == nil {
		return ""
	}
	return q.cursorKey(q.pit(), q.after)
}

// Next implements adapters.Cursor. The reply may name the client's point in time anew.
func (q *clientSearch) Next(in *adapters.Listing, last *rule.Seen) string {
	hit := hitOf(last)
	sort := hit.at(hit.sort)
	if !q.usesCursor() || sort == nil {
		return ""
	}
	pit := q.pit()
	if root, err := jsonedit.Members(in.Parsed.(*parsedReply).text); err == nil {
		if id, ok := jsonedit.Text(jsonedit.Get(root, "pit_id")); ok {
			pit = id
		}
	}
	return q.cursorKey(pit, sort)
}

// usesCursor reports whether clients go on from the last hit of the page by a cursor, so that what was shown is remembered for that.
func (q *clientSearch) usesCursor() bool {
	a := &q.asked
	ranked := a.From == 0 && !a.Scope.Chooses && !a.Scope.Transitive && q.raised == nil && q.fused == nil
	return q.after != nil || ranked && q.sorted()
}

// At implements adapters.Cursor.
func (q *clientSearch) At(seen *rule.Seen) bool {
	hit := hitOf(seen)
	return canonical(hit.at(hit.sort)) == canonical(q.after)
}

// besides are the keys of a body, and the parameters of a URL, that do not change the hits of a search or their order. A
// point in time does; its name is a part of the key by itself, since it may change from page to page.
var besides = strings.Fields(`
	from size search_after pit _source _source_includes _source_excludes fields docvalue_fields stored_fields
	script_fields highlight aggs aggregations suggest suggest_field suggest_mode suggest_size suggest_text explain version
	seq_no_primary_term track_total_hits track_scores rest_total_hits_as_int profile stats timeout pretty human
	error_trace filter_path typed_keys request_cache batched_reduce_size max_concurrent_shard_requests
	pre_filter_shard_size ccs_minimize_roundtrips phase_took include_named_queries_score format
`)

// cursorKey returns what a cursor of the search is remembered under: all that decides which list it is a place in, and the place.
// No two lists share one.
func (q *clientSearch) cursorKey(pit string, sort []byte) string {
	return q.listKey("search_after", pit, canonical(sort))
}

// List implements adapters.Sequence.
func (q *clientSearch) List() string { return q.listKey(q.pit()) }

// listKey returns a key for a list, of all that decides which one it is, and for what is given.
func (q *clientSearch) listKey(parts ...string) string {
	controls := fmt.Sprint(q.asked.Scope.Window, q.asked.Scope.Threshold, q.asked.Scope.Keep, q.asked.Scope.DryRun, q.asked.Scope.Group)
	parts = append(parts, q.asked.Target, controls)
	params := slices.DeleteFunc(slices.Clone(q.params), func(p adapters.Param) bool { return slices.Contains(besides, p.Name) })
	// Stable, since the last of a name counts.
	slices.SortStableFunc(params, func(a, b adapters.Param) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range params {
		parts = append(parts, "?"+p.Name, p.Value)
	}
	members := slices.DeleteFunc(slices.Clone(q.members), func(m jsonedit.Member) bool { return slices.Contains(besides, m.Key) })
	slices.SortFunc(members, func(a, b jsonedit.Member) int { return strings.Compare(a.Key, b.Key) })
	for _, m := range members {
		parts = append(parts, m.Key, canonical(m.Value))
	}
	var key strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&key, "%d:%s", len(part), part)
	}
	return key.String()
}

// canonical returns JSON in one way of writing its tokens: clients write white space, numbers and strings in other ways than
// engines. The members of an object stay in their order, which counts in a sort. What is no JSON comes back as it is.
func canonical(data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out []byte
	for {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return string(out)
		case err != nil:
			return string(data)
		}
		switch v := token.(type) {
		case json.Number:
			out = append(out, plainNumber(string(v))...)
		case string:
			out = jsonedit.AppendString(out, v)
		default:
			out = fmt.Append(out, v)
		}
		out = append(out, ' ')
	}
}

// exact is up to where every whole number is a float64.
const exact = 1 << 53

// plainNumber returns a number in one way of writing it: what an engine writes as 1.0 a client may send as 1. Those of
// which a float64 may not hold every digit stay as they are.
func plainNumber(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.Abs(f) >= exact:
		return text
	case f == math.Trunc(f):
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// sortOf returns a hit's sort values, nil if it has none.
func sortOf(hit []byte) []byte {
	members, err := jsonedit.Members(hit)
	if err != nil {
		return nil
	}
	return jsonedit.Get(members, "sort")
}

// sorted reports whether hits come with the values that they are sorted by.
func (q *clientSearch) sorted() bool {
	return q.value("sort") != "" || q.inPIT()
}

// inPIT reports whether the search is made in a point in time of the client's.
func (q *clientSearch) inPIT() bool { return jsonedit.Get(q.members, "pit") != nil }

// pit returns the name of the point in time that the search is made in, or nothing.
func (q *clientSearch) pit() string {
	members, err := jsonedit.Members(jsonedit.Get(q.members, "pit"))
	if err != nil {
		return ""
	}
	id, _ := jsonedit.Text(jsonedit.Get(members, "id"))
	return id
}
