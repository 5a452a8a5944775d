package jsonedit

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is decoded here is what encoding/json decodes, and what it refuses is left to it, as are surrogates.
func FuzzUnescaped(f *testing.F) {
	for _, inner := range []string{
		``, `a`, `\n\t\r\b\f\/\\\"`, `\u00e9 \u00E9\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83d\ud83d\ude00`, `\ud83d\u0041`, `\ud83d\n`, `\u12`, `\u12g4`, `\x`, `\`,
		"a\nb\\n", "\xff\\n", `"`, `\n"`, strings.Repeat("a", 17) + `\n` + strings.Repeat("é", 9), `\u0000\uffff`, `\"\`,
	} {
		f.Add(inner)
	}
	f.Fuzz(func(t *testing.T, inner string) {
		var want string
		err := json.Unmarshal([]byte(`"`+inner+`"`), &want)
		got, ok := []byte(nil), false
		if utf8.ValidString(inner) {
			got, ok = appendUnescaped(nil, []byte(inner))
		}
		if ok && (err != nil || string(got) != want) {
			t.Errorf("%q gave %q, want %q, %v", inner, got, want, err)
		}
		if !ok && err == nil && strings.ToValidUTF8(inner, "") == inner && !surrogate.MatchString(inner) {
			t.Errorf("%q is left to encoding/json, which reads %q", inner, want)
		}
	})
}

var surrogate = regexp.MustCompile(`(?i)\\ud[89a-f]`)
