package elastic

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// plainParams are the parameters of a write that change nothing of what is written, nor of the form of the reply.
var plainParams = []string{"error_trace", "timeout", "wait_for_active_shards"}

// plainReply reports whether the reply to a write comes as JSON with all of its members and nothing beside.
func plainReply(r *adapters.Request, params []adapters.Param) bool {
	if speaksSeven(r) {
		return false
	}
	for _, accept := range r.Header["Accept"] {
		for one := range strings.SplitSeq(strings.ToLower(accept), ",") {
			kind, _, _ := strings.Cut(strings.TrimSpace(one), ";")
			switch strings.TrimSpace(kind) {
			case "", "*/*", jsonType, vendorType + "json", vendorType + "x-ndjson", "application/x-ndjson":
			default:
				return false
			}
		}
	}
	return !slices.ContainsFunc(params, func(p adapters.Param) bool { return !slices.Contains(plainParams, p.Name) })
}

// maxID is how many bytes an id may have: the engine refuses longer ones.
const maxID = 512

// acceptable reports whether the engine takes a text for an id.
func acceptable(id string) bool { return id != "" && len(id) <= maxID }

// bulkReply is the reply to a bulk.
type bulkReply Dialect

// documentReply is the reply to the writing of one document.
type documentReply struct{ adapters.OneReply }

// Empty implements adapters.Replies.
func (bulkReply) Empty() (status int, contentType string) { return 200, "" }

// Empty implements adapters.Replies.
func (documentReply) Empty() (status int, contentType string) { return 200, "" }

// Split returns the items of a bulk's reply. What a pipeline drops counts as refused: it comes as a no-op with a negative
// number for its version.
func (bulkReply) Split(reply []byte) (items [][]byte, refused []bool, err error) {
	members, err := jsonedit.Members(reply)
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	if items, err = jsonedit.Elements(jsonedit.Get(members, "items")); err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	for _, item := range items {
		value, err := outcomeOf(item)
		if err != nil {
			return nil, nil, err
		}
		outcome, err := jsonedit.Members(value)
		status := jsonedit.Get(outcome, "status")
		if err != nil || len(status) != 3 {
			return nil, nil, fmt.Errorf("%w: an item without a status", adapters.ErrNotUnderstood)
		}
		refused = append(refused, status[0] != '2' || bytes.HasPrefix(jsonedit.Get(outcome, "_version"), []byte("-")))
	}
	return items, refused, nil
}

// outcomeOf returns what an item of a bulk's reply says of its document.
func outcomeOf(item []byte) ([]byte, error) {
	members, err := jsonedit.Members(item)
	if err != nil || len(members) == 0 {
		return nil, fmt.Errorf("%w: an item without an action", adapters.ErrNotUnderstood)
	}
	return members[0].Value, nil
}

// Join returns a bulk's reply with other items.
func (b bulkReply) Join(reply []byte, items [][]byte) ([]byte, error) {
	if reply == nil {
		reply = []byte(`{"errors":false,"took":0}`)
		if b.OpenSearch {
			reply = []byte(`{"took":0,"errors":false}`)
		}
	}
	return jsonedit.Set(reply, "items", jsonedit.Array(items))
}

// NoOp returns the item of an operation that changes nothing.
func (bulkReply) NoOp(o rule.Operation, of adapters.Standing) (item []byte, err error) {
	if of.Stored != nil {
		item = unchanged(of, 1) // of how many copies an index has, a read tells nothing
	} else if item, err = outcomeOf(of.Entry); err == nil {
		item, err = jsonedit.Set(item, "result", []byte(`"noop"`))
	}
	if err == nil {
		item, err = jsonedit.Set(item, "status", []byte("200"))
	}
	return fmt.Appendf(nil, `{%q:%s}`, o.Form, item), err
}

// NoOp returns the reply to the writing of one document that changes nothing.
func (documentReply) NoOp(_ rule.Operation, of adapters.Standing) ([]byte, error) {
	return unchanged(of, 0), nil
}

// unchanged returns what the engine says of a stored document that an update left as it was, in this number of copies.
func unchanged(of adapters.Standing, copies int) []byte {
	v := versionOf(*of.Stored)
	return fmt.Appendf(nil, `{"_index":%s,"_id":%s,"_version":%d,"result":"noop","_shards":{"total":%d,"successful":%[4]d,"failed":0},"_seq_no":%[5]d,"_primary_term":%d}`,
		jsonedit.AppendString(nil, of.Index), jsonedit.AppendString(nil, of.Stored.ID), v.number, copies, v.seqNo, v.primaryTerm)
}
