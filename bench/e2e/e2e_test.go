package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

// The short form of all parts, on real engines: every part has its figures, none of them is zero or none, and all targets are judged.
func TestShort(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	environment := os.Environ()
	for _, kind := range engines.Kinds {
		e, name := engines.Start(t, kind), "NEARDUP_"+strings.ToUpper(kind)
		environment = append(environment, name+"_URL="+e.URL, name+"_KEY="+e.Key)
	}
	folder := t.TempDir()
	program, out := filepath.Join(folder, "e2e"), filepath.Join(folder, "short.json")
	if said, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	limit := time.Hour
	if end, ok := t.Deadline(); ok {
		limit = time.Until(end) - 40*time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-short", "-out", out)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that it ends what it has started
	cmd.WaitDelay = 25 * time.Second
	cmd.Dir, cmd.Env = "..", environment
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		t.Fatalf("%v: %s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	t.Logf("it took %.0f s", time.Since(began).Seconds())
	r := expect.Value(measured.Read(out))(t)
	// So many targets each part has, on three engines.
	wanted := map[string]int{"passed": 9, "saturation": 5, "pages": 10 + 7 + 3 + 3, "long": 5, "own": 5, "writes": 12, "pinned": 6, "size": 5, "memory": 3, "sizing": 6}
	for _, table := range r.Tables {
		targets := 0
		for _, row := range table.Rows {
			for _, v := range row.Verdicts {
				if v.Target > 0 {
					targets++
				}
			}
		}
		expect.Same(t, wanted[table.Name], targets, "targets of %s", table.Name)
		delete(wanted, table.Name)
	}
	if len(wanted) > 0 {
		t.Errorf("parts are missing: %v", wanted)
	}
	if len(r.Curves) != 8 || len(r.Versions) == 0 || r.Machine == "" {
		t.Errorf("%d curves, versions %v, machine %q", len(r.Curves), r.Versions, r.Machine)
	}
	if slices.ContainsFunc(r.Versions, func(v measured.Version) bool { return v.Version == "" }) {
		t.Errorf("versions %v", r.Versions)
	}
}
