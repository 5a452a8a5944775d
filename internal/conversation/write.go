package conversation

import (
	"context"
	"fmt"
	"os"

	"github.com/neardup/sidecar/internal/cases"
	"github.com/neardup/sidecar/internal/config"
)

// Write writes the threshold into the configuration. It fails on a [Conversation.Refusal], or if a case of texts would then fail.
func (c *Conversation) Write(ctx context.Context) error {
	if err := c.Refusal(); err != nil {
		return err
	}
	threshold := c.Finding().Threshold
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	changed, err := config.SetThreshold(text, os.LookupEnv, c.Engine.Config.Name, c.entry, c.Match(), threshold)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	parsed, err := config.Parse(changed, os.LookupEnv)
	if err != nil {
		return err
	}
	for i := range parsed.Engines {
		results, err := cases.Run(ctx, &parsed.Engines[i], nil)
		if err != nil {
			return err
		}
		if failing := cases.Failing(results); len(failing) > 0 {
			return fmt.Errorf("threshold %v is not written, because a case would fail: %s: change the case, or judge more pairs", threshold, failing[0].In(c.File))
		}
	}
	// The file is written in place, so that it keeps its mode and owner. The copy is there in case the program is killed meanwhile.
	whole := c.File + ".new"
	if err := os.WriteFile(whole, changed, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.File, changed, 0o600); err != nil {
		return fmt.Errorf("%w: all of the new file is in %s", err, whole)
	}
	c.written = threshold
	c.session.SetPresent(threshold)
	return os.Remove(whole)
}
