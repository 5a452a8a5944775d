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
// The entries are kept in slots, and in each the newest counts. Slot 0 has the plans: each begins the job anew, and says which parts the
// index is split into. Each part of a plan has a slot of its own, numbered apart from those of all other plans. Its newest entry says who
// holds the part and how far it is done; whoever appends the next one holds it, and who can't has lost it.
//
// A lease holds until its holder has not renewed it for leaseFor. The holder measures that from before it sent its entry, by its
// own clock; another worker from when it first saw the entry, by its own. So clocks need not agree, as long as they run about
// equally fast. The time that is written in an entry serves for one thing: a plan whose leases all ended long ago, by more than
// clocks differ, is not joined: another is made.
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
	// maxParts is how many parts a plan may have. Its slots for them begin at the plan's own number times this.
	maxParts = 1024
)

var (
	// errLost says that another worker holds the part now, or may hold it.
	errLost = errors.New("another worker has taken the part over")
	// errSuperseded says that another worker has made a new plan.
	errSuperseded = errors.New("the job was begun anew by another worker")
	// errJournal is within the errors of reading and writing the journal.
	errJournal = errors.New("give the job credentials that may write it, or look only, with --dry-run")
)

func journalError(err error) error {
	return fmt.Errorf("keep the job's checkpoint: %w: %w", err, errJournal)
}

// board is a job and its plan as one run sees them.
type board struct {
	journal     adapters.Journal
	pace        *Pace
	job, worker string

	mu      sync.Mutex
	plan    plan           // that was joined
	seen    map[int]record // the newest of each slot when the journal was read last
	scanned int            // documents that all workers had read by then
	ours    map[int]bool   // the slots of parts that this process is at work on
	report  Report         // of which the board fills in what it says of plans and leases
}

func newBoard(journal adapters.Journal, pace *Pace, job, worker string) *board {
	return &board{journal: journal, pace: pace, job: job, worker: worker, ours: map[int]bool{}}
}

