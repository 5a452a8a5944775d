package rule

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/sketch"
)

// Change is what enriching did to one document.
type Change int

// The changes, each counted under its name.
const (
	// Untouched: no rule matches its index, or it is a partial document that touches no sketched field.
	Untouched Change = iota
	// Enriched: it carries its sketch.
	Enriched
	// Textless: it has no word to sketch, or no vector where the rule has one beside the words.
	Textless
	// Cleared: a partial document that touches some of the sketched fields clears the stored sketch.
	Cleared
	// Unprepared: our field is not declared in its index, so it passes without a sketch.
	Unprepared
	// Unreadable: it is not a well-formed JSON object; the engine will say so.
	Unreadable
	// Oversized: it gets no sketch because of its size. The request could become too long for the engine, or there is no memory to sketch
	// so long a text.
	Oversized
	// Scripted: the engine runs a script over it before it is stored, so that its sketch can't be known.
	Scripted
)

// String returns the change's name in logs and metrics.
func (c Change) String() string {
	return [...]string{"untouched", "enriched", "textless", "cleared", "unprepared", "unreadable", "oversized", "scripted"}[c]
}

// Operation is one operation of a write, as a dialect reads it.
type Operation struct {
	// Number is its place among the operations of the write, from 0: the engine's reply has an entry for each, in this order.
	Number int
	// Form is the dialect's own name of what it does.
	Form string
	// Index is the name that it goes to. ID is the document's; empty where the engine makes one up.
	Index, ID string
	// Plain says that it stores a whole document, and that nothing in the request makes more of it: no version, routing or
	// pipeline. If there is no document with the id, it can be left out of the write as if it changed nothing.
	Plain bool
}

// Takes says what an index takes of our fields.
type Takes int

const (
	// TakesNothing: our fields may be unknown there.
	TakesNothing Takes = iota
	// TakesNullSketch: no sketch, but a stored one can be cleared. Other fields of ours may be unknown there.
	TakesNullSketch
	// TakesNulls: no sketch, but all of our fields can be cleared.
	TakesNulls
	// TakesAll: all of our fields.
	TakesAll
)

// Writing is one write, as an [Enricher] asks about it. The proxy implements it.
type Writing interface {
	// Rule returns the rule of an index named in the write, nil if none matches, and what the index takes. creates says that the document at
	// hand would create the index if there is none.
	Rule(index string, creates bool) (rule *Rule, takes Takes)
	// Hold reserves n bytes of memory for work on a document, or releases them where n is negative. It reports false if there is not enough.
	Hold(n int) bool
	// Count counts a document.
	Count(Change)
}

// Clustering is a Writing whose documents may get clusters, and be left out of the write.
type Clustering interface {
	Writing
	// Start is called with each operation before its document, and reports whether it stays in the write.
	Start(o Operation) bool
	// Sketch is [Rule.SketchInto]. The sketch is good until the next call. It keeps no texts.
	Sketch(o Operation, rule *Rule, texts [][]byte, vector []byte, partial bool) (*sketch.Sketch, bool)
	// Cluster is called with each sketch that is to be stored, and returns its cluster, or "" where no other document is in it.
	Cluster(o Operation, rule *Rule, s *sketch.Sketch, partial bool) string
	// Number returns a number for the cluster of a document without a sketch: the same for the same id, and for no other; 0 for none.
	Number(o Operation, rule *Rule) uint64
}

// Traits are how the engine takes the documents of a write. An ordinary bulk of Elasticsearch sets none.
type Traits struct {
	// NoCreate says that the operation at hand creates no index, whatever its document.
	NoCreate bool
	// Scripted says that the engine runs a script over the document at hand, so that its sketch can't be known.
	Scripted bool
	// Upserts says that a partial document may create one that is not there, for which the engine refuses null in an indexed text.
	Upserts bool
	// TakesNull says that a null does no harm in any field of ours, however the index declares it.
	TakesNull bool
	// Unsure says that the engine may keep less of a document than it was sent: none is then given a sketch of what was sent.
	Unsure bool
	// Doubts, if set, reports whether the engine may store a text as something else: a document with such a text gets no sketch.
	Doubts func(text []byte) bool
	// LastCounts says that of members with the same name the engine takes the last: a client's own value of our field is then not
	// cut out but followed by ours, so that whatever the engine quotes of the document is the client's up to there.
	LastCounts bool
	// Strict says that the engine refuses comments: a document with one stays as it is.
	Strict bool
}

// Enricher adds sketches to the documents of one write. It is for one goroutine.
type Enricher struct {
	Writing
	Traits
	clustering Clustering // the Writing if it is one, which looks for near-duplicates; nil for an ordinary write

	// growth is how many bytes may be added before the engine's limit on a body could be crossed. New sketches use no
	// more than its first half. The other half, reserved, is for clearing stale ones.
	growth, reserved int64
	at               Operation
	count            int
	// memory that each document uses again
	list   []jsonedit.Member
	found  texts
	sketch sketch.Sketch
	fields []byte
}

