// Package terminal helps to print on terminals and elsewhere: colours, text without control characters, files that are replaced at once.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Movable reports whether w is a terminal whose lines can be redrawn, as a progress bar needs. TERM=dumb says that they can't.
func Movable(w any) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// Colours, as ANSI codes.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint colours a text if w is a terminal that shows colours and NO_COLOR (no-color.org) is not set.
func Paint(w io.Writer, colour, text string) string {
	if !Movable(w) || os.Getenv("TERM") == "" || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
