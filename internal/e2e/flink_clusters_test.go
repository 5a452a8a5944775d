package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestFlinkClusters holds the clusters of which Flink found the pairs to the bytes of those that were found in process: where
// Flink compares the sketches and where it does not, and after an interrupt. With NEARDUP_SOAK=1 it does so with 200,000 and a million
// documents too, and after the loss of a taskmanager in the middle of a job.
func TestFlinkClusters(t *testing.T) {
	f := flink{Flink: engines.StartFlink(t), shared: t.TempDir()}
	t.Run("forms", f.forms)
	t.Run("interrupted", f.interrupted)
	t.Run("wrong", f.wrong)
	if soaking() {
		for _, n := range []int{200_000, 1_000_000} {
			t.Run(fmt.Sprintf("%d documents", n), func(t *testing.T) {
				in := clusterInput{file: kindred(t, n)}
				f.holds(t, in, in.inProcess(t))
			})
		}
		t.Run("taskmanager lost among many", func(t *testing.T) {
			if !f.lost(t, 1_000_000) {
				t.Error("no taskmanager was killed at its work: the job was too short")
			}
		})
	}
}

type flink struct {
	*engines.Flink
	shared string
}

// args are those of a clustering of which Flink finds the pairs.
func (f *flink) args(in clusterInput, output string) []string {
	return append(in.args(output), "--engine", "flink", "--gateway", f.Gateway, "--shared", f.shared)
}

// clusterInput is what is to be clustered.
type clusterInput struct{ file, config string }

func (c clusterInput) args(output string) []string {
	list := []string{"cluster", "--input", c.file, "--fields", "body", "--output", output}
	if c.config != "" {
		list = append(list, "--config", c.config)
	}
	return list
}

