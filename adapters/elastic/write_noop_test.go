package elastic

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// operationsOf returns the operations that a write tells of.
func operationsOf(t *testing.T, d Dialect, r *adapters.Request) (list []rule.Operation, replies adapters.Replies) {
	t.Helper()
	w := adaptertest.Starting{Writing: adaptertest.Always(nil), Starts: func(o rule.Operation) bool { list = append(list, o); return true }}
	replies = expect.Value(d.EnrichWrite(d.Classify(r), io.Discard, bytes.NewReader(r.Body), w, 0))(t)
	return list, replies
}

// TestOperations: whatever is in doubt of a write, nothing of it is left out.
func TestOperations(t *testing.T) {
	const doc = "\n{\"title\":\"a\"}\n"
	for _, c := range []struct {
		name, method, path, query, body string
		header                          adapters.Header
		creates                         []bool // nil if no reply can be taken apart
	}{
		{"bulk", "POST", "/_bulk", "", `{"index":{"_index":"i","_id":"1"}}` + doc + `{"create":{"_index":"i"}}` + doc + `{"update":{"_index":"i","_id":"1"}}` +
			"\n{\"doc\":{}}\n" + `{"delete":{"_index":"i","_id":"1"}}` + "\n", nil, []bool{true, true, false, false}},
		{"an action without a document", "POST", "/i/_bulk", "", `{"index":{}}` + doc + `{"index":{}}` + "\n", nil, nil},
		{"cut off", "POST", "/i/_bulk", "", `{"index":{}}` + doc + `{"index":{}}` + "\n{}", nil, nil},
		{"ids that are none", "POST", "/i/_bulk", "", `{"index":{"_id":""}}` + doc + `{"index":{"_id":"` + strings.Repeat("é", 257) + `"}}` + doc + `{"index":{"_id":"` + strings.Repeat("é", 256) + `"}}` + doc, nil,
			[]bool{false, false, true}},
		{"one of an id that is none", "PUT", "/i/_doc/" + strings.Repeat("x", 513), "", `{}`, nil, []bool{false}},
		{"actions that say more", "POST", "/i/_bulk", "", `{"index":{"_id":"1","routing":"x"}}` + doc + `{"index":{"if_seq_no":1,"if_primary_term":1,"_id":"1"}}` + doc +
			`{"index":{"_id":"1","version":3,"version_type":"external"}}` + doc + `{"index":{"pipeline":"p"}}` + doc + `{"index":{"require_alias":true}}` + doc +
			`{"create":{"_id":7}}` + doc + `{"index":{"_id":"1","_id":"2"}}` + doc + `{"index":{"dynamic_templates":{}}}` + doc + `{"index":{}}` + doc, nil,
			[]bool{false, false, false, false, false, false, false, false, true}},
		{"broken", "POST", "/i/_bulk", "", `{"index":{}}` + doc + `{"what":{}}` + doc, nil, nil},
		{"filter_path", "POST", "/i/_bulk", "filter_path=errors", `{"index":{}}` + doc, nil, nil},
		{"pipeline", "POST", "/i/_bulk", "pipeline=x", `{"index":{}}` + doc, nil, nil},
		{"version 7", "POST", "/i/_bulk", "", `{"index":{}}` + doc, adapters.Header{
			"Accept": {"application/vnd.elasticsearch+json;compatible-with=7"}, "Content-Type": {"application/vnd.elasticsearch+x-ndjson;compatible-with=7"}}, nil},
		{"one", "PUT", "/i/_doc/1", "", `{}`, nil, []bool{true}}, {"one to be made", "PUT", "/i/_create/1", "", `{}`, nil, []bool{true}}, {"one without an id", "POST", "/i/_doc", "", `{}`, nil, []bool{true}},
		{"one on a condition", "PUT", "/i/_doc/1", "if_seq_no=1&if_primary_term=1", `{}`, nil, nil}, {"one of a version", "PUT", "/i/_doc/1", "version=5&version_type=external", `{}`, nil, nil},
		{"one refreshed", "PUT", "/i/_doc/1", "refresh=wait_for", `{}`, nil, nil}, {"an update", "POST", "/i/_update/1", "", `{"doc":{}}`, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, replies := operationsOf(t, Dialect{}, &adapters.Request{Method: c.method, Path: c.path, RawQuery: c.query, Header: c.header, Body: []byte(c.body)})
			var creates []bool
			for _, o := range list {
				creates = append(creates, o.Plain)
			}
			if replies == nil {
				creates = nil
			}
			expect.Same(t, c.creates, creates, "%+v", list)
		})
	}
}

