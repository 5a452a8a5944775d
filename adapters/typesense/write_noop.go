package typesense

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// plainParams are the parameters of a write that change nothing of what is written, nor of the form of the reply.
var plainParams = []string{"action", "dirty_values", "batch_size", "return_id", keyParam}

// plainReply reports whether the reply to a write comes in a form that can be taken apart, without the documents beside it.
func plainReply(form, method string, params []adapters.Param) bool {
	named, given := adapters.Last(params, "return_id")
	return (form == formImport || form == formDocument) && method == "POST" &&
		(!given || named == "true" || named == "false") &&
		!slices.ContainsFunc(params, func(p adapters.Param) bool { return !slices.Contains(plainParams, p.Name) })
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
	return Dialect{}.DocumentOf(o.Index, id)
}
