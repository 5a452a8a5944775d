package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestFlinkClusters holds the clusters of which Flink found the pairs to the bytes of those that were found in process: where
// Flink compares the sketches and where it does not, and after runs that were broken off. Nothing is left in the shared directory.
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
	t.Run("broken off", func(t *testing.T) { brokenOffOnFlink(t, f, kindred(t, 25_000), shared, flags) })
}

// brokenOffOnFlink ends a command in several ways, each time behind another step, and runs it again: no step that is done is done again, and the
// output of the last is the same to the byte as in process.
func brokenOffOnFlink(t *testing.T, f *engines.Flink, input, shared string, flags []string) {
	outputs := t.TempDir()
	args := func(output string) []string {
		return []string{"cluster", "--input", input, "--fields", "body", "--output", filepath.Join(outputs, output)}
	}
	succeed(t, args("alone.jsonl")...)
	jobs := map[string]bool{}
	// until runs the command and does something once a line of its log has a text. It returns the log.
	until := func(text string, do func(cmd *exec.Cmd)) string {
		cmd := command(t, context.Background(), append(args("flink.jsonl"), flags...)...)
		logs := must(cmd.StderrPipe())(t)
		check(t, cmd.Start())
		var all strings.Builder
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if do != nil && strings.Contains(lines.Text(), text) {
				do(cmd)
				do = nil
			}
		}
		err := cmd.Wait()
		t.Logf("%v:\n%s", err, &all)
		if do != nil {
			t.Fatalf("%q was not said", text)
		}
		return all.String()
	}
	running := func() string {
		job := ""
		for deadline := time.Now().Add(2 * time.Minute); job == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			for id, status := range jobsOf(t, f.Web) {
				if status == "RUNNING" && !jobs[id] {
					job = id
				}
			}
		}
		jobs[job] = true
		return job
	}
	says := func(log, text string, want bool) {
		t.Helper()
		if strings.Contains(log, text) != want {
			t.Errorf("says %q: %t, want %t", text, !want, want)
		}
	}
	kill := func(cmd *exec.Cmd) { check(t, cmd.Process.Kill()) }

	until("keys counted", kill)

	job := ""
	log := until("job submitted", func(cmd *exec.Cmd) {
		job = running()
		check(t, cmd.Process.Signal(os.Interrupt))
	})
	says(log, "what is done is kept", true)
	var state struct{ State string }
	if err := askFlink(t, f.Web+"/jobs/"+job, &state); err != nil || state.State != "CANCELED" {
		t.Errorf("interrupted, the job is %s, %v", state.State, err)
	}

	log = until("job submitted", func(cmd *exec.Cmd) {
		running()
		kill(cmd)
	})
	says(log, "files_of_earlier_run=1", true)

	log = until("job of an earlier run goes on", func(*exec.Cmd) {
		f.RestartGateway(t)
		check(t, os.Rename(outputs, outputs+"-away")) // so that it fails behind the job
	})
	says(log, "job submitted", false)
	check(t, os.Rename(outputs+"-away", outputs))

	until("pairs found by an earlier run", func(*exec.Cmd) {})
	whole := func() {
		t.Helper()
		alone, flink := must(os.ReadFile(filepath.Join(outputs, "alone.jsonl")))(t), must(os.ReadFile(filepath.Join(outputs, "flink.jsonl")))(t)
		if !bytes.Equal(alone, flink) {
			t.Errorf("the output of %d bytes is not that of %d bytes in process", len(flink), len(alone))
		}
		if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
			t.Errorf("left in the shared directory: %v, %v", left, err)
		}
		check(t, os.Remove(filepath.Join(outputs, "flink.jsonl")))
	}
	whole()
	until("job submitted", func(*exec.Cmd) {
		running()
		f.RestartGateway(t)
	})
	whole()
}