// NewEnricher returns an Enricher of a write to which no more than growth bytes are added. The dialect sets the traits.
func NewEnricher(w Writing, growth int64) *Enricher {
	clustering, _ := w.(Clustering)
	return &Enricher{Writing: w, clustering: clustering, growth: growth, reserved: max(growth, 0) / 2}
}

// Identifies reports whether Start wants to know of each operation what its ID and Plain say.
func (e *Enricher) Identifies() bool { return e.clustering != nil }

// Start is called by a dialect with each operation of a write, whose number it sets, before the documents of it are appended.
// It reports whether the operation stays in the write.
func (e *Enricher) Start(o Operation) bool {
	o.Number = e.count
	e.count++
	e.at = o
	return e.clustering == nil || e.clustering.Start(o)
}

// Append appends the document to dst, enriched by the rule of its index. A partial document is one that the engine merges into
// what is stored. One without a rule, or that is no well-formed object, is appended as it is. Of any other the client's own values of our fields are
// never stored: they are cut out, or where LastCounts ours or null follow them.
func (e *Enricher) Append(dst []byte, index string, document []byte, partial bool) []byte {
	rule, takes := e.Rule(index, !partial && !e.NoCreate)
	if rule == nil {
		e.Count(Untouched)
		return append(dst, document...)
	}
	members, end, err := rule.membersOf(e.list[:0], document, e.Strict)
	defer e.forget(members)
	rest, own := document, haveOurs(members)
	if err == nil && own && !e.LastCounts {
		if rest, err = jsonedit.Cut(document, Our); err == nil {
			_, end, err = rule.membersOf(nil, rest, false)
		}
	}
	if err != nil {
		e.Count(Unreadable)
		return append(dst, document...)
	}
	fields, change := e.fieldsFor(rule, takes, members, partial)
	if fields != nil && (takes != TakesAll || int64(len(fields)+1) > e.growth-e.reserved) {
		fields, change = e.fewerFields(rule, takes, partial)
	}
	if own && e.LastCounts {
		fields = outdone(members, fields)
	}
	e.Count(change)
	before := len(dst)
	if fields == nil {
		dst = append(dst, rest...)
	} else {
		dst = jsonedit.AppendMembers(dst, rest, end, fields)
	}
	e.growth -= int64(len(dst) - before - len(document))
	return dst
}

// haveOurs reports whether one of the members is a field of ours.
func haveOurs(members []jsonedit.Member) bool {
	return slices.ContainsFunc(members, func(m jsonedit.Member) bool { return Our(m.Key) })
}

// fieldsFor returns our fields for a document with these members, nil for none at all, whether or not the index takes them. They are good until
// the next document.
func (e *Enricher) fieldsFor(r *Rule, takes Takes, members []jsonedit.Member, partial bool) ([]byte, Change) {
	if e.Scripted {
		return nil, Scripted
	}
	if memory := memoryFor(members); memory > 0 {
		if !e.Hold(memory) {
			return e.withoutSketch(r, partial, Oversized)
		}
		defer e.Hold(-memory)
	}
	found := &e.found
	reach := r.textsIn(found, members)
	doubtful := !found.readable() || e.Unsure || e.Doubts != nil && slices.ContainsFunc(found.list, e.Doubts)
	switch {
	case partial && reach == noField:
		return nil, Untouched
	case doubtful, partial && reach != allFields:
		return e.withoutSketch(r, partial, Unreadable)
	}
	s, ok := &e.sketch, false
	if e.clustering != nil {
		s, ok = e.clustering.Sketch(e.at, r, found.list, found.vector, partial)
	} else {
		ok = r.SketchInto(s, found.list, found.vector)
	}
	if !ok || !r.stores(s) {
		return e.withoutSketch(r, partial, Textless)
	}
	o := Ours{Bands: r.BandKeys(s)}
	if takes == TakesAll && e.clustering != nil {
		o.Cluster = e.clustering.Cluster(e.at, r, s, partial)
	}
	switch {
	case !r.Clusters:
		o.Cluster = ""
	case o.Cluster == "":
		o.Cluster = r.ClusterID(s.Fingerprint)
	}
	fields := append(e.fields[:0], `"`+SketchField+`":"`...)
	fields, _ = s.AppendText(fields) // none of its characters needs an escape; what was just made has a stored form
	fields = append(fields, '"')
	if partial && r.Bands > 0 {
		e.fields = o.append(fields, BandsField)
	} else {
		e.fields = o.append(fields)
	}
	return e.fields, Enriched
}

