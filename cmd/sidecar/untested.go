package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
)

// addUntested adds the flag of a job that writes to documents that are stored.
func addUntested(flags *pflag.FlagSet, untested *bool) {
	flags.BoolVar(untested, "untested", false, "write even if the engine's version is one that neardup is not tested on")
}

// checkVersion fails if the engine's version is one that is not tested, unless that is allowed: what such a version stores and does not show could be
// lost by writing documents back.
func (e *opened) checkVersion(ctx context.Context, untested bool) error {
	if untested || len(e.kind.Versions) == 0 {
		return nil
	}
	product, err := e.kind.ProductOf(ctx, e.store)
	if err != nil {
		return e.failed(fmt.Errorf("ask for its version: %w", err))
	}
	if e.kind.Tested(product.Version) {
		return nil
	}
	is := product.Name + " " + product.Version
	if product.Version == "" {
		is = "of a version that it does not tell these credentials"
	}
	return fmt.Errorf("engine %s: it is %s, and neardup is tested on %s %s. What an engine stores and does not show could be lost by writing to its documents, "+
		"so nothing was written. If you have tried it on a copy: --untested", e.config.Name, is, e.kind.Product, e.kind.TestedVersions())
}
