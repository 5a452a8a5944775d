package documents

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestPassages(t *testing.T) {
	for _, c := range []struct {
		name, a, b        string
		w                 int
		shared, differing []string
	}{
		{"one empty", "a b", "", 2, nil, []string{"a a b"}},
		{"a word changed", "a b c d e f", "a b x d e f", 2, []string{"d e f", "a b"}, []string{"a c", "b x"}},
		{"a longer passage begins right behind", "x a b c d", "x a q a b c d", 2, []string{"a b c d"}, []string{"b q"}},
		{"words that look alike when joined", "ab c", "a bc", 1, nil, []string{"a ab c", "b a bc"}},
		{"no blanks between", "日 本 語 ok", "x 日 本 語", 2, []string{"日本語"}, []string{"a ok", "b x"}},
	} {
		shared, differing := Passages(strings.Fields(c.a), strings.Fields(c.b), c.w)
		var gotShared, gotDiffering []string
		for _, p := range shared {
			gotShared = append(gotShared, p.Text)
		}
		for _, p := range differing {
			gotDiffering = append(gotDiffering, p.In+" "+p.Text)
		}
		expect.Same(t, [][]string{c.shared, c.differing}, [][]string{gotShared, gotDiffering}, "%s", c.name)
	}
}
