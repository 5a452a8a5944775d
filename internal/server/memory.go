package server

import (
	"os"
	"runtime/debug"

	"github.com/neardup/sidecar/internal/config"
)

// limitMemory has the garbage collector keep what config.yaml promises: three times max_held for each engine, and some 20 MB. It begins to work
// harder at two times. GOMEMLIMIT, where set, counts in its place.
func limitMemory(c *config.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(16 << 20)
	for _, e := range c.Engines {
		limit += 2 * int64(e.Limits.MaxHeld)
	}
	debug.SetMemoryLimit(limit)
}