// TestNoOps holds what stands for an operation that was left out to what both engines were seen to answer to an update without a change.
func TestNoOps(t *testing.T) {
	stored := adapters.Standing{Index: "i", Stored: &adapters.Stored{ID: "o\"ther", Version: version{seqNo: 7, primaryTerm: 2, number: 3}}}
	sibling := adapters.Standing{Index: "i", Entry: []byte(`{"index":{"_index":"i","_id":"a","_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":201}}`)}
	for _, c := range []struct {
		name string
		make func(rule.Operation, adapters.Standing) ([]byte, error)
		of   adapters.Standing
		want string
	}{
		{"one", documentReply{}.NoOp, stored, `{"_index":"i","_id":"o\"ther","_version":3,"result":"noop","_shards":{"total":0,"successful":0,"failed":0},"_seq_no":7,"_primary_term":2}`},
		{"in a bulk", bulkReply{}.NoOp, stored, `{"create":{"_index":"i","_id":"o\"ther","_version":3,"result":"noop","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":7,"_primary_term":2,"status":200}}`},
		{"of the same bulk", bulkReply{}.NoOp, sibling, `{"create":{"_index":"i","_id":"a","_version":1,"result":"noop","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":200}}`},
	} {
		expect.Same(t, c.want, string(expect.Value(c.make(rule.Operation{Form: "create"}, c.of))(t)), "%s", c.name)
	}
	for openSearch, want := range map[bool]string{false: `{"errors":false,"took":0,"items":[{"index":1}]}`, true: `{"took":0,"errors":false,"items":[{"index":1}]}`} {
		got := expect.Value(bulkReply(Dialect{OpenSearch: openSearch}).Join(nil, [][]byte{[]byte(`{"index":1}`)}))(t)
		expect.Same(t, want, string(got), "OpenSearch %t", openSearch)
	}
}

// TestDroppedIsNotStored: what a pipeline drops comes with a status of 200.
func TestDroppedIsNotStored(t *testing.T) {
	_, refused, err := bulkReply{}.Split([]byte(`{"errors":false,"took":0,"items":[` +
		`{"index":{"_index":"i","_id":"a","_version":-3,"result":"noop","_shards":{"total":0,"successful":0,"failed":0},"status":200}},` +
		`{"index":{"_index":"i","_id":"b","_version":1,"result":"created","status":201}},{"index":{"_index":"i","_id":"c","status":400,"error":{}}}]}`))
	expect.OK(t, err)
	expect.Same(t, []bool{true, false, true}, refused, "")
}

// FuzzSplitBulk takes any reply apart, and if that can be done puts it together as it was.
func FuzzSplitBulk(f *testing.F) {
	for _, reply := range []string{
		`{"errors":true,"took":0,"items":[{"update":{"_index":"w","status":200}},{"create":{"status":409,"error":{}}}]}`, `{"took":1,"errors":false,"items":[ ]}`, `{"items":[{"index":{"status":2}}]}`, `[]`,
	} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		items, refused, err := bulkReply{}.Split([]byte(reply))
		if err != nil {
			return
		}
		expect.Must(t, len(refused), len(items), "items")
		joined := expect.Value(bulkReply{}.Join([]byte(reply), items))(t)
		again, _, err := bulkReply{}.Split(joined)
		if diff := cmp.Diff(items, again); diff != "" || err != nil || strings.Count(string(joined), `"status"`) != strings.Count(reply, `"status"`) {
			t.Errorf("%s becomes %s: %v %s", reply, joined, err, diff)
		}
	})
}
