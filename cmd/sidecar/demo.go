package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/demo"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: an embedded engine, a small corpus, a search without collapsing and with it",
		Long: `Demo starts a small search engine inside this program, and a sidecar in front of it. It writes a corpus of articles through the
sidecar. Then it prints some searches, as the engine answers them and as the sidecar does. It keeps running, with requests to try and
the playground (docs/playground.md). Nothing is installed or stored. The pages of calibrate --ask --open and cluster --open need a real
engine: docs/quickstart-elasticsearch.md or docs/quickstart-typesense.md gives you one.

With --documents it takes your own: one JSON object in each line. An object may also be a hit, with the document in _source. Fields are chosen
as init does. The id is _id, or id, or else the line number. It takes 10,000 documents or 50 MB, whichever comes first.

Exit code 0: done, or ended by a signal. 1: failed.`,
		Example: `  sidecar demo
  sidecar demo --documents articles.jsonl
  sidecar demo --once
  sidecar demo --page 127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.In = cmd.InOrStdin()
			return demo.Run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:9281", "`address` of the sidecar; any free port if it is taken")
	cmd.Flags().StringVar(&o.Page, "page", "127.0.0.1:9280", "`address` of the page; any free port if it is taken")
	cmd.Flags().StringVar(&o.Documents, "documents", "", "`file` of your own documents, JSON in each line; - for standard input")
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after printing")
	return cmd
}
