package typesense

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// writeParams is what the query of a write says.
type writeParams struct {
	partial     bool // the document is merged into what is stored
	upserts     bool // or created, if nothing is stored
	drops       bool // values that do not fit the schema are left out of it
	keeps       bool // they are never made to fit
	named       bool // the reply to an import tells the ids
	mayLeaveOut bool // see [adapters.Class]
}

func writeParamsOf(c adapters.Class) writeParams {
	action, _ := adapters.Last(c.Params, "action")
	dirty, _ := adapters.Last(c.Params, "dirty_values")
	dirty = strings.ToLower(dirty)
	returned, _ := adapters.Last(c.Params, "return_id")
	return writeParams{
		partial: action == "update" || action == "emplace", upserts: action == "emplace",
		drops: strings.Contains(dirty, "drop"), keeps: dirty == "reject", named: returned == "true", mayLeaveOut: c.MayLeaveOut,
	}
}

// formNamed is the form of an operation of an import whose reply tells the ids.
const formNamed = "named"

// EnrichWrite implements adapters.Dialect. Documents of update, emplace and PATCH count as partial: the engine merges them into
// what is stored. (An emplace that finds nothing stored makes a document that merely lacks a sketch if it lacks a sketched field.)
func (Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, w rule.Writing, growth int64) (adapters.Replies, error) {
	how := writeParamsOf(c)
	e := rule.NewEnricher(w, growth)
	e.NoCreate = true // no write makes a collection
	e.LastCounts, e.Strict, e.Upserts = true, true, how.partial && how.upserts
	e.TakesNull = how.partial && !how.upserts
	if !how.keeps {
		e.Doubts = coerced
	}
	var out []byte
	enrich := func(document []byte) []byte {
		if len(bytes.TrimSpace(document)) == 0 {
			if len(bytes.Trim(document, "\r\n")) > 0 { // what the engine answers to such a line is its own affair
				how.mayLeaveOut = false
			}
			return document
		}
		read, whole := legible(document)
		if !e.Start(operation(c, e, how, read, whole)) {
			return nil
		}
		if c.Target == "" { // no name would stand for all collections
			return document
		}
		e.Unsure = how.drops || !whole
		out = e.Append(out[:0], c.Target, read, how.partial)
		if len(read) < len(document) {
			return insert(document, read, out)
		}
		return out
	}
	tooLong := func(end string) jsonedit.LongCopy {
		return func(dst io.Writer, src io.Reader) error {
			how.mayLeaveOut = false
			return long(c, e, how.partial, dst, src, end)
		}
	}
	var replies adapters.Replies = documentReply{}
	var err error
	switch c.Form {
	case formImport:
		replies, err = importReply{}, jsonedit.EditLines(dst, src, '\n', enrich, tooLong("\n"))
	case formCreate:
		err = jsonedit.EditWhole(dst, src, func(schema []byte) []byte { return declared(schema, e) }, nil)
	case formAlias:
		err = jsonedit.EditWhole(dst, src, func(alias []byte) []byte {
			if name := nameIn(alias, "collection_name"); name != "" {
				e.Rule(name, false) // has our field declared there before writes to the alias get there
			}
			return alias
		}, nil)
	default:
		err = jsonedit.EditWhole(dst, src, enrich, tooLong(""))
	}
	if !how.mayLeaveOut { // as no schema and no alias may
		replies = nil
	}
	return replies, err
}

// operation returns the operation of which a document is at hand, as far as the engine reads it.
func operation(c adapters.Class, e *rule.Enricher, how writeParams, read []byte, whole bool) rule.Operation {
	o := rule.Operation{Form: c.Form, Index: c.Target, ID: c.ID}
	if !e.Identifies() || o.ID != "" {
		return o
	}
	plain := how.mayLeaveOut && whole && !how.partial && c.Target != ""
	o.ID, o.Plain = idOf(read)
	o.Plain = o.Plain && plain
	if how.named && c.Form == formImport {
		o.Form = formNamed
	}
	return o
}

