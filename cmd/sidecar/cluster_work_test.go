package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/neardup/sidecar/jobs/cluster"
)

// manyPages returns 12,000 documents, in each line one, of which three at a time are much alike.
func manyPages(r *rand.Rand) string {
	var lines strings.Builder
	for i := range 12_000 {
		_, _ = fmt.Fprintf(&lines, `{"id":%d,"url":"https://h%d.example/","text":"`, i, i%9)
		for word := range 60 {
			_, _ = fmt.Fprintf(&lines, "w%d ", r.IntN(30)+100*(i/3)+word)
		}
		lines.WriteString("\"}\n")
	}
	return lines.String()
}

type keptState struct {
	Bands int
	Note  progressOfInput
}

// stateIn returns what is kept in a directory, the zero state if nothing is.
func stateIn(t *testing.T, work string) (s keptState) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(work, "neardup-state"))
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	expect.OK(t, err)
	expect.OK(t, json.Unmarshal(raw, &s))
	return s
}

// TestClusterKilled kills runs with --work at random moments. The last one, which comes to its end, prints and writes what a run does that was never
// killed, and each goes on where the last save was.
func TestClusterKilled(t *testing.T) {
	ofProcesses(t)
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	dir, lines := t.TempDir(), manyPages(r)
	plain, packed := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "pages.jsonl.gz")
	expect.OK(t, os.WriteFile(plain, []byte(lines), 0o600))
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
			kept := stateIn(t, work)
			if said.String() == wantSaid && kept.Note.Bytes == 0 { // killed at the very end: what was saved is removed
				at = offline.Place{}
			}
			if kept.Note.Bytes < at.Bytes || kept.Note.Bytes > int64(len(lines)) {
				t.Errorf("%d bytes of the input are done after a kill, %d were before", kept.Note.Bytes, at.Bytes)
			}
			at = kept.Note.Place
		}
		expect.Same(t, 1, len(expect.Value(os.ReadDir(work))(t)), "files that are left in the directory: the lock")
	}
}

// TestClusterSkipsWhatIsDone goes on with an input whose first part can't be read any more: nothing reads it.
func TestClusterSkipsWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	input, work := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "work")
	expect.OK(t, os.WriteFile(input, []byte(pages+"{\n"), 0o600))
	want := sidecar(t, "cluster", "--input", file(t, pages), "--report", "json")
	saveEvery = 1
	defer func() { saveEvery = 0 }()
	args := []string{"cluster", "--input", input, "--work", work, "--report", "json"}
	if got := sidecar(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, ":7: is no JSON object") {
		t.Fatalf("%+v", got)
	}
	info := expect.Value(os.Stat(input))(t)
	done := int(stateIn(t, work).Note.Bytes)
	expect.Same(t, len(pages), done, "bytes that are done")
	changed := strings.Repeat("x", done) + "  "
	expect.OK(t, os.WriteFile(input, []byte(changed), 0o600))
	if got := sidecar(t, args...); got.code != exitFailed || !strings.Contains(got.stderr, "the saved run has last change of the input") {
		t.Errorf("%+v", got)
	}
	expect.OK(t, os.Chtimes(input, info.ModTime(), info.ModTime()))
	got := sidecar(t, args...)
	expect.Same(t, want.stdout, got.stdout, "%s", got.stderr)
}

// TestClusterOnFullDisk gives a run a little more room each time: it says what to do, and goes on.
func TestClusterOnFullDisk(t *testing.T) {
	disk := t.TempDir()
	mount := func(options string) error {
		return exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "none", disk).Run()
	}
	if err := mount("size=200k"); err != nil {
		t.Skip("only root can mount a small disk: ", err)
	}
	t.Cleanup(func() { expect.OK(t, exec.Command("umount", disk).Run()) })
	input := file(t, manyPages(rand.New(rand.NewPCG(effort.Seed(t), 1))))
	want := sidecar(t, "cluster", "--input", input, "--report", "json")
	saveEvery = 1
	defer func() { saveEvery = 0 }()
	done, bands := int64(0), 0
	for size := 200; ; size += 100 {
		expect.OK(t, mount(fmt.Sprintf("remount,size=%dk", size)))
		got := sidecar(t, "cluster", "--input", input, "--report", "json", "--memory", "1m", "--work", filepath.Join(disk, "work"))
		if got.code == 0 {
			expect.Same(t, want.stdout, got.stdout, "with a disk of %d kB", size)
			break
		}
		if !strings.Contains(got.stderr, "make room there and run the same command again") || size > 20_000 {
			t.Fatalf("%d kB: %+v", size, got)
		}
		kept := stateIn(t, filepath.Join(disk, "work"))
		if kept.Note.Bytes < done || kept.Bands < bands {
			t.Errorf("%d kB: %+v, %d bytes and %d bands were done before", size, kept, done, bands)
		}
		done, bands = kept.Note.Bytes, kept.Bands
	}
	if done < 1 || bands < 1 {
		t.Errorf("the disk was full before something was kept, or never: %d bytes, %d bands", done, bands)
	}
}

