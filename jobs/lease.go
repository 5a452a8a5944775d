package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
)

// A job is shared by any number of workers through the entries of a journal, to which an entry can be appended under a number
// only if there is none under it yet. So of several that see the same newest entry one alone appends the next, and that is all
// the agreement there is. Former entries are removed, after which their numbers could be taken again: so whoever appended one
// looks whether it is the newest.
//
// The entries of part 0 are plans: each begins a run, and says which parts of the index it has. The newest counts. Each part of
// the run has entries of its own, numbered apart from those of all other runs. The newest says who holds the part and how far it
// is done; whoever appends the next one holds it, and who can't has lost it.
//
// A lease holds until its holder has not renewed it for leaseFor. The holder measures that from before it sent its entry, by its
// own clock; another worker from when it first saw the entry, by its own. So clocks need not agree, as long as they run about
// equally fast. The time that is written in an entry serves for one thing: a run whose leases all ended long ago, by more than
// clocks differ, is not joined but begun anew.
//
// What a lease can't prevent is that a request which was sent in time arrives late. Writes are conditional: it does no harm.

const (
	// leaseFor is how long a lease holds without being renewed: long enough for a pause of the engine, short enough for those who
	// wait for the part of a worker that was killed.
	leaseFor = 10 * time.Second
	// watchFor is the same of the watch, which is held for days and by which nobody is kept waiting.
	watchFor = time.Minute
	// beats is how often a lease is renewed in that time.
	beats = 4
	// clocks is by how much the clocks of machines may differ.
	clocks = time.Minute
	// leaving is how long a worker that ends may take to give back what it holds.
	leaving = 5 * time.Second
	// maxParts is how many parts a run may have. Its numbers for them begin at the run's own number times this.
	maxParts = 1024
)

var (
	// errLost says that another worker holds the part now.
	errLost = errors.New("another worker has taken the part over")
	// errSuperseded says that the job was begun anew.
	errSuperseded = errors.New("the job was begun anew by another worker")
)

// journalError says that the journal could not be read or written.
type journalError struct{ err error }

func (e *journalError) Error() string {
	const hint = "give the job credentials that may write it, or look only, with --dry-run"
	return fmt.Sprintf("keep the job's checkpoint: %v: %s", e.err, hint)
}

func (e *journalError) Unwrap() error { return e.err }

// plan is what an entry of part 0 holds.
type plan struct {
	// ID tells the plan from those that others would have written in its place.
	ID    string    `json:"id"`
	Begun time.Time `json:"begun"`
	Parts []string  `json:"parts"`
	// Of is the identity of the index that it splits.
	Of string `json:"of,omitempty"`
	// Total is how many documents there are, as far as the engine says.
	Total int `json:"total,omitempty"`
}

// record is what an entry of another part holds.
type record struct {
	// Worker is who appended it, in one of its holdings.
	Worker string `json:"worker"`
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
}

// standing is the newest entry of a part.
type standing struct {
	number int
	data   []byte // as it was appended
	record
}

// sighting is when an entry was first seen, by this process's clock.
type sighting struct {
	number int
	at     time.Time
}

// board is a job as one worker sees it.
type board struct {
	journal     adapters.Journal
	job, worker string
	// identity is that of the index: a plan of another one counts for nothing.
	identity string

	mu       sync.Mutex
	run      int // the plan's number
	plan     plan
	seen     map[int]sighting
	holdings int
	changed  chan struct{} // closed when a part was given back or done
	taken    int           // leases of others that had ended and were taken over
	anew     bool          // the run to be resumed was of another index
}

func newBoard(journal adapters.Journal, job, worker string) *board {
	return &board{journal: journal, job: job, worker: worker, seen: map[int]sighting{}, changed: make(chan struct{})}
}

// state is what the journal says of a job at a time.
type state struct {
	run     int // the number of the newest plan, 0 if there is none
	plan    plan
	at      map[int]standing // where its parts stand, by the numbers of their entries
	entries []adapters.Entry
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
	return s, nil
}

