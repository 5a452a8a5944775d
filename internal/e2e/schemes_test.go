package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestSchemes has three indices with the same texts and a scheme each behind one sidecar: every index folds among itself, none with
// another, and each command works under each index's own scheme. Then two of them get the same scheme.
func TestSchemes(t *testing.T) {
	onEach(t, true, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		rules := []string{
			"match: schemes-a, fields: [body]",
			"match: schemes-b, fields: [body], sketch: {family: m_smallest, words: 1}",
			"match: schemes-c, fields: [body], sketch: {seed: another}",
		}
		file := ruled(t, e, rules...)
		through, direct := api{e, serveFile(t, file)}, api{e, e.URL}
		indices := []string{"schemes-a", "schemes-b", "schemes-c"}
		shelves := schemeItems(len(indices))
		for i, index := range indices {
			through.shelve(t, index, shelves[i][:15])
			direct.add(t, index, shelves[i][15:]) // no sketch is stored for these
		}
		f := folds{near: func(a, b *item) bool { return a.text == b.text }}
		t.Run("searches", func(t *testing.T) { separate(t, through, indices, shelves, f) })
		t.Run("commands", func(t *testing.T) {
			for i, index := range indices {
				succeed(t, "reindex", "-c", file, "--index", index).has(t, "15 written, 15 right already")
				succeed(t, "verify", "-c", file, "--index", index).has(t, "30 right, 0 absent, 0 incomparable, 0 stale")
				stored := direct.sketches(t, index, shelves[i])
				printed := succeed(t, "sketch", "-c", file, "--index", index, documentFile(t, shelves[i])).sketches()
				if diff := cmp.Diff(stored, printed); diff != "" || len(stored) != len(shelves[i]) {
					t.Errorf("%s: stored (-), sidecar sketch (+): %s", index, diff)
				}
			}
			a, b := direct.sketches(t, indices[0], shelves[0])["0"], direct.sketches(t, indices[1], shelves[1])["1"]
			if shelves[0][0].Body != shelves[1][0].Body || a == b || a == "" {
				t.Error("the same text has the same sketch under two schemes")
			}
			succeed(t, "setup", "-c", file).has(t, "schemes-a: ready", "schemes-b: ready", "schemes-c: ready")
			succeed(t, "doctor", "-c", file).has(t, "schemes-a is ready: 30 documents", "schemes-b is ready: 30 documents", "schemes-c is ready: 30 documents")
		})
		t.Run("searches of what is stored", func(t *testing.T) { separate(t, through, indices, shelves, f) })
		t.Run("a scheme changes", func(t *testing.T) {
			rules[1] = "match: schemes-b, fields: [body]"
			file := ruled(t, e, rules...)
			changed := api{e, serveFile(t, file)}
			succeed(t, "verify", "-c", file, "--index", indices[0]).has(t, "30 right, 0 absent, 0 incomparable, 0 stale")
			succeed(t, "verify", "-c", file, "--index", indices[1]).has(t, "0 right, 0 absent, 30 incomparable, 0 stale")
			succeed(t, "reindex", "-c", file, "--index", indices[1], "--max-docs", "11").has(t, "11 written")
			separate(t, changed, indices[:2], shelves, folds{near: f.near}) // halfway through a backfill
			succeed(t, "reindex", "-c", file).has(t, "schemes-a: 30 scanned, 0 written", "schemes-b: 30 scanned, 19 written", "schemes-c: 30 scanned, 0 written")
			if through.typesense() {
				return // searches one collection at a time
			}
			both := slices.Concat(shelves[0], shelves[1])
			slices.SortFunc(both, func(a, b item) int { return a.N - b.N })
			got, _ := changed.listed(t, "schemes-a,schemes-b", 0, 100, "")
			same(t, f.list(both), got, "two indices of one scheme, the definition (-), through us (+)")
		})
	})
}

// schemeItems returns the same texts for each of n indices, ten in three versions, in numbers of its own.
func schemeItems(n int) [][]item {
	w := newWriter(11)
	var items []item
	for range 10 {
		words := w.words(80)
		for range 3 {
			items = append(items, item{Body: text(w.edited(words, 1)), text: words[0]})
		}
	}
	numbered(w, items)
	shelves := make([][]item, n)
	for i := range shelves {
		for _, one := range items {
			one.N = one.N*n + i
			shelves[i] = append(shelves[i], one)
		}
	}
	return shelves
}

// separate holds each index to its own folding, and all of them in one search.
func separate(t *testing.T, through api, indices []string, shelves [][]item, f folds) {
	t.Helper()
	for i, index := range indices {
		got, r := through.listed(t, index, 0, 100, "")
		same(t, f.list(shelves[i]), got, "%s, %s: the definition (-), through us (+)", index, r.header.Get("Neardup"))
	}
	if through.typesense() || len(indices) < 3 {
		return
	}
	var all []item
	place := map[int]int{}
	for i := range indices {
		for _, one := range shelves[i] {
			place[one.N] = i
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b item) int { return a.N - b.N })
	apart := folds{near: func(a, b *item) bool { return f.near(a, b) && place[a.N] == place[b.N] }}
	for from := 0; from < 40; from += 10 {
		want := apart.list(all)
		got, r := through.listed(t, strings.Join(indices, ","), from, 10, "")
		expect.By{cmpopts.EquateEmpty()}.Same(t, want[min(from, len(want)):min(from+10, len(want))], got, "all at once from %d, %s", from, r.header.Get("Neardup"))
	}
}

// outcome is what a command printed.
type outcome string

func (o outcome) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(string(o), text) {
			t.Errorf("%q is not in: %s", text, o)
		}
	}
}

// sketches returns the sketch of each id that sidecar sketch printed.
func (o outcome) sketches() map[string]string {
	list := map[string]string{}
	for line := range strings.Lines(string(o)) {
		if columns := strings.Split(strings.TrimSpace(line), "\t"); len(columns) == 3 {
			list[columns[0]] = columns[2]
		}
	}
	return list
}

// sketches returns the sketch that is stored of each item.
func (a api) sketches(t *testing.T, index string, items []item) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, i := range items {
		id := fmt.Sprint(i.N)
		var stored map[string]any
		decode(t, a.get(t, index, id), &stored)
		list[id], _ = stored[rule.SketchField].(string)
	}
	return list
}

// documentFile writes the items as sidecar sketch reads them.
func documentFile(t *testing.T, items []item) string {
	t.Helper()
	var lines strings.Builder
	for _, i := range items {
		fmt.Fprintf(&lines, `{"id":"%d","body":%q}`+"\n", i.N, i.Body)
	}
	file := filepath.Join(t.TempDir(), "documents.jsonl")
	check(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	return file
}
