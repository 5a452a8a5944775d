package server

import (
	"os"
	"runtime/debug"
	"sync"

	"github.com/neardup/sidecar/internal/config"
)

// limitMemory has the garbage collector keep what config.yaml promises: three times max_held for each engine, and some 20 MB. It begins to work
// harder at two times. GOMEMLIMIT and GOGC, where set, count in its place.
func limitMemory(c *config.Config) {
	if os.Getenv("GOGC") == "" {
		_ = ballast()
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(ballastSize + 16<<20)
	for _, e := range c.Engines {
		limit += 2 * int64(e.Limits.MaxHeld)
	}
	debug.SetMemoryLimit(limit)
}

// ballastSize is four times what is allocated at least between two collections. Go's own pace, as much as is in use, has a sidecar with little in use
// collect every few megabytes, which took a third of its processor time.
const ballastSize = 32 << 20

// ballast is never written, so that it takes addresses and no memory.
var ballast = sync.OnceValue(func() []byte {
	debug.SetGCPercent(25)
	return make([]byte, ballastSize)
})