// idOf returns the id of a document, empty if it has none. It is not sure where the document is malformed, or its id is empty, no text or there twice.
func idOf(document []byte) (id string, sure bool) {
	members, err := jsonedit.Members(document)
	if err != nil {
		return "", false
	}
	sure = true
	for i, m := range members {
		if m.Key != "id" {
			continue
		}
		text, ok := jsonedit.Text(m.Value)
		twice := slices.ContainsFunc(members[:i], func(other jsonedit.Member) bool { return other.Key == m.Key })
		id, sure = text, sure && ok && text != "" && !twice
	}
	return id, sure
}

// long copies a document that is too long to be held. Where it is not well-formed it ends with end.
func long(c adapters.Class, e *rule.Enricher, partial bool, dst io.Writer, src io.Reader, end string) error {
	var r *rule.Rule
	if c.Target != "" {
		r, _ = e.Rule(c.Target, false)
	}
	if r == nil {
		e.Count(rule.Untouched)
		_, err := io.Copy(dst, src)
		return err
	}
	e.Start(rule.Operation{Form: c.Form, Index: c.Target, ID: c.ID})
	read := bufio.NewReader(src)
	whole, err := e.CopyLong(dst, &legibleOnes{read}, c.Target, map[string]bool{"": partial}, end)
	if err == nil && whole { // what follows a zero byte
		_, err = io.Copy(dst, read)
	}
	return err
}

// legibleOnes reads what the engine reads of a document: see [legible]. It ends in front of a zero byte.
type legibleOnes struct{ *bufio.Reader }

func (l *legibleOnes) Read(p []byte) (n int, err error) {
	if len(p) < utf8.UTFMax {
		return 0, io.ErrShortBuffer
	}
	for n+utf8.UTFMax <= len(p) && (n == 0 || l.Buffered() > 0) {
		r, size, err := l.ReadRune()
		switch {
		case err != nil:
			return n, err
		case r == 0:
			_ = l.UnreadRune()
			return n, io.EOF
		case r != utf8.RuneError || size > 1:
			n += utf8.EncodeRune(p[n:], r)
		}
	}
	return n, nil
}

// coerced reports whether the engine takes a text for a number or a truth value where the schema says that the field holds such, be
// it only because its first document did. It reads numbers as C does, up to a zero byte.
func coerced(text []byte) bool {
	text, _, cut := bytes.Cut(text, []byte{0})
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	if len(text) == 0 {
		return cut
	}
	switch c := text[0] | 0x20; {
	case c == 't' || c == 'f':
		return bytes.EqualFold(text, []byte("true")) || bytes.EqualFold(text, []byte("false"))
	case c == 'i' || c == 'n':
		if len(text) > len("infinity") { // no copy of a long text is made for an error that says it is no number
			return hexadecimal.Match(text)
		}
	case c > '9' || c < '+':
		return false // as nearly all texts, without more of a look
	}
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil || errors.Is(err, strconv.ErrRange) || hexadecimal.Match(text)
}

// hexadecimal are the forms of numbers that C knows and Go does not.
var hexadecimal = regexp.MustCompile(`(?i)^[+-]?(0x[0-9a-f.]+|nan\(.*\))$`)

// legible returns what the engine reads of a document. Bytes that are not UTF-8 it leaves out before it reads anything, wherever they
// stand: a member can get another name by that, and no text that had some gets a sketch. A zero byte ends the document, whatever
// follows.
func legible(document []byte) (read []byte, whole bool) {
	read, _, _ = bytes.Cut(document, []byte{0})
	if whole = utf8.Valid(read); !whole {
		read = bytes.ToValidUTF8(read, nil)
	}
	return read, whole
}

// insert returns the document with what enriching its legible part added to that, at the same place.
func insert(document, read, enriched []byte) []byte {
	added, at := len(enriched)-len(read), 0
	for at < len(read) && enriched[at] == read[at] {
		at++
	}
	place := 0
	for passed := 0; passed < at; {
		r, n := utf8.DecodeRune(document[place:])
		if place += n; r != utf8.RuneError || n > 1 {
			passed += n
		}
	}
	return slices.Concat(document[:place], enriched[at:at+added], document[place:])
}

// nameIn returns the text of a member of an object that the engine would accept, or nothing.
func nameIn(object []byte, key string) (name string) {
	if jsonedit.Strict(object) {
		name, _ = jsonedit.Text(member(object, key))
	}
	return name
}