// noPrinter fails to print.
type noPrinter struct{}

func (noPrinter) Write([]byte) (int, error) { return 0, errors.New("the pipe is closed") }

// TestClusterNotPrinted can't print the report: what is saved stays, and the next run adds nothing.
func TestClusterNotPrinted(t *testing.T) {
	input, work := file(t, pages), filepath.Join(t.TempDir(), "work\xff") // no valid UTF-8
	named := filepath.Join(t.TempDir(), "pages\xfe.jsonl")
	expect.OK(t, os.Rename(input, named))
	args := []string{"cluster", "--input", named, "--work", work, "--report", "json"}
	var stderr strings.Builder
	expect.Same(t, exitFailed, run(t.Context(), args, strings.NewReader(""), noPrinter{}, &stderr), "%s", &stderr)
	if s := stateIn(t, work); !s.Note.Whole {
		t.Errorf("%+v is saved: %s", s, &stderr)
	}
	want := sidecar(t, "cluster", "--input", named, "--report", "json")
	got := sidecar(t, args...)
	expect.Same(t, want.stdout, got.stdout, "%s", got.stderr)
}

// TestClusterInputIsSwapped puts another input into the place of the one that is read, or changes that one. What is read is the file that was opened, and a
// change ends the run before it says that all is read.
func TestClusterInputIsSwapped(t *testing.T) {
	saveEvery = 1
	defer func() { saveEvery = 0 }()
	for _, swapped := range []bool{true, false} {
		input, work := file(t, pages), filepath.Join(t.TempDir(), "work")
		c := clusterJob{job: job{out: io.Discard, err: io.Discard}, input: input, work: work}
		c.Algorithm, c.Memory = cluster.Bands, 1<<20
		g := expect.Value((&offline.Options{}).Open(offline.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))(t)
		expect.OK(t, c.begin(g.RuleAt(0)))
		src, _, err := offline.Open(input, nil)
		expect.OK(t, err)
		if swapped {
			expect.OK(t, os.WriteFile(input+".new", []byte("other"), 0o600))
			expect.OK(t, os.Rename(input+".new", input))
		}
		_, unchanged, err := c.resume(t.Context(), src, nil, "")
		expect.OK(t, err)
		if !swapped {
			expect.OK(t, os.WriteFile(input, []byte(pages+"\n"), 0o600))
		}
		text := string(expect.Value(io.ReadAll(src))(t))
		if err := unchanged(); swapped && (err != nil || text != pages) || !swapped && (err == nil || !strings.Contains(err.Error(), "the input changed")) {
			t.Errorf("swapped: %v: %v, %q", swapped, err, text)
		}
		expect.OK(t, src.Close())
		c.corpus.Close()
	}
}

// TestClusterWorkRemoved hints at --work, not at --temp-dir, where a file of the directory is missing.
func TestClusterWorkRemoved(t *testing.T) {
	c := clusterJob{work: "w"}
	err := c.hinted(fmt.Errorf("%w in w: %w", cluster.ErrSaved, fs.ErrNotExist))
	if !strings.Contains(err.Error(), "directory of --work") || strings.Contains(err.Error(), "--temp-dir") {
		t.Error(err)
	}
}

// TestClusterInputInWork names a file of the directory as the input, by itself or by a link: it stays as it is.
func TestClusterInputInWork(t *testing.T) {
	work := t.TempDir()
	input, link := filepath.Join(work, "neardup-records"), filepath.Join(t.TempDir(), "link")
	expect.OK(t, os.WriteFile(input, []byte(pages), 0o600))
	expect.OK(t, os.Symlink(input, link))
	for _, name := range []string{input, link} {
		got := sidecar(t, "cluster", "--input", name, "--work", work)
		if got.code != exitFailed || !strings.Contains(got.stderr, "is in this directory") {
			t.Errorf("%+v", got)
		}
		expect.Same(t, pages, string(expect.Value(os.ReadFile(input))(t)), "%s", name)
	}
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
