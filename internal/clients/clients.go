// Package clients runs the engines' official clients in tests, so that what is proven of the proxy is proven with the programs
// that its users run. The programs beside this file, in Python and JavaScript, share one command line:
//
//	PROGRAM load --url URL [--key KEY] --index NAME --corpus FILE.jsonl [--auto]
//	PROGRAM walk --url URL [--key KEY] --index NAME --query Q [--size N] [--param K=V]… [--auto]
//	PROGRAM get  --url URL [--key KEY] --index NAME --id ID
//	SESSION      --url URL [--key KEY] --index PREFIX --corpus FILE.jsonl
//
// and each prints one JSON value: load the number of documents and the errors, walk the ids on all pages up to the first empty
// one and the totals, get the document. With --auto, load leaves the field types to the engine, and a walk over that index
// says --auto too. A parameter goes into the URL as it is, known to the client or not. Programs for Elasticsearch take
// --client elasticsearch8 too, which is its client of that major: [For] says where.
//
// A session, in a file named so, uses its client as widely as it can on indices whose names begin with the prefix, and prints all
// that the client returned: session.py says in which form. It begins where there is none of its indices and leaves them standing.
//
// playground.js drives the page in a real browser, playground_modules.js runs its scripts without one; what they take and print stands in them.
//
// The packages they need are in requirements.txt and package-lock.json; install.sh fetches them.
package clients

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

//go:embed *.py *.js requirements.txt package.json package-lock.json install.sh
var files embed.FS

// language is what the programs of one language need.
type language struct{ name, list, interpreter string }

// languages has them by the ending of a program's name.
var languages = map[string]language{
	".py": {"python", "requirements.txt", "python"},
	".js": {"javascript", "package-lock.json", "node"},
}

// Python returns the path of a Python interpreter that has the clients. Where there is none, t fails or is skipped, by
// the rule of [engines.Unavailable].
func Python(t testing.TB) string {
	t.Helper()
	return languages[".py"].find(t)
}

// Run runs one of the programs, by its file name, with these arguments and returns what it printed. A program that fails
// fails t; one whose language is not installed fails or skips it, by the rule of [engines.Unavailable].
func Run(t testing.TB, program string, args ...string) []byte {
	t.Helper()
	interpreter, dir := languages[filepath.Ext(program)].find(t), unpack(t)
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join(dir, program)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(filepath.Dir(interpreter), "..", "node_modules"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends what it has started, and removes its files
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, stderr.Bytes())
	}
	return out
}

// For returns the arguments that choose the client for an engine: a client of Elasticsearch 9 asks for replies that 8 refuses.
func For(e *engines.Engine) []string {
	if e.Name == engines.Elasticsearch8 {
		return []string{"--client", "elasticsearch8"}
	}
	return nil
}

// find returns the interpreter, fetching it and the packages where engines are required.
func (l language) find(t testing.TB) string {
	t.Helper()
	path, err := l.installed()
	if err == nil {
		return path
	}
	if !engines.Required() {
		engines.Unavailable(t, err)
	}
	if path, err = install(t, l.name); err != nil {
		t.Fatalf("install the %s clients: %v", l.name, err)
	}
	return path
}

// Browser returns the path of a Chromium. Where there is none it is installed if engines are required; where that can't be, t
// fails if CI=true, and is skipped otherwise: to install it takes root.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	path, err := "", errors.New("there is no Chromium; install it, or run internal/engines/prepare.sh as root")
	if engines.Required() {
		path, err = install(t, "browser")
	}
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
	return path
}

// install runs install.sh and returns the path that it prints.
func install(t testing.TB, what string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(unpack(t), "install.sh"), what)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return string(bytes.TrimSpace(out)), nil
}

// installed returns the interpreter in the folder that install.sh has made.
func (l language) installed() (string, error) {
	list, err := files.ReadFile(l.list)
	if err != nil {
		return "", err
	}
	cache := os.Getenv("NEARDUP_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir() // XDG_CACHE_HOME or ~/.cache
		if err != nil {
			return "", err
		}
		cache = filepath.Join(base, "neardup")
	}
	home := filepath.Join(cache, fmt.Sprintf("%s-%.6x", l.name, sha256.Sum256(list)))
	path := filepath.Join(home, "bin", l.interpreter)
	for _, needed := range []string{path, filepath.Join(home, "complete")} {
		if _, err := os.Stat(needed); err != nil {
			return "", fmt.Errorf("the %s clients are not installed; run internal/engines/prepare.sh", l.name)
		}
	}
	return path, nil
}

// unpack writes the programs to a directory that is removed after the test.
func unpack(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}
