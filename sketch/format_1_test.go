package sketch

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestFormat1: sketches that were stored in format 1, by a build that wrote it, are refused by their version, whatever their form, and
// nothing of them is taken over.
func TestFormat1(t *testing.T) {
	data := expect.Value(os.ReadFile("testdata/format_1.json"))(t)
	var stored map[string]string
	if err := json.Unmarshal(data, &stored); err != nil || len(stored) < 10 {
		t.Fatalf("%d sketches: %v", len(stored), err)
	}
	for name, text := range stored {
		s := Sketch{Scheme: 7, Shingles: 1}
		before := s
		if err := s.UnmarshalText([]byte(text)); !errors.Is(err, ErrVersion) || !reflect.DeepEqual(s, before) {
			t.Errorf("%s: %v, and it became %+v", name, err, s)
		}
		room, err := s.UnmarshalTextIn([]byte("abc"), []byte(text))
		if !errors.Is(err, ErrVersion) || string(room) != "abc" || !reflect.DeepEqual(s, before) {
			t.Errorf("%s: %v, and the room became %q", name, err, room)
		}
		for cut := range len(text) { // what is cut off is refused too, for another reason perhaps
			if err := s.UnmarshalText([]byte(text[:cut])); err == nil || !reflect.DeepEqual(s, before) {
				t.Errorf("%s cut at %d: it became %+v", name, cut, s)
			}
		}
	}
}
