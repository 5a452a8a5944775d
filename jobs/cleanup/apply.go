package cleanup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
)

// Applied counts the documents that a plan deletes or hides, by outcome. Each counts once.
type Applied struct {
	// Done were deleted or hidden by this run. Before were deleted or hidden already.
	Done   int `json:"done"`
	Before int `json:"before"`
	// Changed have changed since the plan. Unlike are not near-duplicates of the one that stays, by the present rule and decisions. Stays were left
	// alone because the one that stays is gone or has changed. Back were put back because that happened during the run. Refused were refused by the
	// engine.
	Changed int `json:"changed"`
	Unlike  int `json:"unlike"`
	Stays   int `json:"stays"`
	Back    int `json:"put_back"`
	Refused int `json:"refused"`
	// Orphans were deleted or hidden before, but the one that stays is now gone or changed. Restore puts them back.
	Orphans int `json:"orphans"`
}

// All returns how many documents were checked.
func (a Applied) All() int {
	return a.Done + a.Before + a.Changed + a.Unlike + a.Stays + a.Back + a.Refused + a.Orphans
}

const (
	// inBatch is how many documents a batch holds at most, batchBytes about how many bytes.
	inBatch    = 100
	batchBytes = 16 << 20
	// lastBatch is how long the current batch may still take after an interrupt.
	lastBatch = time.Minute
)

// Order is a plan to carry out.
type Order struct {
	// Plan and Undo are the names of the files. Sum is the hash of the plan that was confirmed; empty for any.
	Plan, Undo, Sum string
	// Lossy allows deleting what can't be put back as it was.
	Lossy bool
	// PairIndex and Decided are those of [Options].
	PairIndex string
	Decided   *decided.Set
	// Report is called now and then. It may be nil.
	Report func(Applied)
}

// applying is one run of Apply.
type applying struct {
	worker
	n    Applied
	undo *undoFile
	// proven says that one document was deleted and put back, or written again, and is unchanged. Until then no other one is touched. attempts counts the
	// batches in which none could be proven.
	proven   bool
	attempts int
	// lossy says that documents may be lost.
	lossy bool
	// documents and bytes count what was read, to size the next batch.
	documents, bytes int
}

