package typesense

import (
	"bytes"
	"io"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestOperations: whatever is in doubt of a write, nothing of it is left out.
func TestOperations(t *testing.T) {
	const documents, lines = "/collections/c/documents", "{\"id\":\"1\",\"a\":1}\n{\"a\":1}\n\n{\"id\":5}\n{\"id\":\"\"}\n{\"id\":\"a\",\"id\":\"b\"}\n{\"id\":\"x\",\"a\":\"\xff\"}\n{bad"
	for _, c := range []struct {
		name, method, path, query, body string
		ids                             []string
		creates                         []bool // nil if no reply can be taken apart
	}{
		{"import", "POST", documents + "/import", "", lines, []string{"1", "", "", "", "b", "x", ""}, []bool{true, true, false, false, false, false, false}},
		{"import of ids", "POST", documents + "/import", "return_id=true&action=upsert", `{"a":1}`, []string{""}, []bool{true}},
		{"updates", "POST", documents + "/import", "action=update", `{"id":"1"}`, []string{"1"}, []bool{false}},
		{"emplaced", "POST", documents + "/import", "action=emplace", `{"id":"1"}`, []string{"1"}, []bool{false}},
		{"a line of blanks", "POST", documents + "/import", "", "{\"a\":1}\n  \n{\"a\":1}", []string{"", ""}, nil},
		{"documents returned", "POST", documents + "/import", "return_doc=true", `{"a":1}`, []string{""}, nil},
		{"an odd value", "POST", documents + "/import", "return_id=1", `{"a":1}`, []string{""}, nil},
		{"another collection", "POST", documents + "/import", "collection=d", `{"a":1}`, []string{""}, nil},
		{"one", "POST", documents, "", `{"id":"1","a":1}`, []string{"1"}, []bool{true}},
		{"one with a key", "POST", documents, "x-typesense-api-key=k&action=upsert", `{"a":1}`, []string{""}, []bool{true}},
		{"a patch", "PATCH", documents + "/x%2Fy", "", `{"a":1}`, []string{"x/y"}, nil},
		{"a patch of many", "PATCH", documents, "filter_by=a:1", `{"a":1}`, []string{""}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ids []string
			var creates []bool
			w := adaptertest.Starting{Writing: adaptertest.Always(nil), Starts: func(o rule.Operation) bool {
				ids, creates = append(ids, o.ID), append(creates, o.Plain)
				return true
			}}
			class := Dialect{}.Classify(&adapters.Request{Method: c.method, Path: c.path, RawQuery: c.query})
			replies := expect.Value((Dialect{}).EnrichWrite(class, io.Discard, bytes.NewReader([]byte(c.body)), w, 0))(t)
			if replies == nil {
				creates = nil
			}
			expect.Same(t, c.ids, ids, "ids")
			expect.Same(t, c.creates, creates, "creates")
		})
	}
}

// TestNoOps: the engine answers a document that changes nothing as any other.
func TestNoOps(t *testing.T) {
	stored := adapters.Standing{Stored: &adapters.Stored{ID: `o"ther`}, Reply: []byte(`{"id":"o\"ther","a":1}`)}
	for _, c := range []struct {
		name, form, want string
		of               adapters.Standing
	}{
		{"line", formImport, `{"success":true}`, stored}, {"line with id", formNamed, `{"id":"o\"ther","success":true}`, stored},
		{"of the same import", formNamed, `{"id":"7","success":true}`, adapters.Standing{Entry: []byte(`{"id":"7","success":true}`)}},
		{"one", formDocument, `{"id":"o\"ther","a":1}`, stored},
	} {
		make := importReply{}.NoOp
		if c.form == formDocument {
			make = documentReply{}.NoOp
		}
		expect.Same(t, c.want, string(expect.Value(make(rule.Operation{Form: c.form}, c.of))(t)), "%s", c.name)
	}
	if _, err := (importReply{}).NoOp(rule.Operation{Form: formNamed}, adapters.Standing{Entry: []byte(`{"success":true}`)}); err == nil {
		t.Error("an id where there is none")
	}
	expect.Same(t, "/collections/a%20b/documents/x%2Fy", (documentReply{}).Fetch(rule.Operation{Index: "a b"}, "x/y").Path, "what it asks for")
}
