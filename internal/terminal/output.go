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

// Count returns a number and a noun, in the plural unless the number is 1. Without many, the plural is the noun and an s.
func Count(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Cut shortens a text to n characters, the last of which is then an ellipsis. A shorter text stays whole.
func Cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// ErrInterrupted is returned after an interrupt.
var ErrInterrupted = errors.New("interrupted")

// ErrFound is returned by a command that has printed problems as its result.
var ErrFound = errors.New("something is wrong")

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Harmless replaces control characters other than line ends and tabs: errors quote engines and files.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// UntilDone returns a reader that fails with [ErrInterrupted] when the context ends, even if a read blocks.
func UntilDone(ctx context.Context, r io.Reader) io.Reader { return untilDone{ctx, r} }

type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (u untilDone) Read(p []byte) (int, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		buffer := make([]byte, len(p)) // the caller may reuse p while this still waits
		n, err := u.r.Read(buffer)
		done <- result{buffer[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.text), r.err
	case <-u.ctx.Done():
		return 0, ErrInterrupted
	}
}
