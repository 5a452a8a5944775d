// Package onboard helps an operator to start: init surveys an engine and writes a configuration, doctor checks everything that a sidecar needs.
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

// InitOptions say how to survey an engine, and where to write the configuration.
type InitOptions struct {
	// Config is the value of --config; Chosen says that the flag was given.
	Config string
	Chosen bool
	// Output is the file to write instead of Config; - is standard output.
	Output string
	Listen string
	// TLS is the section tls of the engine. Its files may be relative.
	TLS config.TLS
	// Indices are names or patterns; empty for all.
	Indices      []string
	Force, Serve bool
}

// Init surveys the engine at an address and writes a configuration. The summary goes to out, or to errOut if the configuration goes to out.
// Questions and errors go to errOut.
func Init(ctx context.Context, at string, o InitOptions, in io.Reader, out, errOut io.Writer) error {
	file, err := o.file()
	if err != nil {
		return err
	}
	summaryOut := out
	if file == standardOutput {
		summaryOut = errOut
	}
	n := survey{options: &o, talk: newTalk(ctx, in, errOut), file: file, command: "sidecar init"}
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
			if slices.Contains(n.variables, name) { // the file must be valid without credentials too
				return "", false
			}
			return os.LookupEnv(name)
		})
	}
	if err != nil {
		return fmt.Errorf("the configuration to write is not valid: please report this bug: %w", err)
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
	if _, err := io.WriteString(summaryOut, terminal.Harmless(summary)); err != nil {
		return err
	}
	if !o.Serve {
		return nil
	}
	greeting, err := n.write("init_greeting.tmpl")
	if err != nil {
		return err
	}
	return server.Run(ctx, file, errOut, server.Options{Drain: server.DefaultDrain, Greet: summaryOut, Greeting: greeting})
}

// file returns the file to write, or an error if it exists.
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

// commandLine returns a command line of sidecar with a configuration file.
func commandLine(command, file string) string {
	called := "sidecar"
	if strings.Contains(os.Args[0], "go-build") && filepath.Base(filepath.Dir(os.Args[0])) == "exe" { // where go run puts programs
		called = "go run ./cmd/sidecar"
	}
	if file != config.DefaultFile && file != standardOutput {
		command += " --config " + shellWord(file)
	}
	return called + " " + command
}

// plainWord matches text that a shell reads as one word without quotes.
var plainWord = regexp.MustCompile(`^[a-zA-Z0-9./_:@%+=,-]+$`)

// shellWord quotes a text for a shell if necessary.
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
		port := strconv.Itoa(kind.Of(n.engine.Kind).Port + 1)
		n.engine.Listen = n.free(net.JoinHostPort("127.0.0.1", port), "the sidecar")
	}
	n.admin = n.free(config.DefaultAdmin, "its admin page")
	return nil
}

// free returns an address to listen on: the wanted one, or one with the next free port and a note.
func (n *survey) free(wanted, what string) string {
	at := server.FreeNear(wanted, n.engine.Listen)
	if at != wanted {
		n.notes = append(n.notes, fmt.Sprintf("%s is taken: %s will be at %s", wanted, what, at))
	}
	return at
}

const (
	// DefaultEngine is the engine that init asks if the command line names none.
	DefaultEngine = "http://localhost:9200"
	// localConfigFile is the default file in a clone of the repository, where config.yaml is the manual.
	localConfigFile = "config.local.yaml"
	// manualTitle is the first line of the manual.
	manualTitle = "# The configuration of the sidecar, and its manual."
	// standardOutput is the file name that means standard output.
	standardOutput = "-"
)
