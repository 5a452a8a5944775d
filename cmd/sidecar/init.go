package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/onboard"
)

func initCommand() *cobra.Command {
	var o onboard.InitOptions
	cmd := &cobra.Command{
		Use:   "init [URL]",
		Short: "Survey an engine's indices and text fields, and write a configuration",
		Long: `Init surveys the engine at a URL (by default http://localhost:9200): its version, its indices and which of their fields have
texts. It writes a configuration, with what it found and chose in comments. It changes nothing in the engine, and reads up to
100 random documents of each index.

Indices with similar names, such as logs-2026.01 and logs-2026.02, become one rule. Hidden indices and those without texts are
left out. On a terminal it asks which indices to take, otherwise it takes all; --index names them.

Credentials come from the environment: ENGINE_USERNAME and ENGINE_PASSWORD, or ENGINE_API_KEY. If the engine needs credentials and
none are set, init asks for them on a terminal. They are not written: the configuration names the variables.

If the file exists, init fails unless --force is given. In a clone of the repository, where config.yaml is the manual, it writes
config.local.yaml.

Exit code 0: the file is written, and with --serve the sidecar was stopped without cutting off a request.
1: the file is not written, or serving failed.`,
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
	flags.StringVar(&o.Output, "output", "", "write to this `file` (- is standard output) instead of the one that --config names")
	flags.BoolVar(&o.Force, "force", false, "overwrite an existing file")
	flags.BoolVar(&o.Serve, "serve", false, "then serve with it")
	flags.StringSliceVar(&o.Indices, "index", nil, "take these indices: `names` or patterns, with commas between")
	flags.StringVar(&o.Listen, "listen", "",
		"the `address` for clients (default 127.0.0.1:9201, Typesense :8109, or the next free port)")
	flags.StringVar(&o.TLS.CAFile, "ca-file", "", "PEM `file` with the authority that signed the engine's certificate")
	flags.StringVar(&o.TLS.CertFile, "cert-file", "", "PEM `file` with a client certificate for the engine, if it asks for one")
	flags.StringVar(&o.TLS.KeyFile, "key-file", "", "PEM `file` with the key of that certificate")
	flags.BoolVar(&o.TLS.InsecureSkipVerify, "insecure", false, "trust any certificate of the engine: only for tests")
	return cmd
}
