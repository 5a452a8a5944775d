package typesense

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
)

// stocked fills the collection: some documents hold all of our fields, some the sketch alone, some nothing.
func (b *bench) stocked(n int) map[string]string {
	b.t.Helper()
	if _, err := b.store().Prepare(b.t.Context(), b.collection, false); err != nil {
		b.t.Fatal(err)
	}
	var lines strings.Builder
	for i := range n {
		id := fmt.Sprint("d", i)
		if i < len(oddIDs) {
			id = oddIDs[i]
		}
		document, _ := json.Marshal(map[string]any{"id": id, "title": "t", "body": familyText(i/3, 0), "n": i})
		want, _ := b.rule.Wanted(document, 0)
		switch i % 4 {
		case 1:
			want.Bands, want.Cluster = nil, ""
		case 2:
			want = adapters.Ours{}
		}
		document, _ = adapters.WithOurs(document, want)
		lines.Write(append(document, '\n'))
	}
	b.must(200)(b.direct("POST", documentsPath+"/import", lines.String()))
	all := map[string]string{}
	for line := range strings.Lines(b.must(200)(b.direct("GET", documentsPath+"/export", ""))) {
		d, err := storedDocument([]byte(line))
		if err != nil {
			b.t.Fatal(err)
		}
		all[d.ID] = strings.TrimSpace(line)
	}
	if len(all) != n {
		b.t.Fatalf("%d of %d documents", len(all), n)
	}
	return all
}

var oddIDs = []string{"a`b", " lead", "a,b", "a]b", "a/b", "é", `a"b`, `a\b`, "a&&b", "a b?c#d%41", "a+b", "a`+b", ":", "*"}

// anySelection returns a selection at random, and what it selects.
func anySelection(r *rand.Rand, b *bench, all map[string]string) (sel adapters.Selection, selects func(id string) bool) {
	const n = 400
	var checks []func(id string, o adapters.Ours) bool
	some := func(chance int, f func()) {
		if r.IntN(chance) == 0 {
			f()
		}
	}
	some(3, func() {
		parts, _ := Split(b.t.Context(), b.store(), b.collection, 1+r.IntN(7))
		sel.Part = parts[r.IntN(len(parts))]
		p, _ := parsePart(sel.Part)
		checks = append(checks, func(id string, _ adapters.Ours) bool { return p.holds(id) })
	})
	some(4, func() {
		sel.IDs = []string{}
		for range r.IntN(700) {
			sel.IDs = append(sel.IDs, fmt.Sprint("d", r.IntN(2*n)))
		}
		if sel.Query == "" {
			sel.IDs = append(sel.IDs, oddIDs[:r.IntN(len(oddIDs))]...)
		}
		checks = append(checks, func(id string, _ adapters.Ours) bool { return slices.Contains(sel.IDs, id) })
	})
	some(4, func() {
		sel.Bands = []int64{}
		for range r.IntN(60) {
			for _, key := range adapters.OursOf([]byte(all[fmt.Sprint("d", r.IntN(n))])).Bands {
				some(4, func() { sel.Bands = append(sel.Bands, key) })
			}
		}
		checks = append(checks, func(_ string, o adapters.Ours) bool {
			return slices.ContainsFunc(o.Bands, func(key int64) bool { return slices.Contains(sel.Bands, key) })
		})
	})
	some(4, func() {
		sel.Marked = true
		checks = append(checks, func(_ string, o adapters.Ours) bool { return !o.Equal(adapters.Ours{}) })
	})
	some(4, func() {
		sel.Lacking = true
		checks = append(checks, func(_ string, o adapters.Ours) bool { return o.Sketch == "" || o.Bands == nil || o.Cluster == "" })
	})
	if sel.IDs == nil {
		some(3, func() {
			below := r.IntN(n)
			sel.Query = fmt.Sprintf("n:<%d || n:=%d", below, n-1)
			checks = append(checks, func(id string, _ adapters.Ours) bool {
				var d struct{ N int }
				return json.Unmarshal([]byte(all[id]), &d) == nil && (d.N < below || d.N == n-1)
			})
		})
	}
	some(3, func() { sel.Limit = 1 + r.IntN(300) })
	sel.Random = sel.Limit > 0 && r.IntN(2) == 0
	sel.Brief = r.IntN(3) == 0
	some(3, func() { sel.Fields = [][]string{{"n"}, {adapters.AllFields}, {"n", adapters.AllFields}}[r.IntN(3)] })
	return sel, func(id string) bool {
		o := adapters.OursOf([]byte(all[id]))
		return !slices.ContainsFunc(checks, func(holds func(string, adapters.Ours) bool) bool { return !holds(id, o) })
	}
}

