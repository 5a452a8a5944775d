package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// TestCluster clusters an index before and after its sketches and clusters are stored, and reads them back from the engine.
func TestCluster(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "clus-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index, list...)
		before := stored(t, direct, index)
		file, dir := config(t, e, setup{match: "clus-*", rule: "host_field: host\nnative: true"}), t.TempDir()
		run := func(name string, args ...string) (out string, clusters []byte) {
			t.Helper()
			name = filepath.Join(dir, name)
			out = string(succeed(t, append([]string{"cluster", "--config", file, "--index", index, "--output", name}, args...)...))
			return out, must(os.ReadFile(name))(t)
		}
		r, numbers := nativeRule(t), clustersOf(t).least
		_, byText := run("by-text.jsonl")
		checkClusters(t, r, numbers, byText)

		out, _ := run("written.jsonl", "--write")
		const said = "stored in the engine: %d written, 0 right already, 0 changed meanwhile, 0 gone, 0 refused"
		if !strings.Contains(out, fmt.Sprintf(said, len(list))) {
			t.Errorf("the first run says: %s", out)
		}
		after := stored(t, direct, index)
		for id, h := range after {
			same(t, r.ClusterID(numbers[id]), rule.OursOf(h.source).Cluster, "the cluster of %s", id)
			plain, err := jsonedit.Cut(h.source, rule.Our)
			if err != nil || !bytes.Equal(before[id].source, plain) {
				t.Fatalf("cluster changed %s otherwise: %s, %v", id, plain, err)
			}
		}
		for name, args := range map[string][]string{"by-sketch.jsonl": nil, "of-file.jsonl": {"--input", corpusFile(t, list)}} {
			if _, got := run(name, args...); !bytes.Equal(byText, got) {
				t.Errorf("%s: the clusters are others", name)
			}
		}
		out, _ = run("again.jsonl", "--write")
		if !strings.Contains(out, fmt.Sprintf("stored in the engine: 0 written, %d right already,", len(list))) {
			t.Errorf("a second run says: %s", out)
		}
		if out, code := sidecar(t, "reindex", "--config", file); code != 0 || number(t, out, "written") != 0 {
			t.Errorf("a reindex after it ended with %d and wrote: %s", code, out)
		}
		same(t, versions(after), versions(stored(t, direct, index)), "a second run wrote documents")
	})
}

// checkClusters holds a file of clusters to the oracle.
func checkClusters(t *testing.T, rule *rule.Rule, numbers map[string]uint64, file []byte) {
	t.Helper()
	sizes := map[uint64]int{}
	for _, number := range numbers {
		sizes[number]++
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(file) {
		var l struct {
			ID, Cluster string
			Size        int
		}
		decode(t, line, &l)
		number, known := numbers[l.ID]
		if !known || seen[l.ID] || l.Cluster != rule.ClusterID(number) || l.Size != sizes[number] {
			t.Errorf("%s, want %s of %d", line, rule.ClusterID(number), sizes[number])
		}
		seen[l.ID] = true
	}
	if len(seen) != len(numbers) || len(sizes) == len(numbers) {
		t.Errorf("%d documents in %d clusters, %d lines", len(numbers), len(sizes), len(seen))
	}
}

// TestClusterRefusesToWrite holds that clusters are stored only where searches make use of them.
func TestClusterRefusesToWrite(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "clus-refused"
	direct := api{e, e.URL}
	direct.create(t, index)
	for _, test := range []struct {
		file string
		args []string
		want string
	}{
		{config(t, e, setup{match: "clus-*"}), nil, "error: --write: the rule of clus-refused stores no clusters: set native: true"},
		{config(t, e, setup{match: "clus-*", rule: "native: true"}), []string{"--threshold", "0.9"}, "error: --write: searches take stored clusters for"},
		{config(t, e, setup{match: "other-*", rule: "native: true"}), nil, "error: index clus-refused: no rule matches it: a rule's match is compared with the names of indices"},
	} {
		out, code := sidecar(t, append([]string{"cluster", "--config", test.file, "--index", index, "--write"}, test.args...)...)
		if code != 1 || !strings.HasPrefix(out, test.want) {
			t.Errorf("ended with %d: %s", code, out)
		}
	}
}

// TestClusterBrokenOff ends a run whose documents never end, kindly and not: nothing is left behind.
func TestClusterBrokenOff(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"interrupted": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.jsonl")
			cmd := command(t, context.Background(), "cluster", "--input", "-", "--memory", "1k", "--temp-dir", dir, "--output", out)
			var said bytes.Buffer
			cmd.Stderr = &said
			in := must(cmd.StdinPipe())(t)
			check(t, cmd.Start())
			var b strings.Builder
			for i := range 30000 { // some megabytes: past the memory, and past what a pipe holds
				fmt.Fprintf(&b, `{"id":%d,"text":"number %d of documents that do not end, %d in all"}`+"\n", i, i, i*i)
			}
			must(in.Write([]byte(b.String())))(t)
			check(t, cmd.Process.Signal(signal))
			code := exitCode(t, cmd.Wait())
			if signal == syscall.SIGTERM && (code != 1 || !strings.Contains(said.String(), "error: interrupted: a file of --output")) {
				t.Errorf("ended with %d: %s", code, said.String())
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// calibration is what calibrate says of one index.
type calibration struct {
	Documents, Read int
	Whole           bool
	Way             string
	Shares          []struct{ Threshold, Folded, Low, High float64 }
}

// calibrate runs the command, and returns what it said of its one index, and that as it stands less what differs from run to run.
func calibrate(t *testing.T, file, index string, args ...string) (c calibration, whole map[string]any) {
	t.Helper()
	out, code := sidecar(t, append([]string{"calibrate", "--config", file, "--index", index, "--output", "json"}, args...)...)
	var report struct{ Indices []map[string]any }
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &report); err != nil || code != 0 ||
		len(report.Indices) != 1 {
		t.Fatalf("calibrate ended with %d, %v: %.2000s", code, err, out)
	}
	whole = report.Indices[0]
	delete(whole, "engine")
	delete(whole, "seconds")
	text := must(json.Marshal(whole))(t)
	decode(t, text, &c)
	return c, whole
}

// TestCalibrate has both dialects give the same report of the sample corpus, whose share of near-duplicates is known. It writes nothing.
func TestCalibrate(t *testing.T) {
	var first map[string]any
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index, list...)
		before := stored(t, direct, index)
		file := config(t, e, setup{match: index, threshold: 0.64})
		c, whole := calibrate(t, file, index)
		if first == nil {
			first = whole
		}
		same(t, first, whole, "another report than of another engine")
		if c.Documents != len(list) || c.Read != len(list) || !c.Whole {
			t.Errorf("%d documents, %d read, want %d", c.Documents, c.Read, len(list))
		}
		groups := map[string]bool{}
		for _, d := range list {
			groups[d.Group] = true
		}
		want := 1 - float64(len(groups))/float64(len(list))
		for _, s := range c.Shares {
			if s.Threshold == 0.5 && math.Abs(s.Folded-want) > 0.01 {
				t.Errorf("%.3f would fold at 0.5, want %.3f", s.Folded, want)
			}
		}
		page := filepath.Join(t.TempDir(), "report.html")
		succeed(t, "calibrate", "--config", file, "--html", page)
		if text, err := os.ReadFile(page); err != nil || strings.Count(string(text), "<table") != 4 || strings.Contains(string(text), "<script") {
			t.Errorf("%v: %.2000s", err, text)
		}
		same(t, versions(before), versions(stored(t, direct, index)), "calibrate wrote")
	})
}

