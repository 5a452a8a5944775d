package main

import (
	"github.com/spf13/pflag"
)

// addUntested adds the flag of a job that writes to documents that are stored.
func addUntested(flags *pflag.FlagSet, untested *bool) {
	flags.BoolVar(untested, "untested", false, "write even if the engine's version is one that neardup is not tested on")
}
