package adaptertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/rule"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// StoreSubject is a store on a real engine, and ways to reach that engine past it.
type StoreSubject struct {
	// Open returns the store under credentials that may do everything.
	Open func(t *testing.T) adapters.Store
	// Prefix is what the names of indices begin with.
	Prefix string
	// Make makes an index with the text fields title and body and the number n, in which our field is not declared, and Alias
	// another name of an index; nil where there is no such thing. Both are gone when t ends.
	Make  func(t *testing.T, name string)
	Alias func(t *testing.T, alias, name string)
	// Put stores a document in place of whatever has the id, Get returns it as it is stored, and Drop deletes it.
	Put  func(t *testing.T, index, id, document string)
	Get  func(t *testing.T, index, id string) string
	Drop func(t *testing.T, index, id string)
	// Settle makes a scan see what was stored and dropped so far; nil where it does anyway.
	Settle func(t *testing.T, index string)
	// IDs are ids that the engine takes and that are easily got wrong.
	IDs []string
}

// TestStore holds the subject to the contract of a Store.
func TestStore(t *testing.T, s StoreSubject) {
	x := &shelf{StoreSubject: s, store: s.Open(t), rule: Rules(t)[0]}
	t.Run("names", func(t *testing.T) { x.testNames(t) })
	t.Run("scan", func(t *testing.T) { x.testScan(t) })
	t.Run("patch", func(t *testing.T) { x.testPatch(t) })
	t.Run("gives way", func(t *testing.T) { x.testGivesWay(t) })
	t.Run("patched at once", func(t *testing.T) { x.testPatchedAtOnce(t) })
}

// shelf is a subject with its store and the rule that documents are sketched by.
type shelf struct {
	StoreSubject
	store adapters.Store
	rule  *rule.Rule
}

// prepared makes an index, prepared if that is asked for, and returns its name.
func (x *shelf) prepared(t *testing.T, name string) string {
	t.Helper()
	name = x.Prefix + name
	x.Make(t, name)
	if list, err := x.store.Prepare(t.Context(), name, false); err != nil || len(list) != 1 || !list[0].Ready {
		t.Fatalf("prepare %s: %+v, %v", name, list, err)
	}
	return name
}

func (x *shelf) testNames(t *testing.T) {
	ctx, name, alias := t.Context(), x.Prefix+"names", x.Prefix+"alias"
	x.Make(t, name)
	if x.Alias == nil {
		alias = name
	} else {
		x.Alias(t, alias, name)
	}
	resolve := func(name string) ([]adapters.Index, error) { return x.store.Resolve(ctx, name) }
	prepare := func(name string) ([]adapters.Index, error) { return x.store.Prepare(ctx, name, false) }
	for _, step := range []struct {
		what, name  string
		look        func(string) ([]adapters.Index, error)
		none, ready bool
	}{
		{"resolve nothing", x.Prefix + "none", resolve, true, false}, {"prepare nothing", x.Prefix + "none", prepare, true, false},
		{"resolve nothing still", x.Prefix + "none", resolve, true, false},
		{"resolve no pattern", x.Prefix + "none*", resolve, true, false},
		{"resolve", name, resolve, false, false}, {"resolve an alias", alias, resolve, false, false},
		{"resolve a pattern", x.Prefix + "nam*", resolve, false, false}, {"prepare an alias", alias, prepare, false, true},
		{"prepare again", name, prepare, false, true}, {"prepare a pattern", x.Prefix + "nam*", prepare, false, true},
		{"resolve what is prepared", name, resolve, false, true}, {"resolve its alias", alias, resolve, false, true},
	} {
		list, err := step.look(step.name)
		if err != nil {
			t.Errorf("%s: %v", step.what, err)
			continue
		}
		if step.none {
			if len(list) > 0 {
				t.Errorf("%s: %+v", step.what, list)
			}
			continue
		}
		if len(list) != 1 || list[0].Name != name || list[0].Absent || !list[0].Ready && (step.ready || list[0].Why == "") {
			t.Errorf("%s: %+v", step.what, list)
		}
	}
	all, err := resolve("")
	if err != nil || !slices.ContainsFunc(all, func(i adapters.Index) bool { return i.Name == name && i.Ready }) {
		t.Errorf("%s is not among all %d indices: %v", name, len(all), err)
	}
}

// texts are what documents hold, whole or in lists, each with a word at least.
var texts = []string{
	`"title":"%d one two","body":"three four"`, `"title":"é \u00e9 e\u0301 \u2028 😀 %d","body":"\"\\\/\u0000"`,
	`"title":"","body":"alone %d"`, `"title":"w%d","body":"w w w"`,
}

