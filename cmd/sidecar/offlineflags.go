package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/offline"
)

// offlineFlags are the flags of the commands that need no engine.
type offlineFlags struct {
	offline.Options
	output string
}

func (o *offlineFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.Index, "index", "", "the rule for the index with this `name` in the configuration gives the fields, the sketch and the preset")
	flags.StringSliceVar(&o.Fields, "fields", nil, "the `fields` that are compared, as in title,body (by default those of the rule, or title,text)")
	addOutput(flags, &o.output)
}

// newComparer takes what the command line says of every command: the configuration, if it was given, and the streams.
func newComparer(cmd *cobra.Command, o offline.Options) (*offline.Comparer, error) {
	if cmd.Flags().Changed("config") {
		o.Config = configFile(cmd)
	}
	return o.Open(offline.Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
}
