package typesense

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// FuzzCoerced holds the quick look at a text's first letter against the definition: all that C's strtod or the engine's reading of truth
// values takes.
func FuzzCoerced(f *testing.F) {
	for _, text := range []string{
		"", " ", "The", "true", "TRUE ", "false", "fal\u017fe", "inf", "-Infinity", "+nan", "NaN", "nan(1)", "nanny", "infinity and more", "0x1p-2", "0X.f", "1e400", ".5", "+.", "\v7",
		"1\x00a", "\x00", "7 of them", "(1)", ",", "/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rest, _, cut := strings.Cut(text, "\x00")
		rest = strings.TrimLeft(rest, " \t\n\v\f\r")
		_, err := strconv.ParseFloat(rest, 64)
		want := err == nil || errors.Is(err, strconv.ErrRange) || hexadecimal.MatchString(rest) ||
			strings.EqualFold(rest, "true") || strings.EqualFold(rest, "false")
		if rest == "" {
			want = cut
		}
		expect.Same(t, want, coerced([]byte(text)), "%q", text)
	})
}
