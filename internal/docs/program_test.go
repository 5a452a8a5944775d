package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(folder) // "" is nothing
	os.Exit(code)
}

// folder holds the built sidecar, once there is one.
var folder string

// binary is the built sidecar, made at first use.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "neardup-docs-"); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "sidecar")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/neardup/sidecar/cmd/sidecar").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// program is the sidecar as it is built from the sources.
func program(t *testing.T) *Program {
	t.Helper()
	path := expect.Value(binary())(t)
	var lock sync.Mutex
	answers := map[string]string{}
	ask := func(args ...string) (string, error) {
		key := strings.Join(args, "\x00")
		lock.Lock()
		defer lock.Unlock()
		if answer, known := answers[key]; known {
			return answer, nil
		}
		out, err := exec.CommandContext(t.Context(), path, args...).Output()
		answers[key] = string(out)
		return string(out), err
	}
	return &Program{
		Check: func(config string) error { return check(t, path, config) },
		Commands: func(above ...string) (names []string, err error) {
			out, err := ask(slices.Concat([]string{"__complete"}, above, []string{""})...)
			help, helpErr := ask(append(slices.Clone(above), "--help")...)
			for line := range strings.Lines(out) {
				name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				// What completes an argument is no command.
				if name != "" && !strings.HasPrefix(name, ":") && strings.Contains(help, "\n  "+name+" ") {
					names = append(names, name)
				}
			}
			return names, errors.Join(err, helpErr)
		},
		Help:    func(above ...string) (string, error) { return ask(append(slices.Clone(above), "--help")...) },
		Sources: sources(t),
		Targets: targets(t),
	}
}

// check has the program read a configuration, with files and variables in place for what it names.
func check(t *testing.T, path, config string) error {
	t.Helper()
	folder := t.TempDir()
	var cert, key []byte
	moved, files := Files(config, folder)
	for _, file := range files {
		if cert == nil {
			cert, key = engines.NewAuthority(t, "docs").Issue(t, engines.Certificate{Name: "docs"})
		}
		text := []byte("secret")
		switch filepath.Ext(file) {
		case ".crt", ".pem":
			text = cert
		case ".key":
			text = key
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
			return err
		}
	}
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, []byte(moved), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), path, "config", "check", "--config", file)
	cmd.Env = os.Environ()
	for _, name := range Variables(config) {
		cmd.Env = append(cmd.Env, name+"=secret")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.ReplaceAll(string(out), folder, ""))
	}
	return nil
}

// endings are those of the files that a test runs, by language.
var endings = map[string]string{"go": ".go", "python": ".py", "js": ".js", "html": ".html"}

// sources reads the files of which a block may be a part: examples of Go packages, and what stands in examples/.
func sources(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody's temporary file
		}
		if err != nil || d.IsDir() {
			if d != nil && d.IsDir() && slices.Contains(leftOut, d.Name()) {
				return fs.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, ".go") {
			_, _ = os.Stat(path) // tells the cache of go test what the built program is made from
		}
		rel, _ := filepath.Rel(root, path) // both are below the root
		for language, ending := range endings {
			tested := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(rel), "examples/")
			if tested && strings.HasSuffix(path, ending) {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				found[language] = append(found[language], string(text))
			}
		}
		return nil
	})
	expect.OK(t, err)
	return found
}

// targets reads those of the Makefile.
func targets(t *testing.T) (names []string) {
	t.Helper()
	text := expect.Value(os.ReadFile(filepath.Join("..", "..", "Makefile")))(t)
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	if len(names) < 10 {
		t.Fatalf("the Makefile has the targets %v", names)
	}
	return names
}
