// Sidecar stands in front of a search engine and collapses near-duplicate hits.
//
// This package holds the commands, the configuration and the wiring: it alone knows which dialect belongs to which kind of
// engine. There is one file for each command; [Config] is what config.yaml says, and engines.go puts an engine together.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		signal.Stop(first) // a second one ends the process at once: from now on, not a moment after what follows from the first
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // or what was asked is not so
	exitTrouble = 2 // of verify, which says with 1 what it found
	exitRefused = 3 // the job came to its end, and the engine refused some documents
)

// run is the program: the arguments without its name in, the exit code out. It ends soon after ctx.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &results{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = out.alsoLost(err)
	complain(cmd, args, err, stderr)
	return exitCode(err)
}

// errRefused ends a job that left refused documents behind. Its summary has said so.
var errRefused = errors.New("documents were refused")

// errTold ends a command that has said in its log what is wrong.
var errTold = errors.New("it is in the log")

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sidecar",
		Short: "Collapse near-duplicate search results, in front of Elasticsearch, OpenSearch or Typesense",
		Long:  rootLong,
		Example: `  sidecar init http://localhost:9200
  sidecar doctor
  sidecar serve
  sidecar verify --index news-2024 --output json`,
		PersistentPreRun: note,
		SilenceErrors:    true,
		SilenceUsage:     true,
	}
	root.PersistentFlags().StringP("config", "c", defaultConfigFile, "the configuration `file`")
	root.AddCommand(initCommand(), serveCommand(), setupCommand(), reindexCommand(), verifyCommand(), doctorCommand(), sketchCommand(), compareCommand(),
		calibrateCommand(), removeCommand(), similarCommand(), clusterCommand(),
		configCommand(), readyCommand(), demoCommand(), versionCommand(), manCommand())
	grouped(root)
	fitting(root)
	completeFlags(root)
	return root
}

// configOf loads the configuration that the command was given.
func configOf(cmd *cobra.Command) (*Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	return Load(file, os.LookupEnv)
}
