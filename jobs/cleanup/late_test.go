package cleanup

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/jobs"
)

// broken is a shelf of which some requests fail, after they took effect.
type broken struct {
	*shelf
	deleted, proven error
}

func (b *broken) Delete(ctx context.Context, index string, list []adapters.Stored, keep func(adapters.Stored) error) ([]adapters.Result, error) {
	results, _ := b.shelf.Delete(ctx, index, list, keep)
	b.put("a", "") // and what was to stay goes
	return results, b.deleted
}

func (b *broken) Prove(ctx context.Context, index, field string, d adapters.Stored, keep func(adapters.Stored) error) (adapters.Result, error) {
	result, err := b.shelf.Prove(ctx, index, field, d, keep)
	return result, errors.Join(err, b.proven)
}

func job(t *testing.T) jobs.Job { return jobs.Job{Index: "news", Rule: testRule(t)} }

// TestRecreatedMeanwhile: what is in an index that was created again during a run stays as it is.
func TestRecreatedMeanwhile(t *testing.T) {
	for _, hide := range []string{"", "aside"} {
		s, o := planned(t, hide)
		was := s.sources["b"]
		s.at = func() { s.identity = "another" }
		if _, err := carryOut(t, s, o); err == nil || !strings.Contains(err.Error(), "created again") {
			t.Errorf("%q: %v", hide, err)
		}
		expect.Same(t, was, s.sources["b"], "the document")
	}
}

// TestSecondLookAfterAnError: a deletion whose answer was lost is put back if the document that stays went.
func TestSecondLookAfterAnError(t *testing.T) {
	s, o := planned(t, "")
	b := &broken{shelf: s, deleted: errors.New("the answer is lost")}
	n, err := Apply(t.Context(), job(t), b, o)
	if !errors.Is(err, b.deleted) || n.Back != 1 || s.sources["b"] == "" {
		t.Errorf("%+v, %v, %q", n, err, s.sources)
	}
}

// TestSecondLookTakesAnything: a document that stays, and that came to hold something else in the field, hides nothing for good.
func TestSecondLookTakesAnything(t *testing.T) {
	s, o := planned(t, "aside")
	s.at = func() {
		if strings.Contains(s.sources["b"], "true") {
			s.put("a", strings.Replace(document("a", "2024-02-01", prose(1, 0)), "{", `{"aside":1,`, 1))
		}
	}
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, Applied{Back: 1}, n, "what became of it")
	expect.Same(t, 0, len(memberOf([]byte(s.sources["b"]), "aside")), "the field")
}

// TestSecondLookShowsOthers: a document that goes and that came to hold something else keeps no other one hidden, and is counted.
func TestSecondLookShowsOthers(t *testing.T) {
	s, o := planned(t, "aside")
	s.put("c", strings.Replace(s.sources["b"], `"b"`, `"c"`, 1))
	found(t, s, Options{Hide: "aside"}, o.Plan)
	s.at = func() {
		if strings.Contains(s.sources["c"], "true") {
			s.put("a", "")
			s.put("b", strings.Replace(document("b", "2024-01-01", prose(1, 0)), "{", `{"aside":1,`, 1))
		}
	}
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, Applied{Back: 1, Orphans: 1}, n, "what became of them")
	expect.Same(t, 0, len(memberOf([]byte(s.sources["c"]), "aside")), "the field of the other one")
}

// TestAcceptedLossGoesOn: a proof that shows a loss ends the run, unless the loss is accepted.
func TestAcceptedLossGoesOn(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		s, o := planned(t, "")
		o.Lossy = lossy
		_, err := Apply(t.Context(), job(t), &broken{shelf: s, proven: adapters.ErrLossy}, o)
		expect.Same(t, !lossy, errors.Is(err, adapters.ErrLossy), "the error with %t: %v", lossy, err)
	}
}

// TestHealed: the next run puts back what an earlier one left missing, or touches nothing.
func TestHealed(t *testing.T) {
	s, o := planned(t, "")
	_, _, sum, err := OpenPlan(o.Plan)
	expect.OK(t, err)
	undo := expect.Value(openUndo(o.Undo, Undo{Engine: "e", Index: "news", Identity: "one", Plan: sum}))(t)
	newer := document("b", "", "what it had become")
	for _, source := range []string{s.sources["b"], newer} {
		expect.OK(t, undo.add(adapters.Stored{ID: "b", Source: []byte(source)}))
	}
	expect.OK(t, undo.file.Close())
	s.put("b", "")
	s.takesBack = adapters.Refused
	if _, err := carryOut(t, s, o); err == nil || !strings.Contains(err.Error(), "no other one was touched") {
		t.Error(err)
	}
	s.takesBack = adapters.Patched
	n, err := carryOut(t, s, o)
	expect.OK(t, err)
	expect.Same(t, Applied{Changed: 1}, n, "what became of it")
	expect.Same(t, newer, s.sources["b"], "the document")
}

