package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// shelf is a store of one index in memory. at, if not nil, is called before each request takes effect.
type shelf struct {
	adapters.EngineStore
	mu       sync.Mutex
	sources  map[string]string
	versions map[string]int
	lossless error
	identity string // empty for "one"
	// takesBack is what becomes of documents that are put back.
	takesBack adapters.Result
	at        func()
}

func newShelf(sources map[string]string) *shelf {
	return &shelf{sources: sources, versions: map[string]int{}}
}

func (s *shelf) begin() {
	if s.at != nil {
		s.at()
	}
	s.mu.Lock()
}

// put stores a document, or deletes it where the source is empty.
func (s *shelf) put(id, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(id, source)
}

func (s *shelf) set(id, source string) {
	s.versions[id]++
	if s.sources[id] = source; source == "" {
		delete(s.sources, id)
	}
}

func (s *shelf) Identity(context.Context, string) (string, error) {
	return cmp.Or(s.identity, "one"), nil
}
func (s *shelf) Release(context.Context, string)                {}
func (s *shelf) Lossless(context.Context, string, string) error { return s.lossless }

func (s *shelf) Flag(_ context.Context, _, field string) (bool, error) { return field == "aside", nil }

// Prove deletes a document and creates it again, or writes it again.
func (s *shelf) Prove(ctx context.Context, index, field string, d adapters.Stored, keep func(adapters.Stored) error) (adapters.Result, error) {
	list := []adapters.Stored{d}
	if field != "" {
		results, err := s.each(list, func(_ int, d adapters.Stored) string { return string(d.Source) })
		return results[0], err
	}
	if results, err := s.Delete(ctx, index, list, keep); err != nil || results[0] != adapters.Patched {
		return results[0], err
	}
	results, err := s.Create(ctx, index, "one", list)
	if results[0] == adapters.Refused {
		err = errors.New("it is not taken back")
	}
	return results[0], err
}

func (s *shelf) Scan(_ context.Context, _ string, _ *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	if sel.IDs == nil {
		return errors.New("the whole index is read")
	}
	s.begin()
	var p adapters.Page
	for _, id := range sel.IDs {
		if source, there := s.sources[id]; there {
			p.Documents = append(p.Documents, adapters.Stored{ID: id, Source: []byte(source), Version: s.versions[id]})
		}
	}
	s.mu.Unlock()
	return yield(p)
}

// each changes documents that are in the version in which they were read.
func (s *shelf) each(list []adapters.Stored, change func(i int, d adapters.Stored) string) (results []adapters.Result, err error) {
	s.begin()
	defer s.mu.Unlock()
	for i, d := range list {
		if s.versions[d.ID] != d.Version {
			results = append(results, adapters.Changed)
			continue
		}
		s.set(d.ID, change(i, d))
		results = append(results, adapters.Patched)
	}
	return results, nil
}

func (s *shelf) Delete(_ context.Context, _ string, list []adapters.Stored, _ func(adapters.Stored) error) ([]adapters.Result, error) {
	return s.each(list, func(int, adapters.Stored) string { return "" })
}

func (s *shelf) SetField(_ context.Context, _, field string, list []adapters.Stored, values [][]byte) ([]adapters.Result, error) {
	return s.each(list, func(i int, d adapters.Stored) string {
		source, _ := jsonedit.Cut(d.Source, func(key string) bool { return key == field })
		if values[i] != nil {
			source, _ = jsonedit.Set(d.Source, field, values[i])
		}
		return string(source)
	})
}

func (s *shelf) Create(_ context.Context, _, identity string, list []adapters.Stored) (results []adapters.Result, err error) {
	s.begin()
	defer s.mu.Unlock()
	if identity != "one" {
		return nil, adapters.ErrRecreated
	}
	for _, d := range list {
		if s.takesBack != adapters.Patched {
			results = append(results, s.takesBack)
			continue
		}
		if _, there := s.sources[d.ID]; there {
			results = append(results, adapters.Changed)
			continue
		}
		s.set(d.ID, string(d.Source))
		results = append(results, adapters.Patched)
	}
	return results, nil
}

