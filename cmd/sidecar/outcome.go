package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// The forms of what is printed.
const (
	formText = "text"
	formJSON = "json"
)

// addOutput adds the flag that says in which form results are printed.
func addOutput(flags *pflag.FlagSet, output *string) {
	*output = formText
	flags.Var((*form)(output), "output", "the `form` of what is printed: text or json")
}

// form is the value of a flag that says in which form results are printed; it implements [pflag.Value].
type form string

func (f *form) Set(text string) error {
	if text != formText && text != formJSON {
		return errors.New("use text or json")
	}
	*f = form(text)
	return nil
}

func (f *form) String() string { return string(*f) }

func (f *form) Type() string { return "string" }

// asksJSON reports whether the command line asks for JSON, also where it could not be read to its end.
func asksJSON(cmd *cobra.Command, args []string) bool {
	for _, name := range []string{"output", "report"} {
		flag := cmd.Flags().Lookup(name)
		if flag == nil {
			continue
		}
		switch value, _ := pflag.UnquoteUsage(flag); {
		case value == "file":
			return false
		case flag.Value.String() == formJSON:
			return true
		}
	}
	for i, arg := range args {
		switch {
		case arg == "--":
			return false
		case arg == "--output=json", arg == "--output" && i+1 < len(args) && args[i+1] == formJSON:
			return true
		}
	}
	return false
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

// wrapStderr has a command write objects to standard error where that is what its reader expects.
func wrapStderr(cmd *cobra.Command, args []string) {
	if w := cmd.ErrOrStderr(); asksJSON(cmd, args) && !terminal.IsTerminal(w) {
		cmd.SetErr(jsonLines{w})
	}
}

// silentErrors are the ends of commands that have said all there is to say.
var silentErrors = []error{errRefused, terminal.ErrFound, errTrouble, server.ErrLogged, errPrinted}

// errPrinted ends a command that has printed what is wrong as its result.
var errPrinted = errors.New("it is in the result")

// printErrors writes what went wrong to standard error: a line for each error, or an object.
func printErrors(cmd *cobra.Command, args []string, err error, stderr io.Writer) {
	for _, e := range config.Flatten(err) {
		if slices.Contains(silentErrors, e) {
			continue
		}
		text := strings.TrimSpace(e.Error())
		if asksJSON(cmd, args) {
			_ = jsonLine(stderr, "error", text) // there is no one left to tell, here and below
			continue
		}
		_, _ = fmt.Fprintf(stderr, "%s %s\n", terminal.Paint(stderr, terminal.Red, "error:"), terminal.Harmless(text))
	}
}

// exitCode returns what the program ends with.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.Is(err, errTrouble):
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
