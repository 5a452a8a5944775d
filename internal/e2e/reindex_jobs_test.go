package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// besides runs a test on an engine of each dialect, on both at the same time: it waits more than it works.
func besides(t *testing.T, test func(t *testing.T, e *engines.Engine)) {
	t.Helper()
	atOnce(t, []string{engines.Elasticsearch, engines.Typesense}, test)
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
	rule := ruleOfTests(t)
	for id, h := range stored(t, direct, index) {
		if !adapters.HasSketch(h.source) {
			lacking++
		} else if is := wrong(rule, h.source); is != "" {
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
