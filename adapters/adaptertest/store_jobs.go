package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/rule"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// StoreJobs is what a subject offers to jobs beyond the port.
type StoreJobs struct {
	// Open returns a store that knows the rules.
	Open func(t *testing.T, rules rule.Rules) adapters.JobStore
	// Wide makes an index like Make's, in several shares if the engine has such.
	Wide func(t *testing.T, name string)
	// Query selects, in the engine's words, the documents with n below 5.
	Query string
	// NoAfter says that a scan can't go on behind a page, but begin anew alone.
	NoAfter bool
}

// TestStoreJobs holds the subject to what the contract of a Store says of jobs.
func TestStoreJobs(t *testing.T, s StoreSubject, j StoreJobs) {
	r := *Rules(t)[0]
	r.Match, r.Clusters, r.OnDuplicate = "*", true, rule.TagDuplicates
	r.Bands, r.Rows = rule.ChooseBands(r.Sketcher.Scheme().Positions, r.Profile.Threshold)
	store := j.Open(t, rule.Rules{&r})
	x := &benchOfJobs{shelf{StoreSubject: s, store: store, rule: &r}, j, store}
	t.Run("parts", x.testParts)
	t.Run("selections", x.testSelections)
	t.Run("all of ours", x.testAllOfOurs)
	t.Run("journal", x.testJournal)
	t.Run("removed", x.testRemoved)
	t.Run("deleted and put back", x.testDeleted)
	t.Run("a field set and taken out", x.testSetField)
}

type benchOfJobs struct {
	shelf
	StoreJobs
	jobs adapters.JobStore
}

// wide makes an index, prepared.
func (x *benchOfJobs) wide(t *testing.T, name string) string {
	t.Helper()
	name = x.Prefix + name
	x.Wide(t, name)
	if list, err := x.store.Prepare(t.Context(), name, false); err != nil || len(list) != 1 || !list[0].Ready {
		t.Fatalf("prepare %s: %+v, %v", name, list, err)
	}
	return name
}

