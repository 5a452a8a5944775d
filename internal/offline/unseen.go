package offline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/unseen"
)

// Unseen passes on the documents of a stream that are new.
type Unseen struct {
	// Seen remembers what was passed on.
	Seen *unseen.Seen
	// Sync, if not nil, returns when what was passed on is on the disk.
	Sync func() error
	// Mark, if not empty, passes on all documents with one more field of this name, that says whether they were seen.
	Mark string
	// Progress is called now and then.
	Progress func(Passed)

	passed Passed
	// saved is when what is seen was saved.
	saved time.Time
}

// Passed counts documents.
type Passed struct {
	Documents, New, Seen int
	// Textless are new ones without a word, that are not remembered.
	Textless int
}

// saveEvery is how often what is seen is saved while documents arrive.
const saveEvery = 250 * time.Millisecond

// unseenBatch is the documents of a batch with their keys, one after the other.
type unseenBatch struct {
	lines [][]byte
	ends  []int // of their keys
	keys  []uint64
}

// Run passes on the documents of a file, "-" for standard input, whenever reading on would block. A document is passed on before it is saved as seen. So after a
// crash some may be passed on twice, and none is lost.
func (u *Unseen) Run(ctx context.Context, g *Comparer, file string) (Passed, error) {
	u.saved = time.Now()
	add := func(b unseenBatch, _ int, d *documents.Document) (unseenBatch, error) {
		if u.Mark != "" && jsonedit.Get(d.Members, u.Mark) != nil {
			return b, fmt.Errorf("has a field %q already: choose another name with --mark", u.Mark)
		}
		b.keys = u.Seen.Keys(b.keys, d.Texts)
		b.lines, b.ends = append(b.lines, d.Line), append(b.ends, len(b.keys))
		return b, nil
	}
	var out []byte
	err := EachDocument(ctx, g, file, "", add, func(b unseenBatch) (err error) {
		if out, err = u.decide(out[:0], &b); err == nil {
			err = g.write(out)
		}
		if err == nil && time.Since(u.saved) > saveEvery {
			err = u.save()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errNotPassed, err)
		}
		u.Progress(u.passed)
		return nil
	})
	if !errors.Is(err, errNotPassed) { // else what is remembered was perhaps not passed on
		err = errors.Join(err, u.save())
	}
	return u.passed, err
}

// errNotPassed is within an error of writing.
var errNotPassed = errors.New("documents could not be passed on")

// save saves what is seen, after what was passed on is on the disk.
func (u *Unseen) save() error {
	if u.Sync != nil {
		if err := u.Sync(); err != nil {
			return err
		}
	}
	u.saved = time.Now()
	return u.Seen.Save()
}

// decide appends the lines of a batch that are passed on.
func (u *Unseen) decide(out []byte, b *unseenBatch) ([]byte, error) {
	from := 0
	for i, line := range b.lines {
		keys := b.keys[from:b.ends[i]]
		from = b.ends[i]
		isNew := u.Seen.New(keys)
		u.passed.Documents++
		switch {
		case !isNew:
			u.passed.Seen++
		case len(keys) == 0:
			u.passed.Textless++
			fallthrough
		default:
			u.passed.New++
		}
		if u.Mark != "" {
			member := fmt.Appendf(jsonedit.AppendString(nil, u.Mark), ":%t", !isNew)
			marked, err := jsonedit.Append(line, member)
			if err != nil {
				return out, err
			}
			line = marked
		} else if !isNew {
			continue
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}
