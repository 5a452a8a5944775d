package typesense

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// ReadBody implements adapters.Dialect. No body says anything of its reply.
func (Dialect) ReadBody(c adapters.Class, body []byte) (adapters.Class, []byte) { return c, body }

// CleanReply implements adapters.Dialect.
func (Dialect) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	if c.NamesOurs {
		_, err := io.Copy(dst, src)
		return err
	}
	switch c.Form {
	case formImport:
		return jsonedit.EditLines(dst, src, '\n', cleanImported, nil)
	case formSchema, formCreate:
		return jsonedit.EditWhole(dst, src, cleanSchema, nil)
	case formSearch, formMulti:
		return jsonedit.Clean(dst, src, inHit)
	case formDeleted:
		return jsonedit.Clean(dst, src, inDeleted)
	}
	return jsonedit.Clean(dst, src, atTop)
}

// Where documents are in the replies to searches, of one search or several, grouped or not; to deletions, which newer engines answer with the
// documents; and to requests for one document. A new place takes a line here.
var (
	inHit     = below("hits.document", "grouped_hits.hits.document", "results.hits.document", "results.grouped_hits.hits.document")
	inDeleted = below("documents")
	atTop     = below("")
)

// below cuts our fields out of the documents to which these keys lead, divided by dots.
func below(documents ...string) jsonedit.Cuts {
	return jsonedit.Cuts{Prefix: rule.FieldPrefix, Drop: func(path []string) bool {
		last := len(path) - 1
		return rule.Our(path[last]) && slices.ContainsFunc(documents, func(keys string) bool {
			return slices.Equal(strings.FieldsFunc(keys, func(c rune) bool { return c == '.' }), path[:last])
		})
	}}
}

// cleanImported cuts our fields out of one line of an import's reply. On success the line can hold the stored document as an object; on
// an error it holds the raw line that was sent, as a string.
func cleanImported(line []byte) []byte {
	if !rule.NamesOurs(line) {
		return line
	}
	members, _ := jsonedit.Members(line)
	shown := jsonedit.Get(members, "document")
	if shown == nil || jsonedit.Repeated(members) { // not of the engine
		return line
	}
	document, err := cutSpliced(shown), error(nil)
	if shown[0] != '"' {
		document, err = jsonedit.Cut(shown, rule.Our)
	}
	if err == nil && len(document) < len(shown) {
		line, _ = jsonedit.Set(line, "document", document) // it is well-formed
	}
	return line
}

// cutSpliced cuts what enriching added out of a raw line within a JSON string. Only what has the form of our splice is cut: the
// last members of a well-formed object, each another field of ours, without white space of their own. Where the client names one of
// these too, ours follow it.
func cutSpliced(escaped []byte) []byte {
	text, ok := jsonedit.Text(escaped)
	if !ok {
		return escaped
	}
	raw, _ := legible([]byte(text))
	members, err := jsonedit.Members(raw)
	if err != nil || !jsonedit.Strict(raw) {
		return escaped
	}
	spliced, seen := "", map[string]bool{}
	for _, m := range slices.Backward(members) {
		if !rule.Our(m.Key) || seen[m.Key] {
			break
		}
		seen[m.Key] = true
		spliced = `,"` + m.Key + `":` + string(m.Value) + spliced
	}
	if len(seen) == len(members) { // there is nothing before ours
		spliced = strings.TrimPrefix(spliced, ",")
	}
	if spliced == "" {
		return escaped
	}
	inner := jsonedit.AppendString(nil, spliced) // base64, short ids, numbers or null: nothing in them is escaped but the quotes
	inner = inner[1 : len(inner)-1]
	at := bytes.LastIndex(escaped[:zero(escaped)], inner)
	if at < 0 {
		return escaped
	}
	return slices.Concat(escaped[:at], escaped[at+len(inner):])
}

// zero returns where the text's first zero byte is in a JSON string, or its length.
func zero(escaped []byte) int {
	for at := 0; at < len(escaped); at++ {
		if escaped[at] != '\\' {
			continue
		}
		if bytes.HasPrefix(escaped[at:], []byte(`\u0000`)) {
			return at
		}
		at++
	}
	return len(escaped)
}

// cleanSchema cuts our fields out of the schema of a collection, or of a list of collections.
func cleanSchema(reply []byte) []byte {
	if !rule.NamesOurs(reply) {
		return reply
	}
	collections, err := jsonedit.Elements(reply)
	if err != nil {
		return cleanCollection(reply)
	}
	for i := range collections {
		collections[i] = cleanCollection(collections[i])
	}
	return jsonedit.Array(collections)
}

func cleanCollection(collection []byte) []byte {
	fields, err := jsonedit.Elements(member(collection, "fields"))
	if err != nil {
		return collection
	}
	kept := slices.DeleteFunc(slices.Clone(fields), func(field []byte) bool {
		name, _ := jsonedit.Text(member(field, "name"))
		return rule.Our(name)
	})
	if len(kept) == len(fields) {
		return collection
	}
	list := jsonedit.Array(kept)
	if len(kept) == 0 {
		list = []byte("null") // as the engine writes a schema without fields
	}
	clean, err := jsonedit.Set(collection, "fields", list)
	if err != nil {
		return collection
	}
	return clean
}
