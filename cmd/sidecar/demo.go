package main

import (
	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/demo"
)

func demoCommand() *cobra.Command {
	var listen, pageAt string
	var once bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it work: an embedded engine, a small corpus, a search without collapsing and with it",
		Long: `Demo starts an embedded search engine, which is a small one inside this program, and a sidecar in front of it. It writes a corpus
of articles through the sidecar. Then it prints some searches, as the engine answers them and as the sidecar does. It keeps running,
with requests to try and the playground, which shows what folds at which threshold (docs/playground.md). Nothing is installed and
nothing is stored.

Exit code 0: done, or ended by a signal. 1: failed.`,
		Example: `  sidecar demo
  sidecar demo --once
  sidecar demo --page 127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), demo.Options{Listen: listen, Page: pageAt, Once: once}, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:9281", "`address` of the sidecar; any free port if it is taken")
	cmd.Flags().StringVar(&pageAt, "page", "127.0.0.1:9280", "`address` of the page; any free port if it is taken")
	cmd.Flags().BoolVar(&once, "once", false, "end after printing")
	return cmd
}
