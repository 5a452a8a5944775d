package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
)

// Applied counts what became of the documents that go by a plan. Each is one of these.
type Applied struct {
	// Done were deleted or hidden by this run. Before are gone or hidden already, by an earlier run or otherwise.
	Done   int `json:"done"`
	Before int `json:"before"`
	// Changed are not what the plan saw, Stays stay because the one that was to stay is gone or has changed. Back were put back, since that
	// happened just then. Refused the engine would not take.
	Changed int `json:"changed"`
	Stays   int `json:"stays"`
	Back    int `json:"put_back"`
	Refused int `json:"refused"`
	// Orphans are gone, and the one that was to stay is gone or has changed too: Restore puts them back.
	Orphans int `json:"orphans"`
}

// All is how many documents were looked at.
func (a Applied) All() int {
	return a.Done + a.Before + a.Changed + a.Stays + a.Back + a.Refused + a.Orphans
}

const (
	// inBatch is how many documents go at a time at most, batchBytes about how many bytes.
	inBatch    = 100
	batchBytes = 16 << 20
	// lastBatch is how long a batch that is under way may take when the run is interrupted.
	lastBatch = time.Minute
)

// worker is what carries a plan out, or takes it back, in one index.
type worker struct {
	jobs.Job
	store adapters.EngineStore
	pace  *jobs.Pace
	hide  string
}

func newWorker(job jobs.Job, store adapters.EngineStore, hide string) worker {
	job.Store = store
	return worker{job, store, jobs.NewPace(0), hide}
}

// ErrLossy is within the error of Apply where a deleted document could not be put back as it was.
var ErrLossy = errors.New("a document that is deleted here could not be put back as it was")

