package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/offline"
)

// TestClusterKilled kills runs with --work at random moments. The last one, which comes to its end, prints and writes what a run does that was never
// killed, and each goes on where the last save was.
func TestClusterKilled(t *testing.T) {
	ofProcesses(t)
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 12_000 {
		_, _ = fmt.Fprintf(&lines, `{"id":%d,"url":"https://h%d.example/","text":"`, i, i%9)
		for word := range 60 {
			_, _ = fmt.Fprintf(&lines, "w%d ", r.IntN(30)+100*(i/3)+word)
		}
		lines.WriteString("\"}\n")
	}
	plain, packed := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "pages.jsonl.gz")
	expect.OK(t, os.WriteFile(plain, []byte(lines.String()), 0o600))
	expect.OK(t, exec.Command("gzip", "-k", plain).Run())
	own := expect.Value(os.Executable())(t)
	for round := range effort.Rounds(20) {
		input := []string{plain, packed}[round%2]
		args := []string{"cluster", "--input", input, "--host-field", "url", "--report", "json", "--memory", []string{"1g", "1m"}[r.IntN(2)]}
		start := func(out string, more ...string) (*exec.Cmd, *bytes.Buffer) {
			cmd := exec.CommandContext(t.Context(), own, append(append(args, "--output", out), more...)...)
			cmd.Env = append(os.Environ(), asSidecar+"=1", keepOften+"=1")
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			expect.OK(t, cmd.Start())
			return cmd, &said
		}
		out := filepath.Join(dir, "out.csv")
		began := time.Now()
		cmd, said := start(out)
		expect.OK(t, cmd.Wait())
		took := time.Since(began)
		want, wantSaid := expect.Value(os.ReadFile(out))(t), said.String()

		work := filepath.Join(t.TempDir(), "work")
		var at offline.Place
		for kills := 0; ; kills++ {
			wait := time.Duration(r.Int64N(int64(took)))
			if kills > 20 {
				wait = time.Hour
			}
			cmd, said := start(out, "--work", work)
			timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				expect.Same(t, string(want), string(expect.Value(os.ReadFile(out))(t)), "the clusters after %d kills", kills)
				expect.Same(t, wantSaid, said.String(), "what is printed after %d kills", kills)
				break
			}
			if cmd.ProcessState.Exited() {
				t.Fatalf("after %d kills: %v: %s", kills, err, said.String())
			}
			raw, err := os.ReadFile(filepath.Join(work, "neardup-state"))
			if err != nil {
				continue
			}
			var kept struct{ Note progressOfInput }
			expect.OK(t, json.Unmarshal(raw, &kept))
			if kept.Note.Bytes < at.Bytes || kept.Note.Bytes > int64(lines.Len()) {
				t.Errorf("%d bytes of the input are done after a kill, %d were before", kept.Note.Bytes, at.Bytes)
			}
			at = kept.Note.Place
		}
		expect.Same(t, 0, len(expect.Value(os.ReadDir(work))(t)), "files that are left in the directory")
	}
}

// TestClusterSkipsWhatIsDone goes on with an input whose first part can't be read any more: nothing reads it.
func TestClusterSkipsWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	input, work := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "work")
	expect.OK(t, os.WriteFile(input, []byte(pages+"{\n"), 0o600))
	want := sidecar(t, "cluster", "--input", file(t, pages), "--report", "json")
	keepEvery = 1
	defer func() { keepEvery = 0 }()
	args := []string{"cluster", "--input", input, "--work", work, "--report", "json"}
	if got := sidecar(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, ":7: is no JSON object") {
		t.Fatalf("%+v", got)
	}
	info := expect.Value(os.Stat(input))(t)
	raw := expect.Value(os.ReadFile(filepath.Join(work, "neardup-state")))(t)
	var kept struct{ Note progressOfInput }
	expect.OK(t, json.Unmarshal(raw, &kept))
	done := int(kept.Note.Bytes)
	expect.Same(t, len(pages), done, "bytes that are done")
	changed := strings.Repeat("x", done) + "  "
	expect.OK(t, os.WriteFile(input, []byte(changed), 0o600))
	if got := sidecar(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, "last change of the input is") {
		t.Errorf("%+v", got)
	}
	expect.OK(t, os.Chtimes(input, info.ModTime(), info.ModTime()))
	got := sidecar(t, args...)
	expect.Same(t, want.stdout, got.stdout, "%s", got.stderr)
}

func TestClusterRefusesWork(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"--index x":                             "--work goes with --input",
		"--input -":                             "--work: standard input can't be read again",
		"--input x --algorithm broder":          "--work: a run of broder can't be picked up",
		"--input x --boilerplate " + dir + "/b": "--work: the readings of --boilerplate",
		"--input " + dir:                        "is no regular file",
	} {
		got := sidecar(t, append([]string{"cluster", "--work", dir + "/w"}, strings.Fields(args)...)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
