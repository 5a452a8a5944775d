package engines

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// flinkSpec is no search engine, so it is none of [Kinds].
var flinkSpec = spec{name: "flink", kind: "flink", health: "/v1/info", companion: 1, heap: "512m"}

// Flink is a running Apache Flink of one jobmanager, two taskmanagers of one slot each and a SQL gateway, all on loopback. It
// shares the file system with the tests.
type Flink struct {
	Gateway string // address of the SQL gateway
	Web     string // address of the jobmanager's REST interface

	port string
	dir  string // of the script and of its data
}

// StartFlink returns a Flink for t alone and stops it when t ends.
func StartFlink(t testing.TB) *Flink {
	t.Helper()
	skipIfOff(t)
	e, err := acquire(flinkSpec)
	if err != nil {
		Unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	f := &Flink{Gateway: e.URL}
	if e.guard != nil {
		f.dir = e.guard.dir
	}
	address, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.port = address.Port()
	port, err := strconv.Atoi(f.port)
	if err != nil {
		t.Fatal(err)
	}
	f.Web = fmt.Sprintf("http://127.0.0.1:%d", port+flinkSpec.companion)
	return f
}

// AddTaskmanager starts one more and returns its process id.
func (f *Flink) AddTaskmanager(t testing.TB) (pid int) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(f.run(t, "taskmanager")))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// RestartGateway kills the SQL gateway and starts it anew. It does not wait until the new one answers.
func (f *Flink) RestartGateway(t testing.TB) {
	t.Helper()
	f.run(t, "gateway")
}

// run runs a verb of the script.
func (f *Flink) run(t testing.TB, verb string) string {
	t.Helper()
	if f.dir == "" {
		t.Skip("it was running already, so it is not ours to change")
	}
	cmd := exec.Command("bash", filepath.Join(f.dir, "flink.sh"), verb, "--port", f.port, "--data", filepath.Join(f.dir, "data"), "--heap", flinkSpec.heap)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("flink.sh %s: %v", verb, err)
	}
	return string(out)
}
