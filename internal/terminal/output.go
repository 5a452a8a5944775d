package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Count returns a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ErrInterrupted ends what was interrupted.
var ErrInterrupted = errors.New("interrupted")

// ErrFound ends a command that has printed what is wrong as its result.
var ErrFound = errors.New("something is wrong")

// WriteJSON writes a value as JSON for people and programs.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Harmless returns a text without what a terminal would obey: errors quote engines and files.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// UntilDone returns a reader that ends with [ErrInterrupted] when the context does, whatever it waits for.
func UntilDone(ctx context.Context, r io.Reader) io.Reader { return untilDone{ctx, r} }

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (u untilDone) Read(p []byte) (int, error) {
	type got struct {
		text []byte
		err  error
	}
	done := make(chan got, 1)
	go func() {
		own := make([]byte, len(p)) // as p may be used again while this still waits
		n, err := u.r.Read(own)
		done <- got{own[:n], err}
	}()
	select {
	case g := <-done:
		return copy(p, g.text), g.err
	case <-u.ctx.Done():
		return 0, ErrInterrupted
	}
}
