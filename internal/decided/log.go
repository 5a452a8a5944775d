package decided

import (
	"bytes"
	"cmp"
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
	// JobName is the name of the journal. It has one slot: entries are numbered from 1, in the order in which they were decided.
	JobName = "decided"
	// inEntry is how many pairs one entry holds.
	inEntry = 1000
	// tries is how often an append is retried because somebody else was faster.
	tries = 1000
)

// entry is the data of a journal's entry.
type entry struct {
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
	Pairs []Pair    `json:"pairs"`
}

// tail reads a journal from where the last read ended.
type tail struct {
	journal adapters.Journal
	newest  adapters.Entry // the last one read; number 0 for none
}

// read calls take for each new entry, in order. If the journal was deleted since the last read, it first calls begin, and then reads from the start.
func (t *tail) read(ctx context.Context, begin func(), take func(entry)) error {
	list, err := t.journal.Since(ctx, JobName, 0, t.newest.Number)
	if err != nil {
		return err
	}
	if t.newest.Number > 0 {
		if len(list) == 0 || list[0].Number != t.newest.Number || !bytes.Equal(list[0].Data, t.newest.Data) {
			if list, err = t.journal.Since(ctx, JobName, 0, 0); err != nil {
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
		for _, p := range e.Pairs {
			if p.Verdict != Same && p.Verdict != Different && p.Verdict != Forgotten {
				return fmt.Errorf("entry %d of the decided pairs has the verdict %q: it may be of a newer version of neardup", stored.Number, p.Verdict)
			}
		}
		take(e)
		t.newest = stored
	}
	return nil
}

// Log is the decided pairs of an engine, which it keeps in a journal. If a pair was decided twice, the later entry wins. Any number of processes can add
// to it at the same time, and no decision is lost. A Log is not safe for concurrent use.
type Log struct {
	tail
	pairs map[Name]Pair
}

// Open returns the log of an engine. Read reads it.
func Open(journal adapters.Journal) *Log {
	return &Log{tail: tail{journal: journal}, pairs: map[Name]Pair{}}
}

// Read reads the decisions since the last Read.
func (l *Log) Read(ctx context.Context) error {
	return l.read(ctx, func() { clear(l.pairs) }, func(e entry) {
		for _, p := range e.Pairs {
			p.By, p.At = e.By, e.At
			l.pairs[p.Name()] = p
		}
	})
}

// Pairs returns the decided pairs, sorted by index and ids.
func (l *Log) Pairs() []Pair {
	list := slices.DeleteFunc(slices.Collect(maps.Values(l.pairs)), func(p Pair) bool { return p.Verdict == Forgotten })
	slices.SortFunc(list, func(a, b Pair) int {
		x, y := a.Name(), b.Name()
		return slices.Compare([]string{x.Index, x.A, x.B}, []string{y.Index, y.A, y.B})
	})
	return list
}

// Pair returns what is decided about two documents; false if nothing is.
func (l *Log) Pair(index, a, b string) (Pair, bool) {
	p := Pair{Index: index, A: a, B: b}
	p, there := l.pairs[p.Name()]
	return p, there && p.Verdict != Forgotten
}

// Add stores decisions made now, and returns how many of them are new. It skips the others. Pairs need an Index, ids, a Verdict and, unless that is
// Forgotten, both fingerprints, as [Find] returns them. by is who decided. After an error some may be stored.
func (l *Log) Add(ctx context.Context, by string, pairs ...Pair) (added int, err error) {
	if err := l.Read(ctx); err != nil {
		return 0, err
	}
	for _, p := range pairs {
		if p.Index == "" || p.A == "" || p.B == "" || p.A == p.B {
			return 0, fmt.Errorf("%q and %q are not two documents of an index", p.A, p.B)
		}
	}
	for some := range slices.Chunk(pairs, inEntry) {
		n, err := l.append(ctx, by, some)
		if added += n; err != nil {
			return added, err
		}
	}
	return added, nil
}

// Decide stores a decision about one pair, and returns the earlier one; Forgotten if there was none. by is who decided, unless the pair says it.
func (l *Log) Decide(ctx context.Context, by string, p Pair) (before Pair, err error) {
	if err = l.Read(ctx); err != nil {
		return before, err
	}
	var there bool
	if before, there = l.Pair(p.Index, p.A, p.B); !there {
		before = Pair{Index: p.Index, A: p.A, B: p.B, Verdict: Forgotten}
	}
	_, err = l.Add(ctx, cmp.Or(p.By, by), p)
	return before, err
}

// fresh returns the pairs that say something new.
func (l *Log) fresh(pairs []Pair) (list []Pair) {
	for _, p := range pairs {
		if !p.says(l.pairs[p.Name()]) {
			p.By, p.At = "", time.Time{} // the entry has them
			list = append(list, p)
		}
	}
	return list
}

// append appends those of the pairs that say something new, and returns how many these are.
func (l *Log) append(ctx context.Context, by string, pairs []Pair) (int, error) {
	for range tries {
		fresh := l.fresh(pairs) // others may have decided some of them meanwhile
		if len(fresh) == 0 {
			return 0, nil
		}
		data, err := json.Marshal(entry{by, time.Now().UTC().Truncate(time.Second), fresh})
		if err != nil {
			return 0, err
		}
		appended, err := l.journal.Append(ctx, JobName, adapters.Entry{Job: JobName, Number: l.newest.Number + 1, Data: data})
		if err == nil {
			err = l.Read(ctx)
		}
		if err != nil {
			return 0, err
		}
		// If nothing is new now, the entry was stored and only the answer was lost, or somebody else decided the same.
		if appended || len(l.fresh(fresh)) == 0 {
			return len(fresh), nil
		}
	}
	return 0, errors.New("other processes keep adding decided pairs: try again later")
}

// Drop deletes the pairs of the indices for which gone is true, and returns how many, and whether pairs of other indices are left. If none are, it
// deletes the whole journal.
func (l *Log) Drop(ctx context.Context, gone func(index string) bool) (dropped int, left bool, err error) {
	if err := l.Read(ctx); err != nil {
		return 0, false, err
	}
	var pairs []Pair
	for _, p := range l.Pairs() {
		if gone(p.Index) {
			p.Verdict = Forgotten
			pairs = append(pairs, p)
		} else {
			left = true
		}
	}
	if left {
		_, err = l.Add(ctx, "", pairs...)
	} else {
		err = l.journal.Drop(ctx, JobName, -1, 0)
	}
	return len(pairs), left, err
}