// TestRealSelections reads what selections at random select, and holds that to what they say, document by document.
func TestRealSelections(t *testing.T) {
	b := newBench(t, articles, "body").whole()
	all := b.stocked(400)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range effort.Rounds(60) {
		sel, selects := anySelection(r, b, all)
		want := 0
		for id := range all {
			if selects(id) {
				want++
			}
		}
		if sel.Limit > 0 {
			want = min(want, sel.Limit)
		}
		seen := map[string]bool{}
		err := b.store().Scan(t.Context(), b.collection, b.rule, sel, func(p adapters.Page) error {
			if len(p.Documents) == 0 || len(p.Documents) > batch {
				t.Errorf("%+v: a page of %d", sel, len(p.Documents))
			}
			for _, d := range p.Documents {
				if seen[d.ID] || !selects(d.ID) {
					t.Errorf("%+v: reads %q, twice %v", sel, d.ID, seen[d.ID])
				}
				seen[d.ID] = true
				b.sameAsStored(d, all[d.ID], sel)
			}
			return nil
		})
		for id := range all {
			if selects(id) && !seen[id] && sel.Limit == 0 {
				t.Errorf("does not read %q", id)
			}
		}
		if err != nil || len(seen) != want && !(sel.Random && len(seen) > want*9/10-sampleRun) {
			t.Fatalf("%+v: reads %d, not %d: %v", sel, len(seen), want, err)
		}
	}
}

// sameAsStored holds a document that was read to those members of it that were to be read.
func (b *bench) sameAsStored(d adapters.Stored, stored string, sel adapters.Selection) {
	b.t.Helper()
	want, err := adapters.Cut([]byte(stored), func(key string) bool {
		return !slices.Contains(sel.Fields, adapters.AllFields) && (key == "title" || key == "body" && sel.Brief || key == "n" && !slices.Contains(sel.Fields, "n"))
	})
	if err != nil || !bytes.Equal(want, d.Source) {
		b.t.Errorf("%+v: %q is read as %s, not %s: %v", sel, d.ID, d.Source, want, err)
	}
}

// TestPartsThatAreNone: what is no part of this store's is an error, and not all of the collection.
func TestPartsThatAreNone(t *testing.T) {
	for _, part := range []string{"1", "4/4", "-1/2", "a/b", "1/0", "/"} {
		if p, err := parsePart(part); err == nil {
			t.Errorf("%q is the part %v", part, p)
		}
	}
}

// TestRealBandsUndeclared: a look-up by bands that are not there says what to do.
func TestRealBandsUndeclared(t *testing.T) {
	b := newBench(t, articles, "body")
	err := b.store().Scan(t.Context(), b.collection, b.rule, adapters.Selection{Bands: []int64{1}}, func(adapters.Page) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "stores no bands") {
		t.Error(err)
	}
}

// TestRealRemove: a collection is what it was before us, whatever was declared how, and a second time is no error.
func TestRealRemove(t *testing.T) {
	for name, schema := range map[string]string{
		"declared": articles,
		"detected": `{"name":"NAME","fields":[{"name":".*","type":"auto"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, schema, "body").whole()
			before := map[string]string{}
			for id, document := range b.stocked(300) {
				bare, err := adapters.Cut([]byte(document), adapters.Our)
				if err != nil {
					t.Fatal(err)
				}
				before[id] = string(bare)
			}
			for range 2 {
				if note, err := Remove(t.Context(), b.store(), b.collection); err != nil || note != "" {
					t.Fatal(note, err)
				}
			}
			after := map[string]string{}
			for line := range strings.Lines(b.must(200)(b.direct("GET", documentsPath+"/export", ""))) {
				d, _ := storedDocument([]byte(line))
				after[d.ID] = strings.TrimSpace(line)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
			if schema := b.must(200)(b.direct("GET", "/collections/NAME", "")); namesOurs([]byte(schema)) {
				t.Error(schema)
			}
		})
	}
	if _, err := Remove(context.Background(), nil, "x"); err == nil {
		t.Error("no error for a store of another adapter")
	}
}
