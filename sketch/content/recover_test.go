package content

import "testing"

func TestPanicOfTheLibraryIsRecovered(t *testing.T) {
	if got := mainText(nil); got != "" { // no tree at all makes the library panic
		t.Errorf("got %q", got)
	}
}
