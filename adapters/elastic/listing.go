package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Listing implements adapters.Search.
func (q *clientSearch) Listing(r *adapters.Reading, replies []*adapters.Reply) (l *adapters.Listing, err error) {
	reply := replies[0].Body
	if r.AsWritten {
		return q.listingAsWritten(r, reply)
	}
	if declined := q.declined(reply, false); declined != nil {
		return nil, declined
	}
	read, err := parseReply(reply, q.asked.Scope.Deciding)
	if errors.Is(err, adapters.ErrWidened) {
		return nil, &adapters.Declined{Reason: "a shard failed", Raw: reply}
	} else if err != nil {
		return nil, err
	}
	if r.Picked { // the count is that of the picked hits
		read.total = -1
	}
	l = &adapters.Listing{Parsed: read, Total: read.total, AtLeast: read.lowest, Framed: q.framed(r)}
	if r.Sources {
		l.HitBytes = read.meanLength()
	}
	l.Hits, err = q.seen(r, read)
	return l, err
}

// meanLength returns the mean length of the hits, 0 without hits.
func (l *parsedReply) meanLength() (mean int) {
	for i := range l.hits {
		mean += len(l.hits[i].raw)
	}
	return mean / max(len(l.hits), 1)
}

// declined returns the error that an element of a multi-search is, nil if it is none.
func (q *clientSearch) declined(element []byte, own bool) error {
	if q.header == nil {
		return nil
	}
	members, err := jsonedit.Members(element)
	if err != nil {
		return err
	}
	if jsonedit.Get(members, "error") == nil {
		return nil
	}
	status := string(jsonedit.Get(members, "status"))
	widened := status == "400" || status == "" || blames(element, q.asked.Scope.Deciding)
	return &adapters.Declined{Reason: "status " + status, Final: own || !widened, Raw: element}
}

// wanted returns those of a reply's hits that the reading asked for.
func (q *clientSearch) wanted(r *adapters.Reading, list []hit) []hit {
	switch {
	case r.Picked && len(list) != len(r.Ranks): // the list moved
		return nil
	case r.Picked:
		return q.keepSort(r, list)
	case q.fromStart(r):
		list = list[min(r.From, len(list)):]
	}
	if r.Ranks == nil {
		return list
	}
	chosen := make([]hit, 0, len(r.Ranks))
	for _, rank := range r.Ranks {
		if rank-r.From < len(list) {
			chosen = append(chosen, list[rank-r.From])
		}
	}
	return chosen
}

// seen returns what is judged of the hits that the reading asked for. An id begins with the hit's _index: one list can hold hits of several indices
// with the same _id.
func (q *clientSearch) seen(r *adapters.Reading, reply *parsedReply) (_ []rule.Seen, err error) {
	reply.numbered, reply.texts = q.numbered(r), r.Texts && !r.Sources || r.Sources && q.showsTexts()
	list := q.wanted(r, reply.hits)
	seen := make([]rule.Seen, len(list))
	var last []byte // the last hit's index
	var name, index string
	var room [64]byte
	id, ids := room[:0], jsonedit.Strings{Size: 24 * len(list)}
	for i := range list {
		one := &list[i]
		if named := one.at(one.index); last == nil || !bytes.Equal(named, last) {
			var ok bool
			if name, ok = jsonedit.Text(named); !ok {
				return nil, errors.New("a hit without _index")
			}
			last, index = named, q.d.ruleName(name)
		}
		id = append(append(id[:0], name...), 0)
		if id, err = one.appendID(id, reply.numbered); err != nil {
			return nil, err
		}
		one.in = reply
		seen[i] = rule.Seen{Index: index, ID: ids.Of(id), Shown: one}
		if !reply.numbered {
			seen[i].Document = seen[i].ID[len(name)+1:]
		}
		if r.Judged {
			seen[i].Stored = sketchIn(one.at(one.sketch))
		}
		if q.asked.Scope.Group {
			seen[i].Cluster = clusterOf(one)
		}
	}
	return seen, nil
}

// appendID appends what tells a hit from the others of its index.
func (h *hit) appendID(dst []byte, numbered bool) ([]byte, error) {
	if numbered {
		number, term := h.at(h.number), h.at(h.term)
		if len(number) == 0 || number[0] == '-' || len(term) == 0 { // an index can be without them
			return nil, errUnnumbered
		}
		dst = append(append(append(dst, number...), '.'), term...)
		return append(append(dst, '.'), h.at(h.sort)...), nil
	}
	id, ok := jsonedit.TextBytes(h.at(h.id))
	if !ok {
		return nil, errors.New("a hit without _id")
	}
	return append(dst, id...), nil
}

// Name implements adapters.Search.
func (q *clientSearch) Name(hit *rule.Seen) []byte {
	d := documentOf(hit)
	if h := hitOf(hit); h.in.numbered {
		d.id, _ = jsonedit.Text(h.at(h.id))
	}
	name := jsonedit.AppendString(append(jsonedit.AppendString([]byte(`{"_index":`), d.index), `,"_id":`...), d.id)
	return append(name, '}')
}

