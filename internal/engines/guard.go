package engines

import (
	"bufio"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The scripts ride in the test binary, so that it finds them wherever it runs and is built anew when they change.
//
//go:embed *.sh
var scripts embed.FS

const (
	heap    = "1g"           // less, and the engines refuse bodies of 100 MB when many tests share them
	testKey = "neardup-test" // of engines that ask for an API key
)

// errPortTaken says that another server came first; a start with another port can work.
var errPortTaken = errors.New("port is taken")

// exitPortTaken is how the scripts say so.
const exitPortTaken = 75

// guard is the running guard.sh of one engine.
type guard struct {
	cmd  *exec.Cmd
	hold io.Closer // the engine lives while this is open
	dir  string    // of the scripts and of the engine's data
}

// launch starts this engine on free ports and waits until it answers. After an error nothing is left.
func launch(s spec) (*Engine, error) {
	dir, err := os.MkdirTemp("", "neardup-"+s.name+"-")
	if err != nil {
		return nil, err
	}
	e, err := launchIn(dir, s)
	if err != nil {
		os.RemoveAll(dir) // the guard has done so, if it ran
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	return e, nil
}

func launchIn(dir string, s spec) (*Engine, error) {
	script := filepath.Join(dir, s.kind+".sh")
	// For root the server may run as another user, which must be able to enter.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, scripts); err != nil {
		return nil, err
	}
	// Nothing is fetched behind the back of someone who just runs the tests.
	if !Required() && exec.Command("bash", append([]string{script, "installed"}, s.options()...)...).Run() != nil {
		return nil, errors.New("not installed; run internal/engines/prepare.sh")
	}
	port, err := freePort(s)
	if err != nil {
		return nil, err
	}
	args := append([]string{filepath.Join(dir, "guard.sh"), dir, script, "--port", strconv.Itoa(port), "--heap", cmp.Or(s.heap, heap)}, s.options()...)
	cmd := exec.Command("bash", args...)
	cmd.Env = append(os.Environ(), strings.ToUpper(s.kind)+"_API_KEY="+testKey)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's and the test runner's signals
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &guard{cmd: cmd, hold: hold, dir: dir}
	report, _ := bufio.NewReader(out).ReadString('\n') // a short report is a bad report
	e, err := parseReport(s, report)
	if err != nil {
		reason := logTail(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, reason), g.release())
	}
	e.guard = g
	return e, nil
}

// options are those of the script that say which version is meant.
func (s spec) options() []string {
	if s.version == "" {
		return nil
	}
	return []string{"--version", s.version}
}

// Restart kills the engine, which t started, and starts it again with the same data on the same port.
func (e *Engine) Restart(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(e.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	script := func(verb string) ([]byte, error) {
		args := append([]string{e.guard.cmd.Args[3], verb, "--data", filepath.Join(e.guard.dir, "data")}, e.guard.cmd.Args[4:]...)
		cmd := exec.Command("bash", args...)
		cmd.Env = e.guard.cmd.Env
		return cmd.Output()
	}
	if _, err := script("stop"); err != nil { // waits until it is gone
		t.Fatalf("stop %s: %v", e.Name, err)
	}
	var report []byte
	var err error
	for range 50 { // the kernel closes the ports of the one that was killed a little later
		report, err = script("start")
		if exit, failed := errors.AsType[*exec.ExitError](err); !failed || exit.ExitCode() != exitPortTaken {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("start %s again: %v", e.Name, err)
	}
	again, err := parseReport(spec{name: e.Name, kind: e.Kind}, string(report))
	if err != nil {
		t.Fatal(err)
	}
	e.PID = again.PID
}

// release lets go of the engine and waits until it is gone.
func (g *guard) release() error {
	g.hold.Close()
	return g.cmd.Wait()
}

// parseReport reads the line that lib.sh and guard.sh describe.
func parseReport(s spec, line string) (*Engine, error) {
	words := strings.Fields(line)
	if len(words) == 2 && words[0] == "failed" {
		if words[1] == strconv.Itoa(exitPortTaken) {
			return nil, errPortTaken
		}
		return nil, fmt.Errorf("exit status %s", words[1])
	}
	e := &Engine{Name: s.name, Kind: s.kind}
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "url":
			e.URL = value
		case "pid":
			e.PID, _ = strconv.Atoi(value)
		}
	}
	if e.URL == "" || e.PID == 0 {
		return nil, fmt.Errorf("no report from the guard, but %q", line)
	}
	if s.keyed {
		e.Key = testKey
	}
	return e, nil
}

// freePort returns a port for clients whose companion, for the engine's own talk between nodes, is free too. It keeps
// below the range from which the kernel takes the ports of outgoing connections.
func freePort(s spec) (int, error) {
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if isFree(port) && isFree(port+s.companion) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: none in 100 tries")
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// logTail returns the end of a log, as the reason of a failure.
func logTail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-4096):]))
}
