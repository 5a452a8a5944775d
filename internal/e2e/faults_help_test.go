package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// victim is a sidecar of a test that does harm to it: it may be killed.
type victim struct {
	base, admin string
	cmd         *exec.Cmd
	ended       chan error

	mu    sync.Mutex
	lines []string
}

// log returns what the sidecar wrote.
func (r *victim) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// run starts a sidecar that ends with the test. change, if not nil, changes the command before it runs.
func startVictim(t *testing.T, file string, change func(*exec.Cmd)) *victim {
	t.Helper()
	r := &victim{cmd: command(t, context.Background(), "serve", "--config", file), ended: make(chan error, 1)}
	if change != nil {
		change(r.cmd)
	}
	logs, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(logs)
		for lines.Scan() {
			r.note(lines.Bytes(), found)
		}
		err := r.cmd.Wait()
		r.ended <- err
		r.note(fmt.Appendf(nil, "ended: %v", err), nil)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(time.Minute):
			_ = r.cmd.Process.Kill()
			t.Error("the sidecar does not end")
		}
		if text := r.log(); strings.Contains(text, "panic") || strings.Contains(text, "DATA RACE") {
			t.Error(text)
		}
	})
	select {
	case <-found:
	case err := <-r.ended:
		r.ended <- err
		t.Fatalf("the sidecar ended with %v: %s", err, r.log())
	case <-time.After(time.Minute):
		t.Fatalf("the sidecar does not listen: %s", r.log())
	}
	return r
}

// note takes a line of the log; found is closed when both addresses are known.
func (r *victim) note(text []byte, found chan struct{}) {
	var line struct{ Msg, Addr string }
	_ = json.Unmarshal(text, &line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(text))
	known := r.base != "" && r.admin != ""
	switch line.Msg {
	case "listening":
		r.base = "http://" + line.Addr
	case "admin listening":
		r.admin = "http://" + line.Addr
	}
	if !known && r.base != "" && r.admin != "" {
		close(found)
	}
}

// kill ends the sidecar as the kernel does.
func (r *victim) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := <-r.ended
	r.ended <- err
}

var sample = regexp.MustCompile(`(?m)^(neardup_\w+)\{([^}]*)\} ([0-9.e+]+)$`)

// moves is what the sidecar's metrics say, by name and labels less that of the engine.
type moves map[string]float64

func (r *victim) moves(t *testing.T) moves {
	t.Helper()
	resp, err := http.Get(r.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("metrics: %d %v", resp.StatusCode, err)
	}
	found := moves{}
	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		var labels []string
		for label := range strings.SplitSeq(m[2], ",") {
			if !strings.HasPrefix(label, "engine=") {
				labels = append(labels, label)
			}
		}
		name := m[1]
		if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.Contains(name, "_seconds") {
			continue
		}
		if len(labels) > 0 {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		found[name], _ = strconv.ParseFloat(m[3], 64)
	}
	return found
}

// since returns what was moves after an earlier look, counters that did not move left out.
func (c moves) since(before moves) moves {
	moved := moves{}
	for name, n := range c {
		if d := n - before[name]; d != 0 {
			moved[name] = d
		}
	}
	return moved
}

// gotten is what a client got: a reply, and the error that ended it, if any.
type gotten struct {
	reply
	err error
}

func (g gotten) String() string {
	if g.err != nil {
		return fmt.Sprintf("%d, %d bytes, then %v", g.status, len(g.body), g.err)
	}
	return fmt.Sprintf("%d %.200s (%s)", g.status, g.body, g.header.Get("Neardup"))
}

// ok reports whether a whole good reply came.
func (g gotten) ok() bool { return g.err == nil && g.status >= 200 && g.status < 300 }

// try sends a request on a connection of its own, so that nothing is sent again, and reads what comes. A client gives up after
// within.
func attempt(t *testing.T, e *engines.Engine, base string, r sending, within time.Duration) gotten {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if e.Key != "" {
		request.Header.Set("X-Typesense-Api-Key", e.Key)
	}
	for i := 0; i+1 < len(r.header); i += 2 {
		request.Header.Set(r.header[i], r.header[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	resp, err := client.Do(request)
	if err != nil {
		return gotten{err: errors.Unwrap(err)}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return gotten{reply{resp.StatusCode, resp.Header, data}, err}
}

// sending is a request as a client writes it.
type sending struct {
	method, path, body string
	header             []string
}

// asIfNew are the parts of a reply that differ from one time to the next though nothing went wrong.
var asIfNew = regexp.MustCompile(`("took":|"search_time_ms":|"_version":|"_seq_no":|"_primary_term":|"version":)\d+|n\d+d|"result":"(?:created|updated)"`)

// plainOf returns a reply's body without those parts.
func plainOf(body []byte) string { return string(asIfNew.ReplaceAll(body, []byte(`${1}…`))) }

// inflated decompresses.
func inflated(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// devFull fails the test where /dev/full is not there.
func devFull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// lessOurs cuts what the sidecar adds out of a body of documents, one for each line.
func lessOurs(body []byte) string {
	var out bytes.Buffer
	for line := range bytes.Lines(body) {
		out.Write(ourFields.ReplaceAll(line, nil))
	}
	return out.String()
}

// ourFields are those that the sidecar puts behind the last member of a document.
var ourFields = regexp.MustCompile(`,"neardup_(?:sketch|bands|cluster)":(?:"[^"]*"|\[[^\]]*\]|null)`)

// within is how long clients of these tests wait, where the fault is not that nothing comes.
const within = 20 * time.Second

// faultBench is an engine behind a relay, and a sidecar in front of that.
type faultBench struct {
	e      *engines.Engine
	relay  *inject.Relay
	side   *victim
	direct api // the engine itself
	kinds  []*faultKind
	file   string // the configuration of side
	n      int
	bit    int // faults that did harm in a row of the table
	turn   int
}