// read returns the documents of a selection by their ids, and where the reading goes on.
func (x *benchOfJobs) read(t *testing.T, index string, s adapters.Selection) (all map[string]adapters.Stored, after string) {
	t.Helper()
	all, after = map[string]adapters.Stored{}, s.After
	err := x.store.Scan(t.Context(), index, x.rule, s, func(p adapters.Page) error {
		for _, d := range p.Documents {
			if _, twice := all[d.ID]; twice {
				t.Errorf("%+v: %q comes twice", s, d.ID)
			}
			all[d.ID] = d
		}
		after = p.After
		return nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return all, after
}

func ids[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }

// testParts reads an index in parts, as a whole, and broken off after each page; and what comes later.
func (x *benchOfJobs) testParts(t *testing.T) {
	index := x.wide(t, "parts")
	x.inParts(t, index, 3, nil)
	want := x.fill(t, index, 140)
	for i := range 20 { // so that numbers have gaps
		id := fmt.Sprint("d", 6*i)
		x.Put(t, index, id, want[id])
	}
	for _, id := range []string{"d1", "d2", "d100"} {
		x.Drop(t, index, id)
		delete(want, id)
	}
	x.settle(t, index)
	for _, n := range []int{1, 2, 7} {
		x.inParts(t, index, n, want)
	}
	if x.NoAfter {
		return
	}
	names, few, err := x.jobs.Split(t.Context(), index, x.Query, 3)
	if selected, _ := x.read(t, index, adapters.Selection{Query: x.Query}); err != nil || few != len(selected) || few == 0 {
		t.Errorf("split of the documents that a query lets through: %q, %d of %d, %v", names, few, len(selected), err)
	}
	if names, _, err = x.jobs.Split(t.Context(), index, "", 3); err != nil {
		t.Fatal(err)
	}
	x.resumed(t, index, "", want)
	for _, name := range names {
		whole, _ := x.read(t, index, adapters.Selection{Part: name})
		part := map[string]string{}
		for id := range whole {
			part[id] = want[id]
		}
		x.resumed(t, index, name, part)
	}
	last := names[len(names)-1]
	_, after := x.read(t, index, adapters.Selection{Part: last})
	later := map[string]string{"d3": `{"title":"later","body":"one","n":1}`, "new": `{"title":"later","body":"two","n":2}`}
	for id, document := range later {
		x.Put(t, index, id, document)
	}
	x.settle(t, index)
	if found, _ := x.read(t, index, adapters.Selection{Part: last, After: after}); !slices.Equal(ids(found), ids(later)) {
		t.Errorf("behind %s of %s stand %q, not %q", after, last, ids(found), ids(later))
	}
}

func (x *benchOfJobs) settle(t *testing.T, index string) {
	if x.Settle != nil {
		x.Settle(t, index)
	}
}

// inParts reads the parts of an index.
func (x *benchOfJobs) inParts(t *testing.T, index string, n int, want map[string]string) {
	t.Helper()
	names, documents, err := x.jobs.Split(t.Context(), index, "", n)
	if err != nil || len(names) == 0 || documents != len(want) {
		t.Fatalf("split into %d: %q, %d documents, %v", n, names, documents, err)
	}
	if n > 1 && len(want) > 100 && len(names) < 2 {
		t.Errorf("%d documents are split into %q, not %d", len(want), names, n)
	}
	all := map[string]string{}
	for _, name := range names {
		part, _ := x.read(t, index, adapters.Selection{Part: name})
		for id := range part {
			if other, twice := all[id]; twice {
				t.Errorf("%q stands in the parts %s and %s", id, other, name)
			}
			all[id] = name
		}
	}
	if !slices.Equal(ids(all), ids(want)) {
		t.Errorf("the parts %q hold %d documents, not %d", names, len(all), len(want))
	}
}

// resumed reads a part, a page at a time.
func (x *benchOfJobs) resumed(t *testing.T, index, part string, want map[string]string) {
	t.Helper()
	all, after := map[string]bool{}, ""
	for more := true; more; {
		more = false
		s := adapters.Selection{Part: part, After: after}
		err := x.store.Scan(t.Context(), index, x.rule, s, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if all[d.ID] {
					t.Errorf("%+v: %q comes twice", s, d.ID)
				}
				all[d.ID] = true
			}
			after, more = p.After, len(p.Documents) > 0
			return adapters.ErrEnough
		})
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
	}
	if !slices.Equal(ids(all), ids(want)) {
		t.Errorf("page by page, part %q holds %d documents, not %d", part, len(all), len(want))
	}
}

// sketched stores documents with our fields as they are to be, and returns them by id with the fields.
func (x *benchOfJobs) sketched(t *testing.T, index string, n int) map[string]rule.Ours {
	t.Helper()
	all := map[string]rule.Ours{}
	for i := range n {
		id := fmt.Sprint("d", i)
		text := fmt.Sprintf(`{"title":"title %d","body":"%d words of many %d %d","n":%d}`, i, i*i, i*7, i*31, i)
		all[id], _ = x.rule.OursFor([]byte(text), "0")
		document := expect.Value(rule.WithOurs([]byte(text), all[id]))(t)
		x.Put(t, index, id, string(document))
	}
	return all
}

