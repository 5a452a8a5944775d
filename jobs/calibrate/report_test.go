package calibrate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReplaceFile leaves what stood there where the new one does not become whole, and nothing beside it.
func TestReplaceFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "report.html")
	for _, text := range []string{"one", "two"} {
		if err := replaceFile(file, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("the disk is full")
	err := replaceFile(file, func(w io.Writer) error { _, _ = io.WriteString(w, "half of"); return full })
	if got, _ := os.ReadFile(file); !errors.Is(err, full) || string(got) != "two" {
		t.Errorf("%v, and there stands %q", err, got)
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := replaceFile(filepath.Join(folder, "none", "report.html"), nil); err == nil || !strings.Contains(err.Error(),
		"name a file in a folder") {
		t.Error(err)
	}
}

func TestPlain(t *testing.T) {
	if got := plain("a\x1b[31m\u202eb\u0085c\nd\u2029é東京", 100); got != "a [31m b c d é東京" {
		t.Errorf("%q", got)
	}
	if got := plain("東京都知事", 3); got != "東京…" {
		t.Errorf("%q", got)
	}
}
