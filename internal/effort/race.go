//go:build race

package effort

// Race reports whether the race detector watches this run.
const Race = true