// Values implements rule.Shown.
func (h *hit) Values(d rule.Deciding) []string {
	fields, _ := jsonedit.Members(h.at(h.fields)) // none if no field has a value
	return extracted(fields).Values(d)
}

// Document implements rule.Shown.
func (h *hit) Document(*rule.Rule) []byte {
	if !h.in.texts {
		return nil
	}
	return orEmpty(h.at(h.source))
}

// parsedReply is what is read of the reply to a search, in one pass over it: its hits, and where other ones are put in their place.
type parsedReply struct {
	text []byte
	// count and array are the places of the count of hits and of their list; the zero extent is nowhere.
	count, array extent
	// first and last are those of the hits in the list, second that of the one after the first.
	first, second, last extent
	// gone are the places of our fields among the hits, in order. sure says that the reply has our fields nowhere else.
	gone  []extent
	sure  bool
	hits  []hit
	total int // the engine's count, -1 where it gave none
	// lowest says that there may be more than total.
	lowest bool
	shards int // how many answered, 0 where the reply does not say
	marked int // how many of our names are in what is marked as gone
	// numbered says that hits are identified by their sequence numbers, texts that their sources show all sketched texts.
	numbered, texts bool
}

// hit is the bytes of a hit, and where in them the parts are that we read. It implements rule.Shown.
type hit struct {
	in                                                    *parsedReply // nil until the hit is listed
	raw                                                   []byte
	index, id, number, term, sort, source, fields, sketch extent
}

// hitOf returns a hit as it was read.
func hitOf(seen *rule.Seen) *hit { return seen.Shown.(*hit) }

// extent is where a part of a hit begins and ends; the zero extent says that the hit lacks it.
type extent struct{ from, to int32 }

// span returns an extent. No reply is longer than it can say.
func span(from, to int) extent { return extent{int32(from), int32(to)} }

// at returns a part of the hit, nil if it has none such.
func (h *hit) at(p extent) []byte {
	if p.to == 0 {
		return nil
	}
	return h.raw[p.from:p.to]
}

// parseReply parses the reply to a search. A shard that failed leaves its hits out: where that can be for what we asked, be it our field,
// a deciding one, or more ranks than an index of several grants, that is ErrWidened.
func parseReply(reply []byte, deciding []rule.Deciding) (*parsedReply, error) {
	l := &parsedReply{}
	r := jsonedit.NewReader(reply)
	r.CountNames(rule.FieldPrefix)
	var shards []byte // whatever else they are says nothing
	whole := false
	for r.Enter('{'); r.Next(); {
		switch string(r.Key()) {
		case "_shards":
			shards = r.Value()
		case "hits":
			whole = l.readOuter(&r, reply)
		}
	}
	switch {
	case !r.Done():
		return nil, jsonedit.ErrMalformed
	case failedForUs(shards, deciding):
		return nil, adapters.ErrWidened
	case !whole:
		return nil, jsonedit.ErrMalformed
	}
	l.sure = l.marked == r.Names()
	l.shards, _ = strconv.Atoi(string(jsonedit.Lookup(shards, "total")))
	return l, nil
}

// readOuter reads the object around a reply's hits. It returns false if that is no object or has no hits.
func (l *parsedReply) readOuter(r *jsonedit.Reader, reply []byte) (whole bool) {
	*l = parsedReply{text: reply}
	var count []byte
	if !r.Enter('{') {
		return false
	}
	for r.Next() {
		switch string(r.Key()) {
		case "total":
			from := r.At()
			count = r.Value()
			l.count = span(from, r.At())
		case "hits":
			whole = l.readHits(r, reply)
		}
	}
	if len(count) > 0 && count[0] == '{' {
		count, l.lowest = jsonedit.Lookup(count, "value"), string(jsonedit.Lookup(count, "relation")) == `"gte"`
	}
	var err error
	if l.total, err = strconv.Atoi(string(count)); err != nil {
		l.total = -1
	}
	return whole
}

func (l *parsedReply) readHits(r *jsonedit.Reader, reply []byte) (whole bool) {
	l.hits, l.first, l.second, l.last = nil, extent{}, extent{}, extent{}
	l.gone, l.marked = nil, 0
	start := r.At()
	if !r.Enter('[') {
		return false
	}
	for r.Next() {
		if len(l.hits) == 1 { // most are about as long as the first
			n := min((len(reply)-r.At())/(len(l.hits[0].raw)+1)+1, maxResultWindow)
			l.hits, l.gone = slices.Grow(l.hits, n), slices.Grow(l.gone, n*len(l.gone))
		}
		from := r.At()
		l.hits = append(l.hits, l.readHit(r, reply))
		l.last = span(from, r.At())
		switch len(l.hits) {
		case 1:
			l.first = l.last
		case 2:
			l.second = l.last
		}
	}
	l.array = span(start, r.At())
	return true
}

