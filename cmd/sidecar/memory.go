package main

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// smallMemory is the memory that a sidecar is kept in as long as what is in use leaves room for that: with its program some 20 MB more.
	// Bodies and replies hold no pointers, so that collecting them often costs little.
	smallMemory = 36 << 20
	// moreMemory is what it gets beyond a quarter more than is in use.
	moreMemory = 8 << 20
	// betweenMemory is how often that is looked at.
	betweenMemory = 50 * time.Millisecond
)

// keepSmall has the garbage collector keep the process small until ctx ends. The limit moves with what is in use, so that it never works for
// nothing. Where GOMEMLIMIT is set, that counts alone.
func keepSmall(ctx context.Context) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	go func() {
		defer debug.SetMemoryLimit(math.MaxInt64)
		use := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		tick := time.NewTicker(betweenMemory)
		defer tick.Stop()
		for limit := int64(0); ; {
			metrics.Read(use)
			if wanted := memoryFor(int64(use[0].Value.Uint64())); wanted != limit {
				limit = wanted
				debug.SetMemoryLimit(limit)
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
