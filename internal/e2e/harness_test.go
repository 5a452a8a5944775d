package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// binary is the sidecar that NEARDUP_SIDECAR names, or one that is built at first use and removed by TestMain.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("NEARDUP_SIDECAR"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "neardup-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sidecar")
	args := []string{"build", "-o", path}
	if os.Getenv("NEARDUP_RACE") != "" {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/neardup/sidecar/cmd/sidecar")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := engines.Main(m)
	if path, err := binary(); err == nil && os.Getenv("NEARDUP_SIDECAR") == "" {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// Short names of what every test here says.
var (
	check  = expect.OK
	same   = expect.Same
	decode = expect.JSON
)

func must[T any](v T, err error) func(testing.TB) T { return expect.Value(v, err) }

// until waits for a condition, and reports whether it came within half a minute.
func until(met func() bool) bool {
	for end := time.Now().Add(30 * time.Second); !met(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// setup is what a test asks of a sidecar's configuration.
type setup struct {
	match     string
	fields    string   // title, body
	threshold float64  // 0.7
	window    int      // 1000
	missing   string   // compute
	rule      string   // further lines of the rule
	engine    string   // further lines of the engine
	listen    string   // in place of a free port
	urls      []string // in place of the engine's own
	limits    string   // YAML of the section
	key       string   // in place of the engine's own
}

const seed = "a seed of the tests"

// config writes a configuration file in front of the engine.
func config(t *testing.T, e *engines.Engine, s setup) string {
	t.Helper()
	if s.urls == nil {
		s.urls = []string{e.URL}
	}
	if key := cmp.Or(s.key, e.Key); key != "" {
		s.engine += "\ncredentials: {api_key: " + key + "}"
	}
	s.engine += "\nlimits: " + patient(s.limits)
	indented := func(lines, by string) string {
		return strings.ReplaceAll("\n"+strings.Trim(lines, "\n"), "\n", "\n"+by)
	}
	text := fmt.Sprintf(`log: {format: json}
admin: 127.0.0.1:0
sketch: {seed: %q}
engines:
  - listen: %s
    kind: %s
    urls: %s%s
    indices:
      - match: %q
        fields: [%s]
        threshold: %v
        window: %d
        missing: %s%s
`, seed, cmp.Or(s.listen, "127.0.0.1:0"), e.Kind, must(json.Marshal(s.urls))(t), indented(s.engine, "    "), s.match, cmp.Or(s.fields, "title, body"),
		cmp.Or(s.threshold, 0.7), cmp.Or(s.window, 1000), cmp.Or(s.missing, "compute"), indented(s.rule, "        "))
	file := filepath.Join(t.TempDir(), "config.yaml")
	check(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// patient returns a section of limits with more time for collapsing than a sidecar gives it by default, if it says nothing of that: the
// machine of a test can be busy.
func patient(limits string) string {
	if limits == "" {
		limits = "{}"
	}
	if strings.Contains(limits, "deadline") {
		return limits
	}
	return "{deadline: 30s, " + strings.TrimPrefix(limits, "{")
}

// command returns a command of the sidecar.
func command(t *testing.T, ctx context.Context, args ...string) *exec.Cmd {
	t.Helper()
	path := must(binary())(t)
	return exec.CommandContext(ctx, path, args...)
}

// sidecar runs a command of the sidecar to its end and returns what it printed and its exit code.
func sidecar(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := command(t, t.Context(), args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	code = exitCode(t, cmd.Run())
	return both.String(), code
}

// succeed runs a command of the sidecar that must end well.
func succeed(t *testing.T, args ...string) outcome {
	t.Helper()
	out, code := sidecar(t, args...)
	expect.Must(t, 0, code, "the exit code of %s: %s", args[0], out)
	return outcome(out)
}

// exitCode returns the code with which a command ended, and fails the test if it could not be run.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	check(t, err)
	return 0
}

// serve starts a sidecar in front of the engine and returns its address. It ends with the test.
func serve(t *testing.T, e *engines.Engine, s setup) string {
	t.Helper()
	return serveFile(t, config(t, e, s))
}

// serveFile starts a sidecar with a configuration file.
func serveFile(t *testing.T, file string) string {
	t.Helper()
	base, _ := process(t, file)
	return base
}

// process starts a sidecar and returns its address and process id. It ends with the test.
func process(t *testing.T, file string) (base string, pid int) {
	t.Helper()
	d := running(t, file)
	return fmt.Sprint("http://", d.await(t, "listening", 1)[0]["addr"]), d.cmd.Process.Pid
}

// running starts a sidecar, which ends well with the test.
func running(t *testing.T, file string) *daemon {
	t.Helper()
	d := &daemon{file: file, cmd: command(t, context.Background(), "serve", "--config", file)}
	d.start(t)
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		same(t, 0, d.ended(t), "the exit code of serve")
		for _, line := range d.lines {
			if text := fmt.Sprint(line); strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
				t.Error(text)
			}
		}
	})
	return d
}

// reply is an answer read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// requestOf returns a request with the engine's key, if it has one. A header with an empty value is left out.
func requestOf(ctx context.Context, e *engines.Engine, method, url string, body io.Reader, header ...string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		r.Header.Set("X-Typesense-Api-Key", e.Key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r, nil
}

// exchange sends a request and reads the reply whole.
func exchange(client *http.Client, r *http.Request) (reply, error) {
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, data}, err
}

// call sends a request to an engine, or to a sidecar in front of it.
func call(t *testing.T, e *engines.Engine, method, url, body string, header ...string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r := must(requestOf(ctx, e, method, url, strings.NewReader(body), header...))(t)
	return must(exchange(http.DefaultClient, r))(t)
}

// want fails the test unless the reply has the status.
func (r reply) want(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %.500s", r.status, status, r.body)
	}
	return r
}

// documents returns the corpus, with dates as the engine takes them.
func documents(t *testing.T) []corpus.Document {
	t.Helper()
	list := corpus.Documents()
	if len(list) < 200 {
		t.Fatalf("the corpus has %d documents", len(list))
	}
	return list
}

// corpusFile writes documents as JSON lines.
func corpusFile(t *testing.T, list []corpus.Document) string {
	t.Helper()
	var b bytes.Buffer
	for _, d := range list {
		line := must(json.Marshal(d))(t)
		b.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "corpus.jsonl")
	check(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}

// onEach runs a test on an engine of each kind, one after the other, or at the same time: they have nothing in common, and much of it is waiting.
func onEach(t *testing.T, parallel bool, kinds []string, test func(t *testing.T, e *engines.Engine)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			test(t, engines.Shared(t, kind))
		})
	}
}

func eachEngine(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	onEach(t, false, engines.Kinds, test)
}

// sideBySide is eachEngine for tests that wait more than they work.
func sideBySide(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	onEach(t, true, engines.Kinds, test)
}

// elasticEngines runs a test on the two engines that share an adapter.
func elasticEngines(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	onEach(t, false, []string{engines.Elasticsearch, engines.OpenSearch}, test)
}

// eachDialect runs a test on one engine of each dialect.
func eachDialect(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	onEach(t, false, []string{engines.Elasticsearch, engines.Typesense}, test)
}
