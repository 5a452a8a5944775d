package elastic

import (
	"fmt"
	"io"
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
	var changed, ok bool
	switch {
	case format == formatYAML:
		return editYAML(e, index, body, update)
	case format == formatCBOR && update:
		out, changed, ok = packedUpdate(cborForm{}, e, index, nil, body, 0)
	case format == formatCBOR:
		out, changed, ok = packedDocument(cborForm{}, e, index, nil, body, 0, false, false)
	default:
		out, changed, ok = editSMILE(e, index, body, update)
	}
	switch {
	case !ok:
		return nil, "can't be read"
	case !changed:
		return body, ""
	}
	return out, ""
}

// ruleOf returns the rule of an index that a document is written to, or nil.
func ruleOf(e *rule.Enricher, index string, partial bool) *rule.Rule {
	rule, _ := e.Rule(index, !partial && !e.NoCreate)
	return rule
}

// oursFor returns what a document gets of our fields. shadow is what concerns its rule of it, as JSON.
func oursFor(e *rule.Enricher, index string, shadow []byte, partial, scripted bool) []jsonedit.Member {
	if scripted {
		e.AppendScripted(nil, index, shadow)
		return nil
	}
	list, _ := jsonedit.Members(e.Append(nil, index, shadow, partial)) // which is well-formed
	ours := list[:0]
	for _, m := range list {
		if rule.Our(m.Key) {
			ours = append(ours, m)
		}
	}
	return ours
}