// TestFlinkLosesOne has three taskmanagers work on a job, one of which is killed in the middle of it. Where the pairs are found makes no
// difference of a byte. NEARDUP_FLINK_DOCUMENTS says with how many documents. They go to the commands by a pipe, and of the outputs the
// hash alone is kept, so that the disk is for the work.
func TestFlinkLosesOne(t *testing.T) {
	text := os.Getenv("NEARDUP_FLINK_DOCUMENTS")
	if text == "" {
		t.Skip("takes minutes: make flink") // of a short job nothing can be killed in time
	}
	documents := must(strconv.Atoi(text))(t)
	f, shared := engines.StartFlink(t), t.TempDir()
	third := f.AddTaskmanager(t)
	clustered := func(more ...string) (sum [sha256.Size]byte, size int64) {
		began, output := time.Now(), filepath.Join(t.TempDir(), "clusters.jsonl")
		cmd := command(t, t.Context(), append([]string{"cluster", "--input", "-", "--fields", "body", "--output", output}, more...)...)
		in := must(cmd.StdinPipe())(t)
		logs := &bytes.Buffer{}
		cmd.Stderr = logs
		check(t, cmd.Start())
		writeKindred(t, in, documents)
		check(t, in.Close())
		err := cmd.Wait()
		t.Logf("%d documents, %v: %s, %s of processor time\n%s", documents, more, time.Since(began).Round(time.Second/10),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Second/10), logs)
		check(t, err)
		file := must(os.Open(output))(t)
		defer os.Remove(output)
		defer file.Close()
		hash := sha256.New()
		size = must(io.Copy(hash, file))(t)
		return [sha256.Size]byte(hash.Sum(nil)), size
	}
	want, size := clustered()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	killed := make(chan string, 1)
	go func() {
		defer close(killed)
		for ctx.Err() == nil {
			if job := sortingOn(t, f.Web, "taskmanager3"); job != "" {
				if syscall.Kill(third, syscall.SIGKILL) == nil {
					killed <- job
				}
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	got, _ := clustered("--engine", "flink", "--gateway", f.Gateway, "--shared", shared, "--parallelism", "3")
	if got != want {
		t.Errorf("Flink's clusters differ from those in process: %x, want %x, of %d bytes", got, want, size)
	}
	over()
	job, ok := <-killed
	if !ok {
		t.Fatal("the job ended before a taskmanager could be killed: ask for more documents")
	}
	var history struct {
		Failures struct {
			Entries []struct{ ExceptionName string }
		} `json:"exceptionHistory"`
	}
	check(t, askFlink(t, f.Web+"/jobs/"+job+"/exceptions", &history))
	if len(history.Failures.Entries) == 0 {
		t.Error("the job knows of no failure: it has lost nothing")
	}
	var work flinkJob
	check(t, askFlink(t, f.Web+"/jobs/"+job, &work))
	for _, v := range work.Vertices {
		t.Logf("%6.1f s, %d MB read, %d MB written: %.60s", float64(v.Duration)/1000, v.Metrics.Read>>20, v.Metrics.Written>>20, v.Name)
	}
}

// flinkJob is what the jobmanager says of a job.
type flinkJob struct {
	State    string
	Vertices []struct {
		ID, Name, Status string
		Duration         int64
		Metrics          struct {
			Read    int64 `json:"read-bytes"`
			Written int64 `json:"write-bytes"`
		}
	}
}

// sortingOn returns a job that goes through its sorted keys on a taskmanager, which most of the work comes before and after.
func sortingOn(t *testing.T, web, taskmanager string) string {
	t.Helper()
	for id, status := range jobsOf(t, web) {
		var work flinkJob
		if status != "RUNNING" || askFlink(t, web+"/jobs/"+id, &work) != nil {
			continue
		}
		for _, v := range work.Vertices {
			var parts struct {
				Subtasks []struct {
					Status string
					On     string `json:"taskmanager-id"`
				}
			}
			if !strings.Contains(v.Name, "OverAggregate") || v.Status != "RUNNING" || askFlink(t, web+"/jobs/"+id+"/vertices/"+v.ID, &parts) != nil {
				continue
			}
			for _, p := range parts.Subtasks {
				if p.Status == "RUNNING" && p.On == taskmanager {
					return id
				}
			}
		}
	}
	return ""
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

// kindred writes documents to a file and returns its name.
func kindred(t *testing.T, documents int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "documents.jsonl")
	file := must(os.Create(name))(t)
	writeKindred(t, file, documents)
	check(t, file.Close())
	return name
}

// writeKindred writes documents as JSON lines: a fifth of them alike in small families, some in large ones, in whose buckets not every
// pair is looked at, the others alone.
func writeKindred(t *testing.T, to io.Writer, documents int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(documents), 7))
	word := func() string { return fmt.Sprintf("w%x", int(r.ExpFloat64()*3000)) }
	b := bufio.NewWriterSize(to, 1<<20)
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
			fmt.Fprintf(b, "{\"id\":\"d%d\",\"body\":%q}\n", n, strings.Join(words, " "))
		}
	}
	check(t, b.Flush())
}
