package jobs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
)

// A job is shared by any number of workers through the entries of a journal, to which an entry can be appended under a number
// only if the number is free. So of several that see the same newest entry only one appends the next. There is no other
// agreement. Former entries are removed, after which their numbers could be taken again: so whoever appended one
// looks whether it is the newest.
//
// The entries are kept in slots, and in each the newest counts. Slot 0 has the plans: each begins a run, and says which parts of the
// index it has. Each part of a run has a slot of its own, numbered apart from those of all other runs. Its newest entry says who holds
// the part and how far it is done; whoever appends the next one holds it, and who can't has lost it.
//
// A lease holds until its holder has not renewed it for leaseFor. The holder measures that from before it sent its entry, by its
// own clock; another worker from when it first saw the entry, by its own. So clocks need not agree, as long as they run about
// equally fast. The time that is written in an entry serves for one thing: a run whose leases all ended long ago, by more than
// clocks differ, is not joined: another begins.
//
// What a lease can't prevent is that a request which was sent in time arrives late. Writes are conditional: it does no harm.

const (
	// leaseFor is how long a lease holds without being renewed: long enough for a pause of the engine, short enough for those who
	// wait for the part of a worker that was killed.
	leaseFor = 10 * time.Second
	// watchFor is the same for the watch. That is held for days, and nobody waits for it.
	watchFor = time.Minute
	// beats is how often a lease is renewed in that time.
	beats = 4
	// clocks is by how much the clocks of machines may differ.
	clocks = time.Minute
	// leaving is how long a worker that ends may take to give back what it holds.
	leaving = 5 * time.Second
	// maxParts is how many parts a run may have. Its slots for them begin at the run's own number times this.
	maxParts = 1024
)

var (
	// errLost says that another worker holds the part now, or may hold it.
	errLost = errors.New("another worker has taken the part over")
	// errSuperseded says that another worker has begun a new run.
	errSuperseded = errors.New("the job was begun anew by another worker")
	// errJournal is within the errors of reading and writing the journal.
	errJournal = errors.New("give the job credentials that may write it, or look only, with --dry-run")
)

func journalError(err error) error {
	return fmt.Errorf("keep the job's checkpoint: %w: %w", err, errJournal)
}

// board is a job as one worker sees it.
type board struct {
	journal     adapters.Journal
	job, worker string
	// identity is that of the index: a plan of another one counts for nothing.
	identity string

	mu      sync.Mutex
	run     int // the plan's number
	plan    plan
	seen    map[int]record // the newest of each slot when the journal was read last
	scanned int            // documents that all workers had read by then
	ours    map[int]bool   // the slots of parts that this process is at work on
	taken   int            // leases that had ended and were taken over
	anew    bool           // the run to be resumed was of another index
}

func newBoard(journal adapters.Journal, job, worker string) *board {
	return &board{journal: journal, job: job, worker: worker, ours: map[int]bool{}}
}

// plan is an entry of slot 0.
type plan struct {
	// ID is unique to the plan.
	ID    string    `json:"id"`
	Begun time.Time `json:"begun"`
	Parts []string  `json:"parts"`
	// Of is the identity of the index that it splits.
	Of string `json:"of,omitempty"`
	// Total is how many documents there are, as far as the engine says.
	Total int `json:"total,omitempty"`
}

// record is an entry of a part's slot.
type record struct {
	// Holder is who appended it, with a name that each lease has of its own.
	Holder string `json:"worker"`
	// Until is when the lease ends by the worker's clock, and For how long it holds from when it is seen. Without either the
	// part is free.
	Until time.Time     `json:"until,omitzero"`
	For   time.Duration `json:"for,omitzero"`
	// Done says that all of the part is.
	Done bool `json:"done,omitempty"`
	// Part and After are what a scan goes on with.
	Part  string `json:"part,omitempty"`
	After string `json:"after,omitempty"`
	// Scanned is how many of its documents were read, by whichever worker.
	Scanned int `json:"scanned,omitempty"`

	number int
	data   []byte    // as it was appended
	seen   time.Time // by this process, first
}

// state is what the journal says of a job at a time.
type state struct {
	run     int // the number of the newest plan, 0 without one
	plan    plan
	at      map[int]record // the newest of each part, by slot
	entries []adapters.Entry
}

// slotOf returns the slot of a part of a run. The one after the last part is the watch's.
func slotOf(run, part int) int { return run*maxParts + 1 + part }

