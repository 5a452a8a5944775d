// Package clients runs the engines' official Python clients in tests, so that what is proven of the proxy is proven with
// the programs that its users run. The programs beside this file share one command line:
//
//	PROGRAM load --url URL [--key KEY] --index NAME --corpus FILE.jsonl [--auto]
//	PROGRAM walk --url URL [--key KEY] --index NAME --query Q [--size N] [--param K=V]… [--auto]
//	PROGRAM get  --url URL [--key KEY] --index NAME --id ID
//
// and each prints one JSON value: load the number of documents and the errors, walk the ids on all pages up to the first empty
// one and the totals, get the document. With --auto, load leaves the field types to the engine, and a walk over that index
// says --auto too. A parameter goes into the URL as it is, known to the client or not. The packages they need are in
// requirements.txt; venv.sh installs them.
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
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

//go:embed *.py requirements.txt venv.sh
var files embed.FS

// Python returns the path of a Python interpreter that has the clients. Where there is none, t fails or is skipped, by
// the rule of [engines.Unavailable].
func Python(t testing.TB) string {
	t.Helper()
	path, err := interpreter()
	if err != nil {
		if !engines.Required() {
			engines.Unavailable(t, err)
		}
		path = install(t)
	}
	return path
}

// Run runs one of the programs, by its file name, with these arguments and returns what it printed. A program that fails
// fails t.
func Run(t testing.TB, program string, args ...string) []byte {
	t.Helper()
	python, dir := Python(t), unpack(t)
	cmd := exec.CommandContext(t.Context(), python, append([]string{filepath.Join(dir, program)}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, stderr.Bytes())
	}
	return out
}

// interpreter returns the interpreter that venv.sh has made.
func interpreter() (string, error) {
	list, err := files.ReadFile("requirements.txt")
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
	venv := filepath.Join(cache, fmt.Sprintf("venv-%x", sha256.Sum256(list))[:len("venv-")+12])
	if _, err := os.Stat(filepath.Join(venv, "complete")); err != nil {
		return "", errors.New("the Python clients are not installed; run internal/engines/prepare.sh")
	}
	return filepath.Join(venv, "bin", "python"), nil
}

func install(t testing.TB) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(unpack(t), "venv.sh"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("install the Python clients: %v\n%s", err, stderr.Bytes())
	}
	return string(bytes.TrimSpace(out))
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
