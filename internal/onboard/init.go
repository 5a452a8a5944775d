// Package onboard helps an operator to begin: init surveys an engine and writes a configuration, doctor checks everything that a sidecar needs.
package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// InitOptions say how to survey an engine, and where the configuration goes.
type InitOptions struct {
	// Config is the file that --config names; chosen says that it was given.
	Config string
	Chosen bool
	// Output is the file to write, in place of config; - is standard output.
	Output string
	Listen string
	// TLS is how the engine is trusted. Its files may be relative.
	TLS config.TLS
	// Indices are names or patterns; empty for all.
	Indices      []string
	Force, Serve bool
}

// Init surveys the engine at an address and writes a configuration. Notes go to out, unless the configuration does; questions and errors go to
// errOut.
func Init(ctx context.Context, at string, o InitOptions, in io.Reader, out, errOut io.Writer) error {
	file, err := o.file()
	if err != nil {
		return err
	}
	tell := out
	if file == standardOutput {
		tell = errOut
	}
	n := survey{options: &o, talk: newTalk(ctx, in, errOut), file: file}
	if err := n.connect(ctx, at); err != nil {
		return err
	}
	if err := n.inspect(ctx); err != nil {
		return err
	}
	if err := n.choose(ctx); err != nil {
		return err
	}
	if err := n.chooseAddresses(); err != nil {
		return err
	}
	text, err := n.write("init.tmpl")
	if err == nil {
		_, err = config.Parse([]byte(text), func(name string) (string, bool) {
			if slices.Contains(n.variables, name) { // those with credentials may be gone when it is read
				return "", false
			}
			return os.LookupEnv(name)
		})
	}
	if err != nil {
		return fmt.Errorf("what was to be written is no valid configuration, which is a fault of ours: %w", err)
	}
	if file == standardOutput {
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	} else if err := writeConfig(file, text, o.Force); err != nil {
		return err
	}
	summary, err := n.write("init_summary.tmpl")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(tell, terminal.Harmless(summary)); err != nil {
		return err
	}
	if !o.Serve {
		return nil
	}
	greeting, err := n.write("init_greeting.tmpl")
	if err != nil {
		return err
	}
	return server.Run(ctx, file, errOut, server.Options{Drain: server.DefaultDrain, Greet: tell, Greeting: greeting})
}

// file returns where to write, or why not.
func (o *InitOptions) file() (string, error) {
	file := cmp.Or(o.Output, o.Config)
	if file == standardOutput {
		if o.Serve {
			return "", errors.New("--serve needs a file to serve by: leave --output - out, or --serve")
		}
		return file, nil
	}
	if text, err := os.ReadFile(file); err == nil && o.Output == "" && !o.Chosen && strings.HasPrefix(string(text), manualTitle) {
		file = localConfigFile
	}
	if _, err := os.Stat(file); err == nil && !o.Force {
		return "", errExists(file)
	}
	return file, nil
}

func errExists(file string) error {
	return fmt.Errorf("%s is there already: run it with: %s; or write it anew with --force, or elsewhere with --output FILE",
		file, commandLine("serve", file))
}

// writeConfig writes the configuration, which holds no secrets. Without force it keeps a file that appeared while init asked its questions.
func writeConfig(file, text string, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return errExists(file)
	}
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w: name another file with --output", err)
	}
	return nil
}

// commandLine returns a command line of ours with a configuration file.
func commandLine(command, file string) string {
	called := "sidecar"
	if strings.Contains(os.Args[0], "go-build") && filepath.Base(filepath.Dir(os.Args[0])) == "exe" { // as go run has it
		called = "go run ./cmd/sidecar"
	}
	if file != config.DefaultFile && file != standardOutput {
		command += " --config " + shellWord(file)
	}
	return called + " " + command
}

// plainWord is what a shell takes for one word as it stands.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9./_:@%+=,-]+$`)

// shellWord returns a text as a shell takes it for one word.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// chooseAddresses chooses where the sidecar listens.
func (n *survey) chooseAddresses() error {
	n.engine.Listen = n.options.Listen
	if n.engine.Listen != "" {
		if err := config.CheckAddress(n.engine.Listen); err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
	} else {
		beside := strconv.Itoa(kind.Of(n.engine.Kind).Port + 1)
		n.engine.Listen = n.free(net.JoinHostPort("127.0.0.1", beside), "clients find the sidecar")
	}
	n.admin = n.free(config.DefaultAdmin, "the sidecar tells about itself")
	return nil
}

// free returns an address that can be listened on: the one wanted, or with the next free port.
func (n *survey) free(wanted, what string) string {
	at := server.FreeNear(wanted, n.engine.Listen)
	if at != wanted {
		n.notes = append(n.notes, fmt.Sprintf("%s is taken: %s at %s", wanted, what, at))
	}
	return at
}

const (
	// DefaultEngine is the engine that init asks where the command line names none.
	DefaultEngine = "http://localhost:9200"
	// localConfigFile is where init writes where the default would be the manual, as it is in a clone of the repository.
	localConfigFile = "config.local.yaml"
	// manualTitle is what the manual begins with.
	manualTitle = "# The configuration of the sidecar, and its manual."
	// standardOutput is the name of standard output in place of a file's.
	standardOutput = "-"
)
