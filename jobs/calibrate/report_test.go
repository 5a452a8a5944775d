package calibrate

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestPlain(t *testing.T) {
	expect.Same(t, "a [31m b c d é東京", Plain(100, "a\x1b[31m\u202eb\u0085c\nd\u2029é東京"), "")
	expect.Same(t, "東京…", Plain(3, "東京都知事"), "")
}
