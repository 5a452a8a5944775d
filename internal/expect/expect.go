// Package expect holds what tests say again and again: that a call succeeds, and that two values are the same.
package expect

import (
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

// Same fails the test if two values differ. The format says what they are; the difference follows.
func Same(t testing.TB, want, got any, format string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got): %.3000s", fmt.Sprintf(format, args...), diff)
	}
}
