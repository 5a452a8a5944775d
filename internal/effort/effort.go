// Package effort says how hard a test of random or repeated cases tries, so that one test serves every run: all its rounds in make test-all,
// a tenth of them in make test (go test -short), and a fortieth under the race detector, which needs few cases to see two goroutines meet.
package effort

import "testing"

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
