package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// misused returns an error of the command line in our words: what is wrong, what is probably meant, and where it stands. Other
// errors it returns as they are.
func misused(cmd *cobra.Command, err error) error {
	see := fmt.Sprintf("see: %s --help", cmd.CommandPath())
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return fmt.Errorf("unknown flag: -%s: %s", unknown.GetSpecifiedName(), see)
		}
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag: --%s: %s%s", name, meant("--", name, flagNames(cmd)), see)
	}
	if lacking, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		name := lacking.GetFlag().Name
		value, _ := pflag.UnquoteUsage(lacking.GetFlag())
		return fmt.Errorf("--%s: the value is missing: write --%s %s: %s", name, name, strings.ToUpper(value), see)
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s: %q %s", wrong.GetFlag().Name, wrong.GetValue(), wantedBy(wrong))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%s is no flag: write -- before what begins with a dash and is none: %s", wrong.GetSpecifiedFlag(), see)
	}
	_, ours := errors.AsType[strangerError](err)
	if rest, is := strings.CutPrefix(err.Error(), "unknown command "); is && !ours { // which is no type of cobra's
		if word, unquoted := firstQuoted(rest); unquoted {
			return stranger(cmd, word)
		}
	}
	return err
}

func firstQuoted(text string) (string, bool) {
	prefix, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", false
	}
	word, err := strconv.Unquote(prefix)
	return word, err == nil
}

// unbounded returns what is wrong with the value of a flag that bounds something, where 0 is no bound.
func unbounded(flag string, value float64) error {
	if value >= 0 { // which no NaN is
		return nil
	}
	return fmt.Errorf("--%s: %v is out of range: use a number above 0, or 0 for no bound", flag, value)
}

// strangerError says what is wrong with a word.
type strangerError struct{ error }

// stranger says what is wrong with a word that a command does not take.
func stranger(cmd *cobra.Command, word string) error { return strangerError{strange(cmd, word)} }

func strange(cmd *cobra.Command, word string) error {
	path := cmd.CommandPath()
	if cmd.HasAvailableSubCommands() {
		return fmt.Errorf("unknown command %q for %q: %ssee: %s --help", word, path, meant("", word, commandNames(cmd)), path)
	}
	if cmd.Flags().Lookup("index") != nil {
		return fmt.Errorf("%s takes no argument, and got %q: did you mean --index %s? see: %s --help", path, word, word, path)
	}
	return fmt.Errorf("%s takes no argument, and got %q: see: %s --help", path, word, path)
}

// meant returns the question which of the names was meant, or nothing where none is near.
func meant(dashes, name string, names []string) string {
	best, least := "", max(1, min(3, len(name)/2))
	for _, other := range names {
		away := distance(name, other)
		if len(name) > 1 && strings.HasPrefix(other, name) {
			away = 1
		}
		if away <= least && (best == "" || away < distance(name, best)) {
			best = other
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s%s? ", dashes, best)
}

// flagNames returns the names of all flags that a command takes.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	return names
}

// commandNames returns the names of the commands below one.
func commandNames(cmd *cobra.Command) (names []string) {
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	return names
}

// wantedBy says what a flag takes in place of the value that it was given.
func wantedBy(wrong *pflag.InvalidValueError) string {
	flag := wrong.GetFlag()
	number := slices.Contains([]string{"int", "uint64", "float64", "duration"}, flag.Value.Type())
	if cause := errors.Unwrap(wrong); number && errors.Is(cause, strconv.ErrRange) {
		return "is out of range: use a smaller one"
	}
	switch flag.Value.Type() {
	case "int":
		return "is no whole number: write one such as 10"
	case "uint64":
		return "is no whole number from 0 on: write one such as 10"
	case "float64":
		return "is no number: write one such as 0.5"
	case "duration":
		return "is no span: write one such as 30s, 5m or 1h"
	case "bool":
		return fmt.Sprintf("is neither true nor false: write --%s alone, or --%s=false", flag.Name, flag.Name)
	}
	return errors.Unwrap(wrong).Error()
}
