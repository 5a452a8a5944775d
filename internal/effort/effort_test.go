package effort

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestRounds(t *testing.T) {
	want := 4000
	switch {
	case Race:
		want = 100
	case testing.Short():
		want = 400
	}
	expect.Same(t, want, Rounds(4000), "of 4000")
	expect.Same(t, 1, Rounds(1), "of 1")
}