func testRule(t *testing.T) *rule.Rule {
	t.Helper()
	return &rule.Rule{
		Match: "news", Fields: []string{"text"}, Profile: rerank.Default(), Window: 100, Compute: true, DateField: "day",
		Sketcher: expect.Value(sketch.New(sketch.DefaultScheme()))(t),
	}
}

// prose returns a text of its own for a number, with so many words changed.
func prose(number, changed int) string {
	r := rand.New(rand.NewPCG(uint64(number), 1))
	words := make([]string, 120)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", r.IntN(100000))
	}
	for i := range changed {
		words[i*7] = fmt.Sprint("other", number, "x", changed, "y", i)
	}
	return strings.Join(words, " ")
}

// found makes the plan of what is on a shelf.
func found(t *testing.T, s *shelf, o Options, name string) (Plan, []Group) {
	t.Helper()
	r := testRule(t)
	corpus := expect.Value(cluster.New(cluster.Options{Rule: r}))(t)
	defer corpus.Close()
	for id, source := range s.sources {
		computed, _ := r.SketchOf([]byte(source))
		d := cluster.Document{ID: id, Host: "h" + id[:1]}
		if computed != nil {
			d.Sketch = &computed.Sketch
		}
		expect.OK(t, corpus.Add(d))
	}
	expect.OK(t, corpus.Cluster(t.Context()))
	_, keep, err := o.Choice(r)
	expect.OK(t, err)
	var groups []Group
	p, err := WritePlan(name, Plan{Engine: "e", Index: "news", Identity: "one", Keep: keep, Hide: o.Hide, Threshold: r.Profile.Threshold}, func(yield func(Group) error) (Counts, error) {
		return Find(t.Context(), corpus, jobs.Job{Store: s, Index: "news", Rule: r}, o, func(g Group) error {
			groups = append(groups, g)
			return yield(g)
		})
	})
	expect.OK(t, err)
	return p, groups
}

func document(id, day, text string) string {
	return fmt.Sprintf(`{"id":%q,"day":%q,"text":%q}`, id, day, text)
}

func ids(g Group) (list []string) {
	for _, m := range g.Goes {
		list = append(list, m.ID)
	}
	slices.Sort(list)
	return list
}

