package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// built says that there is a binary to remove.
var built bool

// binary is the built sidecar, made at first use and removed by TestMain.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "neardup-conformance-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sidecar")
	built = true
	out, err := exec.Command("go", "build", "-o", path, "github.com/neardup/sidecar/cmd/sidecar").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// fields are those in which the suites' documents hold texts, most used first.
var fields = []string{
	"title", "body", "text", "message", "content", "description", "name", "foo", "bar", "baz", "str", "keyword",
	"some_keyword", "field", "field1", "field2", "f1", "user", "author", "class", "city", "category", "tag", "genre", "test",
	"doc.foo", "include.field1", "issue.labels.name",
}

// configuration returns a configuration in front of the engine. With the pattern *, all documents of the suites that hold a text
// get a sketch; missing says what happens to a hit without one.
func configuration(kind, url, match, missing string) string {
	return fmt.Sprintf(`log: {format: json}
admin: ""
sketch: {seed: conformance}
engines:
  - listen: 127.0.0.1:0
    kind: %s
    urls: [%q]
    limits: {deadline: 30s}
    indices:
      - {match: %q, fields: [%s], threshold: 1, missing: %s}
`, kind, url, match, strings.Join(fields, ", "), missing)
}

// serve starts a sidecar and returns its address. It ends with the test.
func serve(t *testing.T, config string) string {
	t.Helper()
	path := expect.Value(binary())(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(file, []byte(config), 0o600))
	cmd := exec.Command(path, "serve", "--config", file)
	logs := expect.Value(cmd.StderrPipe())(t)
	expect.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Msg, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			go watch(t, lines)
			return "http://" + line.Addr
		}
	}
	t.Fatal("the sidecar ended before it listened")
	return ""
}

// watch fails the test where the sidecar logs a panic.
func watch(t *testing.T, lines *bufio.Scanner) {
	for lines.Scan() {
		if text := lines.Text(); strings.Contains(text, "panic") {
			t.Error(text)
		}
	}
}
