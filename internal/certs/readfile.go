package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ReadFile reads a file of at most so many bytes. The error says what to do, without the path.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file: name a file")
	case info.Size() > limit:
		return nil, fmt.Errorf("is larger than %v: name another file", bytesText(limit))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return text, nil
}

// unreadable says why a file can't be read, and what to do.
func unreadable(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("can't be read: %w: give the user that runs the sidecar (uid %d) leave to read it, and its folders", err, os.Getuid())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("can't be read: %w: name one that is there", err)
	}
	return fmt.Errorf("can't be read: %w", err)
}

// bytesText returns a limit as configurations write it.
func bytesText(limit int64) string {
	if limit%(1<<20) == 0 {
		return fmt.Sprintf("%dMB", limit>>20)
	}
	return fmt.Sprintf("%dKB", limit>>10)
}