// inProcess clusters in process and returns the output.
func (c clusterInput) inProcess(t *testing.T) []byte {
	t.Helper()
	output := filepath.Join(t.TempDir(), "clusters.jsonl")
	if out, code := sidecar(t, c.args(output)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	return contents(t, output)
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// holds fails the test unless Flink's clusters are those of the bytes, and nothing of the run is left.
func (f *flink) holds(t *testing.T, in clusterInput, want []byte) {
	t.Helper()
	output := filepath.Join(t.TempDir(), "clusters.jsonl")
	start := time.Now()
	if out, code := sidecar(t, f.args(in, output)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	t.Logf("%d bytes after %v", len(want), time.Since(start))
	if got := contents(t, output); !bytes.Equal(got, want) {
		t.Errorf("Flink's clusters differ: %d bytes, want %d", len(got), len(want))
	}
	f.clean(t)
}

// clean fails the test if the shared directory holds anything.
func (f *flink) clean(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(f.shared)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the shared directory: %v, %v", left, err)
	}
}

// forms clusters by sketches of which Flink compares the positions, and by others, whose candidates come back.
func (f *flink) forms(t *testing.T) {
	file := kindred(t, 1000)
	type form struct{ name, sketch, index string }
	list := []form{{"8 bits", "{}", ""}, {"sides", "{family: simhash}", ""}}
	if soaking() {
		list = append(list,
			form{"4 bits", "{bits: 4, positions: 64}", ", threshold: 0.5"},
			form{"1 bit", "{bits: 1, positions: 256}", ", threshold: 0.6"},
			form{"containment", "{}", ", measure: containment, threshold: 0.9"})
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf("sketch: %s\nengines:\n  - kind: elasticsearch\n    urls: [http://127.0.0.1:1]\n    indices:\n"+
				"      - {match: x, fields: [body]%s}\n", c.sketch, c.index)
			in := clusterInput{file, filepath.Join(t.TempDir(), "config.yaml")}
			if err := os.WriteFile(in.config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			want := in.inProcess(t)
			if n := bytes.Count(want, []byte("\n")); n != 1000 || multiple(t, want) < 150 {
				t.Fatalf("%d documents, %d of them in clusters of several: the test would show little", n, multiple(t, want))
			}
			f.holds(t, in, want)
		})
	}
}

// multiple returns how many lines of an output are of documents that share their cluster.
func multiple(t *testing.T, output []byte) (count int) {
	t.Helper()
	for line := range bytes.Lines(output) {
		var member struct{ Size int }
		if err := json.Unmarshal(line, &member); err != nil {
			t.Fatal(err)
		}
		if member.Size > 1 {
			count++
		}
	}
	return count
}

// lost kills a taskmanager while it works, and starts another in its place. It reports whether the job was hit.
func (f *flink) lost(t *testing.T, documents int) bool {
	in := clusterInput{file: kindred(t, documents)}
	want := in.inProcess(t)
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan string, 1)
	go func() {
		defer close(killed)
		for ctx.Err() == nil {
			if job, number := f.working(ctx); number > 0 {
				pids := f.Taskmanagers(t)
				if err := syscall.Kill(pids[number-1], syscall.SIGKILL); err == nil {
					killed <- job
				}
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.holds(t, in, want)
		cancel()
	}()
	job := <-killed
	if job != "" {
		f.AddTaskmanager(t)
	}
	<-done
	if job == "" {
		t.Logf("%d documents: over before a taskmanager could be killed", documents)
		return false
	}
	var history struct {
		ExceptionHistory struct {
			Entries []struct{ ExceptionName string }
		}
	}
	if err := f.web(t.Context(), "/jobs/"+job+"/exceptions", &history); err != nil {
		t.Error(err)
	}
	t.Logf("%d documents: the job knows of %d failures", documents, len(history.ExceptionHistory.Entries))
	return len(history.ExceptionHistory.Entries) > 0
}

// running returns the jobs that run.
func (f *flink) running(ctx context.Context) (ids []string) {
	var jobs struct{ Jobs []struct{ ID, Status string } }
	if f.web(ctx, "/jobs", &jobs) != nil {
		return nil
	}
	for _, j := range jobs.Jobs {
		if j.Status == "RUNNING" {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// working returns a running job and the number of a taskmanager that works on its buckets, which takes most of its time.
func (f *flink) working(ctx context.Context) (job string, number int) {
	for _, id := range f.running(ctx) {
		var detail struct {
			Vertices []struct{ ID, Name, Status string }
		}
		if f.web(ctx, "/jobs/"+id, &detail) != nil {
			continue
		}
		for _, v := range detail.Vertices {
			var parts struct {
				Subtasks []struct {
					Status string
					Place  string `json:"taskmanager-id"`
				}
			}
			if !strings.HasPrefix(v.Name, "Sort") || v.Status != "RUNNING" || f.web(ctx, "/jobs/"+id+"/vertices/"+v.ID, &parts) != nil {
				continue
			}
			for _, p := range parts.Subtasks {
				if _, err := fmt.Sscanf(p.Place, "taskmanager%d", &number); err == nil && p.Status == "RUNNING" {
					return id, number
				}
			}
		}
	}
	return "", 0
}

// web asks the jobmanager.
func (f *flink) web(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Web+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// interrupted ends a clustering while its job runs: the job ends too, nothing is left and no output is written.
func (f *flink) interrupted(t *testing.T) {
	output := filepath.Join(t.TempDir(), "clusters.jsonl")
	cmd := command(t, context.Background(), f.args(clusterInput{file: kindred(t, 25_000)}, output)...)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	job, lines := "", bufio.NewScanner(logs)
	for lines.Scan() && !strings.Contains(lines.Text(), "job submitted") {
		t.Log(lines.Text())
	}
	go func() {
		_, _ = io.Copy(io.Discard, logs)
	}()
	for deadline := time.Now().Add(time.Minute); job == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, id := range f.running(t.Context()) {
			job = id
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 1 || job == "" {
		t.Errorf("exit code %d, job %q", code, job)
	}
	var state struct{ State string }
	if err := f.web(t.Context(), "/jobs/"+job, &state); err != nil || state.State != "CANCELED" {
		t.Errorf("the job is %s, %v", state.State, err)
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("there is an output")
	}
	f.clean(t)
}

// wrong are mistakes of an operator, and what is said of them.
func (f *flink) wrong(t *testing.T) {
	file := kindred(t, 10)
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"no gateway", "is Flink's SQL gateway running there?", []string{"--gateway", "http://127.0.0.1:1", "--shared", f.shared}},
		{"the web interface", "give the address of its SQL gateway", []string{"--gateway", f.Web, "--shared", f.shared}},
		{"no directory", "is no directory here", []string{"--gateway", f.Gateway, "--shared", f.shared + "/none"}},
		{"not shared", "--shared must be", []string{"--gateway", f.Gateway, "--shared", f.shared, "--shared-uri", "file:///nowhere"}},
		{"nothing said", "--gateway: is missing", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := sidecar(t, append([]string{"cluster", "--input", file, "--fields", "body", "--engine", "flink"}, c.args...)...)
			if code != 1 || !strings.Contains(out, c.want) || strings.Contains(out, ".java:") {
				t.Errorf("exit code %d, want 1 and %q: %s", code, c.want, out)
			}
			f.clean(t)
		})
	}
}

// kindred writes documents as JSON lines: a fifth of them alike in small families, some in large ones, in whose buckets not every
// pair is looked at, the others alone.
func kindred(t *testing.T, documents int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(documents), 7))
	word := func() string { return fmt.Sprintf("w%x", int(r.ExpFloat64()*3000)) }
	var b bytes.Buffer
	for n := 0; n < documents; {
		size := 1
		switch x := r.IntN(100); {
		case x < 20:
			size = 2 + r.IntN(4)
		case x == 20:
			size = 2 + r.IntN(100)
		}
		base := make([]string, 20+r.IntN(40))
		for i := range base {
			base[i] = word()
		}
		for ; size > 0 && n < documents; n, size = n+1, size-1 {
			words := slices.Clone(base)
			for range r.IntN(5) {
				words[r.IntN(len(words))] = word()
			}
			fmt.Fprintf(&b, "{\"id\":\"d%d\",\"body\":%q}\n", n, strings.Join(words, " "))
		}
	}
	file := filepath.Join(t.TempDir(), "documents.jsonl")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
