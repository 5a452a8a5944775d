package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
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

// lab runs sections on one engine, which it wipes after each.
type lab struct {
	kind   string
	direct *runner
	bare   *runner // through a sidecar whose rule matches no index
	ruled  *runner // through one with a rule for every index, which folds by stored sketches alone
	late   *runner // reads through one that computes missing sketches: documents are written past it
	wiper  *wiper
	long   bool // all sections in all ways
	turn   int
}

// newLab puts two sidecars in front of an engine.
func newLab(t *testing.T, e *engines.Engine) *lab {
	t.Helper()
	w := expect.Value(newWiper(t.Context(), e.URL, e.Kind == engines.OpenSearch))(t)
	sidecar := func(match, missing string) string { return serve(t, configuration(e.Kind, e.URL, match, missing)) }
	client := newClient()
	at := func(base, reads string) *runner { return &runner{base: base, reads: reads, client: client} }
	return &lab{
		kind: e.Kind, wiper: w, direct: at(e.URL, ""),
		bare:  at(sidecar("no-such-index", "compute"), ""),
		ruled: at(sidecar("*", "alone"), ""),
		late:  at(e.URL, sidecar("*", "compute")),
	}
}

// verdict is what came of one section on one engine.
type verdict struct {
	skipped     string       // why it is not run, or does not run directly
	differences []difference // of the replies
	folded      int          // how many hits were left out of the replies for their stored sketches
}

// run runs a section once and wipes the engine. A section that can't go on is failed; an engine that can't be wiped is an error.
func (l *lab) run(ctx context.Context, r *runner, su *suite, se *section) (trace []exchange, failed, err error) {
	// A sidecar remembers for two seconds what it knows of an index, apart for each client, and the wipes go past it. So each
	// run is a client of its own.
	l.turn++
	r.header = http.Header{"X-Conformance-Run": {strconv.Itoa(l.turn)}}
	trace, failed = r.run(ctx, su, se)
	if err := l.wiper.wipe(ctx); err != nil {
		return nil, nil, fmt.Errorf("wipe after %s: %w", se.name(), err)
	}
	return trace, failed, nil
}

// judge runs a section directly and through both sidecars.
func (l *lab) judge(ctx context.Context, su *suite, se *section) (v verdict, err error) {
	if se.skip != "" {
		return verdict{skipped: se.skip}, nil
	}
	first, failed, err := l.run(ctx, l.direct, su, se)
	if err != nil || failed != nil {
		return verdict{skipped: fmt.Sprint(failed)}, err
	}
	second := first
	if l.long { // what differs from one time to the next is no finding
		if second, failed, err = l.run(ctx, l.direct, su, se); err != nil || failed != nil {
			return verdict{skipped: fmt.Sprint(failed)}, err
		}
	}
	ways := []*runner{l.ruled}
	if l.long || se.hash()%4 == 0 { // these go wrong far more seldom
		ways = append(ways, l.bare)
	}
	if l.long || se.hash()%4 == 1 {
		ways = append(ways, l.late)
	}
	for _, r := range ways {
		found, hits, err := l.through(ctx, su, se, r, first, second)
		if err != nil {
			return v, err
		}
		if v.differences = append(v.differences, found...); r == l.ruled {
			v.folded = hits
		}
	}
	return v, nil
}

// through runs a section through a sidecar. What differs is tried once more.
func (l *lab) through(
	ctx context.Context, su *suite, se *section, r *runner, first, second []exchange,
) (found []difference, hits int, err error) {
	trace, failed, err := l.run(ctx, r, su, se)
	if err != nil {
		return nil, 0, err
	}
	hits = folded(trace)
	if found = compare(first, second, trace, failed); len(found) == 0 {
		return nil, hits, nil
	}
	again, failed, err := l.run(ctx, r, su, se)
	if err != nil {
		return nil, 0, err
	}
	direct, _, err := l.run(ctx, l.direct, su, se)
	if err != nil {
		return nil, 0, err
	}
	still := compare(first, direct, again, failed)
	return slices.DeleteFunc(found, func(d difference) bool {
		return !slices.ContainsFunc(still, func(e difference) bool {
			return d.what == e.what && d.place == e.place && d.value == e.value
		})
	}), hits, nil
}

// folded returns how many hits the sidecar says that it left out of the replies.
func folded(trace []exchange) int {
	n := 0
	for _, x := range trace {
		for part := range strings.SplitSeq(x.header.Get("Neardup"), ";") {
			if count, ok := strings.CutPrefix(strings.TrimSpace(part), "folded="); ok {
				i, _ := strconv.Atoi(count) // no number is no fold
				n += i
			}
		}
	}
	return n
}