// Apply carries out a plan in its index, and first writes each document to the undo file. The counts are valid on an error too.
func Apply(ctx context.Context, job jobs.Job, store adapters.EngineStore, o Order) (n Applied, err error) {
	p, _, sum, err := OpenPlan(o.Plan)
	if err != nil {
		return n, err
	}
	if p.Index != job.Index || o.Sum != "" && o.Sum != sum {
		return n, fmt.Errorf("%s has changed since it was read: run the command again", o.Plan)
	}
	r := *job.Rule
	r.Profile.Threshold, job.Rule = p.Threshold, &r
	a := &applying{worker: newWorker(job, store)}
	a.hide, a.identity, a.lossy = p.Hide, p.Identity, o.Lossy && p.Hide == ""
	a.finder = newFinder(job, Options{Hide: p.Hide, PairIndex: o.PairIndex, Decided: o.Decided}, rule.Choice{})
	if err := a.sameIndex(ctx); err != nil {
		return n, fmt.Errorf("%w: make the plan again", err)
	}
	if p.Hide != "" {
		if err := CheckField(ctx, store, job, p.Hide); err != nil {
			return n, err
		}
	}
	if err := store.Lossless(ctx, job.Index, p.Hide); err != nil {
		if !a.lossy || !errors.Is(err, adapters.ErrLossy) {
			return n, err
		}
		a.proven = true // nothing to prove: a document may not come back as it was
	}
	if a.undo, err = openUndo(o.Undo, Undo{Engine: p.Engine, Index: p.Index, Identity: p.Identity, Hide: p.Hide, Plan: sum}); err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, a.undo.file.Close()) }()
	defer store.Release(ctx, job.Index)
	if p.Hide == "" {
		if err := a.heal(ctx, o.Undo); err != nil {
			return n, err
		}
	}
	file, err := os.Open(o.Plan)
	if err != nil {
		return n, err
	}
	defer file.Close()
	var waiting []item
	flush := func() error {
		err := a.batch(ctx, waiting)
		waiting = nil
		if o.Report != nil {
			o.Report(a.n)
		}
		return errors.Join(err, ctx.Err())
	}
	_, err = ReadPlan(file, func(g Group) error {
		for _, m := range g.Goes {
			if waiting = append(waiting, item{m, g.Stays}); len(waiting) >= a.room() {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return a.n, err
}

// room is how many documents the next batch holds.
func (a *applying) room() int {
	if a.bytes == 0 {
		return inBatch
	}
	return min(inBatch, max(1, batchBytes*a.documents/a.bytes))
}

// item is a document that goes, and the one that stays.
type item struct{ goes, stays Member }

// idsOf returns the ids of the documents that go and of those that stay.
func idsOf(items []item) (ids []string) {
	for _, i := range items {
		ids = append(ids, i.goes.ID, i.stays.ID)
	}
	return ids
}

// batch carries out the plan for some documents.
func (a *applying) batch(ctx context.Context, items []item) error {
	if len(items) == 0 {
		return nil
	}
	found, err := a.read(ctx, idsOf(items))
	if err != nil {
		return err
	}
	for _, c := range found {
		a.documents, a.bytes = a.documents+1, a.bytes+len(c.stored.Source)
	}
	var do []item
	var documents []adapters.Stored
	before := a.n
	for _, i := range items {
		goes, stays := found[i.goes.ID], found[i.stays.ID]
		switch gone, kept := goes.gone(), stays.unchanged(i.stays) && !stays.hidden; {
		case gone && kept:
			a.n.Before++
		case gone:
			a.n.Orphans++
		case !kept:
			a.n.Stays++
		case !goes.unchanged(i.goes):
			a.n.Changed++
		case a.hide == "" && adapters.Unaddressable(i.goes.ID):
			a.n.Refused++
		default:
			if may, _ := mayGo(&goes.hit, &stays.hit); !may {
				a.n.Unlike++
				continue
			}
			do, documents = append(do, i), append(documents, goes.stored)
		}
	}
	if len(do) == 0 {
		return nil
	}
	if err := a.sameIndex(ctx); err != nil { // what was read may be of another one
		return fmt.Errorf("%w: make the plan again", err)
	}
	if err := a.undo.add(documents...); err != nil {
		return err
	}
	if !a.proven {
		if err := a.prove(ctx, documents); err != nil {
			return err
		}
		a.n = before
		return a.batch(ctx, items) // again, because one document was rewritten
	}
	return a.take(ctx, do, documents)
}

// mostAttempts is how many batches may pass in which no document could be proven.
const mostAttempts = 5

// prove checks on one document that it can be put back unchanged: the store deletes and creates it, or writes it again. The documents are in the undo
// file. It fails if the engine refuses the document or changes it.
func (a *applying) prove(ctx context.Context, documents []adapters.Stored) error {
	ctx, cancel := jobs.Outlast(ctx, lastBatch)
	defer cancel()
	for _, d := range documents {
		results, err := a.write(ctx, []adapters.Stored{d}, func(list []adapters.Stored) ([]adapters.Result, error) {
			result, err := a.store.Prove(ctx, a.Index, a.hide, list[0], a.keep)
			return []adapters.Result{result}, err
		})
		switch {
		case a.lossy && errors.Is(err, adapters.ErrLossy): // that is agreed to
			a.proven = true
			return nil
		case err != nil:
			return fmt.Errorf("%w: this document is in the undo file, and no other was touched", err)
		case results[0] == adapters.Patched:
			a.proven = true
			return nil
		case results[0] == adapters.Refused:
			return fmt.Errorf("the engine refuses to write document %q of %s as it is: no other one was touched", d.ID, a.Index)
		}
	}
	if a.attempts++; a.attempts == mostAttempts {
		return errors.New("no document could be tested, because other clients keep changing them. None was deleted or hidden: try again later")
	}
	return nil
}

// keep writes a document to the undo file.
func (a *applying) keep(d adapters.Stored) error { return a.undo.add(d) }

// take deletes or hides documents that are in the undo file. An interruption does not end it halfway.
func (a *applying) take(ctx context.Context, do []item, documents []adapters.Stored) (failed error) {
	ctx, cancel := jobs.Outlast(ctx, lastBatch)
	defer cancel()
	results, err := a.write(ctx, documents, func(list []adapters.Stored) ([]adapters.Result, error) {
		if a.hide == "" {
			return a.store.Delete(ctx, a.Index, list, a.keep)
		}
		return a.store.SetField(ctx, a.Index, a.hide, list, slices.Repeat([][]byte{[]byte("true")}, len(list)))
	})
	if err != nil {
		failed = fmt.Errorf("%w. The documents are in the undo file. Run the same command again to go on, or --restore to put them back", err)
	}
	second := a.worker
	second.finder = nil // it compares digests alone, which can't fail for what a document holds
	after, err := second.read(ctx, idsOf(do))
	if err != nil {
		return errors.Join(failed, fmt.Errorf("%w. The documents that stay could not be read again: run the same command again", err))
	}
	var back []adapters.Stored
	for i, d := range documents {
		goes, stays := after[do[i].goes.ID], after[do[i].stays.ID]
		gone, kept := goes.gone(), stays.unchanged(do[i].stays) && !stays.hidden
		switch result := results[i]; {
		case result == adapters.Patched && kept:
			a.n.Done++
		case result == adapters.Patched, result == adapters.Busy && gone && !kept:
			back = append(back, d)
		case result == adapters.Refused:
			a.n.Refused++
		case !gone:
			a.n.Changed++
		case kept: // somebody else deleted or hid it, or the engine's answer was lost
			a.n.Before++
		default:
			a.n.Orphans++
		}
	}
	if len(back) == 0 {
		return failed
	}
	r, err := second.putBack(ctx, back)
	a.n.Back += r.Restored + r.There
	if a.hide == "" { // another document is under the id
		a.n.Back += r.Changed
	} else {
		a.n.Orphans += r.Changed + r.Gone
	}
	a.n.Refused += r.Refused
	return errors.Join(failed, err)
}

// heal puts back what an earlier run of the plan left missing: documents that changed just when they were deleted, as they had become, and one of the last
// that it deleted, which shows that the engine takes documents at all. It fails if the engine does not.
func (a *applying) heal(ctx context.Context, undo string) error {
	first, changed := map[idKey]string{}, map[string]adapters.Stored{}
	var last []adapters.Stored
	bytes := 0
	err := ReadUndo(undo, func(Undo) error { return nil }, func(_ int, d adapters.Stored) error {
		if d.ID == "" {
			return nil
		}
		digest, err := Digest(d.Source)
		if err != nil {
			return err
		}
		id := keyOf(d.ID)
		if first[id] == "" {
			first[id] = digest
		}
		if delete(changed, d.ID); first[id] != digest {
			changed[d.ID] = d
		}
		last, bytes = append(last, d), bytes+len(d.Source)
		for len(last) > 1 && (len(last) > inBatch || bytes > batchBytes) {
			last, bytes = last[1:], bytes-len(last[0].Source)
		}
		return nil
	})
	if err != nil {
		return err
	}
	back := slices.Collect(maps.Values(changed))
	if len(last) > 0 && !a.proven {
		found, err := a.read(ctx, storedIDs(last))
		if err != nil {
			return err
		}
		for _, d := range slices.Backward(last) {
			if _, is := changed[d.ID]; !is && found[d.ID] == nil {
				back = append(back, d)
				break
			}
		}
	}
	r, err := a.putBack(ctx, back)
	if err == nil && r.Refused > 0 {
		err = errors.New("the engine does not take back documents that an earlier run deleted: no other one was touched. Use --restore")
	}
	return err
}
