package typesense

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestLossless refuses collections of which a deleted document could not be put back, or whose deletion goes further.
func TestLossless(t *testing.T) {
	const aliases = `{"aliases":[{"name":"known.as","collection_name":"a"},{"name":"ab","collection_name":"b"}]}`
	for schema, want := range map[string]string{
		`{"name":"a","fields":[{"name":"t","type":"string"},{"name":"u","type":"string","store":true}]}`: "",
		`{"name":"a","fields":[{"name":"t","type":"string","store":false}]}`:                             "shows nothing of the field t",
		`{"name":"b","fields":[{"name":"t","type":"string","store":false}]}`:                             "",
		`{"name":"a","fields":[{"name":"v","type":"float[]","embed":{"from":["t"]}}]}`:                   "would compute the field v",
		`{"name":"b","fields":[{"name":"r","type":"string","reference":"a.id"}]}`:                        "documents of b refer to it (field r)",
		`{"name":"b","fields":[{"name":"r","type":"string","reference":"ab.id"}]}`:                       "",
		`{"name":"b","fields":[{"name":"r","type":"string","reference":"known.as.id"}]}`:                 "documents of b refer to it (field r)",
		`{"name":"a","fields":[{"name":"r","type":"string","reference":"b.id"}]}`:                        "if what it refers to is gone (field r)",
	} {
		err := (&answers{list: map[string]string{"GET /collections": "[" + schema + "]", "GET /aliases": aliases}}).store().Lossless(t.Context(), "a", "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestLosslessNeedsAliases: another collection may refer to this one by an alias, so a key that may not list them is not enough.
func TestLosslessNeedsAliases(t *testing.T) {
	a := &answers{list: map[string]string{"GET /collections": `[{"name":"b","fields":[{"name":"r","reference":"x.id"}]}]`, "GET /aliases": "403 {}"}}
	if err := a.store().Lossless(t.Context(), "a", ""); err == nil || errors.Is(err, adapters.ErrLossy) {
		t.Error(err)
	}
}

// TestFlag takes a bool that filters find and documents show.
func TestFlag(t *testing.T) {
	for f, want := range map[string]bool{
		`"type":"bool","optional":true`: true, `"type":"bool[]"`: false, `"type":"int32"`: false, `"type":"auto"`: false, `"type":"bool","index":false`: false, `"type":"bool","store":false`: false,
	} {
		a := &answers{list: map[string]string{"GET /collections/a": `{"name":"a","fields":[{"name":"h",` + f + `}]}`}}
		expect.Same(t, want, expect.Value(a.store().Flag(t.Context(), "a", "h"))(t), "%s", f)
		expect.Same(t, false, expect.Value(a.store().Flag(t.Context(), "a", "other"))(t), "another field than %s", f)
	}
}

// TestProveCreatesFirst deletes nothing where the engine would take nothing.
func TestProveCreatesFirst(t *testing.T) {
	for reply, want := range map[string]int{
		`422 {"message":"OUT_OF_DISK"}`: 0, `403 {}`: 0, `{"success":false,"code":400}`: 0, `{"success":true}`: 1, `{"success":false,"code":409}`: 1,
	} {
		deleted := 0
		a := &answers{list: map[string]string{"POST /collections/a/documents/import": reply, "DELETE /collections/a/documents/1": `{"id":"1"}`}}
		s := Dialect{}.Open(roundTrips(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				deleted++
			}
			return a.RoundTrip(r)
		}), []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
		result, err := s.Prove(t.Context(), "a", "", adapters.Stored{ID: "1", Source: []byte(`{"id":"1"}`)}, func(adapters.Stored) error { return nil })
		expect.Same(t, want, deleted, "deletions after %s: %d, %v", reply, result, err)
		if result == adapters.Patched && err == nil {
			t.Errorf("%s proves it", reply)
		}
	}
}

// TestSetBackRefused: a document that changed and that the engine keeps hidden is an error.
func TestSetBackRefused(t *testing.T) {
	a := &answers{list: map[string]string{"POST /collections/a/documents/import": `{"success":true,"document":{"id":"1","t":"newer","h":true}}`}}
	s := Dialect{}.Open(roundTrips(func(r *http.Request) (*http.Response, error) {
		reply, err := a.RoundTrip(r)
		a.list["POST /collections/a/documents/import"] = `{"success":false,"code":400}` // from the second one on
		return reply, err
	}), []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
	_, err := s.SetField(t.Context(), "a", "h", []adapters.Stored{{ID: "1", Source: []byte(`{"id":"1","t":"older"}`)}}, [][]byte{[]byte("true")})
	if err == nil || !strings.Contains(err.Error(), "does not set that back") {
		t.Error(err)
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
	kept := ""
	keep := func(d adapters.Stored) error {
		expect.Same(t, 0, len(a.sent), "requests with a body before it is kept")
		kept = string(d.Source)
		return nil
	}
	expect.Same(t, []adapters.Result{adapters.Changed}, expect.Value(a.store().Delete(t.Context(), "a", read, keep))(t), "the result")
	expect.Same(t, newer+"\n", a.sent[len(a.sent)-1], "what is put back")
	expect.Same(t, newer, kept, "what is kept")
	a.sent, a.list["POST /collections/a/documents/import"] = nil, `{"success":false,"code":400}`
	if _, err := a.store().Delete(t.Context(), "a", read, keep); err == nil || !strings.Contains(err.Error(), newer) {
		t.Errorf("the engine does not take it back: %v", err)
	}
}

// TestDotsAreNoPath: DELETE /collections/a/documents/.. is DELETE /collections/a/, which drops the collection.
func TestDotsAreNoPath(t *testing.T) {
	asked := roundTrips(func(r *http.Request) (*http.Response, error) {
		t.Errorf("%s %s is sent", r.Method, r.URL)
		return nil, errors.New("no engine")
	})
	s := Dialect{}.Open(asked, []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "").(*Store)
	list := []adapters.Stored{{ID: "."}, {ID: ".."}}
	results, err := s.Delete(t.Context(), "a", list, nil)
	expect.OK(t, err)
	expect.Same(t, []adapters.Result{adapters.Refused, adapters.Refused}, results, "results")
	for _, id := range []string{".", "..", ""} {
		if _, err := readAll(s.api.DeleteDocument(t.Context(), "a", id)); err == nil || !strings.Contains(err.Error(), "is not sent") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestSetFieldSeesAnotherText takes a field back from a document that changed after it was read, and leaves one that is shown again.
func TestSetFieldSeesAnotherText(t *testing.T) {
	a := &answers{list: map[string]string{"POST /collections/a/documents/import": `{"success":true,"document":{"id":"1","t":"newer","h":true}}`}}
	set := func(read, value string) (adapters.Result, int) {
		a.sent = nil
		results, err := a.store().SetField(t.Context(), "a", "h", []adapters.Stored{{ID: "1", Source: []byte(read)}}, [][]byte{[]byte(value)})
		expect.OK(t, err)
		return results[0], len(a.sent)
	}
	for read, want := range map[string]int{`{"id":"1","t":"older"}`: 2, `{"t":"newer","id":"1","h":false}`: 1} {
		result, sent := set(read, "true")
		expect.Same(t, want, sent, "requests for %s", read)
		expect.Same(t, want == 1, result == adapters.Patched, "the result for %s", read)
	}
	if result, sent := set(`{"id":"1","t":"older","h":true}`, "false"); result != adapters.Patched || sent != 1 {
		t.Errorf("a document that is shown again: %d, %d", result, sent)
	}
}

// TestRealDots asks the engine to delete a document with the id "..": the collection stays.
func TestRealDots(t *testing.T) {
	b := newBench(t, `{"name":"`+"neardup_test_realdots_"+fmt.Sprint(os.Getpid())+`","fields":[{"name":"title","type":"string"}]}`, "title")
	for _, id := range []string{".", ".."} {
		b.must(201)(b.direct("POST", "/collections/"+b.collection+"/documents", `{"id":"`+id+`","title":"a text"}`))
	}
	var all []adapters.Stored
	read := func() {
		all = nil
		selection := adapters.Selection{IDs: []string{".", ".."}, Fields: []string{adapters.AllFields}}
		expect.OK(t, b.store().Scan(t.Context(), b.collection, nil, selection, func(p adapters.Page) error {
			all = append(all, p.Documents...)
			return nil
		}))
	}
	read()
	results, err := b.store().Delete(t.Context(), b.collection, all, nil)
	expect.OK(t, err)
	expect.Same(t, []adapters.Result{adapters.Refused, adapters.Refused}, results, "results")
	read()
	expect.Same(t, 2, len(all), "documents that are left")
}
