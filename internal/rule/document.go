package rule

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/sketch"
)

// SketchOf returns the sketch of a whole document's JSON, and the one that it stores. Each is nil where there is none. The Text of the first is empty where
// it is not to be stored.
func (r *Rule) SketchOf(document []byte) (computed, stored *Encoded) {
	members, found := r.read(document)
	if text, ok := jsonedit.Text(jsonedit.Get(members, SketchField)); ok {
		if s := r.Decode(text); s != nil {
			stored = &Encoded{Sketch: *s, Text: text}
		}
	}
	if !found.readable() {
		return nil, stored
	}
	var s sketch.Sketch
	if r.SketchInto(&s, found.list, found.vector) {
		computed = &Encoded{Sketch: s}
		if r.stores(&s) {
			computed.Text = s.String()
		}
	}
	return computed, stored
}

// Wanted returns the sketch that a whole document's JSON is to store, and the one that it stores. Each is nil where there is none.
func (r *Rule) Wanted(document []byte) (wanted, stored *Encoded) {
	if wanted, stored = r.SketchOf(document); wanted != nil && wanted.Text == "" {
		wanted = nil
	}
	return wanted, stored
}

// read returns those members of a whole document's JSON that concern the rule, and the texts in them. What is no object is odd.
func (r *Rule) read(document []byte) (members []jsonedit.Member, found texts) {
	members, _, err := r.membersOf(nil, document, false)
	if err != nil {
		return nil, texts{odd: err}
	}
	r.textsIn(&found, members)
	return members, found
}

// HasSketch reports whether a document's JSON has a value in our field, comparable or not.
func HasSketch(document []byte) bool {
	members, err := jsonedit.Members(document)
	value := jsonedit.Get(members, SketchField)
	return err == nil && value != nil && string(value) != "null"
}

// texts is what was found of a rule's fields in a document.
type texts struct {
	// vectors says that a field holds a vector. Its JSON is taken as one text.
	vectors bool
	// vector is that of a rule that has one beside its texts, nil where there is none.
	vector []byte
	// list are the texts, field after field in the rule's order. They share the document's memory, or are in room: good until the next document.
	list [][]byte
	room []byte
	// grazed says that it sets an object above a field without the field. Merged into an object that keeps the field; but it replaces a list.
	grazed bool
	// worded says that it sets one of the text fields, or an object above one.
	worded bool
	// odd says what is wrong where a field holds something other than texts, which the engine may write in another way than it was sent, or where a
	// name that leads to a field is twice in one object, and engines differ in which one counts. invalid says that a text is not UTF-8.
	odd     error
	invalid bool
}

// reach is how many of a rule's fields a document determines where the engine merges it into what is stored.
type reach int

const (
	noField reach = iota
	someFields
	allFields
)

// readable reports whether the texts are those that the engine stores.
func (t *texts) readable() bool { return t.odd == nil && !t.invalid }

// membersOf appends to a list those members of a document that concern the rule: our field, and what leads to a sketched one. (A list of all
// takes many times a document's memory.) lastEnd is where the object's last member ends, of the rule or not; 0 if it has none. New members go in
// there. With strict a document with comments is malformed.
func (r *Rule) membersOf(list []jsonedit.Member, document []byte, strict bool) (_ []jsonedit.Member, lastEnd int, err error) {
	d := jsonedit.NewReader(document)
	if strict {
		d = jsonedit.NewStrictReader(document)
	}
	if !d.Enter('{') {
		return list, 0, jsonedit.ErrMalformed
	}
	for d.Next() {
		key := d.Key()
		value := d.Value()
		start, end := d.Span()
		if r.concerns(string(key)) {
			list = addMember(list, jsonedit.Member{Key: string(key), Value: value, Start: start, End: end})
		}
		lastEnd = end
	}
	if !d.Done() {
		return list, lastEnd, jsonedit.ErrMalformed
	}
	return list, lastEnd, nil
}

