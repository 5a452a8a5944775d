package onboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/neardup/sidecar/internal/terminal"
)

// talk asks questions on a terminal.
type talk struct {
	out   io.Writer
	lines *bufio.Reader // nil without a terminal
	from  *os.File      // the terminal
}

func newTalk(ctx context.Context, in io.Reader, out io.Writer) *talk {
	t := &talk{out: out}
	if from, ok := in.(*os.File); ok && terminal.IsTerminal(in) && terminal.IsTerminal(out) {
		t.from, t.lines = from, bufio.NewReader(terminal.UntilDone(ctx, in))
	}
	return t
}

// interactive reports whether there is a terminal.
func (t *talk) interactive() bool { return t.lines != nil }

// say writes a line, without control sequences that an engine or its certificate may have put in it.
func (t *talk) say(format string, args ...any) {
	_, _ = io.WriteString(t.out, terminal.Harmless(fmt.Sprintf(format, args...))+"\n") // asking will fail if the terminal is gone
}

// ask asks a question and returns the answer without the white space around it.
func (t *talk) ask(ctx context.Context, question string) (string, error) {
	_, _ = io.WriteString(t.out, question) // as above
	line, err := t.lines.ReadString('\n')
	if ctx.Err() != nil {
		return "", terminal.ErrInterrupted
	}
	if errors.Is(err, io.EOF) && line == "" {
		return "", errNoAnswer
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// secret asks a question and hides the answer while it is typed. It restores the terminal even if the context ends first.
func (t *talk) secret(ctx context.Context, question string) (string, error) {
	_, _ = io.WriteString(t.out, question) // as above
	terminalOf := int(t.from.Fd())
	before, err := term.GetState(terminalOf)
	if err != nil {
		return "", err
	}
	var text []byte
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = term.ReadPassword(terminalOf)
	}()
	defer t.say("")
	select {
	case <-done:
	case <-ctx.Done():
		_ = term.Restore(terminalOf, before) // nothing more can be done
		return "", terminal.ErrInterrupted
	}
	if errors.Is(err, io.EOF) {
		err = errNoAnswer
	}
	return strings.TrimSpace(string(text)), err
}

// errNoAnswer is returned at the end of the input.
var errNoAnswer = errors.New("there was no answer")
