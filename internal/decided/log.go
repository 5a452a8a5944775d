package decided

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/neardup/sidecar/adapters"
)

const (
	// jobName is the name of the journal. It has one slot: entries are numbered from 1, in the order in which they were decided.
	jobName = "decided"
	// inEntry is how many pairs one entry holds.
	inEntry = 1000
	// tries is how often an entry is appended anew because somebody else was faster.
	tries = 1000
)

// entry is the data of a journal's entry.
type entry struct {
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
	Pairs []Pair    `json:"pairs"`
}

// tail reads a journal from where it was read last.
type tail struct {
	journal adapters.Journal
	newest  adapters.Entry // that was read; number 0 for none
}

// read has take take what was decided since the last read, in order. If the journal was deleted meanwhile, it calls begin, and then reads all.
func (t *tail) read(ctx context.Context, begin func(), take func(entry)) error {
	list, err := t.journal.Since(ctx, jobName, 0, t.newest.Number)
	if err != nil {
		return err
	}
	if t.newest.Number > 0 {
		if len(list) == 0 || list[0].Number != t.newest.Number || !bytes.Equal(list[0].Data, t.newest.Data) {
			if list, err = t.journal.Since(ctx, jobName, 0, 0); err != nil {
				return err
			}
			t.newest = adapters.Entry{}
			begin()
		} else {
			list = list[1:]
		}
	}
	for _, stored := range list {
		var e entry
		if err := json.Unmarshal(stored.Data, &e); err != nil {
			return fmt.Errorf("entry %d of the decided pairs can't be read: it may be of a newer version of neardup: %w", stored.Number, err)
		}
		take(e)
		t.newest = stored
	}
	return nil
}

// Log is what was decided about the documents of an engine, as it keeps that in a journal. Of two decisions about a pair the later entry wins. Any
// number of processes can add to it at the same time: none loses what another one wrote. It is not safe for concurrent use.
type Log struct {
	tail
	pairs map[Name]Pair
}

// Open returns the log of an engine, not read yet.
func Open(journal adapters.Journal) *Log {
	return &Log{tail: tail{journal: journal}, pairs: map[Name]Pair{}}
}

// Read reads what was decided since the last Read.
func (l *Log) Read(ctx context.Context) error {
	return l.read(ctx, func() { clear(l.pairs) }, func(e entry) {
		for _, p := range e.Pairs {
			p.By, p.At = e.By, e.At
			l.pairs[p.Name()] = p
		}
	})
}

// Pairs returns what is decided, in the order of the names.
func (l *Log) Pairs() []Pair {
	list := slices.DeleteFunc(slices.Collect(maps.Values(l.pairs)), func(p Pair) bool { return p.Verdict == Forgotten })
	slices.SortFunc(list, func(a, b Pair) int {
		x, y := a.Name(), b.Name()
		return slices.Compare([]string{x.Index, x.A, x.B}, []string{y.Index, y.A, y.B})
	})
	return list
}

// Pair returns what is decided about two documents, and false for nothing.
func (l *Log) Pair(index, a, b string) (Pair, bool) {
	p := Pair{Index: index, A: a, B: b}
	p, there := l.pairs[p.Name()]
	return p, there && p.Verdict != Forgotten
}

// Add stores decisions, as of now, and returns how many of them say something new: the others are left out. Pairs need their Index, ids, Verdict and,
// unless it is Forgotten, both texts: see [Find]. by is who decided. After an error some may be stored.
func (l *Log) Add(ctx context.Context, by string, pairs ...Pair) (added int, err error) {
	if err := l.Read(ctx); err != nil {
		return 0, err
	}
	var fresh []Pair
	for _, p := range pairs {
		if p.Index == "" || p.A == "" || p.B == "" || p.A == p.B {
			return 0, fmt.Errorf("%q and %q are no two documents of an index", p.A, p.B)
		}
		if known := l.pairs[p.Name()]; !p.says(known) {
			p.By, p.At = "", time.Time{} // the entry has them
			fresh = append(fresh, p)
		}
	}
	for some := range slices.Chunk(fresh, inEntry) {
		if err := l.append(ctx, entry{by, time.Now().UTC().Truncate(time.Second), some}); err != nil {
			return added, err
		}
		added += len(some)
	}
	return added, nil
}

// append appends an entry after the newest one.
func (l *Log) append(ctx context.Context, e entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for range tries {
		appended, err := l.journal.Append(ctx, jobName, adapters.Entry{Job: jobName, Number: l.newest.Number + 1, Data: data})
		if err != nil {
			return err
		}
		if err := l.Read(ctx); err != nil {
			return err
		}
		if appended || l.holds(e) { // it may have been sent twice by a transport; otherwise somebody else was faster
			return nil
		}
	}
	return errors.New("others decide pairs all the time: try again later")
}

// holds reports whether all pairs of an entry are decided as it says.
func (l *Log) holds(e entry) bool {
	return !slices.ContainsFunc(e.Pairs, func(p Pair) bool { return !p.says(l.pairs[p.Name()]) })
}
