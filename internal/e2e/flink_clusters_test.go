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
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestFlinkClusters holds the clusters of which Flink found the pairs to the bytes of those that were found in process: where
// Flink compares the sketches and where it does not, and after an interrupt.
func TestFlinkClusters(t *testing.T) {
	f := flink{Flink: engines.StartFlink(t), shared: t.TempDir()}
	t.Run("forms", f.forms)
	t.Run("interrupted", f.interrupted)
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
	for name, sketch := range map[string]string{"8 bits": "{}", "sides": "{family: simhash}"} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("sketch: %s\nengines:\n  - kind: elasticsearch\n    urls: [http://127.0.0.1:1]\n    indices:\n"+
				"      - {match: x, fields: [body]}\n", sketch)
			in := clusterInput{file, filepath.Join(t.TempDir(), "config.yaml")}
			if err := os.WriteFile(in.config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			want := in.inProcess(t)
			if alone := bytes.Count(want, []byte(`"size":1}`)); alone == 0 || alone > 850 {
				t.Fatalf("%d of 1000 documents are alone in their cluster: the test would show little", alone)
			}
			f.holds(t, in, want)
		})
	}
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
