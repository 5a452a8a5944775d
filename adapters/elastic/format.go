package elastic

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Formats of a write's body beside JSON, as they stand in adapters.Class.Format.
const (
	formatCBOR  = "CBOR"
	formatSMILE = "SMILE"
	formatYAML  = "YAML"
)

// formatOf returns the format of a request's body, empty for JSON. The engines go by the type without its parameters, in which a client may
// name another, and refuse a request with two types.
func formatOf(r *adapters.Request) string {
	for _, value := range r.Header["Content-Type"] {
		kind, _, _ := strings.Cut(value, ";")
		for _, format := range []string{formatCBOR, formatSMILE, formatYAML} {
			if strings.Contains(strings.ToUpper(kind), format) {
				return format
			}
		}
	}
	return ""
}

// unread is the answer to a write whose documents in the format can't be read.
func unread(format, why string) error {
	return adapters.Refusal(fmt.Sprintf("this document in %s %s, so it can't be told whether it holds the field [%s], which is not the client's to write: "+
		"write it as JSON (Content-Type: %s)", format, why, rule.SketchField, jsonType))
}

// enrichFormat is EnrichWrite for a body in a format other than JSON.
func enrichFormat(c adapters.Class, dst io.Writer, src io.Reader, e *rule.Enricher) error {
	if c.Form == formBulk {
		if c.Format != formatSMILE { // the engines take no other
			_, err := io.Copy(dst, src)
			return err
		}
		b := smileBulk{bulk{e: e, target: c.Target, noCreate: e.NoCreate}}
		return jsonedit.EditLines(dst, src, smileEnd, b.edit, refuseSMILE)
	}
	if !e.Start(rule.Operation{Form: c.Form, Index: c.Target, ID: c.ID}) {
		return nil
	}
	if r := ruleOf(e, c.Target, c.Form == formUpdate); r == nil {
		e.Count(rule.Untouched)
		_, err := io.Copy(dst, src)
		return err
	}
	var why string
	err := jsonedit.EditWhole(dst, src, func(body []byte) (out []byte) {
		if out, why = editFormat(c.Format, e, c.Target, body, c.Form == formUpdate); why != "" {
			out = nil
		}
		return out
	}, func(io.Writer, io.Reader) error {
		why = fmt.Sprintf("is longer than %d MB, or than there is room for now", jsonedit.MaxDocument>>20)
		return nil
	})
	if err == nil && why != "" {
		e.Count(rule.Unreadable)
		err = unread(c.Format, why)
	}
	return err
}

// formatRoom returns how much is held to edit a document in a format: what is held stands for up to three times as much memory.
func formatRoom(format string, body []byte) int {
	switch format {
	case formatYAML:
		return yamlNodes(body)*yamlNodeRoom + 4*len(body)
	case formatSMILE:
		return 4*len(body) + plainSMILE(body)
	}
	return 8 * len(body)
}

// editFormat returns a document of a configured index, or the body of an update, enriched. why says why that can't be done.
func editFormat(format string, e *rule.Enricher, index string, body []byte, update bool) (out []byte, why string) {
	room := formatRoom(format, body)
	if !e.Hold(room) {
		return nil, "takes more to read than there is room for now"
	}
	defer e.Hold(-room)
	switch format {
	case formatYAML:
		return editYAML(e, index, body, update)
	case formatCBOR:
		out = editPacked(cborForm{}, e, index, body, update)
	default:
		out = editPacked(&smileForm{}, e, index, body, update)
	}
	if out == nil {
		why = "can't be read"
	}
	return out, why
}

// ruleOf returns the rule of an index that a document is written to, or nil.
func ruleOf(e *rule.Enricher, index string, partial bool) *rule.Rule {
	rule, _ := e.Rule(index, !partial && !e.NoCreate)
	return rule
}

// documents are the fields of ours that each document in a body gets, by where it is: "" is the body itself, "/doc" its member doc.
type documents map[string][]jsonedit.Member

// documentsIn returns what the documents in a body get: in one that is a document, or an update with some. shadow is the body as well-formed JSON.
func documentsIn(e *rule.Enricher, index string, shadow []byte, update bool) documents {
	all := documents{}
	add := func(place string, document []byte, partial bool) {
		list, _ := jsonedit.Members(e.Append(nil, index, document, partial)) // which is well-formed
		all[place] = slices.DeleteFunc(list, func(m jsonedit.Member) bool { return !rule.Our(m.Key) })
	}
	if !update {
		add("", shadow, false)
		return all
	}
	members, _ := jsonedit.Members(shadow)
	for _, name := range []string{"doc", "upsert"} {
		if document := jsonedit.Get(members, name); len(document) > 0 && document[0] == '{' {
			e.Scripted = name == "upsert" && yes(jsonedit.Get(members, "scripted_upsert"))
			add("/"+name, document, name == "doc")
		}
	}
	e.Scripted = false
	return all
}

// at returns what the document at a path gets; is says that there is one.
func (d documents) at(path []string) (ours []jsonedit.Member, is bool) {
	switch len(path) {
	case 0:
		ours, is = d[""]
	case 1:
		ours, is = d["/"+path[0]]
	}
	return ours, is
}

// drops reports whether the member at a path is one of ours that the client wrote.
func (d documents) drops(path []string) bool {
	last := len(path) - 1
	_, is := d.at(path[:last])
	return is && rule.Our(path[last])
}
