package typesense

import (
	"testing"
)

var oddIDs = []string{"a`b", " lead", "a,b", "a]b", "a/b", "é", `a"b`, `a\b`, "a&&b", "a b?c#d%41", "a+b", "a`+b", ":", "*"}

// TestPartsThatAreNone: what is no part of this store's is an error, and not all of the collection.
func TestPartsThatAreNone(t *testing.T) {
	for _, part := range []string{"1", "4/4", "-1/2", "a/b", "1/0", "/"} {
		if p, err := parsePart(part); err == nil {
			t.Errorf("%q is the part %v", part, p)
		}
	}
}
