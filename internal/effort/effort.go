// Package effort says how hard a test of random or repeated cases tries, so that one test serves every run: all its rounds in make test-all,
// a tenth of them in make test (go test -short), and a fortieth under the race detector, which needs few cases to see two goroutines meet.
package effort

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Rounds returns how many of full rounds to run, at least one.
func Rounds(full int) int {
	switch {
	case Race:
		full /= 40
	case testing.Short():
		full /= 10
	}
	return max(full, 1)
}

// Seed returns the seed of a random test, which it logs: NEARDUP_SEED if that is set. In CI it is always the same, so that what fails there is
// what was changed; new ground is for the runs at a desk and for the long ones.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if os.Getenv("CI") == "true" && os.Getenv("NEARDUP_SOAK") == "" {
		seed = 1
	}
	if text := os.Getenv("NEARDUP_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("NEARDUP_SEED=%d", seed)
	return seed
}
