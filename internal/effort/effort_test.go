package effort

import (
	"testing"
)

func TestRounds(t *testing.T) {
	want := 4000
	switch {
	case Race:
		want = 100
	case testing.Short():
		want = 400
	}
	if got := Rounds(4000); got != want {
		t.Errorf("Rounds(4000) = %d, want %d", got, want)
	}
	if got := Rounds(1); got != 1 {
		t.Errorf("Rounds(1) = %d, want 1", got)
	}
}
