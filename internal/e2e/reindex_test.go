package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// besides runs a test on an engine of each dialect, on both at the same time: it waits more than it works.
func besides(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	t.Helper()
	onEach(t, true, []string{engines.Elasticsearch, engines.Typesense}, test)
}

// reindexed is what reindex reports of one index in JSON.
type reindexed struct {
	Index        string
	Scanned      int
	Written      int
	Right        int
	Changed      int `json:"changed_meanwhile"`
	Refused      int
	Cut, Whole   bool
	Documents    int
	Parts        int
	PartsDone    int `json:"parts_done"`
	Resumed      bool
	Anew         bool `json:"index_made_anew"`
	Taken        int  `json:"leases_taken_over"`
	Retries      int
	Seconds      float64
	PerSecond    float64 `json:"documents_per_second"`
	NoCheckpoint string  `json:"no_checkpoint"`
}

// reindex runs the command to its end and returns its report of the one index there is, what it complained of, and its exit code.
func reindex(t *testing.T, args ...string) (r reindexed, complaint string, code int) {
	t.Helper()
	cmd := command(t, t.Context(), append([]string{"reindex", "--output", "json"}, args...)...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	code = exitCode(t, cmd.Run())
	var list struct{ Indices []reindexed }
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Indices) > 1 {
		t.Errorf("reindex printed %s%s (%v)", out.Bytes(), stderr.Bytes(), err)
	}
	if len(list.Indices) == 1 {
		r = list.Indices[0]
	}
	return r, stderr.String(), code
}

// jobIndex makes an index of so many short documents, past the sidecar, with the ids d0, d1, ….
func jobIndex(t *testing.T, direct api, index string, documents int) {
	t.Helper()
	direct.create(t, index)
	var lines strings.Builder
	for i := range documents {
		if !direct.typesense() {
			fmt.Fprintf(&lines, `{"index":{"_index":%q,"_id":"d%d"}}`+"\n", index, i)
		}
		fmt.Fprintf(&lines, `{"id":"d%d","title":"ferry %d","body":"boat %d leaves the harbour in the rain, and of %d others none does"}`+"\n", i, i, i, i*i)
	}
	direct.loadLines(t, index, lines.String())
}

// unfit returns how many documents have no sketch, and what is wrong with the first that has another text's.
func unfit(t *testing.T, direct api, index string) (lacking int, why string) {
	t.Helper()
	r := ruleOfTests(t)
	for id, h := range stored(t, direct, index) {
		if !rule.HasSketch(h.source) {
			lacking++
		} else if is := wrong(r, h.source); is != "" {
			why = id + ": " + is
		}
	}
	return lacking, why
}

// TestReindexResumes kills a run with kill -9 and resumes it: what was done is not written again, nor even read where the engine
// can go on behind it.
func TestReindexResumes(t *testing.T) {
	besides(t, func(t *testing.T, e *engines.Engine) {
		const index, documents = "rj-kill", 600
		direct := api{e, e.URL}
		jobIndex(t, direct, index, documents)
		file := config(t, e, setup{match: index})
		left := killHalfway(t, direct, index, documents, "--config", file, "--requests-per-second", "200", "--slices", "3")
		got, complaint, code := reindex(t, "--config", file, "--resume")
		if code != 0 || got.Written != left || !got.Resumed || got.Changed+got.Refused != 0 || got.NoCheckpoint != "" {
			t.Errorf("%d were left, resumed with %d: %+v %s", left, code, got, complaint)
		}
		if lacking, why := unfit(t, direct, index); lacking > 0 || why != "" {
			t.Errorf("%d lack a sketch, %s", lacking, why)
		}
		if !direct.typesense() {
			for id, h := range stored(t, direct, index) {
				if !strings.HasPrefix(h.version, "2/") {
					t.Errorf("%s was written otherwise than once: %s", id, h.version)
				}
			}
		}
		if got, _, code = reindex(t, "--config", file, "--resume"); code != 0 || got.Scanned != 0 || !got.Resumed {
			t.Errorf("resumed when all was done: %d %+v", code, got)
		}
		if got, _, code = reindex(t, "--config", file); code != 0 || got.Scanned != documents || got.Written != 0 || got.Resumed {
			t.Errorf("begun anew: %d %+v", code, got)
		}
	})
}

