package engines

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// flinkKind is no search engine, so it is none of [Kinds].
var flinkKind = kind{name: "flink", health: "/v1/info", companion: 1}

// Flink is a running Apache Flink of one jobmanager, two taskmanagers of one slot each and a SQL gateway, all on loopback. It
// shares the file system with the tests.
type Flink struct {
	Gateway string // address of the SQL gateway
	Web     string // address of the jobmanager's REST interface

	dir  string // where the scripts are and, in data, what it keeps
	port string
}

// StartFlink returns a Flink for t alone and stops it when t ends.
func StartFlink(t testing.TB) *Flink {
	t.Helper()
	skipIfOff(t)
	e, err := acquire(flinkKind.name)
	if err != nil {
		Unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	f := &Flink{Gateway: e.URL}
	address, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.port = address.Port()
	port, err := strconv.Atoi(f.port)
	if err != nil {
		t.Fatal(err)
	}
	f.Web = fmt.Sprintf("http://127.0.0.1:%d", port+flinkKind.companion)
	if e.guard != nil {
		f.dir = e.guard.dir
	}
	return f
}

// Taskmanagers returns the process ids of those that were started, in order, dead ones too.
func (f *Flink) Taskmanagers(t testing.TB) (pids []int) {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(f.dir, "data", "taskmanagers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(list)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// AddTaskmanager starts one more.
func (f *Flink) AddTaskmanager(t testing.TB) {
	t.Helper()
	script, data := filepath.Join(f.dir, "flink.sh"), filepath.Join(f.dir, "data")
	cmd := exec.Command("bash", script, "taskmanager", "--port", f.port, "--data", data, "--heap", heap)
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("start a taskmanager: %v: %s", err, out)
	}
}

// Own reports whether it was started for the test, which may do with it what it likes.
func (f *Flink) Own() bool { return f.dir != "" }
