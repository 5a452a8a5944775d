package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// ownEngine is an engine that can be killed and started again over the same data.
type ownEngine struct {
	*engines.Engine
	data string
	pid  int
}

// ownEngineOf starts an engine for the test alone, whatever the environment names.
func ownEngineOf(t *testing.T, kind string) *ownEngine {
	t.Helper()
	e := engines.Own(t, kind)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", e.PID))
	if err != nil {
		t.Skip(err) // no Linux
	}
	o := &ownEngine{Engine: e, pid: e.PID}
	for arg := range bytes.SplitSeq(line, []byte{0}) {
		for begin, end := range map[string]string{"--data-dir=": "/data", "-Djava.io.tmpdir=": "/tmp"} {
			if rest, ok := strings.CutPrefix(string(arg), begin); ok {
				o.data = strings.TrimSuffix(rest, end)
			}
		}
	}
	if o.data == "" {
		t.Fatalf("the data of %s is not named in %q", kind, line)
	}
	return o
}

func (o *ownEngine) signal(sig syscall.Signal) error { return syscall.Kill(o.pid, sig) }

// restart starts the engine again where it has ended, and waits until it answers.
func (o *ownEngine) restart() error {
	u, err := url.Parse(o.URL)
	if err != nil {
		return err
	}
	var told bytes.Buffer
	var out []byte
	for range 30 { // a process that was killed takes its time to let go of its port
		script := filepath.Join("..", "engines", o.Kind+".sh")
		cmd := exec.Command("bash", script, "start", "--port", u.Port(), "--heap", "512m", "--data", o.data)
		cmd.Env = append(os.Environ(), strings.ToUpper(o.Kind)+"_API_KEY="+o.Key)
		told.Reset()
		cmd.Stderr = &told
		if out, err = cmd.Output(); err == nil {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("start %s again: %w: %.2000s", o.Kind, err, told.Bytes())
	}
	for word := range strings.FieldsSeq(string(out)) {
		if text, ok := strings.CutPrefix(word, "pid="); ok {
			o.pid, err = strconv.Atoi(text)
		}
	}
	return err
}