// addMember appends a member. Of a name that comes more than twice the first and the last stay, unless many others come between them: it is
// odd, and a list of all would take many times the document's memory.
func addMember(list []jsonedit.Member, m jsonedit.Member) []jsonedit.Member {
	const near = 16
	same := 0
	for i := len(list) - 1; i >= max(0, len(list)-near); i-- {
		if list[i].Key != m.Key {
			continue
		}
		if same++; same == 2 {
			list[i+slices.IndexFunc(list[i+1:], func(other jsonedit.Member) bool { return other.Key == m.Key })+1] = m
			return list
		}
	}
	return append(list, m)
}

// concerns reports whether a member of the name is our field, or leads to a sketched one.
func (r *Rule) concerns(name string) bool {
	return Our(name) || slices.ContainsFunc(r.Fields, func(field string) bool { return leads(name, field) })
}

// leads reports whether a name is the path of a field, or of an object that the field is in.
func leads(name, path string) bool {
	below, ok := strings.CutPrefix(path, name)
	return ok && (below == "" || below[0] == '.')
}

// textsIn collects the texts of the rule's fields in t, whose memory it uses again. A dotted field is found as nested objects or as a dotted key.
func (r *Rule) textsIn(t *texts, members []jsonedit.Member) reach {
	*t = texts{list: t.list[:0], room: t.room[:0]}
	set, nested := 0, false
	vectors := r.Vectors()
	for _, field := range r.Fields {
		before := len(t.list)
		t.vectors = vectors || field == r.Vector
		if t.descend(members, field) {
			set++
			nested = nested || strings.Contains(field, ".")
		}
		if field != r.Vector { // that comes last
			t.worded = set > 0 || t.grazed
		}
		if field == r.Vector && len(t.list) > before {
			if len(t.list) == before+1 { // else the field holds several
				t.vector = t.list[before]
			}
			clear(t.list[before:])
			t.list = t.list[:before]
		}
	}
	switch {
	case set == 0 && !t.grazed:
		return noField
	case set < len(r.Fields), nested: // merged, {"a.b": …} and {"a": {"b": …}} can both be stored, one with an old text
		return someFields
	}
	return allFields
}

// descend follows a path from an object's members, and reports whether they set the field. Where it leads from several of them to the
// field, the one with the shortest name, in which the field is the deepest, counts: the others are copies that an engine has written down
// beside it.
func (t *texts) descend(members []jsonedit.Member, path string) (set bool) {
	var room [4]jsonedit.Member
	led := room[:0]
	for i, m := range members {
		if leads(m.Key, path) {
			if slices.ContainsFunc(members[:i], func(other jsonedit.Member) bool { return other.Key == m.Key }) {
				t.odd = fmt.Errorf("%q stands twice in one object: drop one", m.Key)
			}
			led = append(led, m)
		}
	}
	slices.SortStableFunc(led, func(a, b jsonedit.Member) int { return len(a.Key) - len(b.Key) })
	for _, m := range led {
		if m.Key == path {
			t.collect(m.Value)
			return true
		}
		t.grazed = true
		if t.into(m.Value, path[len(m.Key)+1:]) {
			return true
		}
	}
	return false
}

// into follows a path into a value, and reports whether it sets the field: what is no object replaces whatever stood below it.
func (t *texts) into(value []byte, path string) (set bool) {
	if value[0] == '{' {
		members, err := jsonedit.Members(value)
		return err == nil && t.descend(members, path)
	}
	if value[0] == '[' {
		jsonedit.Leaves(value, func(leaf []byte) { t.into(leaf, path) })
	}
	return true
}

