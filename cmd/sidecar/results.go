package main

import (
	"errors"
	"io"
	"os"
	"sync"
)

// results is where results go: standard output, and what went wrong there first, so that no command ends well whose results were
// lost. It is safe for concurrent use.
type results struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// Write implements [io.Writer].
func (r *results) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.w.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// Fd returns the file descriptor, or an invalid one if the output is no file.
func (r *results) Fd() uintptr {
	if file, ok := r.w.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// withWriteError returns how a command ended, with the loss of results unless that is it.
func (r *results) withWriteError(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(err, r.err) {
		return err
	}
	return errors.Join(err, r.err)
}