// TestFind chooses what stays, and lets nothing go that is no near-duplicate of it: a chain, a hidden document, and two that a person told apart.
func TestFind(t *testing.T) {
	sources := map[string]string{
		"a1": document("a1", "2024-01-01", prose(1, 0)), "a2": document("a2", "2024-03-01", prose(1, 0)), "a3": document("a3", "no day", prose(1, 0)+" and more"),
		"b1": document("b1", "2024-01-01", prose(2, 0)), "b2": document("b2", "2024-01-01", prose(2, 0)), "c": document("c", "", prose(3, 0)),
	}
	words := strings.Fields(prose(4, 0))
	for i := range 5 { // each is like the next, and unlike the last
		sources[fmt.Sprint("l", i)] = document(fmt.Sprint("l", i), "", strings.Join(words[i*12:], " ")+" "+strings.Join(strings.Fields(prose(5, 0))[:i*12], " "))
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	for _, c := range []struct {
		keep, stays, why string
		goes             []string
	}{
		{"newest", "a2", "newest (day 2024-03-01)", []string{"a1"}}, // a3 has no date that can be read: it stays
		{"oldest", "a1", "oldest (day 2024-01-01)", []string{"a2"}},
		{"longest", "a3", "longest (", []string{"a1", "a2"}},
		{"first", "a1", "first by id", []string{"a2", "a3"}},
		{"", "a2", "newest (day 2024-03-01)", []string{"a1"}},
	} {
		p, groups := found(t, newShelf(sources), Options{Keep: c.keep}, plan)
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Stays.ID[0] == 'a' })
		if g := groups[i]; g.Stays.ID != c.stays || !strings.HasPrefix(g.Why, c.why) || !slices.Equal(ids(g), c.goes) {
			t.Errorf("%q: %+v", c.keep, g)
		}
		goes, stay := 0, 0
		for _, g := range groups {
			goes, stay = goes+len(g.Goes), stay+1
			for _, m := range g.Goes {
				if m.Agreement < 0.64 {
					t.Errorf("%s goes, and agrees with %s by %v", m.ID, g.Stays.ID, m.Agreement)
				}
			}
		}
		read, n, _, err := OpenPlan(plan)
		expect.OK(t, err)
		expect.Same(t, p, read, "the plan that was written")
		expect.Same(t, [3]int{goes, goes, stay}, [3]int{n, p.Counts.Go, p.Counts.Stay}, "counts")
		if p.Counts.Clusters != 3 || p.Counts.Documents != 11 || p.Counts.Go+p.Counts.Stay+p.Counts.Others+p.Counts.Unranked != 10 || stay < 2 {
			t.Errorf("%+v", p.Counts)
		}
	}
	sources["b2"] = strings.Replace(sources["b2"], "{", `{"aside":true,`, 1)
	p, groups := found(t, newShelf(sources), Options{Hide: "aside"}, plan)
	if p.Counts.Hidden != 1 || slices.ContainsFunc(groups, func(g Group) bool { return g.Stays.ID[0] == 'b' }) {
		t.Errorf("a hidden document: %+v", p.Counts)
	}
}

// TestDecisionsAreObeyed: what a person told apart does not go because of each other.
func TestDecisionsAreObeyed(t *testing.T) {
	sources := map[string]string{"a1": document("a1", "", prose(1, 0)), "a2": document("a2", "", prose(1, 0)), "a3": document("a3", "", prose(1, 0))}
	r := testRule(t)
	text, _ := r.SketchOf([]byte(sources["a1"]))
	set := decided.NewSet([]decided.Pair{{Index: "news", A: "a1", B: "a2", Verdict: decided.Different, TextA: text.Fingerprint, TextB: text.Fingerprint}})
	_, groups := found(t, newShelf(sources), Options{Keep: First, PairIndex: "news", Decided: set}, filepath.Join(t.TempDir(), "plan.json"))
	if len(groups) != 1 || groups[0].Stays.ID != "a1" || !slices.Equal(ids(groups[0]), []string{"a3"}) {
		t.Errorf("%+v", groups)
	}
}

// errKilled ends a run at once, as kill -9 does.
var errKilled = errors.New("killed")

// applied carries a plan out, and reports whether it was killed.
func applied(t *testing.T, s *shelf, plan, undo string) (a Applied, killed bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			if r != errKilled { //nolint:errorlint // it is the very same
				panic(r)
			}
			killed = true
		}
	}()
	a, err := Apply(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, Order{Plan: plan, Undo: undo})
	expect.OK(t, err)
	return a, false
}