// testSelections reads what is selected in each way there is.
func (x *benchOfJobs) testSelections(t *testing.T) {
	index := x.wide(t, "selections")
	full := x.sketched(t, index, 30)
	x.Put(t, index, "bare", `{"title":"bare","body":"text","n":100}`)
	x.Put(t, index, "half", `{"title":"half","body":"text","n":3,"`+rule.ClusterField+`":"abc"}`)
	x.settle(t, index)
	everything := append(ids(full), "bare", "half")
	slices.Sort(everything)
	bands := slices.Concat(full["d3"].Bands[:1], full["d17"].Bands[2:3], []int64{1})
	for _, c := range []struct {
		what string
		s    adapters.Selection
		want []string
	}{
		{"query", adapters.Selection{Query: x.Query}, []string{"d0", "d1", "d2", "d3", "d4", "half"}},
		{"ids", adapters.Selection{IDs: []string{"d7", "none", "bare"}}, []string{"bare", "d7"}},
		{"no ids", adapters.Selection{IDs: []string{}}, nil},
		{"ids in brief", adapters.Selection{IDs: []string{"d7", "none", "bare"}, Brief: true}, []string{"bare", "d7"}},
		{"bands", adapters.Selection{Bands: bands, Brief: true, Limit: 100}, []string{"d17", "d3"}},
		{"bands of none", adapters.Selection{Bands: []int64{1}, Limit: 100}, nil},
		{"bands without a limit", adapters.Selection{Bands: bands}, []string{"d17", "d3"}},
		{"bands in brief without a limit", adapters.Selection{Bands: bands, Brief: true}, []string{"d17", "d3"}},
		{"bands up to a high limit", adapters.Selection{Bands: bands, Brief: true, Limit: 50000}, []string{"d17", "d3"}},
		{"a query by chance", adapters.Selection{Query: x.Query, Random: true, Limit: 50000, Brief: true}, []string{"d0", "d1", "d2", "d3", "d4", "half"}},
		{"all in brief", adapters.Selection{Brief: true}, everything},
		{"all by chance", adapters.Selection{Random: true, Limit: 1000}, everything},
	} {
		got, _ := x.read(t, index, c.s)
		if !slices.Equal(ids(got), c.want) {
			t.Errorf("%s: %q, not %q", c.what, ids(got), c.want)
		}
		for id, d := range got {
			if o := rule.OursOf(d.Source); full[id].Sketch != "" && !o.Equal(full[id]) {
				t.Errorf("%s: %q holds %+v, not %+v", c.what, id, o, full[id])
			}
			members, err := jsonedit.Members(d.Source)
			if text := jsonedit.Get(members, "body"); err != nil || (text == nil) != c.s.Brief {
				t.Errorf("%s: %q comes as %s: %v", c.what, id, d.Source, err)
			}
		}
	}
	for what, s := range map[string]adapters.Selection{
		"limit": {Limit: 5}, "limit by chance": {Limit: 5, Random: true}, "limited ids": {IDs: everything, Limit: 5},
	} {
		if got, _ := x.read(t, index, s); len(got) != 5 {
			t.Errorf("%s: %d documents", what, len(got))
		}
	}
	if marked, _ := x.read(t, index, adapters.Selection{Marked: true}); len(marked) < len(full)+1 || marked["half"].ID == "" {
		t.Errorf("marked are %q", ids(marked))
	}
	shown, _ := x.read(t, index, adapters.Selection{Brief: true, Fields: []string{"n"}, IDs: []string{"bare"}})
	if members, err := jsonedit.Members(shown["bare"].Source); err != nil || string(jsonedit.Get(members, "n")) != "100" {
		t.Errorf("with n, in brief: %s, %v", shown["bare"].Source, err)
	}
}

// testAllOfOurs patches documents to what the rule wants, changes that, and takes all of it out again.
func (x *benchOfJobs) testAllOfOurs(t *testing.T) {
	index := x.wide(t, "ours")
	want := x.fill(t, index, 30)
	before := map[string]string{}
	for id := range want {
		before[id] = x.Get(t, index, id)
	}
	x.settle(t, index)
	step := func(what string, ours func(adapters.Stored) rule.Ours) {
		t.Helper()
		all, _ := x.read(t, index, adapters.Selection{})
		wanted := map[string]rule.Ours{}
		var patches []adapters.Stored
		for id, d := range all {
			wanted[id] = ours(d)
			patches = append(patches, d.With(wanted[id]))
		}
		x.patch(t, index, patches, nil)
		for id := range want {
			document := x.Get(t, index, id)
			if got := rule.OursOf([]byte(document)); !got.Equal(wanted[id]) {
				t.Errorf("%s: %q holds %+v, not %+v", what, id, got, wanted[id])
			}
			if diff := gocmp.Diff(decoded(t, before[id]), decoded(t, bare(document))); diff != "" {
				t.Errorf("%s: %q changed but for our fields: %s", what, id, diff)
			}
		}
		x.settle(t, index)
	}
	step("as wanted", func(d adapters.Stored) rule.Ours {
		o, _ := x.rule.OursFor(d.Source, "7")
		return o
	})
	all, _ := x.read(t, index, adapters.Selection{})
	for id, d := range all {
		if _, right := x.rule.OursFor(d.Source, "7"); !right {
			t.Errorf("%q is not right: %s", id, d.Source)
		}
	}
	step("another cluster", func(d adapters.Stored) rule.Ours {
		o := rule.OursOf(d.Source)
		o.Cluster = x.rule.ClusterID(99)
		return o
	})
	step("nothing", func(adapters.Stored) rule.Ours { return rule.Ours{} })
	for id := range want {
		if document := x.Get(t, index, id); rule.HasOurs([]byte(document)) {
			t.Errorf("something of ours is left in %q: %s", id, document)
		}
	}
}

