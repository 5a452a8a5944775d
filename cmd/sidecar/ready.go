package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/server"
)

// maxReady is the size limit of the admin listener's answer, in bytes.
const maxReady = 1 << 20

func readyCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask the sidecar that runs with this configuration whether it is ready",
		Long: `Ready reads /readyz of the admin listener and prints the answer: a line for each engine. It is meant for health checks in
containers that have no other HTTP client. It reads only the key admin of the configuration, and ignores errors in other keys:
a running sidecar keeps its previous configuration if the file has an error.

Exit code 0: ready. 1: not ready, or not running.`,
		Example: `  sidecar ready
  sidecar ready --config /etc/neardup/config.yaml --output json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return askReady(cmd, output) },
	}
	addOutput(cmd.Flags(), &output)
	return cmd
}

// readiness is the answer of the admin listener, for JSON.
type readiness struct {
	Ready bool `json:"ready"`
	// Status is the HTTP status. Lines has a line for each engine.
	Status int      `json:"status"`
	Lines  []string `json:"lines"`
}

func askReady(cmd *cobra.Command, output string) error {
	c, err := config.LoadAdmin(configFile(cmd), os.LookupEnv)
	if err != nil {
		return err
	}
	if c.Admin == "" {
		return errors.New("admin is empty, so there is no listener to ask: set it to an address such as 127.0.0.1:7610")
	}
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, "http://"+c.Admin+"/readyz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 2 * server.ProbeTimeout, Transport: &http.Transport{}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the admin listener: %w: check that sidecar serve runs, with this configuration", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReady))
	if err != nil {
		return fmt.Errorf("ask the admin listener: %w", err)
	}
	ready := response.StatusCode == http.StatusOK
	lines := append([]string{}, strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })...)
	err = show(cmd.OutOrStdout(), output, readiness{ready, response.StatusCode, lines}, string(text))
	if err == nil && !ready {
		err = errors.New("not ready")
	}
	return err
}
