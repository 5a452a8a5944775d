package elastic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// Keys that a reading of sketches alone leaves out, and those that are asked once.
var (
	perHit = []string{
		"_source", "fields", "docvalue_fields", "stored_fields", "script_fields", "highlight", "explain", "version",
		"seq_no_primary_term",
	}
	once = []string{"aggs", "aggregations", "suggest", "profile"}
)

// ofSource are the names by which a source filter stands in a body or a URL.
var ofSource = []string{"_source", "_source_includes", "_source_excludes"}

// reading is what one ask of the query is for.
type reading struct {
	from, size int
	sketchOnly bool
	settled    bool                // aggregations and suggestions are at hand, or come later
	texts      []string            // the sketched fields, to compute missing sketches from; of a reading of sketches alone
	source     []byte              // the source filter in place of the client's, where that hides the texts; nil leaves the client's
	judged     bool                // the sketches are looked at
	deciding   []adapters.Deciding // and what hits are folded and chosen by beside them
	only       []document          // the documents wanted, if not all
	numbered   bool                // hits are told by their sequence numbers
	uncounted  bool                // how many hits there are in all is at hand, or comes later: to count them takes a look at each
}

// document is what tells a document from all others.
type document struct{ index, id string }

// ask returns the body of a reading, and the names of URL parameters that it makes void.
func (q *query) ask(r reading) (body []byte, void []string, err error) {
	void = []string{"from", "size", "filter_path"}
	// Where OpenSearch does not count it passes over shards and segments whose values all sort before the cursor, with the documents in them
	// that have no value, which sort behind it (2.19, a sort without "missing"). So there it counts.
	uncounted := r.uncounted && q.after == nil
	if uncounted {
		void = append(void, "track_total_hits")
	}
	if r.settled {
		void = append(void, once...)
		void = append(void, "suggest_field", "suggest_mode", "suggest_size", "suggest_text")
	}
	source := r.source
	if r.sketchOnly {
		void, source = append(void, perHit...), sourceOf(r.texts)
	}
	if r.numbered {
		void = append(void, "seq_no_primary_term")
	}
	if source != nil {
		void = append(void, ofSource[1:]...)
	}
	if body, err = adapters.Cut(q.body, func(key string) bool { return slices.Contains(void, key) }); err != nil {
		return nil, nil, err
	}
	set := func(key string, value []byte) {
		if err == nil {
			body, err = adapters.Set(body, key, value)
		}
	}
	if q.after != nil { // the engine takes no other
		r.from, r.size = 0, r.from+r.size
	}
	set("from", strconv.AppendInt(nil, int64(r.from), 10))
	set("size", strconv.AppendInt(nil, int64(r.size), 10))
	if source != nil {
		set("_source", source)
		void = append(void, ofSource[0])
	}
	if uncounted {
		set("track_total_hits", []byte("false"))
	}
	switch {
	case r.only != nil && q.narrows():
		set("query", within(adapters.Get(q.members, "query"), theseDocuments(r.only, r.numbered)))
	case r.only != nil:
		set("post_filter", filteredToo(adapters.Get(q.members, "post_filter"), theseDocuments(r.only, r.numbered)))
	}
	if err == nil && r.numbered {
		body, err = withNumbers(body, r.sketchOnly)
	}
	if err == nil && r.judged {
		body, err = listed(body, "docvalue_fields", q.extractions(r))
	}
	return body, void, err
}

// extractions returns what a reading has extracted beside what the client does.
func (q *query) extractions(r reading) (list [][]byte) {
	if r.sketchOnly || !q.listsSketch() {
		list = append(list, adapters.AppendString(nil, adapters.SketchField))
	}
	for _, d := range r.deciding {
		entry := adapters.AppendString(nil, d.Field)
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
		list = adapters.AppendString(list, text)
	}
	return append(list, ']')
}

// listsSketch reports whether the client itself asks for the sketch where we would, or by a pattern: OpenSearch answers a
// field asked for twice with its values twice.
func (q *query) listsSketch() bool {
	value, ok := adapters.Last(q.params, "docvalue_fields")
	if ok && slices.Contains(strings.Split(value, ","), adapters.SketchField) {
		return true
	}
	names, _ := fieldNames(adapters.Get(q.members, "docvalue_fields"))
	return slices.Contains(names, adapters.SketchField) || q.patternsSketch()
}

// patternsSketch reports whether the client's fields hold a pattern that brings the sketch too.
func (q *query) patternsSketch() bool {
	names, ok := fieldNames(adapters.Get(q.members, "fields"))
	return ok && slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(name, "*") && adapters.Matches(name, adapters.SketchField)
	})
}

// fieldNames returns the names in a list of fields, each a string or an object that holds one; false if it is no such list.
func fieldNames(list []byte) (names []string, ok bool) {
	if list == nil {
		return nil, true
	}
	elements, err := adapters.Elements(list)
	if err != nil {
		name, ok := adapters.Text(list)
		return []string{name}, ok
	}
	ok = true
	for _, element := range elements {
		if members, err := adapters.Members(element); err == nil {
			element = adapters.Get(members, "field")
		}
		name, is := adapters.Text(element)
		names, ok = append(names, name), ok && is
	}
	return names, ok
}

// listed adds elements to a list in the body, which is made if there is none.
func listed(body []byte, key string, more [][]byte) ([]byte, error) {
	if len(more) == 0 {
		return body, nil
	}
	members, err := adapters.Members(body)
	if err != nil {
		return nil, err
	}
	list := adapters.Get(members, key)
	if list == nil {
		list = []byte("[]")
	}
	elements, err := adapters.Elements(list)
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
	return adapters.Set(body, key, append(longer, ']'))
}
