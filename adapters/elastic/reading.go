package elastic

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Keys that a reading of sketches alone leaves out, and those that only one reading of a search asks for.
var (
	perHit = []string{
		"_source", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "explain", "version",
		"seq_no_primary_term",
	}
	once = []string{"aggs", "aggregations", "suggest", "profile"}
)

// Requests implements adapters.Search. One request is a whole reading: the client's own with other ranks, and with what hits are judged by. An
// ordinary reading leaves out and sets nothing else.
func (q *clientSearch) Requests(r *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	switch {
	case len(replies) > 0:
		return nil, nil
	case r.AsWritten:
		return q.requestAsWritten(), nil
	case r.Counts:
		return q.requestCounts(r)
	case r.Ranks != nil:
		if err := q.pick(r); err != nil {
			return nil, err
		}
	}
	from, to := q.ranksOf(r)
	body, void := q.base, q.leftOut(r)
	if q.raised != nil && !r.Own {
		body = q.raised
	}
	body, err := jsonedit.Cut(body, func(key string) bool { return slices.Contains(void, key) })
	set := func(key string, value []byte) {
		if err == nil {
			body, err = jsonedit.Set(body, key, value)
		}
	}
	if err == nil {
		ranks := strconv.AppendInt(append(make([]byte, 0, 64), `"from":`...), int64(from), 10)
		ranks = strconv.AppendInt(append(ranks, `,"size":`...), int64(to-from), 10)
		body, err = jsonedit.Append(body, ranks)
	}
	q.setBeside(r, set)
	if scope := &q.asked.Scope; err == nil && r.Judged {
		body, err = listed(body, "docvalue_fields", q.extractions(r.Sources, scope.Deciding))
	} else if err == nil && scope.Group && scope.Clusters && r.Sources && !q.asked.Ways.Apart {
		body, err = listed(body, "docvalue_fields", [][]byte{[]byte(`"` + rule.ClusterField + `"`)})
	}
	request := q.sentWith(body, void, !r.Sources && q.header == nil)
	request.Hits = to - from
	return []*adapters.Request{request}, err
}

// leftOut returns the keys of the body and the parameters of the URL that a reading does without: of an ordinary one from, size and filter_path.
func (q *clientSearch) leftOut(r *adapters.Reading) []string {
	void := []string{"from", "size", "filter_path"}
	counted := q.counted(r)
	if !counted {
		void = append(void, "track_total_hits")
	}
	if !q.framed(r) {
		void = append(void, once...)
		void = append(void, "suggest_field", "suggest_mode", "suggest_size", "suggest_text")
	}
	if !r.Sources {
		void = append(void, perHit...)
		void = append(void, "_source_includes", "_source_excludes")
	}
	if q.numbered(r) {
		void = append(void, "seq_no_primary_term")
	}
	if r.Before {
		void = append(void, "search_after")
		if !counted {
			void = append(void, "rest_total_hits_as_int")
		}
	}
	return void
}

// setBeside sets in the body what a reading needs beside its ranks: nothing for an ordinary one.
func (q *clientSearch) setBeside(r *adapters.Reading, set func(key string, value []byte)) {
	if !r.Sources {
		set("_source", q.sourceFilter(r))
	}
	if !q.counted(r) {
		set("track_total_hits", []byte("false"))
	}
	if r.Picked && q.narrows {
		set("query", within(jsonedit.Get(q.members, "query"), only(r)))
	} else if r.Picked {
		set("post_filter", filteredToo(jsonedit.Get(q.members, "post_filter"), only(r)))
	}
	if q.numbered(r) {
		set("seq_no_primary_term", []byte("true"))
		if !r.Sources { // nor is anything read that is stored
			set("stored_fields", []byte(`"_none_"`))
		}
	}
}

// ranksOf returns the ranks [from, to) that the engine is asked for.
func (q *clientSearch) ranksOf(r *adapters.Reading) (from, to int) {
	switch {
	case r.From == r.To: // for what a reply has beside its hits, the client's own page
		return q.asked.From, q.asked.From + q.asked.Size
	case r.Picked:
		return 0, len(r.Ranks)
	case q.fromStart(r):
		return 0, r.To
	}
	return r.From, r.To
}

// fromStart reports whether a reading has to begin where the list does: the engine takes nothing else after a cursor, and refuses a hybrid query
// from a rank that the list does not have.
func (q *clientSearch) fromStart(r *adapters.Reading) bool {
	return q.after != nil && !r.Before || q.fused != nil && q.fused.hybrid
}

// framed reports whether a reading brings all that a reply has beside its hits.
func (q *clientSearch) framed(r *adapters.Reading) bool {
	return r.Frame && (r.Sources || q.picks) // a search that can pick may have only one reading of the list as it is: that of its sketches
}

// numbered reports whether the hits of a reading are identified by their sequence numbers, and not by their ids: those of a reading of sketches alone,
// and those that are chosen from these later. Page 1 with its sources is never numbered. picked.go says why.
func (q *clientSearch) numbered(r *adapters.Reading) bool {
	if len(r.Known) > 0 {
		return hitOf(&r.Known[0]).in.numbered
	}
	return q.numbers && r.Judged && !r.Sources && !r.Texts && q.asked.Scope.Decided == nil
}