// collect takes the texts of a field's value: a string, or each of a list of strings; of vectors a string or a list. Null is no text.
func (t *texts) collect(value []byte) {
	switch value[0] {
	case '"':
		valid := utf8.Valid(value)
		t.invalid = t.invalid || !valid
		text, room, ok := jsonedit.TextIn(t.room, value, valid)
		if t.room = room; ok {
			t.list = append(t.list, text)
		}
	case '[':
		if t.vectors {
			t.list = append(t.list, value)
			return
		}
		jsonedit.Leaves(value, func(leaf []byte) { t.collect(leaf) })
	case 'n':
	default:
		t.odd = fmt.Errorf("%.40s is no text: write it in quotes", value)
		if t.vectors {
			t.odd = fmt.Errorf("%.40s is no vector: write a list of numbers", value)
		}
	}
}

// TextsIn returns the texts of a field of an object with these members, and whether they set it: a string, or each of a list of strings. A dot
// in the field leads into an object. Where both {"a": {"b": …}} and {"a.b": …} are there, only the first counts: Typesense stores the second as
// a copy of it. (Of a client's document with both, Elasticsearch 9.4 and OpenSearch 3.6 search both texts, and Typesense 0.24 the second.)
func TextsIn(members []jsonedit.Member, field string) (list []string, set bool, err error) {
	return new(Rule).TextsIn(members, field)
}

// TextsIn is [TextsIn] of a field of the rule's, which may hold a vector.
func (r *Rule) TextsIn(members []jsonedit.Member, field string) (list []string, set bool, err error) {
	t := texts{vectors: r.Vectors() || r.Vector != "" && field == r.Vector}
	set = t.descend(members, field)
	return t.strings(), set, t.odd
}

// Vectors reports whether the rule's field holds vectors, and nothing is compared but these.
func (r *Rule) Vectors() bool {
	return r.Sketcher != nil && r.Sketcher.Scheme().Features == sketch.Vectors
}

// strings returns copies of the texts.
func (t *texts) strings() []string {
	if t.list == nil {
		return nil
	}
	list := make([]string, len(t.list))
	for i, text := range t.list {
		list[i] = string(text)
	}
	return list
}

// forget lets go of the texts, and of a long room.
func (t *texts) forget() {
	clear(t.list)
	t.vector = nil
	if cap(t.room) > maxRoom {
		t.room = nil
	}
}

// maxRoom is the size of the largest room for texts that is kept for the next document.
const maxRoom = 64 << 10

// Texts returns the texts of the rule's text fields in a document's JSON, nil where they can't be read: then there is no sketch either.
func (r *Rule) Texts(document []byte) []string {
	if _, found := r.read(document); found.readable() {
		return found.strings()
	}
	return nil
}

// Readable returns the texts for a person to read: [Rule.Texts], or none if they are vectors.
func (r *Rule) Readable(document []byte) []string {
	if r.Vectors() {
		return nil
	}
	return r.Texts(document)
}

// FieldTexts returns the texts of the rule's text fields in a whole document's JSON, a list for each field in the rule's order.
func (r *Rule) FieldTexts(document []byte) [][]string {
	byField := make([][]string, len(r.TextFields()))
	members, _ := r.read(document)
	for i, field := range r.TextFields() {
		byField[i], _, _ = r.TextsIn(members, field)
	}
	return byField
}

// TextField is what a bare text is called where a document is asked for.
const TextField = "text"

// Given is [Rule.Texts] of a document that somebody asks about, and its sketch, nil for none. Of a document with none of the text fields it takes the
// member "text".
func (r *Rule) Given(document []byte) (texts []string, made *sketch.Sketch) {
	_, found := r.read(document)
	if !found.readable() {
		return nil, nil
	}
	if !found.worded {
		if all, err := jsonedit.Members(document); err == nil {
			if text, ok := jsonedit.Text(jsonedit.Get(all, TextField)); ok {
				found.list = append(found.list, []byte(text))
			}
		}
	}
	made = &sketch.Sketch{}
	if !r.SketchInto(made, found.list, found.vector) {
		made = nil
	}
	return found.strings(), made
}