// TestCalibrateAsk judges pairs of the sample corpus by its labels, as a person would in a terminal: the threshold parts its versions from all else.
func TestCalibrateAsk(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-3", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index, list...)
		before := stored(t, direct, index)
		groups := map[string]string{}
		for _, d := range list {
			groups[d.ID] = d.Group
		}
		file := config(t, e, setup{match: index, threshold: 0.9})
		answers := filepath.Join(t.TempDir(), "answers.jsonl")
		cmd := command(t, t.Context(), "calibrate", "--config", file, "--index", index, "--ask", "--write", "--answers", answers)
		in, out := must(cmd.StdinPipe())(t), must(cmd.StdoutPipe())(t)
		check(t, cmd.Start())
		var seen strings.Builder
		for buffer := make([]byte, 1<<12); ; {
			n, err := out.Read(buffer)
			if seen.Write(buffer[:n]); err != nil {
				break
			}
			if !strings.HasSuffix(seen.String(), "? ") {
				continue
			}
			last := seen.String()[strings.LastIndex(seen.String(), "\nPair "):]
			say := "d\n"
			if ids := shownIDs.FindAllStringSubmatch(last, 2); strings.Contains(last, "Enter: end") {
				say = "\n"
			} else if groups[ids[0][1]] == groups[ids[1][1]] {
				say = "s\n"
			}
			must(in.Write([]byte(say)))(t)
		}
		if code := exitCode(t, cmd.Wait()); code != 0 {
			t.Fatalf("it ended with %d: %s", code, seen.String())
		}
		written := regexp.MustCompile(`threshold: ([0-9.]+)`).FindSubmatch(must(os.ReadFile(file))(t))
		if threshold := must(strconv.ParseFloat(string(written[1]), 64))(t); threshold < 0.28 || threshold > 0.56 {
			t.Errorf("the threshold is %v after\n%s", threshold, seen.String())
		}
		if kept := strings.Count(string(must(os.ReadFile(answers))(t)), "\n"); kept < 10 || kept > 30 {
			t.Errorf("%d answers are kept", kept)
		}
		same(t, versions(before), versions(stored(t, direct, index)), "calibrate wrote")
	})
}

var shownIDs = regexp.MustCompile(`(?m)^[AB]  (\S+)$`)

// TestCalibrateByStoredBands looks a sample up in the whole of an index that is larger than what may be read of it.
func TestCalibrateByStoredBands(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-2", documents(t)
		direct := api{e, e.URL}
		file := config(t, e, setup{match: index, threshold: 0.64, rule: "bands: auto\nnative: true"})
		through := api{e, serveFile(t, file)}
		direct.create(t, index)
		succeed(t, "setup", "--config", file)
		through.load(t, index, list)
		whole, _ := calibrate(t, file, index)
		looked, _ := calibrate(t, file, index, "--documents", "200", "--sample", "150")
		if looked.Way != "stored bands" || looked.Whole || looked.Documents != len(list) {
			t.Fatalf("%d documents by %s", looked.Documents, looked.Way)
		}
		for i, s := range looked.Shares {
			if want := whole.Shares[i].Folded; s.Threshold >= 0.6 && (want < s.Low-0.02 || want > s.High+0.02) {
				t.Errorf("at %.2f %.3f to %.3f would fold by a sample, %.3f do", s.Threshold, s.Low, s.High, want)
			}
		}
	})
}
