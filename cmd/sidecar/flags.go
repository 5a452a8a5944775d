package main

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
)

// The output formats.
const (
	formText = "text"
	formJSON = "json"
	formHTML = "html"
)

// addOutput adds the flag --output.
func addOutput(flags *pflag.FlagSet, output *string) {
	*output = formText
	flags.Var(choice{output, []string{formText, formJSON}}, "output", "print results in this `form`: text or json")
}

// choice is the value of a flag that takes one of a few words; it implements [pflag.Value].
type choice struct {
	to    *string
	words []string
}

func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("use " + config.Either(c.words))
	}
	*c.to = text
	return nil
}

func (c choice) String() string { return *c.to }

func (c choice) Type() string { return "string" }

// show prints a result in the given form.
func show(w io.Writer, form string, result any, text string) error {
	if form == formJSON {
		return terminal.WriteJSON(w, result)
	}
	_, err := io.WriteString(w, text)
	return err
}

// bounded is the value of a flag that takes a number within bounds; it implements [pflag.Value].
type bounded struct {
	pflag.Value
	least, most float64
	use         string // describes valid numbers, for the error
}

// bound adds bounds to the flag with the name.
func bound(flags *pflag.FlagSet, name string, least, most float64, use string) {
	flag := flags.Lookup(name)
	flag.Value = bounded{flag.Value, least, most, use}
}

// boundShare bounds a flag that is a share of a whole.
func boundShare(flags *pflag.FlagSet, name string) {
	bound(flags, name, math.SmallestNonzeroFloat64, 1, "a number above 0, at most 1")
}

// boundBelow bounds a flag that is a limit, where 0 means no limit.
func boundBelow(flags *pflag.FlagSet, name string) {
	bound(flags, name, 0, math.MaxFloat64, "a number above 0, or 0 for no bound")
}

func (b bounded) Set(text string) error {
	if err := b.Value.Set(text); err != nil {
		return err
	}
	if n, err := strconv.ParseFloat(b.String(), 64); err != nil || !(n >= b.least && n <= b.most) {
		return errors.New("use " + b.use)
	}
	return nil
}