// Apply carries out the plan in a file, in the plan's index, and writes what it takes away to an undo file. With lossy it does so too where a document
// can't be put back as it was. The count is right on an error too. report, if not nil, is called now and then.
func Apply(ctx context.Context, job jobs.Job, store adapters.EngineStore, plan, undo string, lossy bool, report func(Applied)) (n Applied, err error) {
	p, _, sum, err := OpenPlan(plan)
	if err != nil {
		return n, err
	}
	a := &applying{worker: newWorker(job, store, p.Hide), plan: p}
	if err := a.sameIndex(ctx, p.Identity); err != nil {
		return n, fmt.Errorf("%w: make the plan again", err)
	}
	if a.hide == "" {
		switch err := store.Lossless(ctx, job.Index); {
		case err == nil:
		case lossy:
			a.tried = true // it may be an index whose documents can't be written again
		default:
			return n, fmt.Errorf("%w: %w", ErrLossy, err)
		}
	}
	if a.undo, err = openUndo(undo, Undo{Engine: p.Engine, Index: p.Index, Identity: p.Identity, Hide: p.Hide, Plan: sum}); err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, a.undo.file.Close()) }()
	defer store.Release(ctx, job.Index)
	file, err := os.Open(plan)
	if err != nil {
		return n, err
	}
	defer file.Close()
	var waiting []item
	flush := func() error {
		err := a.batch(ctx, waiting)
		waiting = nil
		if report != nil {
			report(a.Applied)
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
	return a.Applied, err
}

// sameIndex fails if the index is not the one of an identity.
func (w *worker) sameIndex(ctx context.Context, identity string) error {
	now, err := w.store.Identity(ctx, w.Index)
	if err == nil && now != identity {
		err = fmt.Errorf("index %s was deleted and created again since", w.Index)
	}
	return err
}

// applying is a plan that is carried out.
type applying struct {
	worker
	Applied
	plan Plan
	undo *undoFile
	// tried says that one document was written again and found to be what it was.
	tried bool
	// documents were read, of bytes in all.
	documents, bytes int
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

// now is a document as it is now, with the text only of those that go.
type now struct {
	adapters.Stored
	digest string
	hidden bool
	twice  bool // there are two of this id
}

// read reads documents as they are, with the text of those that keep says.
func (w *worker) read(ctx context.Context, ids map[string]bool) (map[string]*now, error) {
	found := map[string]*now{}
	var list []string
	for id := range ids {
		list = append(list, id)
	}
	err := w.pace.Retry(ctx, func() error {
		clear(found)
		selection := adapters.Selection{IDs: list, Fields: []string{adapters.AllFields}}
		return w.store.Scan(ctx, w.Index, w.Rule, selection, func(p adapters.Page) error {
			for _, d := range p.Documents {
				if found[d.ID] != nil {
					found[d.ID].twice = true
					continue
				}
				digest, err := Digest(d.Source)
				if err != nil {
					return fmt.Errorf("document %s: %w", d.ID, err)
				}
				n := &now{Stored: d, digest: digest, hidden: w.hide != "" && string(memberOf(d.Source, w.hide)) == "true"}
				if !ids[d.ID] {
					n.Source = nil
				}
				found[d.ID] = n
			}
			return nil
		})
	})
	return found, err
}

// memberOf returns the value of a member at the top of a document, nil for none.
func memberOf(source []byte, name string) []byte {
	members, _ := jsonedit.Members(source) // what is no document has none
	return jsonedit.Get(members, name)
}

// stands reports whether a document is there as the plan saw it.
func (n *now) stands(m Member) bool { return n != nil && !n.twice && n.digest == m.Digest }

// batch does what the plan says to some documents.
func (a *applying) batch(ctx context.Context, items []item) error {
	if len(items) == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, i := range items {
		wanted[i.stays.ID] = false
	}
	for _, i := range items {
		wanted[i.goes.ID] = true
	}
	found, err := a.read(ctx, wanted)
	if err != nil {
		return err
	}
	var do []item
	var documents []adapters.Stored
	before := a.Applied
	for _, i := range items {
		goes, stays := found[i.goes.ID], found[i.stays.ID]
		switch kept := stays.stands(i.stays) && !stays.hidden; {
		case (goes == nil || goes.hidden) && kept:
			a.Before++
		case goes == nil || goes.hidden:
			a.Orphans++
		case !kept:
			a.Stays++
		case !goes.stands(i.goes):
			a.Changed++
		default:
			do, documents = append(do, i), append(documents, goes.Stored)
			a.documents, a.bytes = a.documents+1, a.bytes+len(goes.Source)
		}
	}
	if len(do) == 0 {
		return nil
	}
	if !a.tried {
		if err := a.try(ctx, documents); err != nil {
			return err
		}
		a.Applied = before
		return a.batch(ctx, items) // since one is in another state now
	}
	if err := a.undo.add(documents); err != nil {
		return err
	}
	return a.take(ctx, do, documents)
}

// tries is how many documents are written again at most, until one had not changed since it was read.
const tries = 5

// try writes one document again as it is: the store compares it with what it was.
func (a *applying) try(ctx context.Context, documents []adapters.Stored) error {
	a.tried = true
	written := false
	for _, d := range documents[:min(tries, len(documents))] {
		err := a.pace.Patch(ctx, a.Job, []adapters.Stored{d.With(rule.OursOf(d.Source))}, nil, func(_ []adapters.Stored, results []adapters.Result) {
			written = results[0] == adapters.Patched
		})
		if err != nil || written {
			return err
		}
	}
	return nil
}

// take deletes or hides documents that are in the undo file. An interruption does not end it halfway.
func (a *applying) take(ctx context.Context, do []item, documents []adapters.Stored) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBatch)
	defer cancel()
	results, err := a.write(ctx, documents, func(list []adapters.Stored) ([]adapters.Result, error) {
		if a.hide == "" {
			return a.store.Delete(ctx, a.Index, list)
		}
		values := make([][]byte, len(list))
		for i := range values {
			values[i] = []byte("true")
		}
		return a.store.SetField(ctx, a.Index, a.hide, list, values)
	})
	if err != nil {
		return fmt.Errorf("%w. The documents are in the undo file: the same command goes on, and --restore puts them back", err)
	}
	stays := map[string]bool{}
	for i := range do {
		if results[i] == adapters.Patched {
			stays[do[i].stays.ID] = false
		}
	}
	after, err := a.read(ctx, stays)
	if err != nil {
		return fmt.Errorf("%w. Whether those that stay are still there could not be seen: run the same command again", err)
	}
	var back []adapters.Stored
	for i, result := range results {
		switch s := after[do[i].stays.ID]; {
		case result == adapters.Patched && s.stands(do[i].stays) && !s.hidden:
			a.Done++
		case result == adapters.Patched:
			back = append(back, documents[i])
		case result == adapters.Refused:
			a.Refused++
		default:
			a.Changed++
		}
	}
	if len(back) > 0 {
		r, err := a.putBack(ctx, back)
		a.Back += r.Restored + r.There + r.Changed
		a.Refused += r.Refused
		return err
	}
	return nil
}

// write has documents written, and sends again what the engine had no room for.
func (w *worker) write(
	ctx context.Context, documents []adapters.Stored, send func([]adapters.Stored) ([]adapters.Result, error),
) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(documents))
	left := make([]int, len(documents))
	for i := range left {
		left[i] = i
	}
	err := w.pace.Retry(ctx, func() error {
		list := make([]adapters.Stored, len(left))
		for n, i := range left {
			list[n] = documents[i]
		}
		some, err := send(list)
		if err != nil {
			return err
		}
		var busy []int
		for n, i := range left {
			if results[i] = some[n]; some[n] == adapters.Busy {
				busy = append(busy, i)
			}
		}
		if left = busy; len(left) > 0 {
			return adapters.ErrBusy
		}
		return nil
	})
	return results, err
}
