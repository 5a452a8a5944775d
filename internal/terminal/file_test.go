package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteFile leaves what stood there where the new one does not become whole, and nothing beside it.
func TestWriteFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "report.html")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(file, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("the disk is full")
	err := WriteFile(file, func(w io.Writer) error { _, _ = io.WriteString(w, "half of"); return full })
	if got, _ := os.ReadFile(file); !errors.Is(err, full) || string(got) != "two" {
		t.Errorf("%v, and there stands %q", err, got)
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := WriteFile(filepath.Join(folder, "none", "report.html"), nil); err == nil || !strings.Contains(err.Error(),
		"name a file in a folder") {
		t.Error(err)
	}
}
