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
	lease    time.Duration

	mu       sync.Mutex
	run      int // the plan's number
	plan     plan
	seen     map[int]sighting
	holdings int
	changed  chan struct{} // closed when a part was given back or done
	taken    int           // leases of others that had ended and were taken over
	lost     int           // leases that others took over
	anew     bool          // the run to be resumed was of another index
}

func newBoard(journal adapters.Journal, job, worker string) *board {
	return &board{
		journal: journal, job: job, worker: worker, lease: leaseFor, seen: map[int]sighting{}, changed: make(chan struct{}),
	}
}

// read returns the newest plan with its number, 0 if there is none, and where its parts stand, by the numbers of their entries.
func (b *board) read(ctx context.Context) (run int, p plan, at map[int]standing, entries []adapters.Entry, err error) {
	if entries, err = b.journal.Entries(ctx, b.job); err != nil {
		return 0, p, nil, nil, &journalError{err}
	}
	for _, e := range entries {
		if e.Part == 0 && e.Number > run {
			if p, run = (plan{}), e.Number; json.Unmarshal(e.Data, &p) != nil {
				p = plan{} // of another version: none to go on with
			}
		}
	}
	at = map[int]standing{}
	for _, e := range entries {
		if e.Part/maxParts != run || e.Part == 0 || e.Number < at[e.Part].number {
			continue
		}
		s := standing{number: e.Number, data: e.Data}
		if json.Unmarshal(e.Data, &s.record) != nil {
			s.record = record{} // of another version: free, from the start
		}
		at[e.Part] = s
	}
	b.sight(at)
	return run, p, at, entries, nil
}

// sight remembers since when each entry has been there.
func (b *board) sight(at map[int]standing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for part, s := range at {
		if b.seen[part].number != s.number {
			b.seen[part] = sighting{s.number, time.Now()}
		}
	}
}

// partOf returns the number under which a part of a run has its entries. The one behind the last part is the watch's.
func partOf(run, i int) int { return run*maxParts + 1 + i }

// join takes the job as it stands, where it is to be resumed or others are at work on it; or else it begins a run of these parts.
func (b *board) join(ctx context.Context, resume bool, parts func() (plan, error)) error {
	for {
		run, p, at, old, err := b.read(ctx)
		if err != nil {
			return err
		}
		if len(p.Parts) > 0 && p.Of == b.identity && (resume || b.live(run, p, at)) {
			b.adopt(run, p)
			return nil
		}
		anew := resume && len(p.Parts) > 0
		if p, err = parts(); err != nil {
			return err
		}
		p.ID, p.Begun, p.Of = b.worker, time.Now(), b.identity
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		ours, err := b.journal.Append(ctx, b.job, adapters.Entry{Job: b.job, Part: 0, Number: run + 1, Data: data})
		if err != nil {
			return &journalError{err}
		}
		if !ours { // another was faster; or it is ours, and the request for it was sent twice
			resume = true
			continue
		}
		b.adopt(run+1, p)
		b.mu.Lock()
		b.anew = b.anew || anew
		b.mu.Unlock()
		b.sweep(ctx, old)
		return nil
	}
}

// adopt makes a run the one to work on.
func (b *board) adopt(run int, p plan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.run, b.plan = run, p
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
func (b *board) live(run int, p plan, at map[int]standing) bool {
	if len(at) == 0 { // nobody has taken a part yet
		return time.Since(p.Begun) < b.lease
	}
	for i := range p.Parts { // whoever watches joins the run that begins
		if s, held := at[partOf(run, i)]; held && !s.Done && !b.ended(partOf(run, i), s) && time.Now().Round(0).Sub(s.Until) < clocks {
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

// current fails if the run at hand is not the newest.
func (b *board) current(run int, p plan) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run != b.run || p.ID != b.plan.ID {
		return errSuperseded
	}
	return nil
}

// claim takes a part that is neither done nor held, and waits for one while others hold some. It returns nil when all are done.
// The last part comes first: it is the open one, which all that is written from now on comes to lie in.
func (b *board) claim(ctx context.Context) (*holding, error) {
	for {
		changed := b.change()
		run, p, at, _, err := b.read(ctx)
		if err == nil {
			err = b.current(run, p)
		}
		if err != nil {
			return nil, err
		}
		left := false
		for k := range p.Parts {
			i := (k + len(p.Parts) - 1) % len(p.Parts)
			s := at[partOf(run, i)]
			if s.Done {
				continue
			}
			left = true
			if s.number > 0 && !b.ended(partOf(run, i), s) {
				continue
			}
			if s.Part == "" {
				s.Part = p.Parts[i]
			}
			if h, err := b.take(ctx, partOf(run, i), s, b.lease); h != nil || err != nil {
				return h, err
			}
		}
		if !left {
			return nil, nil
		}
		if err := pause(ctx, changed, b.lease/beats); err != nil {
			return nil, err
		}
	}
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

// take appends the entry that makes this worker the holder of a part. It returns nil if another was faster.
func (b *board) take(ctx context.Context, part int, s standing, lease time.Duration) (*holding, error) {
	b.mu.Lock()
	b.holdings++
	worker := fmt.Sprintf("%s/%d", b.worker, b.holdings)
	b.mu.Unlock()
	h := &holding{
		board: b, part: part, lease: lease, worker: worker, number: s.number, record: s.record, turn: make(chan struct{}, 1),
	}
	err := h.renew(ctx)
	if errors.Is(err, errLost) {
		return nil, nil
	}
	if err == nil && s.For > 0 {
		b.mu.Lock()
		b.taken++
		b.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// elsewhere returns how many documents other workers, and those before, have read of the run, given what each of this process's
// holdings has. It fails if the run is no longer the newest.
func (b *board) elsewhere(ctx context.Context) (scanned int, err error) {
	run, p, at, _, err := b.read(ctx)
	if err == nil {
		err = b.current(run, p)
	}
	if err != nil {
		return 0, err
	}
	for i := range p.Parts {
		scanned += at[partOf(run, i)].Scanned
	}
	return scanned, nil
}

// lose counts a lease that was lost.
func (b *board) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost++
}

// claimWatch takes the watch: once a run's parts are all done, one worker goes on looking for what changed since. It waits while
// another has it.
func (b *board) claimWatch(ctx context.Context) (*holding, error) {
	for {
		run, p, at, _, err := b.read(ctx)
		if err == nil {
			err = b.current(run, p)
		}
		if err != nil {
			return nil, err
		}
		part := partOf(run, len(p.Parts))
		s := at[part]
		if s.number == 0 {
			s.Part, s.After = watched(run, p, at)
		}
		if s.number == 0 || b.ended(part, s) {
			if h, err := b.take(ctx, part, s, watchFor); h != nil || err != nil {
				return h, err
			}
		}
		if err := pause(ctx, b.change(), watchFor/beats); err != nil {
			return nil, err
		}
	}
}

// watched returns where a watch begins: behind what the last part held when it was read. An engine that can't go on behind
// anything is read whole again and again.
func watched(run int, p plan, at map[int]standing) (part, after string) {
	for i := range p.Parts {
		if after = at[partOf(run, i)].After; after != "" {
			part = p.Parts[len(p.Parts)-1]
		}
	}
	return part, after
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
