package main

import "testing"

// TestRestBegins: a process that idles gives back at first, and then only after some work.
func TestRestBegins(t *testing.T) {
	var r rest
	allocated := uint64(5 << 20) // by its start
	spend := func(ticks int, each uint64) (begun int) {
		for range ticks {
			if allocated += each; r.begins(allocated) {
				begun++
			}
		}
		return begun
	}
	const span = int(quietSpan / betweenMemory)
	for _, step := range []struct {
		name  string
		ticks int
		each  uint64
		want  int
	}{
		{"it just started", span - 1, 0, 0},
		{"idle since then", 2 * span, 0, 1},
		{"ticks of its own", 20 * span, 100, 0},
		{"busy", 5 * span, quietBytes + 1, 0},
		{"idle again", 5 * span, 100, 1},
		{"a few requests", 1, worthBytes / 2, 0},
		{"idle after these", 5 * span, 0, 0},
		{"some more", 1, worthBytes, 0},
		{"idle after those", 5 * span, 0, 1},
	} {
		if got := spend(step.ticks, step.each); got != step.want {
			t.Errorf("%s: it gave back %d times, want %d", step.name, got, step.want)
		}
	}
}
