package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

const (
	// defaultEngine is the engine that init asks where the command line names none.
	defaultEngine = "http://localhost:9200"
	// localConfigFile is where init writes where the default would be the manual, as it is in a clone of the repository.
	localConfigFile = "config.local.yaml"
	// manualTitle is what the manual begins with.
	manualTitle = "# The configuration of the sidecar, and its manual."
	// toOutput stands for standard output among files.
	toOutput = "-"
)

// initFlags are what the command line asks of init.
type initFlags struct {
	output, listen            string
	caFile, certFile, keyFile string
	indices                   []string
	force, serve, insecure    bool
}

func initCommand() *cobra.Command {
	var f initFlags
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
			at := defaultEngine
			if len(args) > 0 {
				at = args[0]
			}
			return f.run(cmd, at)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.output, "output", "", "write to this `file` (- is standard output) in place of the one that --config names")
	flags.BoolVar(&f.force, "force", false, "write over a file that is there")
	flags.BoolVar(&f.serve, "serve", false, "then serve with it")
	flags.StringSliceVar(&f.indices, "index", nil, "take these indices: `names` or patterns, with commas between")
	flags.StringVar(&f.listen, "listen", "",
		"where clients are to connect: an `address` (default 127.0.0.1:9201, Typesense :8109, or the next free port)")
	flags.StringVar(&f.caFile, "ca-file", "", "PEM `file` with the certificates by which the engine is trusted")
	flags.StringVar(&f.certFile, "cert-file", "", "PEM `file` with the certificate that the engine is shown, where it asks for one")
	flags.StringVar(&f.keyFile, "key-file", "", "PEM `file` with the key to it")
	flags.BoolVar(&f.insecure, "insecure", false, "trust any certificate of the engine: only to try something out")
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command, at string) error {
	ctx, errOut := cmd.Context(), cmd.ErrOrStderr()
	file, err := f.file(cmd)
	if err != nil {
		return err
	}
	tell := cmd.OutOrStdout()
	if file == toOutput {
		tell = errOut
	}
	n := newcomer{flags: f, talk: newTalk(ctx, cmd.InOrStdin(), errOut), file: file}
	if err := n.meet(ctx, at); err != nil {
		return err
	}
	if err := n.look(ctx); err != nil {
		return err
	}
	if err := n.choose(ctx); err != nil {
		return err
	}
	if err := n.doors(); err != nil {
		return err
	}
	text := n.written()
	if _, err := config.Parse([]byte(text), lookupWithout(n.variables)); err != nil {
		return fmt.Errorf("what was to be written is no valid configuration, which is a fault of ours: %w", err)
	}
	if file == toOutput {
		if _, err := io.WriteString(cmd.OutOrStdout(), text); err != nil {
			return err
		}
	} else if err := writeConfig(file, text, f.force); err != nil {
		return err
	}
	if _, err := io.WriteString(tell, terminal.Harmless(n.told())); err != nil {
		return err
	}
	if !f.serve {
		return nil
	}
	return server.Run(ctx, file, errOut, server.Options{Drain: server.DefaultDrain, Listening: func() { _, _ = io.WriteString(tell, n.invitation()) }})
}

// file returns where to write, or why not.
func (f *initFlags) file(cmd *cobra.Command) (string, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return "", err
	}
	file = cmp.Or(f.output, file)
	if file == toOutput {
		if f.serve {
			return "", errors.New("--serve needs a file to serve by: leave --output - out, or --serve")
		}
		return file, nil
	}
	byDefault := f.output == "" && !cmd.Flags().Changed("config")
	if byDefault && isManual(file) {
		file = localConfigFile
	}
	if _, err := os.Stat(file); err == nil && !f.force {
		return "", there(file)
	}
	return file, nil
}

// there says that a file is there, and what can be done.
func there(file string) error {
	return fmt.Errorf("%s is there already: run it with: %s; or write it anew with --force, or elsewhere with --output FILE",
		file, ourselves("serve", file))
}

// ourselves returns a command line of ours with a configuration file.
func ourselves(command, file string) string {
	called := "sidecar"
	if strings.Contains(os.Args[0], "go-build") && filepath.Base(filepath.Dir(os.Args[0])) == "exe" { // as go run has it
		called = "go run ./cmd/sidecar"
	}
	if file != config.DefaultFile && file != toOutput {
		command += " --config " + shellWord(file)
	}
	return called + " " + command
}

// shellWord returns a text as a shell takes it for one word.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-:@%+=,", r)
	}
	if strings.TrimFunc(text, plain) == "" && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isManual reports whether a file is the manual in the repository.
func isManual(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, len(manualTitle))
	_, err = io.ReadFull(f, head)
	return err == nil && bytes.Equal(head, []byte(manualTitle))
}

// writeConfig puts a text into a file. It holds no secrets.
func writeConfig(file, text string, force bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, how, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return there(file)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w: name another file with --output", err)
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}

// doors chooses where the sidecar listens.
func (n *newcomer) doors() error {
	n.engine.Listen, n.admin = n.flags.listen, config.DefaultAdmin
	if n.engine.Listen != "" {
		if err := config.CheckAddress("--listen", n.engine.Listen); err != nil {
			return err
		}
	} else {
		wanted := "127.0.0.1:9201"
		if n.engine.Kind == kind.Typesense {
			wanted = "127.0.0.1:8109"
		}
		n.engine.Listen = n.free(wanted, "clients find the sidecar")
	}
	n.admin = n.free(config.DefaultAdmin, "the sidecar tells about itself")
	return nil
}

// free returns an address that can be listened on: the one wanted, or with the next free port.
func (n *newcomer) free(wanted, what string) string {
	const tries = 50
	host, port, _ := net.SplitHostPort(wanted)
	first, _ := strconv.Atoi(port)
	for number := first; number < first+tries; number++ {
		at := net.JoinHostPort(host, strconv.Itoa(number))
		if at == n.engine.Listen {
			continue
		}
		l, err := net.Listen("tcp", at)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err == nil {
			_ = l.Close() // nobody came
		}
		if number != first {
			n.notes = append(n.notes, fmt.Sprintf("%s is taken: %s at %s", wanted, what, at))
		}
		return at
	}
	return wanted // serve says what holds it
}

// lookupWithout is the environment less some variables: those with credentials may be gone when the configuration is read.
func lookupWithout(variables []string) config.Lookup {
	return func(name string) (string, bool) {
		for _, v := range variables {
			if v == name {
				return "", false
			}
		}
		return os.LookupEnv(name)
	}
}