// newest returns the state of the newest run, and remembers since when each entry has been there.
func (b *board) newest(ctx context.Context) (s state, err error) {
	if s.entries, err = b.journal.Entries(ctx, b.job); err != nil {
		return s, &journalError{err}
	}
	for _, e := range s.entries {
		if e.Part == 0 && e.Number > s.run {
			if s.plan, s.run = (plan{}), e.Number; json.Unmarshal(e.Data, &s.plan) != nil {
				s.plan = plan{} // of another version: none to go on with
			}
		}
	}
	s.at = map[int]standing{}
	for _, e := range s.entries {
		if e.Part/maxParts != s.run || e.Part == 0 || e.Number < s.at[e.Part].number {
			continue
		}
		one := standing{number: e.Number, data: e.Data}
		if json.Unmarshal(e.Data, &one.record) != nil {
			one.record = record{} // of another version: free, from the start
		}
		s.at[e.Part] = one
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for part, one := range s.at {
		if b.seen[part].number != one.number {
			b.seen[part] = sighting{one.number, time.Now()}
		}
	}
	return s, nil
}

// scanned returns how many documents of the run were read, by whichever worker.
func (s state) scanned() (documents int) {
	for i := range s.plan.Parts {
		documents += s.at[partOf(s.run, i)].Scanned
	}
	return documents
}

// partOf returns the number under which a part of a run has its entries. The one behind the last part is the watch's.
func partOf(run, i int) int { return run*maxParts + 1 + i }

// join takes the job as it stands, where it is to be resumed or others are at work on it; or else it begins a run of the parts that split
// returns.
func (b *board) join(ctx context.Context, resume bool, split func() (plan, error)) error {
	for {
		s, err := b.newest(ctx)
		if err != nil {
			return err
		}
		begin := len(s.plan.Parts) == 0 || s.plan.Of != b.identity || !resume && !b.live(s)
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
			ours, err := b.journal.Append(ctx, b.job, adapters.Entry{Job: b.job, Part: 0, Number: s.run, Data: data})
			if err != nil {
				return &journalError{err}
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
		last[e.Part] = max(last[e.Part], e.Number)
	}
	for part, number := range last {
		_ = b.journal.Drop(ctx, b.job, part, number+1)
	}
}

// live reports whether others are at work on a run.
func (b *board) live(s state) bool {
	if len(s.at) == 0 { // nobody has taken a part yet
		return time.Since(s.plan.Begun) < leaseFor
	}
	for i := range s.plan.Parts { // whoever watches joins the run that begins
		part := partOf(s.run, i)
		if one, held := s.at[part]; held && !one.Done && !b.ended(part, one) && time.Now().Round(0).Sub(one.Until) < clocks {
			return true
		}
	}
	return false
}

// ended reports whether a lease is known to have ended.
func (b *board) ended(part int, s standing) bool {
	if s.For == 0 || workerDead(s.Worker) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen[part]
	return seen.number == s.number && time.Since(seen.at) >= s.For
}

// claim takes a part that is neither done nor held, and waits for one while others hold some. It returns nil when all are done.
// The last part comes first: it is the open one, which all that is written from now on comes to lie in.
func (b *board) claim(ctx context.Context) (*holding, error) {
	for {
		changed := b.change()
		s, err := b.read(ctx)
		if err != nil {
			return nil, err
		}
		left := false
		for k := range s.plan.Parts {
			i := (k + len(s.plan.Parts) - 1) % len(s.plan.Parts)
			one := s.at[partOf(s.run, i)]
			if one.Done {
				continue
			}
			left = true
			if one.Part == "" {
				one.Part = s.plan.Parts[i]
			}
			if h, err := b.hold(ctx, partOf(s.run, i), one, leaseFor); h != nil || err != nil {
				return h, err
			}
		}
		if !left {
			return nil, nil
		}
		if err := pause(ctx, changed, leaseFor/beats); err != nil {
			return nil, err
		}
	}
}

// claimWatch takes the watch: once a run's parts are all done, one worker goes on looking for what changed since. It waits while
// another has it.
func (b *board) claimWatch(ctx context.Context) (*holding, error) {
	for {
		s, err := b.read(ctx)
		if err != nil {
			return nil, err
		}
		part := partOf(s.run, len(s.plan.Parts))
		one := s.at[part]
		if one.number == 0 {
			one.Part, one.After = s.watched()
		}
		if h, err := b.hold(ctx, part, one, watchFor); h != nil || err != nil {
			return h, err
		}
		if err := pause(ctx, b.change(), watchFor/beats); err != nil {
			return nil, err
		}
	}
}

// watched returns where a watch begins: behind what the last part held when it was read. An engine that can't go on behind
// anything is read whole again and again.
func (s state) watched() (part, after string) {
	for i := range s.plan.Parts {
		if after = s.at[partOf(s.run, i)].After; after != "" {
			part = s.plan.Parts[len(s.plan.Parts)-1]
		}
	}
	return part, after
}

// pause waits until something may have changed.
func pause(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// change returns what is closed when a part of this process was given back or done.
func (b *board) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// hold appends the entry that makes this worker the holder of a part. It returns nil if another holds it, or was faster.
func (b *board) hold(ctx context.Context, part int, s standing, lease time.Duration) (*holding, error) {
	if s.number > 0 && !b.ended(part, s) {
		return nil, nil
	}
	b.mu.Lock()
	b.holdings++
	worker := fmt.Sprintf("%s/%d", b.worker, b.holdings)
	b.mu.Unlock()
	h := &holding{
		board: b, part: part, lease: lease, worker: worker, number: s.number, record: s.record, turn: make(chan struct{}, 1),
	}
	if err := h.renew(ctx); errors.Is(err, errLost) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if s.For > 0 {
		b.mu.Lock()
		b.taken++
		b.mu.Unlock()
	}
	return h, nil
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

// IndexOf returns the index that a job in a journal is about, or empty if its name is none that this package gives.
func IndexOf(job string) string {
	rest, ours := strings.CutPrefix(job, jobPrefix)
	last := strings.LastIndexByte(rest, ':')
	if !ours || last < 0 {
		return ""
	}
	return rest[:last]
}