// fill stores documents, and returns them by id.
func (x *shelf) fill(t *testing.T, index string, n int) map[string]string {
	t.Helper()
	all := map[string]string{}
	put := func(id string) {
		all[id] = fmt.Sprintf("{"+texts[len(all)%len(texts)]+`,"n":%d}`, len(all), len(all))
		x.Put(t, index, id, all[id])
	}
	for _, id := range x.IDs {
		put(id)
	}
	for i := range n {
		put(fmt.Sprint("d", i))
	}
	return all
}

// scan reads an index, and holds the reading to what was stored there.
func (x *shelf) scan(t *testing.T, index string, want map[string]string) map[string]adapters.Stored {
	t.Helper()
	if x.Settle != nil {
		x.Settle(t, index)
	}
	all := map[string]adapters.Stored{}
	err := x.store.Scan(t.Context(), index, x.rule, adapters.Selection{}, func(p adapters.Page) error {
		if len(p.Documents) == 0 || p.Total != 0 && p.Total != len(want) {
			t.Errorf("a page of %d documents, of %d; there are %d", len(p.Documents), p.Total, len(want))
		}
		for _, d := range p.Documents {
			if _, twice := all[d.ID]; twice {
				t.Errorf("%q comes twice", d.ID)
			}
			all[d.ID] = d
		}
		return nil
	})
	if err != nil || len(all) != len(want) {
		t.Fatalf("read %d of %d documents: %v", len(all), len(want), err)
	}
	for id, document := range want {
		sent, _ := x.rule.SketchOf([]byte(document))
		read, _ := x.rule.SketchOf(all[id].Source)
		if (read == nil) != (sent == nil) || read != nil && read.Text != sent.Text {
			t.Errorf("%q is read as %s, another text than %s", id, all[id].Source, document)
		}
	}
	return all
}

