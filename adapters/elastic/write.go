package elastic

import (
	"bytes"
	"io"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// EnrichWrite implements adapters.Dialect.
func (d Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, w rule.Writing, growth int64) (adapters.Replies, error) {
	e := rule.NewEnricher(w, growth)
	e.NoCreate = mayNotCreate(c.Params)
	switch {
	case c.Format != "":
		return nil, enrichFormat(c, dst, src, e)
	case c.Form != formBulk:
		return enrichDocument(c, dst, src, e)
	}
	b := bulk{e: e, target: c.Target, noCreate: e.NoCreate, mayLeaveOut: c.MayLeaveOut}
	err := jsonedit.EditLines(dst, src, '\n', b.edit, b.longLine)
	if !b.mayLeaveOut || b.op != "" { // after a last action without a document, operations and entries of the reply do not match
		return nil, err
	}
	return bulkReply(d), err
}

// enrichDocument is EnrichWrite for a body that is one document, or an update of one.
func enrichDocument(c adapters.Class, dst io.Writer, src io.Reader, e *rule.Enricher) (adapters.Replies, error) {
	updates := c.Form == formUpdate
	o := rule.Operation{Form: c.Form, Index: c.Target, ID: c.ID, Plain: c.MayLeaveOut && (c.ID == "" || acceptable(c.ID))}
	err := jsonedit.EditWhole(dst, src, func(body []byte) []byte {
		switch {
		case !e.Start(o):
			return nil
		case updates:
			return editSent(body, inUTF8(body), func(text []byte) []byte { return update(e, nil, c.Target, text) })
		}
		return editSent(body, inUTF8(body), func(text []byte) []byte { return e.Append(nil, c.Target, text, false) })
	}, func(dst io.Writer, src io.Reader) error {
		e.Start(o)
		return longDocument(e, dst, src, c.Target, updates, "")
	})
	if !c.MayLeaveOut { // which no update does
		return nil, err
	}
	return documentReply{}, err
}

// editSent edits what was sent, given the same in UTF-8. Where nothing in it changes it stays as it was sent.
func editSent(sent, text []byte, edit func([]byte) []byte) []byte {
	if out := edit(text); !bytes.Equal(out, text) {
		return out
	}
	return sent
}

// longDocument copies a document that is too long to be held, or the body of an update. Where it is not well-formed it ends with end.
func longDocument(e *rule.Enricher, dst io.Writer, src io.Reader, index string, updates bool, end string) error {
	parts := map[string]bool{"": false}
	if updates {
		parts = map[string]bool{"doc": true, "upsert": false}
	}
	_, err := e.CopyLong(dst, src, index, parts, end)
	return err
}

// mayNotCreate reports whether the engine may create no index for a document: one has to exist, or a pipeline may drop the document. Then we create
// none beforehand.
func mayNotCreate(params []adapters.Param) bool {
	for _, p := range params {
		switch p.Name {
		case "require_alias", "require_data_stream":
			if p.Value != "false" {
				return true
			}
		case "pipeline":
			if p.Value != "_none" {
				return true
			}
		}
	}
	return false
}

// update appends the body of an update, enriched: its doc is merged into what is stored, its upsert is a whole document, and what a script does is
// not known. The engine ignores what follows the object.
func update(e *rule.Enricher, dst []byte, index string, body []byte) []byte {
	head := jsonedit.Head(body)
	members, err := jsonedit.FewMembers(head) // the engine knows a dozen, and takes no other and none twice
	if err != nil || jsonedit.Repeated(members) {
		return append(dst, body...)
	}
	var edits jsonedit.Edits
	for _, name := range []string{"doc", "upsert"} {
		i := slices.IndexFunc(members, func(m jsonedit.Member) bool { return m.Key == name })
		if i < 0 || members[i].Value[0] != '{' {
			continue
		}
		m := members[i]
		e.Scripted = name == "upsert" && yes(jsonedit.Get(members, "scripted_upsert"))
		edits = append(edits, jsonedit.Edit{From: m.End - len(m.Value), To: m.End, With: e.Append(nil, index, m.Value, name == "doc")})
	}
	e.Scripted = false
	return append(append(dst, edits.Apply(head)...), body[len(head):]...)
}

// yes reports whether a value that the engine takes for a boolean may be true.
func yes(value []byte) bool {
	switch string(value) {
	case "", "null", "false", `"false"`:
		return false
	}
	return true
}

// bulk enriches the lines of one bulk, one after the other. leftOut and mayLeaveOut matter only where near-duplicates are looked for.
type bulk struct {
	e           *rule.Enricher
	target      string // of the path
	noCreate    bool   // what the path says of all operations: see mayNotCreate
	op, index   string // of the action whose document comes next; op is empty where an action comes next
	broken      bool   // an action could not be read: the engine will refuse the bulk, and the rest stays as it is
	leftOut     bool   // the operation at hand is left out of the bulk
	mayLeaveOut bool   // operations can be left out
	out         []byte
}

// edit is editText for a line in any Unicode form.
func (b *bulk) edit(line []byte) []byte {
	if _, ok := unicodeFormOf(line); !ok {
		return b.editText(line)
	}
	// A line ends with the byte of a newline, in whatever form the rest is.
	return editSent(line, append(inUTF8(bytes.TrimSuffix(line, []byte{'\n'})), '\n'), b.editText)
}

// editText returns the next line as the engine gets it: an action, or the document of the last action, enriched.
func (b *bulk) editText(line []byte) []byte {
	op := b.op
	b.op = ""
	if line[len(line)-1] != '\n' { // engines refuse a bulk as a whole that does not end with a line's end
		b.mayLeaveOut = false
	}
	switch {
	case b.broken:
	case op == "":
		if !jsonedit.Blank(line) {
			b.begin(line)
		}
		if b.leftOut {
			b.leftOut = b.op != "" // and the document, if one comes
			return nil
		}
	case b.leftOut:
		b.leftOut = false
		return nil
	case b.index == "":
	case op == "update":
		b.out = update(b.e, b.out[:0], b.index, line)
		return b.out
	case len(bytes.TrimSpace(line)) > 0:
		b.out = b.e.Append(b.out[:0], b.index, line, false)
		return b.out
	}
	return line
}

// begin begins the operation of an action line: which document comes next, and whether the operation is left out.
func (b *bulk) begin(line []byte) {
	o, noCreate, ok := readAction(line, b.target, b.e.Identifies())
	if b.broken = !ok; b.broken { // nothing of such a bulk can be left out
		b.mayLeaveOut = false
		return
	}
	o.Plain = o.Plain && b.mayLeaveOut
	b.leftOut = !b.e.Start(o)
	if o.Form != "delete" { // else no document comes
		b.op, b.index, b.e.NoCreate = o.Form, o.Index, b.noCreate || noCreate
	}
}

// longLine copies the next line, which is too long to be held.
func (b *bulk) longLine(dst io.Writer, src io.Reader) error {
	op := b.op
	b.op, b.mayLeaveOut = "", false
	switch {
	case b.leftOut:
		b.leftOut = false
		return nil
	case op == "": // no engine takes such an action
		b.broken = true
		_, err := dst.Write([]byte{invalid, '\n'})
		return err
	case b.broken || b.index == "":
		_, err := io.Copy(dst, src)
		return err
	}
	return longDocument(b.e, dst, src, b.index, op == "update", "\n")
}

// readAction reads an action line as the engines do: its first member counts, whatever follows it. The id, and whether the operation can be left
// out, are read where identifies says so.
func readAction(line []byte, target string, identifies bool) (o rule.Operation, noCreate, ok bool) {
	d := jsonedit.NewReader(line)
	if !d.Enter('{') || !d.Next() {
		return o, false, false
	}
	form, value := string(d.Key()), d.Value()
	switch form {
	case "index", "create", "update", "delete":
	default:
		return o, false, false
	}
	m := jsonedit.NewReader(value)
	if !m.Enter('{') {
		return o, false, false
	}
	var index, pipeline, alias, stream []byte
	for m.Next() { // the last of a name counts
		switch string(m.Key()) {
		case "_index":
			index = m.Value()
		case "pipeline":
			pipeline = m.Value()
		case "require_alias":
			alias = m.Value()
		case "require_data_stream":
			stream = m.Value()
		}
	}
	noCreate = yes(alias) || yes(stream) || pipeline != nil && string(pipeline) != `"_none"`
	o = rule.Operation{Form: form, Index: named(index, target)}
	if identifies {
		meta, _ := jsonedit.Members(value) // which is well-formed
		o.ID = named(jsonedit.Get(meta, "_id"), "")
		o.Plain = (form == "index" || form == "create") && !jsonedit.Repeated(meta) && simple(meta)
	}
	return o, noCreate, true
}

// simple reports whether an action says nothing but where its document goes.
func simple(meta []jsonedit.Member) bool {
	return !slices.ContainsFunc(meta, func(m jsonedit.Member) bool {
		text, ok := jsonedit.Text(m.Value)
		return m.Key != "_index" && m.Key != "_id" || !ok || m.Key == "_id" && !acceptable(text)
	})
}

// named returns the name in an action, or the target where it has none. Any value but an object or list is a name.
func named(value []byte, target string) string {
	if text, ok := jsonedit.Text(value); ok {
		return text
	}
	if len(value) == 0 || string(value) == "null" {
		return target
	}
	return string(value)
}