// fewerFields returns what a document gets in place of fields that its index does not take or that would make the body too long.
func (e *Enricher) fewerFields(r *Rule, takes Takes, partial bool) ([]byte, Change) {
	switch {
	case takes == TakesAll && partial: // a stale sketch must not stay: to clear it costs next to nothing
		return e.withoutSketch(r, partial, Oversized)
	case takes == TakesAll:
		return nil, Oversized
	case !partial, takes == TakesNothing && !e.TakesNull:
		return nil, Unprepared
	}
	known := *r
	if takes == TakesNullSketch && !e.TakesNull {
		known.Bands, known.Clusters = 0, false
	}
	known.Clusters = known.Clusters && !e.Upserts
	return known.cleared(0), Cleared
}

// withoutSketch returns our fields for a document without a sketch: what clears those that are stored of a partial one, and of a whole one its
// own cluster, if the rule has clusters. change is what happened to a whole one.
func (e *Enricher) withoutSketch(r *Rule, partial bool, change Change) ([]byte, Change) {
	number := uint64(0)
	if r.Clusters && e.clustering != nil && (!partial || e.at.ID != "" || e.Upserts) { // else it may be meant for many documents
		number = e.clustering.Number(e.at, r)
	}
	switch {
	case partial:
		return r.cleared(number), Cleared
	case number == 0:
		return nil, change
	}
	return Ours{Cluster: r.ClusterID(number)}.Fields(), change
}

// outdone returns the fields with null for each of ours that is not among them and that the client's document has.
func outdone(members []jsonedit.Member, fields []byte) []byte {
	for _, field := range OurFields {
		named := []byte(`"` + field + `":`)
		if bytes.Contains(fields, named) || !slices.ContainsFunc(members, func(m jsonedit.Member) bool { return m.Key == field }) {
			continue
		}
		if fields = slices.Clip(fields); len(fields) > 0 {
			fields = append(fields, ',')
		}
		fields = append(append(fields, named...), "null"...)
	}
	return fields
}

// cleared returns the fields that clear what a rule stores. Instead of none, the document gets a cluster of its own, of the number;
// 0 clears that too.
func (r *Rule) cleared(number uint64) []byte {
	var o Ours
	null := []string{SketchField}
	if r.Bands > 0 {
		null = append(null, BandsField)
	}
	if r.Clusters {
		null = append(null, ClusterField)
	}
	if r.Clusters && number != 0 {
		o.Cluster = r.ClusterID(number)
	}
	return o.Fields(null...)
}

// memoryFor returns how many bytes are held to make a sketch of the members: none for most, and for long ones eight times their length, for up
// to three times as much memory.
func memoryFor(members []jsonedit.Member) (n int) {
	const short = 64 << 10
	for _, m := range members {
		n += len(m.Value)
	}
	return 8 * max(n-short, 0)
}

// forget lets go of the last document, so that none is held while the next one is awaited.
func (e *Enricher) forget(members []jsonedit.Member) {
	clear(members)
	e.found.forget()
	e.list = members[:0]
}

// CopyLong copies a body that is too long to be held: less our fields, and without a sketch. parts are the names of its members that are
// documents, "" for all of it, and whether each is partial; a partial one with a sketched field clears the stored fields. Where the body is not
// well-formed it ends with end, so that the engine refuses it, and whole is false.
func (e *Enricher) CopyLong(dst io.Writer, src io.Reader, index string, parts map[string]bool, end string) (whole bool, err error) {
	partial := slices.Contains(slices.Collect(maps.Values(parts)), true)
	rule, _ := e.Rule(index, !partial && !e.NoCreate)
	switch {
	case rule == nil:
		e.Count(Untouched)
		_, err := io.Copy(dst, src)
		return true, err
	case !partial:
		e.Count(Oversized)
	}
	part := func(path []string) (partial, ok bool) {
		name := strings.Join(path, ".")
		partial, ok = parts[name]
		return partial, ok && (name != "" || len(path) == 0)
	}
	var touched []byte // a document with a sketched field of the body, if it has one
	err = jsonedit.CleanStrictly(dst, src, jsonedit.Cuts{Depth: 2, Drop: func(path []string) bool {
		above, name := path[:len(path)-1], path[len(path)-1]
		merged, ok := part(above)
		if ok && merged && touched == nil && rule.concerns(name) && !Our(name) {
			touched = append(jsonedit.AppendString([]byte{'{'}, name), ":0}"...)
		}
		return ok && Our(name)
	}, Add: func(path []string) []byte {
		if merged, ok := part(path); !ok || !merged || touched == nil {
			return nil
		}
		cleared := e.Append(nil, index, touched, true)
		return bytes.TrimPrefix(cleared[len(touched)-1:len(cleared)-1], []byte{','})
	}})
	if errors.Is(err, jsonedit.ErrMalformed) {
		_, err = io.WriteString(dst, "\x01"+end) // which no engine takes anywhere in a document
		return false, err
	}
	return true, err
}