func (x *shelf) testScan(t *testing.T) {
	index := x.Prefix + "scan"
	x.Make(t, index)
	x.scan(t, index, nil)
	want := x.fill(t, index, 20)
	x.scan(t, index, want)
	own := errors.New("of yield's")
	for yielded, want := range map[error]error{own: own, adapters.ErrEnough: nil} {
		pages := 0
		err := x.store.Scan(t.Context(), index, x.rule, adapters.Selection{}, func(adapters.Page) error { pages++; return yielded })
		if !errors.Is(err, want) || pages != 1 {
			t.Errorf("an error of yield's, %q: %v after %d pages", yielded, err, pages)
		}
	}
	if err := x.store.Scan(t.Context(), x.Prefix+"none", x.rule, adapters.Selection{}, func(adapters.Page) error { return nil }); err == nil {
		t.Error("no error for an index that is not there")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := x.store.Scan(ended, index, x.rule, adapters.Selection{}, func(adapters.Page) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a scan that is called off: %v", err)
	}
}

// patches returns a patch for each document whose sketch is not its text's, by id.
func (x *shelf) patches(t *testing.T, index string, want map[string]string) (list []adapters.Stored) {
	t.Helper()
	for _, d := range x.scan(t, index, want) {
		if computed, stored := x.rule.SketchOf(d.Source); computed != nil && (stored == nil || stored.Text != computed.Text) {
			list = append(list, d.With(rule.Ours{Sketch: computed.Text}))
		}
	}
	slices.SortFunc(list, func(a, b adapters.Stored) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// patch patches, and holds the results to what is expected of those named and to Patched else. A document that is gone may as
// well count as changed, since not every engine tells; and one that changed as patched, where its new text is what was then
// sketched.
func (x *shelf) patch(t *testing.T, index string, patches []adapters.Stored, but map[string]adapters.Result) {
	t.Helper()
	results, err := x.store.Patch(t.Context(), index, x.rule, patches)
	if err != nil || len(results) != len(patches) {
		t.Fatalf("%d results for %d patches: %v", len(results), len(patches), err)
	}
	for i, p := range patches {
		got, want := results[i], but[p.ID] // Patched is the first
		as := want == adapters.Gone && got == adapters.Changed || want == adapters.Changed && got == adapters.Patched
		if got != want && !as {
			t.Errorf("patching %q ends in %d, not %d", p.ID, results[i], but[p.ID])
		}
	}
}

func (x *shelf) testPatch(t *testing.T) {
	index := x.prepared(t, "patch")
	want := x.fill(t, index, 20)
	before := map[string]string{}
	for id := range want {
		before[id] = x.Get(t, index, id)
	}
	x.patch(t, index, nil, nil)
	patches := x.patches(t, index, want)
	if len(patches) != len(want) {
		t.Fatalf("%d of %d documents lack a sketch", len(patches), len(want))
	}
	unwanted := slices.Clone(patches)
	unwanted[len(unwanted)-1].Wanted = nil
	if _, err := x.store.Patch(t.Context(), index, x.rule, unwanted); !errors.Is(err, adapters.ErrUnwanted) {
		t.Errorf("a document without Wanted: %v", err)
	}
	x.patch(t, index, patches, nil)                       // each of them: nothing was written
	if left := x.patches(t, index, want); len(left) > 0 { // all have a text
		t.Errorf("%d documents still lack their sketch, such as %q", len(left), left[0].ID)
	}
	for id := range want {
		if diff := gocmp.Diff(before[id], bare(x.Get(t, index, id))); diff != "" {
			t.Errorf("%q changed but for our field: %s", id, diff)
		}
	}
	x.testClear(t, index, want)
}

// testClear clears the sketches of documents that have lost their text.
func (x *shelf) testClear(t *testing.T, index string, want map[string]string) {
	t.Helper()
	const wordless = `{"title":"?!","body":"","n":1`
	for _, id := range x.IDs {
		old, _ := x.rule.SketchOf([]byte(want[id]))
		x.Put(t, index, id, wordless+`,"`+rule.SketchField+`":"`+old.Text+`"}`)
		want[id] = wordless + "}"
	}
	var clear []adapters.Stored
	for _, d := range x.scan(t, index, want) {
		if computed, _ := x.rule.SketchOf(d.Source); computed == nil {
			clear = append(clear, d.With(rule.Ours{}))
		}
	}
	if len(clear) != len(x.IDs) {
		t.Fatalf("%d documents have no text, not %d", len(clear), len(x.IDs))
	}
	x.patch(t, index, clear, nil)
	for id, d := range x.scan(t, index, want) {
		if computed, _ := x.rule.SketchOf(d.Source); computed == nil && rule.HasSketch(d.Source) {
			t.Errorf("%q is not cleared: %s", id, d.Source)
		}
	}
}

// testGivesWay patches documents that changed, or went, since they were read.
func (x *shelf) testGivesWay(t *testing.T) {
	index := x.prepared(t, "way")
	want := x.fill(t, index, 12)
	patches := x.patches(t, index, want)
	const other = `{"title":"another text","body":"by another","n":7}`
	sketched, _ := x.rule.SketchOf([]byte(other))
	own := expect.Value(rule.WithOurs([]byte(other), rule.Ours{Sketch: sketched.Text}))(t)
	but := map[string]adapters.Result{}
	for i := range 4 {
		bare, sketched, gone := fmt.Sprint("d", 3*i), fmt.Sprint("d", 3*i+1), fmt.Sprint("d", 3*i+2)
		x.Put(t, index, bare, other)
		x.Put(t, index, sketched, string(own))
		x.Drop(t, index, gone)
		but[bare], but[sketched], but[gone] = adapters.Changed, adapters.Changed, adapters.Gone
		want[bare], want[sketched] = other, other
		delete(want, gone)
	}
	x.patch(t, index, patches, but)
	x.rightOrAbsent(t, index, want)
}

// rightOrAbsent holds every document to the sketch of its text, or none.
func (x *shelf) rightOrAbsent(t *testing.T, index string, want map[string]string) {
	t.Helper()
	for id, d := range x.scan(t, index, want) {
		if computed, stored := x.rule.SketchOf(d.Source); stored != nil && (computed == nil || stored.Text != computed.Text) {
			t.Errorf("%q carries a sketch of another text: %s", id, d.Source)
		}
	}
}

// testPatchedAtOnce patches while another writes the same documents.
func (x *shelf) testPatchedAtOnce(t *testing.T) {
	index := x.prepared(t, "race")
	want := x.fill(t, index, 30)
	patches := x.patches(t, index, want)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	done, patching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(patching)
		for {
			if _, err := x.store.Patch(t.Context(), index, x.rule, patches); err != nil {
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	for i := range 40 {
		id := fmt.Sprint("d", random.IntN(30))
		want[id] = fmt.Sprintf(`{"title":"version %d of it","body":"by another","n":%d}`, i, i)
		x.Put(t, index, id, want[id])
	}
	close(done)
	<-patching
	x.rightOrAbsent(t, index, want)
}