// plan is an entry of slot 0, and what the journal said of its parts when it was read.
type plan struct {
	// ID is unique to the plan.
	ID    string    `json:"id"`
	Begun time.Time `json:"begun"`
	Parts []string  `json:"parts"`
	// Of is the identity of the index that it splits.
	Of string `json:"of,omitempty"`
	// Total is how many documents there are, as far as the engine says.
	Total int `json:"total,omitempty"`

	number  int            // 0 for no plan
	records map[int]record // the newest of each part, by slot
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

// slot returns the slot of a part. The one after the last part is the watch's.
func (p plan) slot(part int) int { return p.number*maxParts + 1 + part }

// joinPlan joins the newest plan, where it is to be resumed or others are at work on it. Otherwise it makes one of the parts that split returns.
// A plan of an index with another identity counts for nothing. It returns how many documents there are as far as the engine says.
func (b *board) joinPlan(ctx context.Context, identity string, resume bool, split splitter) (documents int, err error) {
	err = b.pace.Retry(ctx, func() error { return b.tryToJoin(ctx, identity, resume, split) })
	return b.plan.Total, err
}

// keepInMemory has the journal in memory from now on, because the engine's can't be kept.
func (b *board) keepInMemory(why error) {
	b.journal = &Ledger{}
	b.report.Unkept = why.Error()
}

// splitter returns the names of the parts of an index, and how many documents it has.
type splitter func() (parts []string, documents int, err error)

// tryToJoin is joinPlan, unless the engine is busy.
func (b *board) tryToJoin(ctx context.Context, identity string, resume bool, split splitter) error {
	for {
		p, entries, err := b.newest(ctx)
		if err != nil {
			return err
		}
		begin := len(p.Parts) == 0 || p.Of != identity || !resume && !p.live()
		anew := begin && resume && len(p.Parts) > 0
		if begin {
			p = plan{number: p.number + 1, ID: b.worker, Begun: time.Now(), Of: identity}
			if p.Parts, p.Total, err = split(); err != nil {
				return err
			}
			if n := len(p.Parts); n == 0 || n > maxParts-2 {
				return fmt.Errorf("split: %d parts", n)
			}
			data, err := json.Marshal(p)
			if err != nil {
				return err
			}
			ours, err := b.journal.Append(ctx, b.job, adapters.Entry{Job: b.job, Number: p.number, Data: data})
			if err != nil {
				return journalError(err)
			}
			if !ours { // another was faster; or it is ours, and the request for it was sent twice
				resume = true
				continue
			}
		}
		b.mu.Lock()
		b.plan, b.report.Parts = p, len(p.Parts)
		b.report.Anew = b.report.Anew || anew
		b.report.Resumed = b.report.Resumed || p.ID != b.worker
		b.mu.Unlock()
		if begin {
			b.sweep(ctx, entries)
		}
		return nil
	}
}

// sweep removes the entries of former plans. What stays is in nobody's way.
func (b *board) sweep(ctx context.Context, old []adapters.Entry) {
	last := map[int]int{}
	for _, e := range old {
		last[e.Slot] = max(last[e.Slot], e.Number)
	}
	for slot, number := range last {
		_ = b.journal.Drop(ctx, b.job, slot, number+1)
	}
}

// live reports whether others are at work on the plan.
func (p plan) live() bool {
	if len(p.records) == 0 { // nobody has taken a part yet
		return time.Since(p.Begun) < leaseFor
	}
	for i := range p.Parts { // whoever watches joins the plan that is made
		if r, held := p.records[p.slot(i)]; held && !r.Done && r.For > 0 && time.Now().Round(0).Sub(r.Until) < clocks {
			return true
		}
	}
	return false
}

// eachPart claims one part after the other and does the work on it while it is held, until none is left for the caller. A part that another worker
// takes over meanwhile is left to that one. It calls waiting each time before it waits for a part that others hold.
func (b *board) eachPart(ctx context.Context, work func(context.Context, *lease) error, waiting func()) error {
	for {
		l, err := b.claim(ctx, aPart, waiting)
		if l == nil || err != nil {
			return err
		}
		if err = l.whileHeld(ctx, work); err != nil && !errors.Is(err, errLost) {
			return err
		}
	}
}

// What a claim is for.
const aPart, theWatch = false, true

// claim returns a part, or the watch, for this worker to hold, and waits while other processes hold all that are left. It calls waiting before each
// time. It returns nil where nothing is left for the caller: each part is done, or another slice of this process has it.
func (b *board) claim(ctx context.Context, watch bool, waiting func()) (l *lease, err error) {
	for wait := time.Duration(0); ; {
		err = b.pace.Retry(ctx, func() (err error) {
			l, wait, err = b.take(ctx, watch)
			return err
		})
		if l != nil || wait == 0 || err != nil {
			return l, err
		}
		waiting()
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// take takes a part that is neither done nor held. Without a free part l is nil. wait is then when to try again, 0 if no other process holds a
// part. The watch is one more part that is never done: once all others are, one worker goes on looking for what changed since.
func (b *board) take(ctx context.Context, watch bool) (l *lease, wait time.Duration, err error) {
	p, err := b.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	b.mu.Lock()
	ours := maps.Clone(b.ours)
	b.mu.Unlock()
	n := len(p.Parts)
	order, lasts := []int{n}, watchFor
	if !watch {
		order, lasts = nil, leaseFor
		for i := range n { // the last part first: it is the open one, to which all that is written from now on belongs
			order = append(order, (i+n-1)%n)
		}
	}
	for _, i := range order {
		slot := p.slot(i)
		r := p.records[slot]
		if !r.Done && !ours[slot] {
			wait = min(cmp.Or(wait, leaseFor/beats), cmp.Or(r.remaining(), leaseFor/beats))
		}
		if r.Done || r.remaining() > 0 {
			continue
		}
		switch {
		case watch && r.number == 0:
			r.Part, r.After = p.watched()
		case !watch && r.Part == "":
			r.Part = p.Parts[i]
		}
		l = &lease{board: b, slot: slot, lasts: lasts, record: r}
		l.Holder = b.worker + "/" + token()
		if err = l.renew(ctx); errors.Is(err, errLost) { // another was faster
			continue
		} else if err != nil { // the entry may be there all the same
			l.giveBack(ctx)
			return nil, wait, err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ours[slot] = true
		if r.For > 0 {
			b.report.Taken++
		}
		return l, wait, nil
	}
	return nil, wait, nil
}

// remaining returns how long the lease still holds, as far as is known; 0 where nobody holds the part.
func (r record) remaining() time.Duration { return max(0, r.For-time.Since(r.seen)) }

// watched returns where a watch begins: after what the last part held when it was read. An engine that can't go on from anywhere
// is read from the start again and again.
func (p plan) watched() (part, after string) {
	for i := range p.Parts {
		if after = p.records[p.slot(i)].After; after != "" {
			part = p.Parts[len(p.Parts)-1]
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

// advance notes, for the next entry, that the part is done up to a mark, and how many more documents were read. Without a mark it stays where it was.
func (l *lease) advance(after string, scanned int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after != "" {
		l.After = after
	}
	l.Scanned += scanned
}

// whileHeld does the work on the part and renews the lease meanwhile. Then it marks the part as done, or after an error gives it back. If the
// engine had no room and the scan can't go on after its last page, the work begins again at position.
func (l *lease) whileHeld(ctx context.Context, work func(context.Context, *lease) error) (err error) {
	defer func() { l.ended(err) }()
	held, lose := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { l.keep(held, lose) })
	err = l.board.pace.Retry(held, func() error { return work(held, l) })
	lose(nil)
	renewing.Wait()
	if cause := context.Cause(held); errors.Is(cause, errLost) || errors.Is(cause, errSuperseded) {
		err = cause
	}
	if err == nil {
		err = l.board.pace.Retry(ctx, func() error { return l.finish(ctx) })
	}
	if err != nil && !errors.Is(err, errLost) {
		l.giveBack(ctx)
	}
	return err
}

// renew holds the part for as long as the lease lasts from now.
func (l *lease) renew(ctx context.Context) error { return l.append(ctx, l.lasts, false) }

// giveBack leaves the part to others, also once ctx has ended.
func (l *lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	_ = l.append(ctx, 0, false) // else the lease ends by itself
}

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
		p, err := b.read(ctx)
		if err != nil {
			return err
		}
		newest := p.records[l.slot]
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

// keep renews the lease until ctx ends, and calls lose if it is lost or another plan was made.
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

// ended says that nobody of this process is at work on the part any more, and counts how that ended.
func (l *lease) ended(err error) {
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	delete(l.board.ours, l.slot)
	switch {
	case err == nil:
		l.board.report.PartsDone++
	case errors.Is(err, errLost):
		l.board.report.Lost++
	}
}

// read reads the journal on the plan that was joined. It fails if that is no longer the newest.
func (b *board) read(ctx context.Context) (plan, error) {
	p, _, err := b.newest(ctx)
	if err != nil {
		return p, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.number != b.plan.number || p.ID != b.plan.ID {
		return p, errSuperseded
	}
	b.scanned = 0
	for i := range p.Parts {
		b.scanned += p.records[p.slot(i)].Scanned
	}
	return p, nil
}

// newest reads the journal, and returns the newest plan and all entries. It remembers since when each entry has been there.
func (b *board) newest(ctx context.Context) (p plan, entries []adapters.Entry, err error) {
	if entries, err = b.journal.Entries(ctx, b.job); err != nil {
		return p, nil, journalError(err)
	}
	for _, e := range entries {
		if e.Slot == 0 && e.Number > p.number {
			if p = (plan{}); json.Unmarshal(e.Data, &p) != nil {
				p = plan{} // of another version: none to go on with
			}
			p.number = e.Number
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.records = map[int]record{}
	for _, e := range entries {
		if e.Slot/maxParts != p.number || e.Slot == 0 || e.Number < p.records[e.Slot].number {
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
		p.records[e.Slot] = r
	}
	b.seen = p.records
	return p, entries, nil
}

// leaseReport returns what a report says of plans and leases.
func (b *board) leaseReport() Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.report
}

// scannedByAll returns how many documents all workers had read when the journal was read last.
func (b *board) scannedByAll() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.scanned
}

// token returns a name that nobody else has.
func token() string { return strconv.FormatUint(rand.Uint64(), 36) }

// jobName returns the name of a job: that of all workers that do the same to the same index.
func jobName(job Job, query string) string {
	r := job.Rule
	text := fmt.Sprintf("%x/%x/%d/%d/%t/%s/%s",
		r.Sketcher.SchemeID(), r.Source(), r.Bands, r.Rows, r.Clusters, r.ClusterMark(), query)
	if r.Vector != "" {
		text += "/" + r.Vector
	}
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
