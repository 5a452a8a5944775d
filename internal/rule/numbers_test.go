package rule

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

func TestNumbersApart(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"take 1.5 mg or 4.0 mg", "take 15 mg or 40 mg", "numbers differ: 1.5, 4.0 only in A; 15, 40 only in B"},
		{"if a == b", "if a != b", "numbers differ: =, = only in A; ≠ only in B"},
		{"it falls to -3 degrees", "it falls to 3 degrees", "numbers differ: − only in A"},
		{"nginx 1.25.3", "Nginx 12.5.3!", "numbers differ: 1.25.3 only in A; 12.5.3 only in B"},
		{"from 3 to 4", "from 4 to 3", "the numbers are in another order"},
		{"from 3 to 4", "up from 3 till 4", ""},
		{"no number", "nothing", ""},
		{"1 2 3 4 5 6 7", "", "numbers differ: 1, 2, 3, 4, 5, … only in A"},
	} {
		expect.Same(t, c.want, NumbersApart(sketch.Words(c.a), sketch.Words(c.b), "in A", "in B"), "%s | %s", c.a, c.b)
	}
}
