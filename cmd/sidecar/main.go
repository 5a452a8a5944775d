// Sidecar stands in front of a search engine and collapses near-duplicate hits. There is one file for each command: flags in, one call, exit code
// out. What the commands do is in the packages below internal and in jobs.
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

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"
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
	inJSON := asksJSON(args)
	if inJSON && !terminal.IsTerminal(stderr) {
		root.SetErr(jsonLines{stderr})
	}
	cmd, err := root.ExecuteContextC(ctx)
	err = out.withWriteError(err)
	printErrors(err, inJSON, stderr)
	return exitCode(cmd, err)
}

// errRefused ends a job that left refused documents behind. Its summary has said so.
var errRefused = errors.New("documents were refused")

// rootLong is what the help begins with.
const rootLong = `sidecar stands in front of a search engine and speaks its API. Documents on their way in get a small sketch of
their text; hits on their way out are left out where a better ranked one says nearly the same.

Results go to standard output, and nothing else does: progress, notes and errors go to standard error. With --output json
results are JSON, and standard error has an object on each line: {"error": "..."}, or {"note": "..."} where it is no terminal.
Colours and progress bars are for terminals alone, elsewhere a job writes a line every few seconds; TERM=dumb keeps both away,
NO_COLOR the colours.

Exit codes:

  0  done
  1  failed or interrupted; or what was asked is not so: of ready, doctor, config check, and of verify where something is wrong
  2  of verify alone: something could not be read or written, or the command line or the configuration is wrong
  3  done, and the engine refused some documents`

// commandGroup is a heading of the help, and the commands below it.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

func commandGroups() []commandGroup {
	return []commandGroup{
		{"begin", "To begin with:", []*cobra.Command{initCommand(), doctorCommand(), demoCommand()}},
		{"live", "In front of an engine:", []*cobra.Command{setupCommand(), serveCommand(), readyCommand()}},
		{"stored", "Documents that are stored already:", []*cobra.Command{
			reindexCommand(), verifyCommand(), calibrateCommand(), similarCommand(), clusterCommand(), removeCommand(),
		}},
		{"files", "Texts in files, without an engine:", []*cobra.Command{sketchCommand(), compareCommand()}},
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
	root.PersistentFlags().StringP("config", "c", config.DefaultFile, "the configuration `file`")
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

// configOf loads the configuration that the command was given.
func configOf(cmd *cobra.Command) (*config.Config, error) {
	return config.Load(configFile(cmd), os.LookupEnv)
}
