// Sidecar is a proxy in front of a search engine that collapses near-duplicate hits. There is one file for each command: flags in, one call, exit
// code out. The packages below internal and jobs do the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		signal.Stop(first) // before stop: from now on a second signal ends the process at once
		stop()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1 // or the answer is no
	exitTrouble = 2 // verify failed; its 1 means that it found problems
	exitRefused = 3 // the job finished, and the engine refused some documents
)

// run runs the program with its arguments, and returns the exit code. It ends soon after ctx.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &results{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	inJSON := asksJSON(args)
	if inJSON && !terminal.IsTerminal(stderr) {
		root.SetErr(jsonLines{stderr})
	}
	cmd, err := root.ExecuteContextC(ctx)
	err = out.withWriteError(err)
	printErrors(err, inJSON, stderr)
	return exitCode(cmd, err)
}

// errRefused is returned by a job if the engine refused documents. Its summary lists them.
var errRefused = errors.New("documents were refused")

// rootLong is the beginning of the help.
const rootLong = `sidecar is a proxy in front of a search engine and speaks its API. It adds a small sketch of the text to each document
that is written, and hides a hit in a reply if a better ranked hit says nearly the same.

Only results go to standard output. Progress, notes and errors go to standard error (2> file takes these). With --output json results are JSON. Then
each error is an object on a line of its own on standard error: {"error": "..."}. If standard error is not a terminal, each note is
such an object too: {"note": "..."}. On a terminal a job shows colours and a progress bar. Elsewhere it writes a line every few
seconds. TERM=dumb turns off the colours and the bar. NO_COLOR turns off the colours only.

Exit codes:

  0  done
  1  failed or interrupted (verify: see 2)
     ready, doctor, config check, config test: the answer is no
     verify: a sketch, bands or a cluster is stale, or a mapping fills our fields
  2  verify only: failed, because something could not be read or written, or the command line or the configuration is wrong
  3  done, but the engine refused some documents`

// commandGroup is a group of commands in the help.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

func commandGroups() []commandGroup {
	return []commandGroup{
		{"begin", "To start with:", []*cobra.Command{initCommand(), doctorCommand(), demoCommand()}},
		{"live", "In front of an engine:", []*cobra.Command{setupCommand(), serveCommand(), readyCommand()}},
		{"stored", "For documents that are stored already:", []*cobra.Command{
			reindexCommand(), verifyCommand(), calibrateCommand(), tryCommand(), similarCommand(), clusterCommand(), decideCommand(), removeCommand(),
		}},
		{"files", "For texts in files, without an engine:", []*cobra.Command{sketchCommand(), compareCommand(), unseenCommand()}},
		{"other", "Other:", []*cobra.Command{configCommand(), versionCommand(), manCommand()}},
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sidecar",
		Short: "Collapse near-duplicate search results, in front of Elasticsearch, OpenSearch or Typesense",
		Long:  rootLong,
		Example: `  sidecar init http://localhost:9200
  sidecar doctor
  sidecar serve
  sidecar verify --index news-2024 --output json`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = buildinfo.Of().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version")
	root.PersistentFlags().StringP("config", "c", config.DefaultFile, "the configuration `file`. The commands sketch, compare, unseen and cluster --input read no configuration, unless you give this flag")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	for _, g := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			if cmd.GroupID = g.id; cmd.Args == nil {
				cmd.Args = cobra.NoArgs
			}
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	completeFlags(root)
	return root
}

// configFile returns the file that --config names.
func configFile(cmd *cobra.Command) string { return cmd.Flag("config").Value.String() }

// configOf loads the configuration that --config names.
func configOf(cmd *cobra.Command) (*config.Config, error) {
	return config.Load(configFile(cmd), os.LookupEnv)
}