// sourceFilter returns the source filter of a reading without sources.
func (q *clientSearch) sourceFilter(r *adapters.Reading) []byte {
	if r.Texts {
		return sourceOf(q.asked.Scope.Texts)
	}
	return sourceOf(nil)
}

// counted reports whether the engine counts its hits for a reading. No one looks at the count of one before a cursor, and it can cost much.
func (q *clientSearch) counted(r *adapters.Reading) bool {
	switch {
	case q.losesUncounted():
		return true
	case r.Before:
		return false
	}
	return q.framed(r) || !q.picks || q.after != nil || r.Judged && (q.asked.Scope.CollapsedTotals || q.asked.Scope.DryRun)
}

// losesUncounted reports whether the engine may leave hits out of a list that it does not count. OpenSearch leaves out documents without a value
// of the field that it sorts by (3.6: 118 of 133 hits; 2.19: behind a cursor). Then a reading counts as the client's own search does. Otherwise a
// reading is faster without: to count takes a look at each hit.
func (q *clientSearch) losesUncounted() bool { return q.d.OpenSearch && q.value("sort") != "" }

// sentWith returns the client's request with another body, less the URL parameters that it makes void. judging says that it asks for what hits are
// judged by alone. In a multi-search it is two lines.
func (q *clientSearch) sentWith(body []byte, void []string, judging bool) *adapters.Request {
	if q.header != nil {
		return &adapters.Request{Body: slices.Concat(q.header, []byte("\n"), oneLine(body), []byte("\n")), JudgingOnly: judging}
	}
	r := *q.sent
	r.Body, r.JudgingOnly = body, judging
	r.RawQuery = adapters.RawQuery(q.params, func(name string) bool { return !slices.Contains(void, name) })
	if judging { // to compress sketches takes the engine as long as to read them, and only halves them
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	if len(q.sent.Body) == 0 { // whatever the client says of a body that it does not send
		r.Header = q.d.withType(r.Header)
	}
	return &r
}

// oneLine returns a body on one line. A line end inside it is white space.
func oneLine(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\n"), []byte(" ")) }

// extractions returns what is extracted beside what the client has, of a reading with its sources or without.
func (q *clientSearch) extractions(sources bool, deciding []rule.Deciding) (list [][]byte) {
	if !sources || !q.listsSketch() {
		list = append(list, jsonedit.AppendString(nil, rule.SketchField))
	}
	for _, d := range deciding {
		entry := jsonedit.AppendString(nil, d.Field)
		if d.Date {
			entry = append(append([]byte(`{"field":`), entry...), `,"format":"epoch_millis"}`...)
		}
		list = append(list, entry)
	}
	return list
}

// sourceOf returns a source filter that lets the fields through alone.
func sourceOf(fields []string) []byte {
	if len(fields) == 0 {
		return []byte("false")
	}
	return stringsOf(fields)
}

// stringsOf returns a list of strings as JSON.
func stringsOf(texts []string) []byte {
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = jsonedit.AppendString(list, text)
	}
	return append(list, ']')
}

// listsSketch reports whether the client itself asks for the sketch where we would, or by a pattern: OpenSearch answers a
// field asked for twice with its values twice.
func (q *clientSearch) listsSketch() bool {
	value, ok := adapters.Last(q.params, "docvalue_fields")
	if ok && slices.Contains(strings.Split(value, ","), rule.SketchField) {
		return true
	}
	names, _ := fieldNames(jsonedit.Get(q.members, "docvalue_fields"))
	return slices.Contains(names, rule.SketchField) || q.patternsSketch()
}

// patternsSketch reports whether the client's fields hold a pattern that brings the sketch too.
func (q *clientSearch) patternsSketch() bool {
	names, ok := fieldNames(jsonedit.Get(q.members, "fields"))
	return ok && slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "*") && rule.Matches(name, rule.SketchField)
	})
}

// fieldNames returns the names in a list of fields, each a string or an object that holds one; false if it is no such list.
func fieldNames(list []byte) (names []string, ok bool) {
	if list == nil {
		return nil, true
	}
	elements, err := jsonedit.Elements(list)
	if err != nil {
		name, ok := jsonedit.Text(list)
		return []string{name}, ok
	}
	ok = true
	for _, element := range elements {
		if members, err := jsonedit.Members(element); err == nil {
			element = jsonedit.Get(members, "field")
		}
		name, is := jsonedit.Text(element)
		names, ok = append(names, name), ok && is
	}
	return names, ok
}

// listed adds elements to a list in the body, and makes the list if it is missing.
func listed(body []byte, key string, more [][]byte) ([]byte, error) {
	if len(more) == 0 {
		return body, nil
	}
	var elements [][]byte
	if list := jsonedit.Lookup(body, key); list != nil {
		var err error
		if elements, err = jsonedit.Elements(list); err != nil {
			return nil, err
		}
	}
	return jsonedit.Set(body, key, jsonedit.Array(append(elements, more...)))
}
