package cleanup

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/rerank"
)

// planned returns a shelf of two copies, of which b goes, with the plan for it.
func planned(t *testing.T, hide string) (s *shelf, o Order) {
	t.Helper()
	dir := t.TempDir()
	o = Order{Plan: filepath.Join(dir, "plan.json"), Undo: filepath.Join(dir, "undo.jsonl")}
	s = newShelf(map[string]string{"a": document("a", "2024-02-01", prose(1, 0)), "b": document("b", "2024-01-01", prose(1, 0))})
	found(t, s, Options{Hide: hide}, o.Plan)
	return s, o
}

func carryOut(t *testing.T, s *shelf, o Order) (Applied, error) {
	t.Helper()
	return Apply(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o)
}

// TestUndoKeepsOtherFiles: a file that is no undo file of the plan stays as it is, with a line end or without.
func TestUndoKeepsOtherFiles(t *testing.T) {
	s, o := planned(t, "")
	for _, text := range []string{"my only notes", "my only notes\n", "{", `{"neardup_undo":1,"engine":"x`} {
		expect.OK(t, os.WriteFile(o.Undo, []byte(text), 0o600))
		_, err := carryOut(t, s, o)
		is := string(expect.Value(os.ReadFile(o.Undo))(t))
		if ours := text == "{"; (err == nil) != ours || !ours && is != text {
			t.Errorf("%q became %q: %v", text, is, err)
		}
		expect.OK(t, os.Remove(o.Undo))
		s, o = planned(t, "")
	}
}

// TestNothingGoesUnproven: where the engine does not take a document back, one alone is touched, and that one is in the undo file.
func TestNothingGoesUnproven(t *testing.T) {
	dir := t.TempDir()
	o := Order{Plan: filepath.Join(dir, "plan.json"), Undo: filepath.Join(dir, "undo.jsonl")}
	sources := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		sources[id] = document(id, "", prose(1, 0))
	}
	s := newShelf(sources)
	found(t, s, Options{Keep: First}, o.Plan)
	s.takesBack = adapters.Refused
	if n, err := carryOut(t, s, o); err == nil || !strings.Contains(err.Error(), "this document is in the undo file") || n.Done > 0 {
		t.Errorf("%+v, %v", n, err)
	}
	expect.Same(t, 4, len(s.sources), "documents that are left")
	s.takesBack = adapters.Patched
	r, err := Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o.Undo, nil)
	expect.OK(t, err)
	expect.Same(t, 1, r.Restored, "documents that are put back")
	expect.Same(t, 5, len(s.sources), "documents")
}

// TestNewestVersionComesBack: of two versions of a document in an undo file the later one is put back.
func TestNewestVersionComesBack(t *testing.T) {
	s, o := planned(t, "")
	_, err := carryOut(t, s, o)
	expect.OK(t, err)
	newer := document("b", "", "what it had become")
	undo := expect.Value(os.OpenFile(o.Undo, os.O_APPEND|os.O_WRONLY, 0))(t)
	_, err = undo.Write(appendUndo(nil, adapters.Stored{ID: "b", Source: []byte(newer)}))
	expect.OK(t, err)
	expect.OK(t, undo.Close())
	_, err = Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o.Undo, nil)
	expect.OK(t, err)
	expect.Same(t, newer, s.sources["b"], "the document")
}

// TestApplyJudgesAgain: by a decision made after the plan, and where somebody has put another document into it.
func TestApplyJudgesAgain(t *testing.T) {
	s, o := planned(t, "")
	text, _ := testRule(t).SketchOf([]byte(s.sources["a"]))
	o.PairIndex = "news"
	o.Decided = decided.NewSet([]decided.Pair{{Index: "news", A: "a", B: "b", Verdict: decided.Different, TextA: text.Fingerprint, TextB: text.Fingerprint}})
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, Applied{Unlike: 1}, n, "after a decision")
	s, o = planned(t, "")
	s.put("c", document("c", "", prose(2, 0)))
	was, digest := string(expect.Value(os.ReadFile(o.Plan))(t)), expect.Value(Digest([]byte(s.sources["c"])))(t)
	from := strings.Index(was, `"goes"`)
	end := from + strings.Index(was[from:], "]")
	expect.OK(t, os.WriteFile(o.Plan, []byte(was[:from]+`"goes":[{"id":"c","digest":"`+digest+`"}`+was[end:]), 0o600))
	n, err = carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, Applied{Unlike: 1}, n, "another document")
}