// readHit reads the hit that comes next. Anything but an object has no parts.
func (l *parsedReply) readHit(r *jsonedit.Reader, reply []byte) (h hit) {
	start := r.At()
	if !r.Enter('{') {
		return hit{raw: r.Value()}
	}
	for end := r.At(); r.Next(); end = r.At() {
		var p *extent
		from := r.At()
		switch string(r.Key()) {
		case "_index":
			p = &h.index
		case "_id":
			p = &h.id
		case "_seq_no":
			p = &h.number
		case "_primary_term":
			p = &h.term
		case "sort":
			p = &h.sort
		case "_source":
			l.readSource(r, reply)
			h.source = span(from-start, r.At()-start)
			continue
		case "fields":
			if ours := h.readFields(r, start); ours > 0 {
				l.mark(reply, end, r.At(), ours)
			}
			continue
		}
		if r.Value(); p != nil {
			*p = span(from-start, r.At()-start)
		}
	}
	h.raw = reply[start:r.At()]
	return h
}

// readSource reads a hit's source, and marks our fields at the top of it.
func (l *parsedReply) readSource(r *jsonedit.Reader, reply []byte) {
	if !r.Enter('{') {
		r.Value()
		return
	}
	for end := r.At(); r.Next(); end = r.At() {
		ours := our(r.Key())
		if r.Value(); ours {
			l.mark(reply, end, r.At(), 1)
		}
	}
}

// our reports whether a key names a field of ours.
func our(key []byte) bool {
	return bytes.HasPrefix(key, []byte(rule.FieldPrefix)) && rule.Our(string(key))
}

// mark marks a member between two places for removal, with the number of our names that go with it. Only members in the form of replies
// that are not pretty-printed are marked: right after the comma after another one.
func (l *parsedReply) mark(reply []byte, from, to, names int) {
	if bytes.HasPrefix(reply[from:to], []byte(`,"`)) {
		l.gone = append(l.gone, span(from, to))
		l.marked += names
	}
}

// readFields reads what is extracted from a hit that starts there, and where in it our field is. It returns how many of our names there are,
// 0 where there are others too.
func (h *hit) readFields(r *jsonedit.Reader, start int) (ours int) {
	from := r.At()
	h.sketch = extent{}
	others := false
	if !r.Enter('{') {
		r.Value()
	} else {
		for r.Next() {
			if key := r.Key(); string(key) == rule.SketchField {
				at := r.At()
				r.Value()
				h.sketch = span(at-start, r.At()-start)
				ours++
			} else if our(key) {
				ours++
			} else {
				others = true
			}
		}
	}
	h.fields = span(from-start, r.At()-start)
	if others {
		return 0
	}
	return ours
}

// rawOf returns the bytes of hits.
func rawOf(hits []hit) [][]byte {
	list := make([][]byte, len(hits))
	for i := range hits {
		list[i] = hits[i].raw
	}
	return list
}

// hitsOf returns the bytes of a reply's hits.
func hitsOf(reply []byte) ([][]byte, error) {
	l, err := parseReply(reply, nil)
	if err != nil {
		return nil, err
	}
	return rawOf(l.hits), nil
}

// ourFailures are words in the failures of shards that what we ask can be the reason of: limits of an index on ranks and extracted
// fields (index.max_result_window and the like), our field mapped otherwise, memory and load. A shard that is not there, or
// can't run the client's query, fails for the client's own search too.
var ourFailures = [][]byte{
	[]byte("[index.max_"), []byte(rule.SketchField), []byte("circuit_breaking_exception"),
	[]byte("rejected_execution_exception"),
}

// failedForUs reports whether a shard failed that may answer the client's own search.
func failedForUs(shards []byte, deciding []rule.Deciding) bool {
	if failed := jsonedit.Lookup(shards, "failed"); failed == nil || string(failed) == "0" {
		return false
	}
	failures, err := jsonedit.Elements(jsonedit.Lookup(shards, "failures"))
	if err != nil {
		return true
	}
	return slices.ContainsFunc(failures, func(failure []byte) bool {
		return blames(failure, deciding) || slices.ContainsFunc(ourFailures, func(word []byte) bool { return bytes.Contains(failure, word) })
	})
}

// orEmpty returns a source, or an empty one where a filter let no field through.
func orEmpty(source []byte) []byte {
	if source == nil {
		return []byte("{}")
	}
	return source
}

// sketchIn returns the sketch in a list of values, or nothing. OpenSearch gives it once for each time that it was asked for, be it by a
// pattern of the client's.
func sketchIn(values []byte) []byte {
	if end := len(values) - 2; end > 2 && values[1] == '"' && bytes.IndexByte(values[2:], '"') == end-2 && values[end+1] == ']' { // the one in most
		text, _ := jsonedit.TextBytes(values[1 : end+1])
		return padded(text)
	}
	var first []byte
	alike := true
	r := jsonedit.NewReader(values)
	for r.Enter('['); r.Next(); {
		value := r.Value()
		if first == nil {
			first = value
		}
		alike = alike && bytes.Equal(value, first)
	}
	if !alike {
		return nil
	}
	text, _ := jsonedit.TextBytes(first)
	return padded(text)
}

// padded returns base64 with the padding that OpenSearch leaves out when it shows a binary field.
func padded(text []byte) []byte {
	if missing := -len(text) & 3; missing < 3 && !bytes.HasSuffix(text, []byte("=")) {
		return append(text[:len(text):len(text)], "=="[:missing]...)
	}
	return text
}
