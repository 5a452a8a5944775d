package cleanup

import (
	"context"
	"errors"
	"fmt"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/jobs"
)

// Restored counts the lines of an undo file, by the outcome for their documents. Each line counts once.
type Restored struct {
	// Restored were put back or unhidden. There needed nothing. Changed were written since, and were left alone. Gone were hidden by the plan, and
	// deleted by somebody since. Refused were refused by the engine.
	Restored int `json:"restored"`
	There    int `json:"there"`
	Changed  int `json:"changed"`
	Gone     int `json:"gone"`
	Refused  int `json:"refused"`
	// Damaged are the numbers of lines that can't be read.
	Damaged []int `json:"damaged,omitempty"`
}

// All returns how many lines were read.
func (r Restored) All() int {
	return r.Restored + r.There + r.Changed + r.Gone + r.Refused + len(r.Damaged)
}

func (r *Restored) add(s Restored) {
	r.Restored, r.There, r.Changed, r.Gone, r.Refused = r.Restored+s.Restored, r.There+s.There, r.Changed+s.Changed, r.Gone+s.Gone, r.Refused+s.Refused
}

// Restore puts the documents of an undo file back into their index. It may be called again. The counts are valid on an error too. report, if not
// nil, is called after each batch.
func Restore(ctx context.Context, job jobs.Job, store adapters.EngineStore, undo string, report func(Restored)) (n Restored, err error) {
	w := newWorker(job, store)
	defer store.Release(ctx, job.Index)
	var waiting []adapters.Stored
	size := 0
	flush := func() error {
		some, err := w.putBack(ctx, waiting)
		n.add(some)
		waiting, size = nil, 0
		if report != nil {
			report(n)
		}
		return errors.Join(err, ctx.Err())
	}
	last := map[idKey]int{} // the last line of each document
	if err := ReadUndo(undo, func(Undo) error { return nil }, func(line int, d adapters.Stored) error {
		last[keyOf(d.ID)] = line
		return nil
	}); err != nil {
		return n, err
	}
	err = ReadUndo(undo, func(head Undo) error {
		w.hide, w.identity = head.Hide, head.Identity
		if err := w.sameIndex(ctx); err != nil {
			return fmt.Errorf("%w: load the documents yourself, one from each line of %s", err, undo)
		}
		if w.hide != "" { // because unhiding writes whole documents
			return store.Lossless(ctx, job.Index, w.hide)
		}
		return nil
	}, func(line int, d adapters.Stored) error {
		if d.ID == "" {
			n.Damaged = append(n.Damaged, line)
			return nil
		}
		if last[keyOf(d.ID)] != line {
			n.There++
			return nil
		}
		waiting, size = append(waiting, d), size+len(d.Source)
		if len(waiting) < inBatch && size < batchBytes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return n, err
}

// putBack puts documents back as they were, unless they were written since.
func (w *worker) putBack(ctx context.Context, documents []adapters.Stored) (n Restored, err error) {
	if len(documents) == 0 {
		return n, nil
	}
	if w.hide != "" {
		return w.show(ctx, documents)
	}
	results, err := w.write(ctx, documents, func(list []adapters.Stored) ([]adapters.Result, error) {
		return w.store.Create(ctx, w.Index, w.identity, list)
	})
	var exist []adapters.Stored
	for i, d := range documents {
		switch results[i] {
		case adapters.Patched:
			n.Restored++
		case adapters.Changed:
			exist = append(exist, d)
		case adapters.Busy: // err says why
		default:
			n.Refused++
		}
	}
	if err != nil {
		return n, err
	}
	found, err := w.read(ctx, storedIDs(exist))
	if err != nil {
		return n, err
	}
	for _, d := range exist {
		if digest, _ := Digest(d.Source); found[d.ID] != nil && found[d.ID].Digest == digest {
			n.There++
		} else {
			n.Changed++
		}
	}
	return n, nil
}

// showTries is how often a document is shown again that others change at the same time.
const showTries = 5

// show unhides documents: it removes the field, or sets it to its old value. It keeps what else was written since.
func (w *worker) show(ctx context.Context, documents []adapters.Stored) (n Restored, err error) {
	for try := 1; len(documents) > 0; try++ {
		some, changed, err := w.showOnce(ctx, documents)
		if n.add(some); err != nil {
			return n, err
		}
		if documents = changed; try == showTries {
			n.Changed += len(documents)
			break
		}
	}
	return n, nil
}

// showOnce tries once to unhide documents, and returns those that changed meanwhile.
func (w *worker) showOnce(ctx context.Context, documents []adapters.Stored) (n Restored, changed []adapters.Stored, err error) {
	found, err := w.read(ctx, storedIDs(documents))
	if err == nil {
		err = w.sameIndex(ctx) // what was read may be of another one
	}
	if err != nil {
		return n, nil, err
	}
	value := func(of []byte) string { // null is as good as none
		if v := string(memberOf(of, w.hide)); v != "null" {
			return v
		}
		return ""
	}
	var list, before []adapters.Stored
	values := map[string][]byte{} // to set, by id; nil where there was none
	for _, d := range documents {
		switch now := found[d.ID]; {
		case now == nil:
			n.Gone++
		case now.twice:
			n.Changed++
		case value(now.stored.Source) == value(d.Source):
			n.There++
		case !now.hidden:
			n.Changed++
		default:
			list, before = append(list, now.stored), append(before, d)
			values[d.ID] = memberOf(d.Source, w.hide)
		}
	}
	results, err := w.write(ctx, list, func(list []adapters.Stored) ([]adapters.Result, error) {
		set := make([][]byte, len(list))
		for i, d := range list {
			set[i] = values[d.ID]
		}
		return w.store.SetField(ctx, w.Index, w.hide, list, set)
	})
	for i, result := range results {
		switch result {
		case adapters.Patched:
			n.Restored++
		case adapters.Refused:
			n.Refused++
		case adapters.Busy: // err says why
		default:
			changed = append(changed, before[i])
		}
	}
	return n, changed, err
}

// memberOf returns the value of a member at the top of a document, nil for none.
func memberOf(source []byte, name string) []byte {
	members, _ := jsonedit.Members(source) // nil if it can't be parsed
	return jsonedit.Get(members, name)
}
