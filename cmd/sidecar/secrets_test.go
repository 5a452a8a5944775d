package main

import (
	"regexp"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestNoSecretInFlags: what stands on a command line everyone on the machine can read.
func TestNoSecretInFlags(t *testing.T) {
	sounds := regexp.MustCompile(`pass|secret|token|credential|bearer|(^|-)(api-)?key$|user`)
	n := 0
	eachCommand(newRoot(), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			n++
			if sounds.MatchString(f.Name) {
				t.Errorf("%s --%s: take it from the configuration", c.CommandPath(), f.Name)
			}
		})
	})
	if n < 50 {
		t.Errorf("only %d flags found", n)
	}
}