// join joins the newest run, where it is to be resumed or others are at work on it. Otherwise it begins a run of the parts that split returns.
func (b *board) join(ctx context.Context, resume bool, split func() (plan, error)) error {
	for {
		s, err := b.newest(ctx)
		if err != nil {
			return err
		}
		begin := len(s.plan.Parts) == 0 || s.plan.Of != b.identity || !resume && !s.live()
		anew := begin && resume && len(s.plan.Parts) > 0
		if begin {
			if s.plan, err = split(); err != nil {
				return err
			}
			s.run++
			s.plan.ID, s.plan.Begun, s.plan.Of = b.worker, time.Now(), b.identity
			data, err := json.Marshal(s.plan)
			if err != nil {
				return err
			}
			ours, err := b.journal.Append(ctx, b.job, adapters.Entry{Job: b.job, Number: s.run, Data: data})
			if err != nil {
				return journalError(err)
			}
			if !ours { // another was faster; or it is ours, and the request for it was sent twice
				resume = true
				continue
			}
		}
		b.mu.Lock()
		b.run, b.plan, b.anew = s.run, s.plan, b.anew || anew
		b.mu.Unlock()
		if begin {
			b.sweep(ctx, s.entries)
		}
		return nil
	}
}

// sweep removes the entries of former runs. What stays is in nobody's way.
func (b *board) sweep(ctx context.Context, old []adapters.Entry) {
	last := map[int]int{}
	for _, e := range old {
		last[e.Slot] = max(last[e.Slot], e.Number)
	}
	for slot, number := range last {
		_ = b.journal.Drop(ctx, b.job, slot, number+1)
	}
}

// live reports whether others are at work on the run.
func (s state) live() bool {
	if len(s.at) == 0 { // nobody has taken a part yet
		return time.Since(s.plan.Begun) < leaseFor
	}
	for i := range s.plan.Parts { // whoever watches joins the run that begins
		if r, held := s.at[slotOf(s.run, i)]; held && !r.Done && r.For > 0 && time.Now().Round(0).Sub(r.Until) < clocks {
			return true
		}
	}
	return false
}