// killHalfway starts a slow reindex, ends it without warning when it has stored a third of the sketches, and returns how many
// documents still lack theirs.
func killHalfway(t *testing.T, direct api, index string, documents int, args ...string) (lacking int) {
	t.Helper()
	cmd := command(t, context.Background(), append([]string{"reindex"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	check(t, cmd.Start())
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if lacking, _ = unfit(t, direct, index); lacking <= documents*2/3 {
			break
		}
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil {
		t.Fatalf("reindex ended by itself: %s", out.Bytes())
	}
	if lacking, _ = settled(t, direct, index); lacking == 0 || lacking == documents {
		t.Fatalf("%d of %d documents lack a sketch: the kill was not halfway: %s", lacking, documents, out.Bytes())
	}
	return lacking
}

// settled is unfit when what a killed process had sent has come to rest.
func settled(t *testing.T, direct api, index string) (lacking int, why string) {
	t.Helper()
	for last := -1; ; time.Sleep(300 * time.Millisecond) {
		if lacking, why = unfit(t, direct, index); lacking == last {
			return lacking, why
		}
		last = lacking
	}
}

// TestReindexShared has two workers on one index while clients write to it: together they do all, each a part of it, and every
// document is right in the end.
func TestReindexShared(t *testing.T) {
	besides(t, func(t *testing.T, e *engines.Engine) {
		const index, documents = "rj-shared", 700
		s := setup{match: index}
		through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
		jobIndex(t, direct, index, documents)
		file := config(t, e, s)
		live, stop := context.WithCancel(t.Context())
		var writing, working sync.WaitGroup
		var writes atomic.Int64
		writing.Go(func() {
			for i := 0; live.Err() == nil; i++ {
				through.loadLines(t, index, liveLines(through, index, i))
				writes.Add(1)
			}
		})
		reports := make([]reindexed, 2)
		for i := range reports {
			working.Go(func() {
				got, complaint, code := reindex(t, "--config", file, "--requests-per-second", "300")
				if code != 0 || got.NoCheckpoint != "" {
					t.Errorf("worker %d ended with %d: %+v %s", i, code, got, complaint)
				}
				reports[i] = got
			})
		}
		working.Wait()
		stop()
		writing.Wait()
		if lacking, why := unfit(t, direct, index); lacking > 0 || why != "" {
			t.Errorf("%d lack a sketch, %s", lacking, why)
		}
		a, b := reports[0], reports[1]
		if a.Parts != b.Parts || a.PartsDone+b.PartsDone != a.Parts || a.Resumed == b.Resumed {
			t.Errorf("parts: %+v %+v", a, b)
		}
		if a.Parts > 2 && (a.PartsDone == 0 || b.PartsDone == 0) {
			t.Errorf("one did it all: %+v %+v", a, b)
		}
		t.Logf("%d writes of 3 meanwhile; %+v %+v", writes.Load(), a, b)
	})
}

// liveLines returns three documents to be written.
func liveLines(a api, index string, i int) string {
	var lines strings.Builder
	for k := range 3 {
		id := (i*3 + k) * 7 % 700
		if !a.typesense() {
			fmt.Fprintf(&lines, `{"index":{"_index":%q,"_id":"d%d"}}`+"\n", index, id)
		}
		fmt.Fprintf(&lines, `{"id":"d%d","title":"live %d","body":"what client number %d wrote for the %d time is its own"}`+"\n", id, i, k, i)
	}
	return lines.String()
}

// manyTexts loads so many documents of some fifty words, in bulks, past the sidecar.
func manyTexts(t *testing.T, direct api, index string, documents int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 1))
	words := make([]string, 3000)
	for i := range words {
		words[i] = strconv.FormatUint(rnd.Uint64(), 36)[:3+rnd.IntN(7)]
	}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[rnd.IntN(len(words))] + " ")
		}
		return b.String()
	}
	for from := 0; from < documents; from += 5000 {
		var lines strings.Builder
		for i := from; i < min(documents, from+5000); i++ {
			if !direct.typesense() {
				fmt.Fprintf(&lines, `{"index":{"_index":%q,"_id":"d%d"}}`+"\n", index, i)
			}
			fmt.Fprintf(&lines, `{"id":"d%d","title":"%s","body":"%s"}`+"\n", i, text(6), text(40))
		}
		direct.loadLines(t, index, lines.String())
	}
}

// underSeed returns the configuration with another seed, under which no stored sketch counts.
func underSeed(t *testing.T, file string, n int) string {
	t.Helper()
	text := must(os.ReadFile(file))(t)
	other := fmt.Sprintf("%s-%d", file, n)
	check(t, os.WriteFile(other, []byte(strings.Replace(string(text), seed, fmt.Sprint(seed, n), 1)), 0o600))
	return other
}

