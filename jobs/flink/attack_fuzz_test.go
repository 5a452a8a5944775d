package flink

import (
	"testing"
	"unicode/utf8"
)

// FuzzPairs has any line for one of Flink's output, and any trace for one of its failures.
func FuzzPairs(f *testing.F) {
	f.Add([]byte("1,2\n"), "Caused by: a.b.C: no\nat x\n")
	f.Add([]byte("2,1\n"), "")
	f.Add([]byte("18446744073709551616,1"), "Internal server error.\nCaused by: x")
	f.Fuzz(func(t *testing.T, line []byte, trace string) {
		if pair, ok := pairOf(line); ok && pair[0] >= pair[1] {
			t.Fatalf("%q is the pair %v", line, pair)
		}
		if short := cause(trace); len(short) > 2000 || short == "" && utf8.ValidString(trace) {
			t.Fatalf("%q is said as %q", trace, short)
		}
	})
}
