package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/offline"
)

func sketchCommand() *cobra.Command {
	var flags offlineFlags
	cmd := &cobra.Command{
		Use:   "sketch [docs.jsonl]",
		Short: "Print the sketches of documents in a file, without an engine",
		Long: `Sketch reads documents, one JSON object in each line, and prints a line for each in the same order: its id, the scheme
(8 hexadecimal digits) and its sketch, with tabs between. A document without a word has no sketch and an empty last column.
Without a file, or for -, it reads standard input. Its memory does not grow with the number of documents.

A document has its id, a text or a number, in the field id. The fields to compare are texts or lists of texts; a dot
leads into an object. A sketch is the one that the sidecar stores for the same fields with the same configuration.

It uses the defaults, not config.yaml, unless --config names a file. Of that file it reads the section sketch, and the fields and
sketch of the rule that --index names, or of the only rule.

It stops at a line that can't be read: the lines printed before are complete.

Exit code 0: done. 1: failed or interrupted.`,
		Example: `  sidecar sketch docs.jsonl > sketches.tsv
  sidecar sketch --fields headline,body.text --output json docs.jsonl
  sidecar sketch docs.jsonl.gz --config config.yaml --index news-2024`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("sketch takes one file, and got %d: run it for each, or join them as in: cat *.jsonl | sidecar sketch", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := newComparer(cmd, flags.Options)
			if err != nil {
				return err
			}
			file := "-"
			if len(args) > 0 {
				file = args[0]
			}
			return g.Sketch(cmd.Context(), file, flags.output == formJSON)
		},
	}
	flags.bind(cmd)
	return cmd
}

// offlineFlags are the flags of the commands that need no engine.
type offlineFlags struct {
	offline.Options
	output string
}

func (o *offlineFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.Index, "index", "", "take fields, sketch and preset from the rule for the index with this `name` in the configuration")
	flags.StringSliceVar(&o.Fields, "fields", nil, "the `fields` to compare, as in title,body (by default those of the rule, or title,text)")
	addOutput(flags, &o.output)
}

// newComparer opens a comparer with the configuration, if --config was given, and the command's streams.
func newComparer(cmd *cobra.Command, o offline.Options) (*offline.Comparer, error) {
	if cmd.Flags().Changed("config") {
		o.Config = configFile(cmd)
	}
	return o.Open(offline.Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
}
