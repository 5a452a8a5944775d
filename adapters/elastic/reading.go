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

// ofSource are the names of a source filter in a body or a URL.
var ofSource = []string{"_source", "_source_includes", "_source_excludes"}

// reader makes a reading with one request.
type reader struct {
	q *clientSearch
	adapters.Reading
	picked   bool // by a filter, from the start
	sketched bool // our field is read, and the deciding ones
	numbered bool // hits are identified by their sequence numbers
	// source is the source filter in place of the client's, nil to leave that; texts says that all sketched texts are shown.
	source []byte
	texts  bool
}

// Read implements adapters.Search.
func (q *clientSearch) Read(reading adapters.Reading, ask adapters.Ask) (*adapters.Listing, error) {
	if reading.AsSent {
		return q.readAsSent(ask)
	}
	r := &reader{q: q, Reading: reading, sketched: reading.Ranks == nil || !reading.Sources}
	switch {
	case r.Own, r.From == r.To: // the client's own page
		r.Ranks, r.From, r.To = nil, q.asked.From, q.asked.From+q.asked.Size
		r.Sources, r.sketched, r.Frame = true, false, true
	case r.Ranks != nil:
		if err := r.pick(); err != nil {
			return nil, err
		}
	default:
		r.numbered = !r.Sources && !r.Texts && q.numbers
	}
	r.Frame = r.Frame && (r.Sources || q.picks) // whose sources are read without
	switch {
	case !r.Sources && r.Texts:
		r.source, r.texts = sourceOf(q.asked.Scope.Texts), true
	case !r.Sources:
		r.source = sourceOf(nil)
	default:
		r.texts = q.wholeSource()
	}
	if q.point != nil {
		return r.readInPoint(ask)
	}
	request, err := r.request()
	if err != nil {
		return nil, err
	}
	replies, err := ask(request)
	if err != nil {
		return nil, err
	}
	return r.listing(replies[0].Body)
}

// request returns the request for a reading: the client's own, less what the reading does not need, and with its ranks and what they are judged by.
func (r *reader) request() (*adapters.Request, error) {
	q, from, to := r.q, r.From, r.To
	switch {
	case r.picked:
		from, to = 0, len(r.Ranks)
	case q.after != nil && !r.Before: // the engine takes no other
		from = 0
	}
	void := []string{"from", "size", "filter_path"}
	counted := r.Frame || !q.picks || q.after != nil || q.losesUncounted() || r.sketched && (q.asked.Scope.CollapsedTotals || q.asked.Scope.DryRun)
	if !counted {
		void = append(void, "track_total_hits")
	}
	if !r.Frame {
		void = append(void, once...)
		void = append(void, "suggest_field", "suggest_mode", "suggest_size", "suggest_text")
	}
	if !r.Sources {
		void = append(void, perHit...)
	}
	if r.numbered {
		void = append(void, "seq_no_primary_term")
	}
	if r.source != nil {
		void = append(void, ofSource[1:]...)
	}
	body := q.base
	if r.Neighbours > 0 {
		body = q.raised
	}
	cut := func(key string) bool { return slices.Contains(void, key) || r.Before && key == "search_after" }
	body, err := jsonedit.Cut(body, cut)
	set := func(key string, value []byte) {
		if err == nil {
			body, err = jsonedit.Set(body, key, value)
		}
	}
	set("from", strconv.AppendInt(nil, int64(from), 10))
	set("size", strconv.AppendInt(nil, int64(to-from), 10))
	if r.source != nil {
		set("_source", r.source)
		void = append(void, ofSource[0])
	}
	if !counted {
		set("track_total_hits", []byte("false"))
	}
	if r.picked && q.narrows {
		set("query", within(jsonedit.Get(q.members, "query"), r.known().only(r.Ranks)))
	} else if r.picked {
		set("post_filter", filteredToo(jsonedit.Get(q.members, "post_filter"), r.known().only(r.Ranks)))
	}
	if r.numbered {
		set("seq_no_primary_term", []byte("true"))
		if !r.Sources { // nor is anything read that is stored
			set("stored_fields", []byte(`"_none_"`))
		}
	}
	if err == nil && r.sketched {
		body, err = listed(body, "docvalue_fields", q.extractions(r.Sources, q.asked.Scope.Deciding))
	}
	if r.Before && !q.losesUncounted() { // no one looks at the count, and it can cost much
		set("track_total_hits", []byte("false"))
		void = append(void, "track_total_hits", "rest_total_hits_as_int")
	}
	return q.sentWith(body, void, adapters.Purpose{Hits: to - from, JudgingOnly: !r.Sources && q.header == nil}), err
}

// losesUncounted reports whether the engine may leave hits out of a list that it does not count. OpenSearch leaves out documents without a value
// of the field that it sorts by (3.6: 118 of 133 hits; 2.19: behind a cursor). Then a reading counts as the client's own search does. Otherwise a
// reading is faster without: to count takes a look at each hit.
func (q *clientSearch) losesUncounted() bool { return q.d.OpenSearch && q.value("sort") != "" }

// sentWith returns the client's request with another body, less the URL parameters that it makes void. In a multi-search it is two lines.
func (q *clientSearch) sentWith(body []byte, void []string, purpose adapters.Purpose) *adapters.Request {
	if q.header != nil {
		return &adapters.Request{Body: slices.Concat(q.header, []byte("\n"), oneLine(body), []byte("\n")), Purpose: purpose}
	}
	r := *q.sent
	r.Body, r.Purpose = body, purpose
	r.RawQuery = adapters.RawQuery(q.params, func(name string) bool { return !slices.Contains(void, name) })
	if purpose.JudgingOnly { // to compress sketches takes the engine as long as to read them, and only halves them
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
	members, err := jsonedit.Members(body)
	if err != nil {
		return nil, err
	}
	list := jsonedit.Get(members, key)
	if list == nil {
		list = []byte("[]")
	}
	elements, err := jsonedit.Elements(list)
	if err != nil {
		return nil, err
	}
	longer := append([]byte{}, list[:len(list)-1]...)
	for i, element := range more {
		if i > 0 || len(elements) > 0 {
			longer = append(longer, ',')
		}
		longer = append(longer, element...)
	}
	return jsonedit.Set(body, key, append(longer, ']'))
}
