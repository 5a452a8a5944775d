package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/onboard"
	"github.com/neardup/sidecar/internal/server"
)

func serveCommand() *cobra.Command {
	var o server.Options
	var to string
	var survey onboard.InitOptions
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve clients in front of the engines until a signal",
		Long: `Serve listens on the address of each engine in the configuration and forwards requests to that engine.

It reloads the configuration on SIGHUP, and when the file or a file that it names (certificates, secrets) changes. Engines that
did not change keep running. If the new configuration is invalid the previous one stays, and one line of the log says why.

On SIGINT or SIGTERM /readyz says 503 at once. After --drain-delay the listeners close. Requests in progress may then take up to
--drain, and serve ends. A second signal ends it at once. Exit code 0: all requests ended. 1: it could not start, or requests were
cut off.

Under systemd it reports when it is ready, when it reloads and when it stops, and answers the watchdog. It takes over a socket if the
name of the socket is that of an engine, or admin. Its log goes to standard error, as text or JSON (log.format).

With --to it serves in front of one engine without a configuration, and prints three lines that say what it does. It chooses the fields
of each index as init does, with the same credentials from the environment, and for new indices by their names.`,
		Example: `  sidecar serve
  sidecar serve --to http://localhost:9200
  sidecar serve --config /etc/neardup/config.yaml --drain 60s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, span := range map[string]time.Duration{"--drain": o.Drain, "--drain-delay": o.DrainDelay} {
				if span < 0 {
					return fmt.Errorf("%s: %v is out of range: use a span such as 30s, or 0s for none", flag, span)
				}
			}
			if to != "" {
				if cmd.Flag("config").Changed {
					return errors.New("--to serves without a configuration, and --config names one: give one of them, or the address in engines[].urls of the file")
				}
				return onboard.ServeTo(cmd.Context(), to, survey, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			for _, flag := range []string{"listen", "ca-file", "insecure"} {
				if cmd.Flags().Changed(flag) {
					return fmt.Errorf("--%s goes with --to: without it the configuration says where and how to connect", flag)
				}
			}
			return server.Run(cmd.Context(), configFile(cmd), cmd.ErrOrStderr(), o)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&o.Drain, "drain", server.DefaultDrain, "when it stops: let requests in progress take up to this `span`")
	flags.BoolVar(&o.PProf, "pprof", false, "serve profiles on the admin listener, at /debug/pprof/")
	flags.StringVar(&to, "to", "", "serve in front of the engine at this `URL`, without a configuration")
	flags.StringVar(&survey.Listen, "listen", "", "with --to: the `address` for clients (default 127.0.0.1:9201, Typesense :8109)")
	flags.StringVar(&survey.TLS.CAFile, "ca-file", "", "with --to: PEM `file` with the authority that signed the engine's certificate")
	flags.BoolVar(&survey.TLS.InsecureSkipVerify, "insecure", false, "with --to: trust any certificate of the engine: only for tests")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 0, "when it stops: first accept connections for this `span`, while /readyz says 503")
	return command
}
