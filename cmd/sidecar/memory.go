package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// smallMemory is the memory that a sidecar is kept in as long as what is in use leaves room for that: with its program some 10 MB more.
	// Bodies and replies hold no pointers, so that collecting them often costs little.
	smallMemory = 36 << 20
	// moreMemory is what it gets beyond a quarter more than is in use.
	moreMemory = 8 << 20
	// betweenMemory is how often that is looked at.
	betweenMemory = 50 * time.Millisecond
	// collectAt is how much is allocated between two collections, in hundredths of what is in use: 100 had a sidecar that passes small
	// requests collect every 3 MB, for 8 % of its processor time. The limit above comes first.
	collectAt = 400
	// A process that allocates less than quietBytes in quietSpan is idle. It gives back what it does not use: at first, and then where it
	// has allocated worthBytes.
	quietSpan              = 2 * time.Second
	quietBytes, worthBytes = 256 << 10, 2 << 20
)

// keepSmall has the garbage collector keep the process small until what it returns is called, and what is not used given back where it idles. The
// limit moves with what is in use, so that it never works for nothing; GOMEMLIMIT is a ceiling to it. Where GOGC is set, that counts.
func keepSmall() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ceiling := debug.SetMemoryLimit(-1)
	restore := func() { debug.SetMemoryLimit(ceiling) }
	if os.Getenv("GOGC") == "" {
		usual := debug.SetGCPercent(collectAt)
		restore = func() {
			debug.SetGCPercent(usual)
			debug.SetMemoryLimit(ceiling)
		}
	}
	var done sync.WaitGroup
	done.Go(func() {
		defer restore()
		use := newUse()
		tick := time.NewTicker(betweenMemory)
		defer tick.Stop()
		var rest rest
		for limit := int64(0); ; {
			live, allocated := use.read()
			if wanted := min(memoryFor(live), ceiling); wanted != limit {
				limit = wanted
				debug.SetMemoryLimit(limit)
			}
			if rest.begins(allocated) {
				debug.FreeOSMemory()
				dropProgram()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// use reads what memory is in use.
type use []metrics.Sample

func newUse() use {
	return use{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
}

// read returns how many bytes are in use, those of stacks and of the runtime itself, which the limit counts as well, among them; and how many
// have been allocated so far.
func (u use) read() (live int64, allocated uint64) {
	metrics.Read(u)
	at := func(i int) int64 { return int64(u[i].Value.Uint64()) }
	return at(0) + max(at(2)-at(3)-at(4)-at(5)-at(6), 0), u[1].Value.Uint64()
}

// memoryFor returns how much memory there is to be where so much is in use, in steps, since to set it stops everything for a moment.
func memoryFor(use int64) int64 {
	const step = 4 << 20
	return max(smallMemory, (use+use/4+moreMemory+step-1)/step*step)
}

// rest tells when a process becomes idle. It is asked once in betweenMemory.
type rest struct {
	told  bool   // at least once
	at    uint64 // how many bytes had been allocated when it was told last
	from  uint64 // when it was last busy
	quiet time.Duration
}

// begins takes how many bytes have been allocated so far, and reports whether the process has been idle for a while after some work.
func (r *rest) begins(allocated uint64) bool {
	if allocated-r.from > quietBytes {
		r.from, r.quiet = allocated, 0
		return false
	}
	if r.quiet += betweenMemory; r.quiet < quietSpan {
		return false
	}
	r.from, r.quiet = allocated, 0
	if r.told && allocated-r.at < worthBytes {
		return false
	}
	r.told, r.at = true, allocated
	return true
}
