package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// daemon is a sidecar that serves, whose configuration and end a test has in hand.
type daemon struct {
	cmd  *exec.Cmd
	file string
	logs io.ReadCloser
	done chan struct{} // closed when it has ended and its log is read

	mu    sync.Mutex
	lines []map[string]any // of its log
	more  chan struct{}    // closed at the next line
}

// daemonOf serves a configuration, in which the log must be JSON, until the test ends or before.
func daemonOf(t *testing.T, text string, flags ...string) *daemon {
	t.Helper()
	d := &daemon{file: filepath.Join(t.TempDir(), "config.yaml")}
	d.write(t, text)
	d.cmd = command(t, context.Background(), append([]string{"serve", "--config", d.file}, flags...)...)
	d.start(t)
	d.await(t, "admin listening", 1)
	return d
}

// start starts the command.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	d.more, d.done = make(chan struct{}), make(chan struct{})
	logs := must(d.cmd.StderrPipe())(t)
	check(t, d.cmd.Start())
	d.logs = logs
	go d.follow(logs)
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has ended, if the test went well
		<-d.done
		if t.Failed() {
			d.tell(t)
		}
		_ = d.cmd.Wait()
	})
}

func (d *daemon) follow(logs io.Reader) {
	lines := bufio.NewScanner(logs)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := map[string]any{}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line["msg"] = lines.Text()
		}
		d.mu.Lock()
		d.lines = append(d.lines, line)
		close(d.more)
		d.more = make(chan struct{})
		d.mu.Unlock()
	}
	close(d.done)
}

// deaf ends the reading of the log.
func (d *daemon) deaf(t *testing.T) {
	t.Helper()
	check(t, d.logs.Close())
	<-d.done
}

// tell shows what is unusual in the log.
func (d *daemon) tell(t *testing.T) {
	for _, line := range d.lines {
		if line["level"] != "INFO" {
			t.Log(line)
		}
	}
}

// with returns the log's lines with a message that begins so.
func (d *daemon) with(message string) (found []map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.lines {
		if said, _ := line["msg"].(string); strings.HasPrefix(said, message) {
			found = append(found, line)
		}
	}
	return found
}

// await waits until the log has n lines with the message, and returns them.
func (d *daemon) await(t *testing.T, message string, n int) []map[string]any {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		d.mu.Lock()
		more := d.more
		d.mu.Unlock()
		if found := d.with(message); len(found) >= n {
			return found
		}
		select {
		case <-more:
		case <-d.done:
			if found := d.with(message); len(found) >= n {
				return found
			}
			t.Fatalf("the sidecar ended and never said %q %d times", message, n)
		case <-timeout:
			t.Fatalf("the sidecar does not say %q %d times", message, n)
		}
	}
}

// base returns the URL at which an engine is served, or for "" the admin listener.
func (d *daemon) base(t *testing.T, engine string) string {
	t.Helper()
	for _, line := range append(d.with("listening"), d.with("admin listening")...) {
		if name, _ := line["engine"].(string); name == engine {
			return "http://" + line["addr"].(string)
		}
	}
	t.Fatalf("nothing listens for %q", engine)
	return ""
}

// write puts a configuration in place whole, as an editor does that renames.
func (d *daemon) write(t *testing.T, text string) {
	t.Helper()
	check(t, os.WriteFile(d.file+".new", []byte(text), 0o600))
	check(t, os.Rename(d.file+".new", d.file))
}

// reload has the configuration loaded anew, and waits until that is done.
func (d *daemon) reload(t *testing.T, text string) {
	t.Helper()
	before := len(d.with("configuration"))
	d.write(t, text)
	d.signal(t, syscall.SIGHUP)
	d.await(t, "configuration", before+1)
}

func (d *daemon) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	check(t, d.cmd.Process.Signal(s))
}

// ended waits for the end and returns the exit code, negative where a signal was it.
func (d *daemon) ended(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(60*time.Second, func() { _ = d.cmd.Process.Kill() })
	<-d.done
	_ = d.cmd.Wait()
	if !late.Stop() {
		t.Error("the sidecar did not end by itself")
	}
	if status := d.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return -int(status.Signal())
	}
	return d.cmd.ProcessState.ExitCode()
}

// port returns an address that nobody listens at.
func port(t *testing.T) string {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// listens reports whether connections are taken at a URL.
func listens(base string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// statusAt returns status and body of a GET.
func statusAt(t *testing.T, url string) (int, string) {
	t.Helper()
	got, err := exchange(http.DefaultClient, must(http.NewRequest("GET", url, nil))(t))
	if err != nil {
		return 0, err.Error()
	}
	return got.status, string(got.body)
}

// embeddedText returns a configuration with an embedded engine of the name.
func embeddedText(name, listen, rule string) string {
	return fmt.Sprintf("log: {format: json}\nadmin: 127.0.0.1:0\nengines:\n"+
		"  - {kind: embedded, name: %s, listen: %q, indices: [{match: news, fields: [title]%s}]}\n", name, listen, rule)
}