func decoded(t *testing.T, document string) (v any) {
	t.Helper()
	expect.OK(t, json.Unmarshal([]byte(document), &v))
	return v
}

// testJournal has many append at once: of those under one number one succeeds, and its entry stands.
func (x *benchOfJobs) testJournal(t *testing.T) {
	ctx := t.Context()
	job, other := fmt.Sprintf("%sjob a/b:*`+ && x:=[1] %d", x.Prefix, time.Now().UnixNano()), x.Prefix+"other job"
	t.Cleanup(func() {
		for _, name := range []string{job, other} {
			_ = x.jobs.Journal().Drop(context.Background(), name, -1, 0)
		}
	})
	if list, err := x.jobs.Journal().Entries(ctx, job); err != nil || len(list) > 0 {
		t.Fatalf("before: %v, %v", list, err)
	}
	var want []adapters.Entry
	for slot := range 3 {
		for number := range 4 {
			want = append(want, adapters.Entry{Job: job, Slot: slot << 29, Number: number})
		}
	}
	won := make([]atomic.Int32, len(want))
	var by sync.Map
	var all sync.WaitGroup
	for worker := range 8 {
		journal := x.jobs.Journal()
		all.Go(func() {
			for i := range want {
				e := want[(i+worker)%len(want)]
				e.Data = fmt.Appendf(nil, `{"worker":%d}`+"\x00\xff", worker)
				ok, err := journal.Append(ctx, job, e)
				if err != nil {
					t.Error(err)
				}
				if ok {
					won[(i+worker)%len(want)].Add(1)
					by.Store((i+worker)%len(want), e.Data)
				}
			}
		})
	}
	all.Wait()
	for i := range want {
		data, _ := by.Load(i)
		if won[i].Load() != 1 || data == nil {
			t.Fatalf("entry %d was appended %d times", i, won[i].Load())
		}
		want[i].Data = data.([]byte)
	}
	journal := x.jobs.Journal()
	if ok, err := journal.Append(ctx, other, adapters.Entry{Slot: 1, Number: math.MaxInt32, Data: []byte("x")}); !ok || err != nil {
		t.Error(ok, err)
	}
	entries := func(what, job string, want []adapters.Entry) {
		t.Helper()
		got, err := journal.Entries(ctx, job)
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	entries("all", job, want)
	every, err := journal.Entries(ctx, "")
	if has := func(e adapters.Entry) bool { return e.Job == other }; err != nil || !slices.ContainsFunc(every, has) {
		t.Errorf("the other job is not among all: %v", err)
	}
	for number, after := range [][]adapters.Entry{want[4:8], want[5:8], want[6:8], want[7:8], nil} {
		if got, err := journal.Since(ctx, job, 1<<29, number); err != nil || !gocmp.Equal(after, got) {
			t.Errorf("since %d: %v %s", number, err, gocmp.Diff(after, got))
		}
	}
	if err := journal.Drop(ctx, job, 1<<29, 2); err != nil {
		t.Error(err)
	}
	entries("without two", job, slices.Concat(want[:4], want[6:]))
	if err := journal.Drop(ctx, job, -1, 0); err != nil {
		t.Error(err)
	}
	entries("dropped", job, nil)
	entries("the other's", other, []adapters.Entry{{Job: other, Slot: 1, Number: math.MaxInt32, Data: []byte("x")}})
}

// testRemoved takes the declarations out, twice.
func (x *benchOfJobs) testRemoved(t *testing.T) {
	index := x.prepared(t, "removed")
	for range 2 {
		note := expect.Value(x.jobs.Remove(t.Context(), index))(t)
		list, err := x.store.Resolve(t.Context(), index)
		if err != nil || len(list) != 1 || list[0].Ready && note == "" {
			t.Errorf("%+v is left, %v, and %q is said of it", list, err, note)
		}
	}
}
