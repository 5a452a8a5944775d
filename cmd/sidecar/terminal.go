package main

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// onTerminal reports whether a person sees what is written to w as it comes.
func onTerminal(w any) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

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

// Fd returns what a file is to the system, and what is no file where there is none.
func (r *results) Fd() uintptr {
	if file, ok := r.w.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// alsoLost returns how a command ended, with the loss of results unless that is it.
func (r *results) alsoLost(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(err, r.err) {
		return err
	}
	return errors.Join(err, r.err)
}

// movable reports whether w is a terminal whose lines can be drawn anew, as a progress bar's is. TERM=dumb says that they can't.
func movable(w any) bool { return onTerminal(w) && os.Getenv("TERM") != "dumb" }

// Colours, as a terminal is told them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// painted returns a text in the colour where w is a terminal that shows colours and NO_COLOR (no-color.org) is not set, and else
// as it is.
func painted(w io.Writer, colour, text string) string {
	if !movable(w) || os.Getenv("TERM") == "" || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