// TestReindexSpeed has reindex and the engine's own job, one after the other several times, write the same documents: the engine
// a constant of as many bytes as a sketch has. On Typesense, which has no such job, an import of the same updates stands beside
// it.
func TestReindexSpeed(t *testing.T) {
	if !soaking() {
		t.Skip("takes minutes: set NEARDUP_SOAK=1")
	}
	documents := 60000
	if n, err := strconv.Atoi(os.Getenv("NEARDUP_REINDEX_DOCUMENTS")); err == nil {
		documents = n
	}
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index, rounds = "rj-speed", 4
		direct := api{e, e.URL}
		direct.create(t, index)
		manyTexts(t, direct, index, documents)
		file := config(t, e, setup{match: index})
		if _, complaint, code := reindex(t, "--config", file); code != 0 {
			t.Fatal(complaint)
		}
		var ours, theirs, sliced time.Duration
		for round := range rounds {
			theirs += own(t, direct, index, documents, "")
			began := time.Now()
			if got, complaint, code := reindex(t, "--config", underSeed(t, file, round)); code != 0 || got.Written != documents {
				t.Fatalf("ended with %d: %+v %s", code, got, complaint)
			}
			ours += time.Since(began)
			sliced += own(t, direct, index, documents, "&slices=2")
		}
		rate := func(took time.Duration) float64 { return float64(rounds*documents) / took.Seconds() }
		t.Logf("%d documents, %d rounds: %.0f documents/s; the engine by itself %.0f, in two slices %.0f: %.2f and %.2f times as fast as that",
			documents, rounds, rate(ours), rate(theirs), rate(sliced), rate(ours)/rate(theirs), rate(ours)/rate(sliced))
		if share := rate(ours) / rate(theirs); share < 0.8 && !direct.typesense() {
			t.Errorf("%.2f times as fast as the engine's own job, want 0.8", share)
		}
	})
}

// own has the engine write all documents of an index by itself.
func own(t *testing.T, direct api, index string, documents int, more string) time.Duration {
	t.Helper()
	constant := strings.Repeat("0123456789abcdef", 12)
	if direct.typesense() {
		var lines strings.Builder
		for i := range documents {
			fmt.Fprintf(&lines, `{"id":"d%d","neardup_sketch":"%s"}`+"\n", i, constant)
		}
		began := time.Now()
		call(t, direct.e, "POST", direct.base+"/collections/"+index+"/documents/import?action=update&batch_size=1000", lines.String()).want(t, 200)
		return time.Since(began)
	}
	began := time.Now()
	body := `{"script":{"source":"ctx._source.constant = params.value","params":{"value":"` + constant + `"}}}`
	path := "/" + index + "/_update_by_query?refresh=true&conflicts=proceed&wait_for_completion=false" + more
	var job struct{ Task string }
	decode(t, call(t, direct.e, "POST", direct.base+path, body).want(t, 200).body, &job)
	for state := (struct{ Completed bool }{}); !state.Completed; time.Sleep(20 * time.Millisecond) {
		decode(t, call(t, direct.e, "GET", direct.base+"/_tasks/"+job.Task, "").want(t, 200).body, &state)
	}
	return time.Since(began)
}

// TestReindexMemory has the peak of a reindex of many documents be about that of one of few.
func TestReindexMemory(t *testing.T) {
	if !soaking() {
		t.Skip("takes minutes: set NEARDUP_SOAK=1")
	}
	sizes := []int{10_000, 100_000}
	if os.Getenv("NEARDUP_REINDEX_MILLION") != "" {
		sizes = append(sizes, 1_000_000)
	}
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		least := int64(0)
		for _, documents := range sizes {
			index, direct := fmt.Sprint("rj-memory-", documents), api{e, e.URL}
			direct.create(t, index)
			manyTexts(t, direct, index, documents)
			out, code, used := sidecarPeak(t, "reindex", "--config", config(t, e, setup{match: index}))
			if code != 0 || number(t, summary(out), "written") != documents {
				t.Fatalf("ended with %d: %s", code, out)
			}
			t.Logf("%d documents: %d MB at most: %s", documents, used>>20, summary(out))
			if least == 0 {
				least = used
			}
			if used > least*3/2+(32<<20) {
				t.Errorf("%d MB for %d documents, %d MB for %d", used>>20, documents, least>>20, sizes[0])
			}
		}
	})
}

// sidecarPeak runs a command of the sidecar to its end, and returns its peak memory too, in bytes. (What the system tells of a process
// that ended includes that of the process which started it.)
func sidecarPeak(t *testing.T, args ...string) (out string, code int, used int64) {
	t.Helper()
	cmd := command(t, t.Context(), args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return both.String(), exitCode(t, err), used
		case <-time.After(10 * time.Millisecond):
			if now, err := peakOf(cmd.Process.Pid); err == nil { // else it has just ended
				used = max(used, now)
			}
		}
	}
}
