package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serviceManager plays the part of one that opens sockets for a service and is told how it does.
type serviceManager struct {
	told *net.UnixConn
	env  []string
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	// A short path: that of a socket may have 107 bytes.
	dir := must(os.MkdirTemp("", "n"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	t.Cleanup(func() { conn.Close() })
	return &serviceManager{conn, []string{"NOTIFY_SOCKET=" + path}}
}

// next returns what the service says next, leaving out that it is alive unless that is waited for.
func (m *serviceManager) next(t *testing.T, alive bool) string {
	t.Helper()
	buffer := make([]byte, 4096)
	for {
		check(t, m.told.SetReadDeadline(time.Now().Add(20*time.Second)))
		n, err := m.told.Read(buffer)
		if err != nil {
			t.Fatalf("the service says nothing: %v", err)
		}
		if said := string(buffer[:n]); alive == (said == "WATCHDOG=1") {
			return said
		}
	}
}

// run starts a sidecar as a service, with sockets by the names given.
func (m *serviceManager) run(t *testing.T, text string, sockets map[string]net.Listener) *daemon {
	t.Helper()
	d := &daemon{file: filepath.Join(t.TempDir(), "config.yaml")}
	d.write(t, text)
	path := must(binary())(t)
	// The pid must be known before the program runs.
	d.cmd = exec.CommandContext(context.Background(), "sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"`, path, "serve", "--config", d.file)
	var names []string
	for name, l := range sockets {
		file := must(l.(*net.TCPListener).File())(t)
		defer file.Close()
		names = append(names, name)
		d.cmd.ExtraFiles = append(d.cmd.ExtraFiles, file)
	}
	d.cmd.Env = append(os.Environ(), m.env...)
	if len(names) > 0 {
		d.cmd.Env = append(d.cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	}
	d.start(t)
	return d
}

func passable(t *testing.T) net.Listener {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

var reloadingAt = regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=([0-9]+)$`)

// TestReloadTellsTheServiceManager walks through what a service of Type=notify-reload has to say: ready with all sockets open, reloading
// with the time and ready again, alive, stopping.
func TestReloadTellsTheServiceManager(t *testing.T) {
	m := newServiceManager(t)
	m.env = append(m.env, "WATCHDOG_USEC=200000")
	at := port(t)
	d := m.run(t, embeddedText("one", at, ""), nil)
	if said := m.next(t, false); !strings.HasPrefix(said, "READY=1\nSTATUS=serving 1 engine") {
		t.Errorf("at first it says %q", said)
	}
	if !listens("http://" + at) {
		t.Error("ready, and it does not listen")
	}
	for _, text := range []string{embeddedText("one", at, ", threshold: 0.8"), "engines: ["} {
		d.reload(t, text)
		said := reloadingAt.FindStringSubmatch(m.next(t, false))
		if said == nil {
			t.Fatal("it does not say when it reloads")
		}
		if said := m.next(t, false); !strings.HasPrefix(said, "READY=1\n") {
			t.Errorf("behind a reload it says %q", said)
		}
	}
	m.next(t, true)
	d.signal(t, syscall.SIGTERM)
	if said := m.next(t, false); !strings.HasPrefix(said, "STOPPING=1") {
		t.Errorf("at the end it says %q", said)
	}
	if code := d.ended(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestReloadKeepsPassedSockets passes sockets, by the engine's name and by address: the sidecar takes connections that came before it did,
// goes on with the sockets through reloads, and the next sidecar takes them over without a connection refused.
func TestReloadKeepsPassedSockets(t *testing.T) {
	m := newServiceManager(t)
	named, matched := passable(t), passable(t)
	// By name the configured address does not count; the other has it.
	text := func(rule string) string {
		return embeddedText("one", port(t), rule) +
			fmt.Sprintf("  - {kind: embedded, name: two, listen: %q, indices: [{match: a, fields: [t]}]}\n", matched.Addr())
	}
	one, two := "http://"+named.Addr().String(), "http://"+matched.Addr().String()
	early := make(chan int, 1)
	go func() { status, _ := statusAt(t, one+"/"); early <- status }()
	sockets := map[string]net.Listener{"one": named, "neardup.socket": matched}
	for range 2 {
		d := m.run(t, text(""), sockets)
		m.next(t, false)
		select {
		case status := <-early:
			if status != 200 {
				t.Errorf("who came before the sidecar got %d", status)
			}
			early <- status
		case <-time.After(10 * time.Second):
			t.Fatal("who came before the sidecar waits")
		}
		d.reload(t, text(", threshold: 0.8"))
		for _, base := range []string{one, two} {
			if status, _ := statusAt(t, base+"/"); status != 200 {
				t.Errorf("%s answers %d", base, status)
			}
		}
		d.signal(t, syscall.SIGTERM)
		if code := d.ended(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if !listens(one) || !listens(two) {
			t.Error("between two sidecars a connection is refused")
		}
		for said := ""; !strings.HasPrefix(said, "STOPPING=1"); {
			said = m.next(t, false)
		}
	}
}
