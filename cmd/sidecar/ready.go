package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

func readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ready",
		Short: "Ask the sidecar that runs with this configuration whether it is ready",
		Long: `Ready reads /readyz of the admin listener. Exit code 0: ready. 1: not ready, or not running. It is meant for health
checks in containers, where there is no other client. Of the configuration it reads admin alone: what else is wrong with it
is no news of a sidecar that goes on with the one before.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := cmd.Flags().GetString("config")
			if err != nil {
				return err
			}
			c, err := load(file, os.LookupEnv, parseAdmin)
			if err != nil {
				return err
			}
			if c.Admin == "" {
				return errors.New("admin is empty: there is no listener to ask")
			}
			request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, "http://"+c.Admin+"/readyz", nil)
			if err != nil {
				return err
			}
			client := &http.Client{Timeout: 2 * probeTimeout, Transport: &http.Transport{}}
			response, err := client.Do(request)
			if err != nil {
				return fmt.Errorf("ask the admin listener: %w", err)
			}
			defer func() { _ = response.Body.Close() }()
			if _, err := io.Copy(cmd.OutOrStdout(), response.Body); err != nil {
				return fmt.Errorf("ask the admin listener: %w", err)
			}
			if response.StatusCode != http.StatusOK {
				return errors.New("not ready")
			}
			return nil
		},
	}
}
