package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestClusterBrokenOff ends a run whose documents never end, kindly and not: nothing is left behind.
func TestClusterBrokenOff(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"interrupted": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.jsonl")
			cmd := command(t, context.Background(), "cluster", "--input", "-", "--memory", "1k", "--temp-dir", dir, "--output", out)
			var said bytes.Buffer
			cmd.Stderr = &said
			in := must(cmd.StdinPipe())(t)
			check(t, cmd.Start())
			var b strings.Builder
			for i := range 30000 { // some megabytes: past the memory, and past what a pipe holds
				fmt.Fprintf(&b, `{"id":%d,"text":"number %d of documents that do not end, %d in all"}`+"\n", i, i, i*i)
			}
			if _, err := in.Write([]byte(b.String())); err != nil {
				t.Fatal(err)
			}
			check(t, cmd.Process.Signal(signal))
			code := exitCode(t, cmd.Wait())
			if signal == syscall.SIGTERM && (code != 1 || !strings.Contains(said.String(), "error: interrupted: a file of --output")) {
				t.Errorf("ended with %d: %s", code, said.String())
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