// TestNothingIsLost carries plans out while others change and delete documents, and kills the run now and then. Whatever others wrote last is on the shelf, or
// in the undo file, from which it comes back as it was.
func TestNothingIsLost(t *testing.T) {
	for range effort.Rounds(300) {
		seed := uint64(time.Now().UnixNano())
		r := rand.New(rand.NewPCG(seed, 0))
		hide := []string{"", "aside"}[r.IntN(2)]
		sources := map[string]string{}
		for i := range 250 {
			id := fmt.Sprint("d", i)
			sources[id] = document(id, "", prose(r.IntN(60), r.IntN(3)))
			if hide != "" && r.IntN(5) == 0 {
				sources[id] = strings.Replace(sources[id], "{", `{"aside":false,`, 1)
			}
			if r.IntN(5) == 0 {
				sources[id] = strings.ReplaceAll(sources[id], ",", " ,\n\t")
			}
		}
		last := map[string]string{} // what others wrote, empty for deleted
		for id, source := range sources {
			last[id] = source
		}
		s := newShelf(sources)
		dir := t.TempDir()
		plan, undo := filepath.Join(dir, "plan.json"), filepath.Join(dir, "undo.jsonl")
		p, groups := found(t, s, Options{Keep: First, Hide: hide}, plan)
		touched := map[string]bool{}
		kills := r.IntN(4)
		s.at = func() {
			for range r.IntN(3) {
				id := fmt.Sprint("d", r.IntN(250))
				touched[id] = true
				if last[id] = ""; r.IntN(2) == 0 {
					last[id] = document(id, "", prose(r.IntN(60), r.IntN(3)))
				}
				s.put(id, last[id])
			}
			if kills > 0 && r.IntN(4) == 0 {
				kills--
				panic(errKilled)
			}
		}
		a, killed := applied(t, s, plan, undo)
		for killed {
			if file, err := os.OpenFile(undo, os.O_APPEND|os.O_WRONLY, 0); err == nil && r.IntN(2) == 0 { // a batch that was not written to its end
				_, _ = file.WriteString(`{"id":"d1","source":{"te`)
				_ = file.Close()
			}
			runtime.GC() // closes the file of the killed run, as its end would
			runtime.GC()
			a, killed = applied(t, s, plan, undo)
		}
		if a.All() != p.Counts.Go {
			t.Fatalf("seed %d: %+v of %d", seed, a, p.Counts.Go)
		}
		s.at = nil
		kept := map[string]string{}
		expect.OK(t, ReadUndo(undo, func(Undo) error { return nil }, func(_ int, d adapters.Stored) error { kept[d.ID] = string(d.Source); return nil }))
		for id, source := range last {
			if is := s.sources[id]; source != "" && is != source && kept[id] != source {
				t.Fatalf("seed %d: %s is lost: it was %s, is %q, and was kept as %q", seed, id, source, is, kept[id])
			}
		}
		for _, g := range groups {
			if touched[g.Stays.ID] {
				continue
			}
			if s.sources[g.Stays.ID] != last[g.Stays.ID] {
				t.Fatalf("seed %d: %s went, which was to stay", seed, g.Stays.ID)
			}
			for _, m := range g.Goes {
				hidden := string(memberOf([]byte(s.sources[m.ID]), "aside")) == "true"
				if _, there := s.sources[m.ID]; !touched[m.ID] && there && !hidden {
					t.Fatalf("seed %d: %s did not go", seed, m.ID)
				}
			}
		}
		for range 2 {
			_, err := Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, undo, nil)
			expect.OK(t, err)
			for id, source := range last {
				if source != "" && s.sources[id] != source {
					t.Fatalf("seed %d: %s comes back as %q, and was %s", seed, id, s.sources[id], source)
				}
			}
		}
	}
}

// TestTwoPlansAtOnce: of documents that are equal each plan keeps another one. One is left of each text.
func TestTwoPlansAtOnce(t *testing.T) {
	for range effort.Rounds(500) {
		sources := map[string]string{}
		for i := range 60 {
			id := fmt.Sprint("d", i)
			sources[id] = document(id, fmt.Sprintf("2024-01-%02d", 1+i%28), prose(i%20, 0))
		}
		s := newShelf(sources)
		dir := t.TempDir()
		var runs sync.WaitGroup
		for _, keep := range []string{"newest", "oldest"} {
			found(t, s, Options{Keep: keep}, filepath.Join(dir, keep))
		}
		s.at = runtime.Gosched
		for _, keep := range []string{"newest", "oldest"} {
			runs.Go(func() { applied(t, s, filepath.Join(dir, keep), filepath.Join(dir, keep+".undo")) })
		}
		runs.Wait()
		left := map[string]bool{}
		for _, source := range s.sources {
			left[string(memberOf([]byte(source), "text"))] = true
		}
		expect.Must(t, 20, len(left), "texts that are left")
	}
}

