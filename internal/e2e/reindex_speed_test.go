package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

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
	check(t, json.Unmarshal(call(t, direct.e, "POST", direct.base+path, body).want(t, 200).body, &job))
	for state := (struct{ Completed bool }{}); !state.Completed; time.Sleep(20 * time.Millisecond) {
		check(t, json.Unmarshal(call(t, direct.e, "GET", direct.base+"/_tasks/"+job.Task, "").want(t, 200).body, &state))
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
