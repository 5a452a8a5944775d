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

// splices reports whether the reply to a write comes as JSON with all of its members and nothing beside.
func splices(r *adapters.Request, params []adapters.Param) bool {
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

// Split returns the items of a bulk's reply. What a pipeline drops is as good as refused: it comes as a no-op without a version, for
// which a negative number stands.
func (bulkReply) Split(reply []byte) (items [][]byte, refused []bool, err error) {
	members, err := jsonedit.Members(reply)
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	if items, err = jsonedit.Elements(jsonedit.Get(members, "items")); err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	for _, item := range items {
		_, outcome, err := itemOf(item)
		if err != nil {
			return nil, nil, err
		}
		status := jsonedit.Get(outcome, "status")
		if len(status) != 3 {
			return nil, nil, fmt.Errorf("%w: an item without a status", adapters.ErrNotUnderstood)
		}
		refused = append(refused, status[0] != '2' || bytes.HasPrefix(jsonedit.Get(outcome, "_version"), []byte("-")))
	}
	return items, refused, nil
}

// itemOf returns the action of an item of a bulk's reply and what it says of it.
func itemOf(item []byte) (action string, outcome []jsonedit.Member, err error) {
	members, err := jsonedit.Members(item)
	if err != nil || len(members) == 0 {
		return "", nil, fmt.Errorf("%w: an item without an action", adapters.ErrNotUnderstood)
	}
	outcome, err = jsonedit.Members(members[0].Value)
	return members[0].Key, outcome, err
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
func (bulkReply) NoOp(o rule.Operation, of adapters.Standing) ([]byte, error) {
	d := documentOf(of)
	if of.Stored == nil {
		_, outcome, err := itemOf(of.Entry)
		if err != nil {
			return nil, err
		}
		d = described(outcome)
	}
	if d.shards == "" { // of how many copies an index has, a read tells nothing
		d.shards = `{"total":1,"successful":1,"failed":0}`
	}
	item := jsonedit.AppendString([]byte{'{'}, o.Form)
	return append(append(d.append(append(item, ':')), `,"status":200}`...), '}'), nil
}

// NoOp returns the reply to the writing of one document that changes nothing.
func (documentReply) NoOp(_ rule.Operation, of adapters.Standing) ([]byte, error) {
	d := documentOf(of)
	d.shards = `{"total":0,"successful":0,"failed":0}`
	return append(d.append(nil), '}'), nil
}

// answered is what a reply to a write says of a document, each value as it stands in JSON.
type answered struct{ index, id, version, shards, seqNo, primaryTerm string }

// append appends the object of a no-op, up to its last brace.
func (s answered) append(dst []byte) []byte {
	for i, m := range []struct{ key, value string }{
		{"_index", s.index}, {"_id", s.id}, {"_version", s.version}, {"result", `"noop"`}, {"_shards", s.shards}, {"_seq_no", s.seqNo},
		{"_primary_term", s.primaryTerm},
	} {
		if i == 0 {
			dst = append(dst, '{')
		} else if m.value != "" {
			dst = append(dst, ',')
		}
		if m.value != "" {
			dst = append(append(jsonedit.AppendString(dst, m.key), ':'), m.value...)
		}
	}
	return dst
}

// documentOf returns the state of a stored document.
func documentOf(of adapters.Standing) answered {
	if of.Stored == nil {
		return answered{}
	}
	s := answered{index: string(jsonedit.AppendString(nil, of.Index)), id: string(jsonedit.AppendString(nil, of.Stored.ID))}
	if v, ok := of.Stored.Version.(version); ok {
		s.version, s.seqNo, s.primaryTerm = fmt.Sprint(v.number), fmt.Sprint(v.seqNo), fmt.Sprint(v.primaryTerm)
	}
	return s
}

// described returns the state that an item tells.
func described(outcome []jsonedit.Member) answered {
	get := func(key string) string { return string(jsonedit.Get(outcome, key)) }
	return answered{get("_index"), get("_id"), get("_version"), get("_shards"), get("_seq_no"), get("_primary_term")}
}
