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

// jsonFlag matches a flag that asks for JSON.
var jsonFlag = regexp.MustCompile(` --(output|report)[= ]json( |$)`)

// asksJSON reports whether the command line asks for JSON, even if it is invalid.
func asksJSON(args []string) bool {
	line, _, _ := strings.Cut(" "+strings.Join(args, " "), " -- ")
	return jsonFlag.MatchString(line)
}

// jsonLines replaces standard error if results are JSON and it is not a terminal: each line becomes an object, so that a program can
// read that stream too.
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

// silentErrors are not printed: the command has printed or logged the reason.
var silentErrors = []error{errRefused, terminal.ErrFound, server.ErrLogged}

// printErrors writes errors to standard error, each as a line or an object.
func printErrors(err error, inJSON bool, stderr io.Writer) {
	for _, e := range config.Flatten(err) {
		if slices.Contains(silentErrors, e) {
			continue
		}
		text := strings.TrimSpace(e.Error())
		if inJSON {
			_ = jsonLine(stderr, "error", text) // an error here can't be reported, nor one below
			continue
		}
		_, _ = fmt.Fprintf(stderr, "%s %s\n", terminal.Paint(stderr, terminal.Red, "error:"), terminal.Harmless(text))
	}
}

// exitCode returns the exit code for a command's error.
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

// results is standard output. It keeps the first error of writing, so that a command whose results are lost fails. It is safe for
// concurrent use.
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

// Fd returns the file descriptor, or an invalid one if the output is not a file.
func (r *results) Fd() uintptr {
	if file, ok := r.w.(*os.File); ok {
		return file.Fd()
	}
	return ^uintptr(0)
}

// withWriteError joins a command's error and the error of writing results, unless they are the same.
func (r *results) withWriteError(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(err, r.err) {
		return err
	}
	return errors.Join(err, r.err)
}
