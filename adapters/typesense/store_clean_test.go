package typesense

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestLossless refuses collections of which a deleted document could not be put back, or whose deletion goes further.
func TestLossless(t *testing.T) {
	for schema, want := range map[string]string{
		`{"name":"a","fields":[{"name":"t","type":"string"},{"name":"u","type":"string","store":true}]}`: "",
		`{"name":"a","fields":[{"name":"t","type":"string","store":false}]}`:                             "shows nothing of the field t",
		`{"name":"b","fields":[{"name":"t","type":"string","store":false}]}`:                             "",
		`{"name":"a","fields":[{"name":"v","type":"float[]","embed":{"from":["t"]}}]}`:                   "would compute the field v",
		`{"name":"b","fields":[{"name":"r","type":"string","reference":"a.id"}]}`:                        "documents of b refer to it (field r)",
		`{"name":"b","fields":[{"name":"r","type":"string","reference":"ab.id"}]}`:                       "",
	} {
		err := (&answers{list: map[string]string{"GET /collections": "[" + schema + "]"}}).store().Lossless(t.Context(), "a")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestDeleteChangedJustThen deletes a document that was changed after it was read: what the engine then says it was goes back. If the engine does
// not take it, the error holds it.
func TestDeleteChangedJustThen(t *testing.T) {
	const newer = `{"id":"1","title":"newer"}`
	read := []adapters.Stored{{ID: "1", Source: []byte(`{"id":"1","title":"older"}`)}}
	a := &answers{list: map[string]string{
		"DELETE /collections/a/documents/1": newer, "POST /collections/a/documents/import": `{"success":true}`,
	}}
	expect.Same(t, []adapters.Result{adapters.Changed}, expect.Value(a.store().Delete(t.Context(), "a", read))(t), "the result")
	expect.Same(t, newer+"\n", a.sent[len(a.sent)-1], "what is put back")
	a.list["POST /collections/a/documents/import"] = `{"success":false,"code":400}`
	if _, err := a.store().Delete(t.Context(), "a", read); err == nil || !strings.Contains(err.Error(), newer) {
		t.Errorf("the engine does not take it back: %v", err)
	}
}