// claim takes a part that is neither done nor held. It returns nil where all that are left are held. Where other processes hold some, wait is
// how long to wait before the next try; else it is 0. The watch is one more part that is never done: once all others are, one worker goes on looking for what changed since.
func (b *board) claim(ctx context.Context, watch bool) (l *lease, wait time.Duration, err error) {
	s, err := b.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	b.mu.Lock()
	ours := maps.Clone(b.ours)
	b.mu.Unlock()
	n := len(s.plan.Parts)
	order, lasts := []int{n}, watchFor
	if !watch {
		order, lasts = nil, leaseFor
		for i := range n { // the last part first: it is the open one, to which all that is written from now on belongs
			order = append(order, (i+n-1)%n)
		}
	}
	for _, i := range order {
		slot := slotOf(s.run, i)
		r := s.at[slot]
		if !r.Done && !ours[slot] {
			wait = min(cmp.Or(wait, leaseFor/beats), cmp.Or(r.remaining(), leaseFor/beats))
		}
		if r.Done || r.remaining() > 0 {
			continue
		}
		switch {
		case watch && r.number == 0:
			r.Part, r.After = s.watched()
		case !watch && r.Part == "":
			r.Part = s.plan.Parts[i]
		}
		l = &lease{board: b, slot: slot, lasts: lasts, record: r}
		l.Holder = b.worker + "/" + token()
		if err = l.renew(ctx); errors.Is(err, errLost) { // another was faster
			continue
		} else if err != nil {
			return nil, wait, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ours[slot] = true
		if r.For > 0 {
			b.taken++
		}
		return l, wait, nil
	}
	return nil, wait, nil
}

// remaining returns how long the lease still holds, as far as is known; 0 where nobody holds the part.
func (r record) remaining() time.Duration { return max(0, r.For-time.Since(r.seen)) }

// watched returns where a watch begins: after what the last part held when it was read. An engine that can't go on from anywhere
// is read from the start again and again.
func (s state) watched() (part, after string) {
	for i := range s.plan.Parts {
		if after = s.at[slotOf(s.run, i)].After; after != "" {
			part = s.plan.Parts[len(s.plan.Parts)-1]
		}
	}
	return part, after
}

// lease is a part that this worker holds.
type lease struct {
	board *board
	slot  int
	lasts time.Duration

	mu sync.Mutex
	record
	ends time.Time
}

// position returns where a scan of the part goes on, or begins again.
func (l *lease) position() (part, after string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.After == "" {
		l.Scanned = 0
	}
	return l.Part, l.After
}

// advance remembers, for the next entry, how far the part is done.
func (l *lease) advance(after string, scanned int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after != "" {
		l.After = after
	}
	l.Scanned += scanned
}

// renew holds the part for as long as the lease lasts from now.
func (l *lease) renew(ctx context.Context) error { return l.append(ctx, l.lasts, false) }

// release gives the part back.
func (l *lease) release(ctx context.Context) error { return l.append(ctx, 0, false) }

// finish marks the part as done.
func (l *lease) finish(ctx context.Context) error { return l.append(ctx, 0, true) }

// append appends an entry after our newest one, and removes those before: the part is held for that long, 0 for not at all. With errLost
// the part is another worker's, or may be. Appends of one lease must not overlap.
func (l *lease) append(ctx context.Context, lasts time.Duration, done bool) error {
	l.mu.Lock()
	r := l.record
	l.mu.Unlock()
	ends := time.Now().Add(lasts)
	r.For, r.Until, r.Done = lasts, time.Time{}, done
	if lasts > 0 {
		r.Until = ends.Round(0)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b := l.board
	for appended := false; !appended; {
		first, err := b.journal.Append(ctx, b.job, adapters.Entry{Job: b.job, Slot: l.slot, Number: r.number + 1, Data: data})
		if err != nil {
			return journalError(err)
		}
		// Nobody else can have the number now. But one that was removed could be had again, by who looked before it was there: so
		// what counts is that it is the newest.
		s, err := b.read(ctx)
		if err != nil {
			return err
		}
		newest := s.at[l.slot]
		if newest.Holder != l.Holder || newest.number <= r.number {
			return errLost
		}
		// An entry that a transport sent twice is ours. Another one is ours too, of a request whose answer was lost: append after it.
		appended = newest.number == r.number+1 && (first || bytes.Equal(newest.data, data))
		r.number = newest.number
	}
	_ = b.journal.Drop(ctx, b.job, l.slot, r.number) // else the next one does it
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number, l.ends = r.number, ends
	return nil
}

// keep renews the lease until ctx ends, and calls lose if it is lost or another run was begun.
func (l *lease) keep(ctx context.Context, lose func(error)) {
	for sleep(ctx, l.lasts/beats) == nil {
		trying, cancel := context.WithTimeout(ctx, l.lasts/2)
		err := l.renew(trying)
		cancel()
		if !errors.Is(err, errLost) && !errors.Is(err, errSuperseded) { // else it is tried again, until the lease ends
			err = l.certain(ctx)
		}
		if err != nil && ctx.Err() == nil {
			lose(err)
			return
		}
	}
}

// certain fails unless the part is ours for certain.
func (l *lease) certain(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Both clocks: one of them may have stood still with the machine.
	if now := time.Now(); !now.Before(l.ends) || !now.Round(0).Before(l.ends.Round(0)) {
		return errLost
	}
	return context.Cause(ctx)
}

// forget says that nobody of this process is at work on the part any more.
func (l *lease) forget() {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	delete(l.board.ours, l.slot)
}

// read returns the state of the run at hand. It fails if that is no longer the newest.
func (b *board) read(ctx context.Context) (state, error) {
	s, err := b.newest(ctx)
	if err != nil {
		return s, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.run != b.run || s.plan.ID != b.plan.ID {
		return s, errSuperseded
	}
	b.scanned = 0
	for i := range s.plan.Parts {
		b.scanned += s.at[slotOf(s.run, i)].Scanned
	}
	return s, nil
}

// newest returns the state of the newest run, and remembers since when each entry has been there.
func (b *board) newest(ctx context.Context) (s state, err error) {
	if s.entries, err = b.journal.Entries(ctx, b.job); err != nil {
		return s, journalError(err)
	}
	for _, e := range s.entries {
		if e.Slot == 0 && e.Number > s.run {
			if s.plan, s.run = (plan{}), e.Number; json.Unmarshal(e.Data, &s.plan) != nil {
				s.plan = plan{} // of another version: none to go on with
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.at = map[int]record{}
	for _, e := range s.entries {
		if e.Slot/maxParts != s.run || e.Slot == 0 || e.Number < s.at[e.Slot].number {
			continue
		}
		var r record
		if json.Unmarshal(e.Data, &r) != nil {
			r = record{} // of another version: free, from the start
		}
		r.number, r.data, r.seen = e.Number, e.Data, time.Now()
		if before, known := b.seen[e.Slot]; known && before.number == r.number {
			r.seen = before.seen
		}
		s.at[e.Slot] = r
	}
	b.seen = s.at
	return s, nil
}

// token returns a name that nobody else has.
func token() string { return strconv.FormatUint(rand.Uint64(), 36) }

// jobName returns the name of a job: that of all workers that do the same to the same index.
func jobName(job Job, query string) string {
	r := job.Rule
	text := fmt.Sprintf("%x/%x/%d/%d/%t/%s/%s",
		r.Sketcher.SchemeID(), r.Source(), r.Bands, r.Rows, r.Clusters, r.ClusterMark(), query)
	return fmt.Sprintf("%s%s:%016x", jobPrefix, job.Index, xxhash.Sum64String(text))
}

const jobPrefix = "reindex:"

// IndexOf returns the index that a job in a journal is about, or empty if this package gave no such name.
func IndexOf(job string) string {
	rest, ours := strings.CutPrefix(job, jobPrefix)
	last := strings.LastIndexByte(rest, ':')
	if !ours || last < 0 {
		return ""
	}
	return rest[:last]
}
