package main

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
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

// keepSmall has the garbage collector keep the process small until ctx ends, and what is not used given back where it idles. The limit moves
// with what is in use, so that it never works for nothing. Where GOMEMLIMIT or GOGC is set, that counts.
func keepSmall(ctx context.Context) {
	limited := debug.SetMemoryLimit(-1) != math.MaxInt64
	if !limited && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	go func() {
		if !limited {
			defer debug.SetMemoryLimit(math.MaxInt64)
		}
		use := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
		tick := time.NewTicker(betweenMemory)
		defer tick.Stop()
		var rest rest
		for limit := int64(0); ; {
			metrics.Read(use)
			if wanted := memoryFor(int64(use[0].Value.Uint64())); wanted != limit && !limited {
				limit = wanted
				debug.SetMemoryLimit(limit)
			}
			if rest.begins(use[1].Value.Uint64()) {
				debug.FreeOSMemory()
				dropProgram()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
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