// TestWholeStaysForExcerpt: by containment an excerpt goes for its whole, never the whole for its excerpt.
func TestWholeStaysForExcerpt(t *testing.T) {
	r := testRule(t)
	r.Profile.Measure, r.Profile.Threshold = rerank.Containment, 0.6
	excerpt, whole := prose(1, 0), prose(1, 0)+" "+prose(2, 0)[:300]
	for newest, goes := range map[string][]string{excerpt: nil, whole: {"0"}} {
		s := newShelf(map[string]string{})
		corpus := expect.Value(cluster.New(cluster.Options{Rule: r}))(t)
		for id, text := range map[string]string{"0": excerpt, "1": whole} {
			s.sources[id] = document(id, map[bool]string{true: "2024-02-01", false: "2024-01-01"}[text == newest], text)
			computed, _ := r.SketchOf([]byte(s.sources[id]))
			expect.OK(t, corpus.Add(cluster.Document{ID: id, Sketch: &computed.Sketch}))
		}
		expect.OK(t, corpus.Cluster(t.Context()))
		var gone []string
		_, err := Find(t.Context(), corpus, jobs.Job{Store: s, Index: "news", Rule: r}, Options{}, func(g Group) error {
			gone = append(gone, ids(g)...)
			return nil
		})
		expect.OK(t, err)
		corpus.Close()
		if !slices.Equal(gone, goes) {
			t.Errorf("%q go, not %q", gone, goes)
		}
	}
}

// TestHideTakesNoFieldOfOthers refuses fields of the rule, fields that are not declared as true or false, and documents that hold something else.
func TestHideTakesNoFieldOfOthers(t *testing.T) {
	s, _ := planned(t, "")
	job := jobs.Job{Index: "news", Rule: testRule(t)}
	for field, want := range map[string]string{"aside": "", "day": "the rule uses", "title": "does not declare", "none": "does not declare"} {
		err := CheckField(t.Context(), s, job, field)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
	s, o := planned(t, "aside")
	s.lossless, o.Lossy = adapters.ErrLossy, true // as of credentials that see only a part
	if _, err := carryOut(t, s, o); !errors.Is(err, adapters.ErrLossy) {
		t.Error(err)
	}
	s.lossless = nil
	s.put("b", strings.Replace(s.sources["b"], "{", `{"aside":"mine",`, 1))
	if _, err := carryOut(t, s, o); err == nil || !strings.Contains(err.Error(), `holds "mine"`) {
		t.Error(err)
	}
}

// TestShownWhateverElseChanged shows documents again that were written since they were hidden, and whose numbers the engine has written in another way.
func TestShownWhateverElseChanged(t *testing.T) {
	s, o := planned(t, "aside")
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, 1, n.Done, "documents that are hidden")
	s.put("b", strings.Replace(s.sources["b"], "{", `{"views":2,`, 1))
	r, err := Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o.Undo, nil)
	expect.OK(t, err)
	if r.Restored != 1 || memberOf([]byte(s.sources["b"]), "aside") != nil || memberOf([]byte(s.sources["b"]), "views") == nil {
		t.Errorf("%+v, %s", r, s.sources["b"])
	}
}

// TestDamagedLine: one line that can't be read does not keep the others from coming back.
func TestDamagedLine(t *testing.T) {
	s, o := planned(t, "")
	_, err := carryOut(t, s, o)
	expect.OK(t, err)
	head, rest, _ := strings.Cut(string(expect.Value(os.ReadFile(o.Undo))(t)), "\n")
	expect.OK(t, os.WriteFile(o.Undo, []byte(head+"\n{\"id\":\"c\",\x00\n"+rest), 0o600))
	r, err := Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o.Undo, nil)
	expect.OK(t, err)
	if r.Restored != 1 || !slices.Equal(r.Damaged, []int{2}) || len(s.sources) != 2 {
		t.Errorf("%+v, %d documents", r, len(s.sources))
	}
}

// TestUndoEndsWithAnError: after a write that failed nothing is appended to a line that may not be whole.
func TestUndoEndsWithAnError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "undo.jsonl")
	u := expect.Value(openUndo(name, Undo{}))(t)
	file := u.file
	u.file = expect.Value(os.Open(name))(t) // takes no writes
	d := adapters.Stored{ID: "a", Source: []byte("{}")}
	if u.add(d) == nil {
		t.Error("a file that takes no writes took one")
	}
	expect.OK(t, u.file.Close())
	if u.file = file; u.add(d) == nil {
		t.Error("it is written after an error")
	}
	expect.OK(t, file.Close())
}

// TestIDsThatCollide: ids can be chosen that have one xxHash64, as these two. A clean-up takes them for two documents, and both come back.
func TestIDsThatCollide(t *testing.T) {
	const victim, chosen = "article-1", "10001h30WokjQGQG"
	expect.Same(t, xxhash.Sum64String(victim), xxhash.Sum64String(chosen), "the hash")
	dir := t.TempDir()
	o := Order{Plan: filepath.Join(dir, "plan.json"), Undo: filepath.Join(dir, "undo.jsonl")}
	sources := map[string]string{}
	for _, id := range []string{"0", victim, chosen} {
		sources[id] = document(id, "", prose(1, 0))
	}
	s := newShelf(maps.Clone(sources))
	found(t, s, Options{Keep: First}, o.Plan)
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, 2, n.Done, "documents that go")
	r, err := Restore(t.Context(), jobs.Job{Index: "news", Rule: testRule(t)}, s, o.Undo, nil)
	expect.OK(t, err)
	expect.Same(t, 2, r.Restored, "documents that come back")
	expect.Same(t, sources, s.sources, "documents")
}
