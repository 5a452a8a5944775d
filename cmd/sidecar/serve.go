package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/server"
)

func serveCommand() *cobra.Command {
	var o server.Options
	command := &cobra.Command{
		Use:   "serve",
		Short: "Stand in front of the engines and serve until a signal comes",
		Long: `Serve listens at every engine's address and passes requests on to the engine.

SIGHUP, and a change of the configuration or of a file it names (certificates, secrets), loads it anew. What did not change
goes on as it is; a configuration that is wrong is not taken, and one line of the log says why.

On SIGINT or SIGTERM /readyz says so at once, the listeners close after --drain-delay, the requests under way end within
--drain, and serve ends. A second signal ends it at once. Exit code 0: all requests ended; 1: it could not start, or requests
were cut off.

Under systemd it tells when it is ready, reloading and stopping, answers to a watchdog, and takes over sockets that are called
as an engine is (or admin). It prints nothing: its log goes to standard error, as text or as JSON (log.format in the configuration).`,
		Example: `  sidecar serve
  sidecar serve --config /etc/neardup/config.yaml --drain 60s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for flag, span := range map[string]time.Duration{"--drain": o.Drain, "--drain-delay": o.DrainDelay} {
				if span < 0 {
					return fmt.Errorf("%s: %v is out of range: use a span such as 30s, or 0s for none", flag, span)
				}
			}
			return server.Run(cmd.Context(), configFile(cmd), cmd.ErrOrStderr(), o)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&o.Drain, "drain", server.DefaultDrain, "at the end, give requests under way this `span` to end")
	flags.BoolVar(&o.PProf, "pprof", false, "show profiles on the admin listener, at /debug/pprof/")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 0, "at the end, take connections for this `span` more, while /readyz says that it drains")
	return command
}
