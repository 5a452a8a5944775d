package calibrate

import "testing"

func TestPlain(t *testing.T) {
	if got := plain(100, "a\x1b[31m\u202eb\u0085c\nd\u2029é東京"); got != "a [31m b c d é東京" {
		t.Errorf("%q", got)
	}
	if got := plain(3, "東京都知事"); got != "東京…" {
		t.Errorf("%q", got)
	}
}