// TestNoneMoreIsLost: where the engine takes nothing back, repeated runs take one document away, not one each.
func TestNoneMoreIsLost(t *testing.T) {
	s, o := planned(t, "")
	s.put("c", s.sources["b"])
	s.put("c", strings.Replace(s.sources["c"], `"b"`, `"c"`, 1))
	found(t, s, Options{}, o.Plan)
	s.takesBack = adapters.Refused
	for range 3 {
		if _, err := carryOut(t, s, o); err == nil {
			t.Error("no error")
		}
		expect.Same(t, 2, len(s.sources), "documents that are left")
	}
}

// TestUnfinishedLineIsTold: the beginning of a line may be all that is left of a document. It stays in the file.
func TestUnfinishedLineIsTold(t *testing.T) {
	s, o := planned(t, "")
	_, err := carryOut(t, s, o)
	expect.OK(t, err)
	whole := expect.Value(os.ReadFile(o.Undo))(t)
	lines := strings.Count(string(whole), "\n")
	expect.OK(t, os.WriteFile(o.Undo, append(whole, `{"id":"c","source":{"te`...), 0o600))
	for range 2 {
		r, err := Restore(t.Context(), job(t), s, o.Undo, nil)
		expect.OK(t, err)
		expect.Same(t, true, slices.Equal(r.Damaged, []int{lines + 1}), "damaged lines: %v", r.Damaged)
		_, err = carryOut(t, s, o)
		expect.OK(t, err)
	}
}

// TestShown only what is hidden, and in spite of others that write at the same time.
func TestShown(t *testing.T) {
	for field, want := range map[string]Restored{
		"": {There: 1}, `"aside":null,`: {There: 1}, `"aside":false,`: {Changed: 1}, `"aside":1,`: {Changed: 1}, `"aside":true,`: {Restored: 1},
	} {
		s, o := planned(t, "aside")
		_, err := carryOut(t, s, o)
		expect.OK(t, err)
		s.put("b", strings.Replace(document("b", "2024-01-01", prose(1, 0)), "{", "{"+field, 1))
		writes := 0
		s.at = func() {
			if writes++; writes%2 == 0 && writes < 6 { // just before it is set
				s.put("b", s.sources["b"])
			}
		}
		r, err := Restore(t.Context(), job(t), s, o.Undo, nil)
		expect.OK(t, err)
		r.There -= strings.Count(string(expect.Value(os.ReadFile(o.Undo))(t)), "\n"+`{"id":"b"`) - 1 // earlier lines of it
		expect.Same(t, want.String(), r.String(), "with %q", field)
	}
}

// halfway is a shelf that writes one document and is too busy for the others. Then its requests fail.
type halfway struct {
	*shelf
	written bool
}

func (h *halfway) once(list []adapters.Stored, write func([]adapters.Stored) ([]adapters.Result, error)) ([]adapters.Result, error) {
	if h.written {
		return nil, errKilled
	}
	h.written = true
	results, err := write(list[:1])
	return append(results, slices.Repeat([]adapters.Result{adapters.Busy}, len(list)-1)...), err
}

func (h *halfway) Delete(ctx context.Context, index string, list []adapters.Stored, keep func(adapters.Stored) error) ([]adapters.Result, error) {
	return h.once(list, func(list []adapters.Stored) ([]adapters.Result, error) { return h.shelf.Delete(ctx, index, list, keep) })
}

func (h *halfway) Create(ctx context.Context, index, identity string, list []adapters.Stored) ([]adapters.Result, error) {
	return h.once(list, func(list []adapters.Stored) ([]adapters.Result, error) {
		return h.shelf.Create(ctx, index, identity, list)
	})
}

func (h *halfway) SetField(ctx context.Context, index, field string, list []adapters.Stored, values [][]byte) ([]adapters.Result, error) {
	return h.once(list, func(list []adapters.Stored) ([]adapters.Result, error) {
		return h.shelf.SetField(ctx, index, field, list, values[:len(list)])
	})
}

// TestCountedInSpiteOfAnError: what was written before a request failed is counted.
func TestCountedInSpiteOfAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hide := range []string{"", "aside"} {
			s, o := planned(t, hide)
			s.put("c", strings.Replace(s.sources["b"], `"b"`, `"c"`, 1))
			found(t, s, Options{Hide: hide}, o.Plan)
			n, err := Apply(t.Context(), job(t), &halfway{shelf: s}, o)
			expect.Same(t, true, errors.Is(err, errKilled), "the error: %v", err)
			expect.Same(t, Applied{Done: 1, Changed: 1}, n, "what became of them, by %q", hide)
			_, err = carryOut(t, s, o)
			expect.OK(t, err)
			r, err := Restore(t.Context(), job(t), &halfway{shelf: s}, o.Undo, nil)
			expect.Same(t, true, errors.Is(err, errKilled), "the error: %v", err)
			expect.Same(t, 1, r.Restored, "documents that are put back, by %q", hide)
		}
	})
}