// TestApplyRefuses what it can't carry out, before it does anything.
func TestApplyRefuses(t *testing.T) {
	dir := t.TempDir()
	plan, undo := filepath.Join(dir, "plan.json"), filepath.Join(dir, "undo.jsonl")
	s := newShelf(map[string]string{"a": document("a", "", prose(1, 0)), "b": document("b", "", prose(1, 0))})
	found(t, s, Options{Keep: First}, plan)
	whole := string(expect.Value(os.ReadFile(plan))(t))
	apply := func(lossy bool) error {
		_, err := Apply(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, Order{Plan: plan, Undo: undo, Lossy: lossy})
		return err
	}
	for change, want := range map[[2]string]string{
		{`"one"`, `"other"`}:                       "was deleted and created again",
		{`"neardup_plan": 1`, `"neardup_plan": 2`}: "this version reads 1",
		{"]}", ""}:                                     "unexpected EOF",
		{"\n]}", "\n]}{}"}:                             "something follows the end",
		{`"threshold"`, `"former"`}:                    "threshold is missing",
		{`"id":"b"`, `"id":"a"`}:                       "the plan has it in two places",
		{`"index": "news"`, `"index": ""`}:             "is missing",
		{`"keep"`, `"hide": "neardup_sketch", "keep"`}: "--hide",
	} {
		expect.OK(t, os.WriteFile(plan, []byte(strings.Replace(whole, change[0], change[1], 1)), 0o600))
		if err := apply(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, not %q", change, err, want)
		}
	}
	expect.OK(t, os.WriteFile(plan, []byte(whole), 0o600))
	s.lossless = errors.New("no answer")
	if err := apply(true); !errors.Is(err, s.lossless) { // it is not known
		t.Error(err)
	}
	s.lossless = fmt.Errorf("%w: it keeps a part", adapters.ErrLossy)
	if err := apply(false); !errors.Is(err, adapters.ErrLossy) {
		t.Error(err)
	}
	expect.OK(t, os.WriteFile(undo, []byte(`{"neardup_undo":1,"plan":"another"}`+"\n"), 0o600))
	if err := apply(true); err == nil || !strings.Contains(err.Error(), "belongs to another plan") {
		t.Error(err)
	}
	expect.Same(t, 2, len(s.sources), "documents")
	expect.OK(t, os.Remove(undo))
	expect.OK(t, apply(true))
	expect.Same(t, 1, len(s.sources), "documents afterwards")
	open := expect.Value(openUndo(filepath.Join(dir, "other"), Undo{}))(t)
	if _, err := openUndo(filepath.Join(dir, "other"), Undo{}); err == nil || !strings.Contains(err.Error(), "another run uses it") {
		t.Error(err)
	}
	expect.OK(t, open.file.Close())
}

// TestDigest: the same but for form and our fields, and nothing else.
func TestDigest(t *testing.T) {
	is := expect.Value(Digest([]byte(`{"a":1.50,"b":{"c":[1,2],"d":null},"neardup_sketch":"x"}`)))(t)
	for _, same := range []string{`{ "b":{"d":null,"c":[1, 2]},"a":1.50}`, `{"a":1.50,"b":{"c":[1,2],"d":null},"neardup_cluster":"y"}`, `{"a":15e-1,"b":{"c":[1.0,2],"d":null}}`} {
		expect.Same(t, is, expect.Value(Digest([]byte(same)))(t), "%s", same)
	}
	for _, other := range []string{`{"a":1.51,"b":{"c":[1,2],"d":null}}`, `{"a":"3/2","b":{"c":[1,2],"d":null}}`, `{"a":1.50,"b":{"c":[2,1],"d":null}}`, `{"a":1.50,"b":{"c":[1,2]}}`} {
		if is == expect.Value(Digest([]byte(other)))(t) {
			t.Errorf("%s has the same digest", other)
		}
	}
}
