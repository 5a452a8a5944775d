// Package expect holds what tests say again and again: that a call succeeds, that a text is JSON, and that two values are the same.
package expect

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Value returns a function that returns the value, or fails the test at once for the error: expect.Value(os.ReadFile(name))(t).
func Value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// OK fails the test at once for an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// JSON decodes a text, or fails the test at once and shows it.
func JSON(t testing.TB, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %.2000s", err, text)
	}
}

// Same fails the test if two values differ. The format says what they are; the difference follows.
func Same(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	By(nil).Same(t, want, got, format, args...)
}

// Must is Same, and ends the test at once: for what is compared again and again, or what the rest of the test needs.
func Must(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	By(nil).Must(t, want, got, format, args...)
}

// By are options of a comparison.
type By []cmp.Option

const differ = "%s (-want +got): %.3000s"

// Same is Same by these options.
func (o By) Same(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got, o...); diff != "" {
		t.Errorf(differ, fmt.Sprintf(format, args...), diff)
	}
}

// Must is Must by these options.
func (o By) Must(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got, o...); diff != "" {
		t.Fatalf(differ, fmt.Sprintf(format, args...), diff)
	}
}
