package server

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/internal/cases"
	"github.com/neardup/sidecar/internal/config"
)

// failingCases returns an error for each failing case of texts. Those of stored documents are left out: serving must not depend on whether an
// engine answers now, or on what it stores.
func failingCases(c *config.Config) error {
	var errs []error
	for i := range c.Engines {
		results, err := cases.Run(context.Background(), &c.Engines[i], nil)
		errs = append(errs, err)
		for _, r := range cases.Failing(results) {
			errs = append(errs, errors.New(r.In(c.File)))
		}
	}
	return errors.Join(errs...)
}

// testReload returns the failing cases of a configuration that is to replace the current one, unless it says to go on all the same.
func (s *process) testReload(c *config.Config) error {
	err := failingCases(c)
	switch {
	case err == nil:
		return nil
	case c.ReloadFailing:
		s.log.Error("cases fail: reloading all the same, as reload_with_failing_cases says", "config", c.File, "error", oneLine(err))
		return nil
	}
	return errors.Join(err, errors.New("correct the rule or the case, or set reload_with_failing_cases: true"))
}

// testStart logs the failing cases of the first configuration. It serves all the same: clients must get answers.
func (s *process) testStart(c *config.Config) {
	if err := failingCases(c); err != nil {
		s.log.Error("cases fail: serving all the same", "config", c.File, "error", oneLine(err))
	}
}
