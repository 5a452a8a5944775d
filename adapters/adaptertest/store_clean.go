package adaptertest

import (
	"slices"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// whole reads documents with all their fields, in the order of their ids.
func (x *benchOfJobs) whole(t *testing.T, index string, of []string) (list []adapters.Stored) {
	t.Helper()
	found, _ := x.read(t, index, adapters.Selection{IDs: of, Fields: []string{adapters.AllFields}})
	for _, id := range ids(found) {
		list = append(list, found[id])
	}
	return list
}

// outcomes holds results to what is expected, where an engine may take what is gone for changed.
func outcomes(t *testing.T, what string, documents []adapters.Stored, got []adapters.Result, want func(id string) adapters.Result) {
	t.Helper()
	expect.Must(t, len(documents), len(got), "%s: results", what)
	for i, d := range documents {
		w := want(d.ID)
		if got[i] != w && !(w == adapters.Gone && got[i] == adapters.Changed) {
			t.Errorf("%s: %q ends in %d, not %d", what, d.ID, got[i], w)
		}
	}
}

// testDeleted deletes documents, some of which changed or went since they were read, and puts them back.
func (x *benchOfJobs) testDeleted(t *testing.T) {
	ctx, cleaner := t.Context(), x.store.(adapters.Cleaner)
	index := x.wide(t, "deleted")
	x.fill(t, index, 12)
	all := append(slices.Clone(x.IDs), "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "d9", "d10", "d11")
	expect.OK(t, cleaner.Lossless(ctx, index, ""))
	before := map[string]string{}
	for _, id := range all {
		before[id] = x.Get(t, index, id)
	}
	identity := expect.Value(x.store.(adapters.JobStore).Identity(ctx, index))(t)
	kept := map[string]string{}
	keep := func(d adapters.Stored) error { kept[d.ID] = string(d.Source); return nil }
	for _, d := range x.whole(t, index, all) {
		result, err := cleaner.Prove(ctx, index, "", d, keep)
		expect.OK(t, err)
		if want := map[bool]adapters.Result{true: adapters.Changed}[d.ID == "." || d.ID == ".."]; result != want {
			t.Errorf("prove %q: %d", d.ID, result)
		}
		expect.Same(t, before[d.ID], x.Get(t, index, d.ID), "%q after it was proven", d.ID)
	}
	stale := x.whole(t, index, []string{"d1"})[0]
	read := x.whole(t, index, all)
	x.Put(t, index, "d3", `{"title":"another","body":"since it was read","n":3}`)
	x.Put(t, index, "d5", `{"title":"é \u00e9 e\u0301 \u2028 😀 5","body":"\"\\\/\u0000","n":-1}`)
	x.Drop(t, index, "d7")
	changed := map[string]string{"d3": x.Get(t, index, "d3"), "d5": x.Get(t, index, "d5")}
	results, err := cleaner.Delete(ctx, index, read, keep)
	expect.OK(t, err)
	outcomes(t, "delete", read, results, func(id string) adapters.Result {
		switch {
		case id == "d7":
			return adapters.Gone
		case changed[id] != "":
			return adapters.Changed
		}
		return adapters.Patched
	})
	for id, source := range kept {
		expect.Same(t, decoded(t, changed[id]), decoded(t, source), "%q, which was kept", id)
	}
	if _, err := cleaner.Create(ctx, index, "another", []adapters.Stored{stale}); err == nil {
		t.Error("a document was put back into an index of another identity")
	}
	left := x.whole(t, index, all)
	expect.Same(t, 2, len(left), "documents that are left")
	for _, d := range left {
		expect.Same(t, changed[d.ID], x.Get(t, index, d.ID), "%q, which changed", d.ID)
	}
	x.Put(t, index, "d9", `{"title":"new","body":"under an old id","n":9}`)
	changed["d9"] = x.Get(t, index, "d9")
	results, err = cleaner.Create(ctx, index, identity, slices.Clone(read))
	expect.OK(t, err)
	outcomes(t, "create", read, results, func(id string) adapters.Result {
		if changed[id] != "" {
			return adapters.Changed
		}
		return adapters.Patched
	})
	for _, id := range all {
		want := before[id]
		if changed[id] != "" {
			want = changed[id]
		}
		expect.Same(t, want, x.Get(t, index, id), "%q after it was put back", id)
	}
	for what, write := range map[string]func(string, []adapters.Stored) ([]adapters.Result, error){
		"delete": func(i string, d []adapters.Stored) ([]adapters.Result, error) { return cleaner.Delete(ctx, i, d, keep) },
		"create": func(i string, d []adapters.Stored) ([]adapters.Result, error) {
			return cleaner.Create(ctx, i, identity, d)
		},
	} {
		if results, err := write(index, nil); err != nil || len(results) > 0 {
			t.Errorf("%s nothing: %v, %v", what, results, err)
		}
	}
	if results, err := cleaner.Create(ctx, x.Prefix+"none", identity, read[:1]); err == nil && results[0] == adapters.Patched {
		t.Errorf("a document was put back into an index that is not there: %v", results)
	}
	if list, err := x.store.Resolve(ctx, x.Prefix+"none"); err != nil || len(list) > 0 {
		t.Errorf("putting a document back made an index: %+v, %v", list, err)
	}
	x.store.Release(ctx, index)
}

// testSetField sets a field of documents, of which one has it and some changed, and sets it back.
func (x *benchOfJobs) testSetField(t *testing.T) {
	ctx, cleaner := t.Context(), x.store.(adapters.Cleaner)
	index := x.wide(t, "field")
	x.fill(t, index, 8)
	x.Put(t, index, "d1", `{"title":"has it","put_aside":false,"body":"already","n":1}`)
	all := append(slices.Clone(x.IDs), "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7")
	before := map[string]string{}
	for _, id := range all {
		before[id] = x.Get(t, index, id)
	}
	values := func(of func(id string) []byte, list []adapters.Stored) (values [][]byte) {
		for _, d := range list {
			values = append(values, of(d.ID))
		}
		return values
	}
	read := x.whole(t, index, all)
	results, err := cleaner.SetField(ctx, index, "put_aside", read, values(func(string) []byte { return []byte("true") }, read))
	expect.OK(t, err)
	outcomes(t, "set", read, results, func(string) adapters.Result { return adapters.Patched })
	for _, id := range all {
		want := expect.Value(jsonedit.Set([]byte(before[id]), "put_aside", []byte("true")))(t)
		expect.Same(t, decoded(t, string(want)), decoded(t, x.Get(t, index, id)), "%q with the field", id)
	}
	again := x.whole(t, index, all)
	x.Put(t, index, "d4", `{"title":"by another","body":"since it was read","n":4}`)
	x.Drop(t, index, "d6")
	d4 := x.Get(t, index, "d4")
	back := values(func(id string) []byte {
		members, _ := jsonedit.Members([]byte(before[id]))
		return jsonedit.Get(members, "put_aside")
	}, again)
	results, err = cleaner.SetField(ctx, index, "put_aside", again, back)
	expect.OK(t, err)
	for i, d := range again {
		switch d.ID {
		case "d4": // an engine without conditions takes a field out of it that it has not
			expect.Same(t, d4, x.Get(t, index, "d4"), "the one that changed")
		case "d6":
			if results[i] == adapters.Patched {
				t.Error("a document that is gone got a field")
			}
		default:
			expect.Same(t, adapters.Patched, results[i], "%q", d.ID)
			expect.Same(t, before[d.ID], x.Get(t, index, d.ID), "%q without the field again", d.ID)
		}
	}
	x.store.Release(ctx, index)
}
