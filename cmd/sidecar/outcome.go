package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// asked is where a command line asks for JSON.
var asked = regexp.MustCompile(` --(output|report)[= ]json( |$)`)

// asksJSON reports whether the command line asks for JSON, also where it can't be read to its end.
func asksJSON(args []string) bool {
	line, _, _ := strings.Cut(" "+strings.Join(args, " "), " -- ")
	return asked.MatchString(line)
}

// jsonLines takes the place of standard error if results are JSON and it is no terminal: each line becomes an object, so that a
// program can read that stream too.
type jsonLines struct{ w io.Writer }

// Write takes whole lines; with it jsonLines implements [io.Writer].
func (n jsonLines) Write(lines []byte) (int, error) {
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "note: "); line == "" {
			continue
		}
		if err := jsonLine(n.w, "note", line); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

// jsonLine writes a line with an object of one key.
func jsonLine(w io.Writer, key, text string) error {
	_, err := fmt.Fprintf(w, "{%q:%s}\n", key, jsonedit.AppendString(nil, text))
	return err
}

// silentErrors are the ends of commands that have said all there is to say.
var silentErrors = []error{errRefused, terminal.ErrFound, server.ErrLogged}

// printErrors writes what went wrong to standard error: a line for each error, or an object.
func printErrors(err error, inJSON bool, stderr io.Writer) {
	for _, e := range config.Flatten(err) {
		if slices.Contains(silentErrors, e) {
			continue
		}
		text := strings.TrimSpace(e.Error())
		if inJSON {
			_ = jsonLine(stderr, "error", text) // there is no one left to tell, here and below
			continue
		}
		_, _ = fmt.Fprintf(stderr, "%s %s\n", terminal.Paint(stderr, terminal.Red, "error:"), terminal.Harmless(text))
	}
}

// exitCode returns what the program ends with.
func exitCode(cmd *cobra.Command, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errRefused):
		return exitRefused
	case cmd.Name() == "verify" && !errors.Is(err, terminal.ErrFound):
		return exitTrouble
	}
	return exitFailed
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
