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
// Flink compares the sketches and where it does not. Interrupted, the job ends too. Nothing is left in the shared directory.
func TestFlinkClusters(t *testing.T) {
	f, shared := engines.StartFlink(t), t.TempDir()
	flags := []string{"--engine", "flink", "--gateway", f.Gateway, "--shared", shared}
	clean := func(t *testing.T) {
		t.Helper()
		if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
			t.Errorf("left in the shared directory: %v, %v", left, err)
		}
	}
	file := kindred(t, 1000)
	for name, sketch := range map[string]string{"8 bits": "{}", "sides": "{family: simhash}"} {
		t.Run(name, func(t *testing.T) {
			conf := filepath.Join(t.TempDir(), "config.yaml")
			text := fmt.Sprintf("sketch: %s\nengines: [{kind: elasticsearch, urls: [\"http://127.0.0.1:1\"], indices: [{match: x, fields: [body]}]}]\n", sketch)
			check(t, os.WriteFile(conf, []byte(text), 0o600))
			clustered := func(more ...string) []byte {
				output := filepath.Join(t.TempDir(), "clusters.jsonl")
				succeed(t, append([]string{"cluster", "--input", file, "--fields", "body", "--config", conf, "--output", output}, more...)...)
				return must(os.ReadFile(output))(t)
			}
			want := clustered()
			if alone := bytes.Count(want, []byte(`"size":1,`)); alone == 0 || alone > 850 {
				t.Fatalf("%d of 1000 documents are alone in their cluster: the test would show little", alone)
			}
			if got := clustered(flags...); !bytes.Equal(got, want) {
				t.Errorf("Flink's clusters differ: %d bytes, want %d", len(got), len(want))
			}
			clean(t)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		output := filepath.Join(t.TempDir(), "clusters.jsonl")
		cmd := command(t, context.Background(), append([]string{
			"cluster", "--input", kindred(t, 25_000), "--fields", "body", "--output", output}, flags...)...)
		logs := must(cmd.StderrPipe())(t)
		check(t, cmd.Start())
		lines := bufio.NewScanner(logs)
		for lines.Scan() && !strings.Contains(lines.Text(), "job submitted") { // shorter ones go before it
			t.Log(lines.Text())
		}
		go func() { _, _ = io.Copy(io.Discard, logs) }()
		job := ""
		for deadline := time.Now().Add(2 * time.Minute); job == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			for id, status := range jobsOf(t, f.Web) {
				if status == "RUNNING" {
					job = id
				}
			}
		}
		check(t, cmd.Process.Signal(os.Interrupt))
		same(t, 1, exitCode(t, cmd.Wait()), "exit code")
		var state struct{ State string }
		if err := askFlink(t, f.Web+"/jobs/"+job, &state); err != nil || state.State != "CANCELED" {
			t.Errorf("the job is %s, %v", state.State, err)
		}
		if _, err := os.Stat(output); err == nil {
			t.Error("there is an output")
		}
		clean(t)
	})
}

// jobsOf returns the state of each job.
func jobsOf(t *testing.T, web string) map[string]string {
	t.Helper()
	var all struct{ Jobs []struct{ ID, Status string } }
	check(t, askFlink(t, web+"/jobs", &all))
	states := map[string]string{}
	for _, j := range all.Jobs {
		states[j.ID] = j.Status
	}
	return states
}

// askFlink asks the jobmanager.
func askFlink(t *testing.T, url string, into any) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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
	check(t, os.WriteFile(file, b.Bytes(), 0o600))
	return file
}
