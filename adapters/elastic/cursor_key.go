package elastic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// besides are the keys of a body, and the parameters of a URL, that do not change which hits a search lists in which order. A
// point in time does; it is told apart, since its name may change from page to page.
var besides = strings.Fields(`
	from size search_after pit _source _source_includes _source_excludes fields docvalue_fields stored_fields
	script_fields highlight aggs aggregations suggest suggest_field suggest_mode suggest_size suggest_text explain version
	seq_no_primary_term track_total_hits track_scores rest_total_hits_as_int profile stats timeout pretty human
	error_trace filter_path typed_keys request_cache batched_reduce_size max_concurrent_shard_requests
	pre_filter_shard_size ccs_minimize_roundtrips phase_took include_named_queries_score format
`)

// key returns what a cursor of the search is remembered under: all that decides which list it is a place in, and the place.
func (s *cursored) key(pit string, sort []byte) string {
	q := s.q
	controls := fmt.Sprint(s.window, q.controls.Threshold, q.controls.Keep, s.show.DryRun)
	parts := []string{"search_after", q.target, pit, controls}
	var params []string
	for _, p := range q.params {
		if !slices.Contains(besides, p.Name) {
			params = append(params, p.Name+"="+p.Value)
		}
	}
	slices.Sort(params)
	list, err := adapters.Cut(q.body, func(key string) bool { return slices.Contains(besides, key) })
	if err != nil {
		list = q.body
	}
	parts = append(parts, strings.Join(params, "&"), canonical(list), canonical(sort))
	var key strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&key, "%d:%s", len(part), part)
	}
	return key.String()
}

// canonical returns JSON in one way of writing it: without white space, members in the order of their keys, numbers by their
// value. What is no JSON comes back as it is.
func canonical(data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(data)
	}
	out, err := json.Marshal(plainNumbers(v))
	if err != nil {
		return string(data)
	}
	return string(out)
}

// plainNumbers writes the numbers in a decoded value by their value: what a client reads as 1.0 it may send as 1.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = plainNumbers(value)
		}
	case []any:
		for i, value := range v {
			v[i] = plainNumbers(value)
		}
	case json.Number:
		if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return v
		}
		if f, err := v.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return v
}

// sortOf returns a hit's sort values, nil if it has none.
func sortOf(hit []byte) []byte {
	members, err := adapters.Members(hit)
	if err != nil {
		return nil
	}
	return adapters.Get(members, "sort")
}

// sorted reports whether hits come with the values that they are sorted by.
func (q *query) sorted() bool {
	return q.named("sort") != "" || adapters.Get(q.members, "pit") != nil
}

// pit returns the name of the point in time that the search is made in, or nothing.
func (q *query) pit() string {
	members, err := adapters.Members(adapters.Get(q.members, "pit"))
	if err != nil {
		return ""
	}
	id, _ := adapters.Text(adapters.Get(members, "id"))
	return id
}

// replyPIT returns the name that the client will know its point in time by: the reply may bring another.
func (s *cursored) replyPIT() string {
	if root, err := adapters.Members(s.baseReply.Body); err == nil {
		if id, ok := adapters.Text(adapters.Get(root, "pit_id")); ok {
			return id
		}
	}
	return s.q.pit()
}
