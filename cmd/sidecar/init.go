package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/onboard"
)

func initCommand() *cobra.Command {
	var o onboard.InitOptions
	cmd := &cobra.Command{
		Use:   "init [URL]",
		Short: "Ask an engine for its indices and text fields, and write a configuration",
		Long: `Init asks the engine at a URL (http://localhost:9200 where none is given) what it is, which indices it holds and which
of their fields hold texts, and writes a configuration with what it found and what it chose in comments. It changes
nothing in the engine, and reads up to 100 documents of each index, chosen at random.

Indices that look alike, such as logs-2026.01 and logs-2026.02, become one rule; what is hidden or holds no text is
left alone. On a terminal it asks which of them to take, without one it takes all, and --index names them.

Credentials come from the environment: ENGINE_USERNAME and ENGINE_PASSWORD, or ENGINE_API_KEY. On a terminal init asks
for them where the engine wants some. They are not written: the configuration names the variables.

Where the file is there already, init ends with an error unless --force is given. In a clone of the repository, where
config.yaml is the manual, it writes config.local.yaml.

Exit code 0: the file is written, and with --serve all requests ended. 1: it is not, or serving failed.`,
		Example: `  sidecar init
  sidecar init --serve http://localhost:9200
  sidecar init --index news,blog-* --output news.yaml https://search.example:9200
  sidecar init --output - http://localhost:8108`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := onboard.DefaultEngine
			if len(args) > 0 {
				at = args[0]
			}
			o.Config, o.Chosen = configFile(cmd), cmd.Flags().Changed("config")
			return onboard.Init(cmd.Context(), at, o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Output, "output", "", "write to this `file` (- is standard output) in place of the one that --config names")
	flags.BoolVar(&o.Force, "force", false, "write over a file that is there")
	flags.BoolVar(&o.Serve, "serve", false, "then serve with it")
	flags.StringSliceVar(&o.Indices, "index", nil, "take these indices: `names` or patterns, with commas between")
	flags.StringVar(&o.Listen, "listen", "",
		"where clients are to connect: an `address` (default 127.0.0.1:9201, Typesense :8109, or the next free port)")
	flags.StringVar(&o.TLS.CAFile, "ca-file", "", "PEM `file` with the certificates by which the engine is trusted")
	flags.StringVar(&o.TLS.CertFile, "cert-file", "", "PEM `file` with the certificate that the engine is shown, where it asks for one")
	flags.StringVar(&o.TLS.KeyFile, "key-file", "", "PEM `file` with the key to it")
	flags.BoolVar(&o.TLS.InsecureSkipVerify, "insecure", false, "trust any certificate of the engine: only to try something out")
	return cmd
}
