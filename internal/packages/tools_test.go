// Package packages holds the tests of what the program is shipped in: the binary itself, deb and rpm, the service, the images,
// the Helm
// chart, releases. They run where NEARDUP_PACKAGES=required or CI=true, and then a tool that is missing is a failure; otherwise
// where
// the tools are at hand.
package packages

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// required says that a missing tool fails a test.
func required() bool { return os.Getenv("CI") == "true" || os.Getenv("NEARDUP_PACKAGES") == "required" }

// long skips a test of what only a release needs.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("NEARDUP_SOAK") == "" {
		t.Skip("for a release: NEARDUP_SOAK=1")
	}
}

// lacking ends a test that can't have what it needs.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if required() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// needs finds programs of the system.
func needs(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			lacking(t, "%s is missing", name)
		}
	}
}

// root returns the root of the tree.
func root(t *testing.T) string {
	t.Helper()
	return expect.Value(filepath.Abs(filepath.Join("..", "..")))(t)
}

var tools sync.Map // name to func() (string, error)

// tool returns the path of a pinned tool, which tools.sh makes once.
func tool(t *testing.T, name string) string {
	t.Helper()
	if !required() && testing.Short() {
		t.Skip("short: needs " + name)
	}
	needs(t, "bash", "go")
	script := filepath.Join(root(t), "internal", "packages", "tools.sh")
	once, _ := tools.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", script, name)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return "", errors.New(errs.String())
		}
		return strings.TrimSpace(string(out)), nil
	}))
	path, err := once.(func() (string, error))()
	if err != nil {
		lacking(t, "%s can't be had: %v", name, err)
	}
	return path
}

// command is one that a test runs.
type command struct {
	dir string
	env []string // over the test's own
}

// try runs a command for five minutes at most and returns what it printed, both ways.
func (c command) try(name string, args ...string) (string, error) {
	return c.within(5*time.Minute, name, args...)
}

func (c command) within(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is a try that must succeed.
func (c command) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := c.try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// patient is a run of half an hour at most.
func (c command) patient(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := c.within(30*time.Minute, name, args...); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// copyTree copies the sources, without what Git keeps and what was built.
func copyTree(t *testing.T, to string) {
	t.Helper()
	from := root(t)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || rel == "bin" || rel == "dist"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody's temporary file
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	expect.OK(t, err)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text := expect.Value(os.ReadFile(filepath.Join(path...)))(t)
	return string(text)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.OK(t, os.WriteFile(path, []byte(text), mode))
}
