package certs

import (
	"io/fs"
	"strings"
	"testing"
)

func TestUnreadable(t *testing.T) {
	if err := unreadable(&fs.PathError{Err: fs.ErrPermission}); !strings.Contains(err.Error(), "uid") || !strings.Contains(err.Error(), "leave to read it") {
		t.Errorf("no hint: %v", err)
	}
}
