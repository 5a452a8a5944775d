package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/jobs"
)

func TestReindexFlags(t *testing.T) {
	good := reindexFlags{slices: 2, output: "text"}
	for _, c := range []struct {
		name   string
		change func(*reindexFlags)
		says   string
	}{
		{"as they are", func(*reindexFlags) {}, ""},
		{"a rate below 0", func(f *reindexFlags) { f.perSecond = -1 }, "--requests-per-second"},
		{"documents below 0", func(f *reindexFlags) { f.maxDocs = -1 }, "--max-docs"},
		{"no slices", func(f *reindexFlags) { f.slices = 0 }, "--slices: 0"},
		{"too many slices", func(f *reindexFlags) { f.slices = 65 }, "--slices: 65"},
		{"a short interval", func(f *reindexFlags) { f.watch = time.Millisecond }, "--watch: 1ms"},
		{"a watch of a dry run", func(f *reindexFlags) { f.watch, f.dryRun = time.Minute, true }, "--watch has no end"},
		{"a watch of some documents", func(f *reindexFlags) { f.watch, f.maxDocs = time.Minute, 1 }, "--watch has no end"},
		{"another output", func(f *reindexFlags) { f.output = "yaml" }, "--output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.change(&f)
			if err := f.validate(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestReindexJSON(t *testing.T) {
	var out, stderr strings.Builder
	r := reindexRun{flags: reindexFlags{output: "json", slices: 2, maxDocs: 4}, out: &out, err: &stderr}
	if err := r.engines(t.Context(), []*opened{openedShelf(t, &shelf{documents: fullShelf})}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Indices []reindexed }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got.Indices) != 2 {
		t.Fatalf("%v: %s", err, out.String())
	}
	first, second := got.Indices[0], got.Indices[1]
	if first.Index != "news-1" || first.Written != 3 || !first.Whole || first.Cut || second.Written != 1 || second.Whole || !second.Cut {
		t.Errorf("%+v %+v", first, second)
	}
}

// TestWorkersThatEnded tells processes of this machine that have ended from those that have not, and knows nothing of others.
func TestWorkersThatEnded(t *testing.T) {
	if machine() == "" {
		t.Skip("the system does not tell processes apart")
	}
	us := workerName()
	cmd := exec.Command("sleep", "0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(us, ":")
	name := func(change func(parts []string)) string {
		list := append([]string{}, parts...)
		change(list)
		return strings.Join(list, ":") + "/token/7"
	}
	for what, c := range map[string]struct {
		worker string
		dead   bool
	}{
		"this process":              {us + "/token/1", false},
		"one that has ended":        {name(func(p []string) { p[2] = strconv.Itoa(cmd.Process.Pid) }), true},
		"an earlier one of this id": {name(func(p []string) { p[3] = "1" }), true},
		"one of another machine":    {name(func(p []string) { p[1], p[2] = "another", "1" }), false},
		"one without a start":       {name(func(p []string) { p[3] = "" }), false},
		"a name of another kind":    {"w/1", false},
		"the parent":                {name(func(p []string) { p[2], p[3] = strconv.Itoa(os.Getppid()), startOf(os.Getppid()) }), false},
	} {
		if got := workerDead(c.worker); got != c.dead {
			t.Errorf("%s, %s: ended %v, want %v", what, c.worker, got, c.dead)
		}
	}
}

func TestReindexSummary(t *testing.T) {
	report := jobs.Report{
		Progress: jobs.Progress{Scanned: 10, Written: 4, Skipped: 6, Cut: true}, Took: 2 * time.Second, Parts: 8, PartsDone: 3, Workers: 2,
		Resumed: true, Taken: 1, Lost: 2, Retries: 5, Waited: 300 * time.Millisecond,
	}
	want := "e: i: 10 scanned, 4 written, 6 right already, 0 without text, 0 changed meanwhile, 0 gone, 0 refused, in 2s (5 documents/s, 3 of 8 parts," +
		" 2 slices, joined or resumed, 1 leases taken over, 2 leases lost, 5 sent again, 300ms waited), stopped at --max-docs"
	if got := summary("e: i", report, false); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
