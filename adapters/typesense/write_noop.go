package typesense

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// formNamed is the form of an operation of an import whose reply tells the ids.
const formNamed = "named"

// plainParams are the parameters of a write that change nothing of what is written, nor of the form of the reply.
var plainParams = []string{"action", "dirty_values", "batch_size", "return_id", keyParam}

// plainReply reports whether the reply to a write comes in a form that can be taken apart, without the documents beside it.
func plainReply(form, method string, params []adapters.Param) bool {
	named, given := adapters.Last(params, "return_id")
	return (form == formImport || form == formDocument) && method == "POST" &&
		(!given || named == "true" || named == "false") &&
		!slices.ContainsFunc(params, func(p adapters.Param) bool { return !slices.Contains(plainParams, p.Name) })
}

// operation returns the operation of which a document is at hand, as far as the engine reads it.
func operation(c adapters.Class, e *rule.Enricher, how writing, read []byte, whole bool) rule.Operation {
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

// idOf returns the id of a document, and whether there is no doubt about it: it is a text, or there is none.
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

// importReply is the reply to an import.
type importReply struct{}

// documentReply is the reply to the writing of one document.
type documentReply struct{ adapters.OneReply }

// Empty implements adapters.Replies.
func (importReply) Empty() (status int, contentType string) {
	return 200, "text/plain; charset=utf8"
}

// Empty implements adapters.Replies.
func (documentReply) Empty() (status int, contentType string) { return 201, "" }

// Split returns the lines of an import's reply.
func (importReply) Split(reply []byte) (lines [][]byte, refused []bool, err error) {
	if len(reply) == 0 {
		return nil, nil, nil
	}
	lines = bytes.Split(bytes.TrimSuffix(reply, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		members, err := jsonedit.Members(line)
		success := string(jsonedit.Get(members, "success"))
		if err != nil || success != "true" && success != "false" {
			return nil, nil, fmt.Errorf("%w: %.200s", adapters.ErrNotUnderstood, line)
		}
		refused = append(refused, success == "false")
	}
	return lines, refused, nil
}

// Join returns an import's reply of other lines. The last one has no line end.
func (importReply) Join(_ []byte, lines [][]byte) ([]byte, error) {
	return bytes.Join(lines, []byte("\n")), nil
}

// NoOp returns the line of a document that changes nothing: the engine knows no other success.
func (importReply) NoOp(o rule.Operation, of adapters.Standing) ([]byte, error) {
	if o.Form != formNamed {
		return []byte(`{"success":true}`), nil
	}
	var id []byte
	if of.Stored != nil {
		id = jsonedit.AppendString(nil, of.Stored.ID)
	} else {
		members, err := jsonedit.Members(of.Entry)
		if id = jsonedit.Get(members, "id"); err != nil || id == nil {
			return nil, fmt.Errorf("%w: a line without an id", adapters.ErrNotUnderstood)
		}
	}
	return append(append([]byte(`{"id":`), id...), `,"success":true}`...), nil
}

// NoOp returns the reply to the writing of one document that changes nothing: what is stored.
func (documentReply) NoOp(_ rule.Operation, of adapters.Standing) ([]byte, error) {
	if _, err := jsonedit.Members(of.Reply); err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	return of.Reply, nil
}

// Fetch returns the request for a document.
func (documentReply) Fetch(o rule.Operation, id string) *adapters.Request {
	return &adapters.Request{Method: "GET", Path: "/collections/" + url.PathEscape(o.Index) + "/documents/" + url.PathEscape(id)}
}
