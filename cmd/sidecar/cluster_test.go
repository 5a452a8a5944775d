package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
)

// poem is a text that is long enough to be compared.
const poem = "the ferry left the harbour of saltmere at seven and came back at nine with forty sheep and a letter for the mayor" +
	" while a band played on the quay and the children of both schools waved flags which their teachers had sewn from old sails during the long winter when no boat could leave because of ice"

// pages are documents in lines: a and b are near-duplicates, c and d are equal but for case, e is alone, f has no text.
var pages = strings.Join([]string{
	`{"id":"a","url":"https://one.example/1","text":"` + poem + `"}`,
	`{"id":"b","url":"https://two.example/1","text":"` + poem + ` again"}`,
	`{"id":"c","url":"https://one.example/2","title":"Short","text":"words"}`,
	`{"id":"d","url":"two.example","title":"short","text":"WORDS"}`,
	`{"id":5,"url":7,"text":"something else that nobody has written anywhere in any other of these lines"}`,
	`{"id":"f, \"g\"","text":"…"}`,
}, "\n") + "\n"

// clusterLine is a line of --output.
type clusterLine struct {
	ID, Cluster string
	Size        int
	Agreement   float64
}

func clusterLines(t *testing.T, file string) map[string]clusterLine {
	t.Helper()
	text := expect.Value(os.ReadFile(file))(t)
	found := map[string]clusterLine{}
	for line := range strings.Lines(string(text)) {
		var l clusterLine
		expect.OK(t, json.Unmarshal([]byte(line), &l))
		found[l.ID] = l
	}
	return found
}

func TestClusterFile(t *testing.T) {
	dir := t.TempDir()
	input, out := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "out.jsonl")
	expect.OK(t, os.WriteFile(input, []byte(pages), 0o600))
	for _, algorithm := range []string{"bands", "broder"} {
		got := sidecar(t, "cluster", "--input", input, "--algorithm", algorithm, "--output", out, "--host-field", "url")
		if got.code != 0 || !strings.Contains(got.stdout, "2 clusters of 4 documents, 2 documents alone") {
			t.Fatalf("%+v", got)
		}
		lines := clusterLines(t, out)
		if len(lines) != 6 || lines["a"].Cluster != lines["b"].Cluster || lines["c"].Cluster != lines["d"].Cluster {
			t.Errorf("%s: %+v", algorithm, lines)
		}
		if l := lines["c"]; l.Size != 2 || l.Agreement != 1 || lines["d"].Agreement != 1 {
			t.Errorf("%s: same texts are %+v", algorithm, l)
		}
		if a, b := lines["a"].Agreement, lines["b"].Agreement; min(a, b) < 0.64 || max(a, b) != 1 || min(a, b) == 1 {
			t.Errorf("%s: a and b agree with their first by %v and %v", algorithm, a, b)
		}
		if l := lines[`f, "g"`]; l.Size != 1 || len(l.Cluster) != 17 || lines["5"].Size != 1 {
			t.Errorf("%s: %+v", algorithm, l)
		}
	}
	whole := expect.Value(os.ReadFile(out))(t)
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(pages))
	_ = z.Close()
	expect.OK(t, os.WriteFile(input+".gz", []byte(packed.String()), 0o600))
	sidecar(t, "cluster", "--input", input+".gz", "--output", out, "--memory", "1k", "--temp-dir", dir)
	expect.Same(t, string(whole), string(expect.Value(os.ReadFile(out))(t)), "packed")
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	expect.Same(t, 3, len(left), "files, of which none is left behind: %v", left)
}

// TestClusterNamesFields: of a file it says which fields it compared, and which it ignored.
// TestClusterDecided: of a file of decided pairs, whatever its texts.
func TestClusterDecided(t *testing.T) {
	dir := t.TempDir()
	input, pairs, out := filepath.Join(dir, "pages.jsonl"), filepath.Join(dir, "pairs.txt"), filepath.Join(dir, "out.jsonl")
	expect.OK(t, os.WriteFile(input, []byte(pages), 0o600))
	expect.OK(t, os.WriteFile(pairs, []byte("a b different\nc d different\nb 5 same\n"), 0o600))
	got := sidecar(t, "cluster", "--input", input, "--decided", pairs, "--output", out)
	l := clusterLines(t, out)
	if got.code != 0 || l["a"].Size != 1 || l["b"].Size != 2 || l["b"].Cluster != l["5"].Cluster || l["c"].Size != 1 || l["c"].Cluster == l["d"].Cluster {
		t.Errorf("%v %s", l, got.stderr)
	}
	expect.OK(t, os.WriteFile(pairs, []byte("a b\n"), 0o600))
	if got := sidecar(t, "cluster", "--input", input, "--decided", pairs); got.code != 1 || !strings.Contains(got.stderr, "pairs.txt: line 1: holds 2 words") {
		t.Errorf("%s", got.stderr)
	}
}

func TestClusterNamesFields(t *testing.T) {
	const lines = `{"id":1,"text":"a b c","lang":"en","body":{"html":"x y"}}` + "\n" + `{"id":2,"url":"https://a.example/","meta":1}` + "\n"
	for args, want := range map[string]string{
		"":                               "compared by text; no document has title; ignored: body, lang, meta, url",
		"--fields body.html,text":        "compared by body.html, text; ignored: lang, meta, url",
		"--fields text --host-field url": "compared by text; ignored: body, lang, meta",
		"--fields lang --output json":    "compared by lang; ignored: body, meta, text, url",
	} {
		got := piped(t, lines, append([]string{"cluster", "--input", "-"}, strings.Fields(args)...)...)
		if got.code != 0 || !strings.Contains(got.stderr, "standard input: "+want+": choose others with --fields") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestClusterCSV(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.csv")
	got := piped(t, pages, "cluster", "--input", "-", "--algorithm", "exact", "--output", out)
	expect.Must(t, 0, got.code, "%+v", got)
	text := expect.Value(os.ReadFile(out))(t)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 7 || lines[0] != "id,cluster,size,agreement" ||
		!strings.HasPrefix(lines[6], `"f, ""g""",`) || !strings.HasSuffix(lines[6], ",1,1.0000") {
		t.Errorf("%q", lines)
	}
}

func TestClusterReport(t *testing.T) {
	config := write(t, `engines: [{indices: [{match: "p-*", fields: [text], threshold: 0.9, host_field: url}]}]`)
	got := piped(t, pages, "cluster", "--input", "-", "--config", config, "--index", "p-1", "--report", "json", "--threshold", "0.5")
	var report struct {
		Algorithm string
		Threshold float64
		Bands     int
		Documents int
		Texts     int
		Clusters  int
		Largest   []struct {
			Size, Hosts int
			IDs         []string
		}
		LeftOut struct{ Textless int } `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	if report.Threshold != 0.5 || report.Algorithm != "bands" || report.Bands == 0 || report.Documents != 6 || report.Texts != 4 {
		t.Errorf("%+v", report)
	}
	expect.Same(t, [3]int{1, 2, 2}, [3]int{report.LeftOut.Textless, report.Clusters, report.Largest[0].Hosts}, "left out, clusters and hosts: %+v", report)
}

func TestClusterRefuses(t *testing.T) {
	dir := t.TempDir()
	broken := file(t, pages+"{\n")
	lists := write(t, `{"sketch":{"family":"m_smallest"}}`)
	long := filepath.Join(dir, "long.jsonl")
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, `{"id":%d,"text":"number %d of very many"}`+"\n", i, i)
	}
	expect.OK(t, os.WriteFile(long, []byte(b.String()), 0o600))
	out := filepath.Join(dir, "out.jsonl")
	for _, test := range []struct{ args, want string }{
		{"", "nothing to cluster: name an index"},
		{"--input x --write", "--write stores clusters in an index"},
		{"--input " + lists + " --config " + lists + " --algorithm bands", "algorithm bands: sketches of family m_smallest have no bands"},
		{"--index x --plan p --open", "--plan, --open, --apply and --restore: give one of them"},
		{"--index x --plan p --output x.csv", "--plan and --open need --index"},
		{"--index x --plan p --hide aside --undo u", "--undo, --yes and --accept-loss go with --apply"},
		{"--apply p --undo u --index x", "--apply and --restore take the index from the file"},
		{"--index x --write --algorithm exact", "--write: searches take a cluster for all near-duplicates"},
		{"--input " + dir + "/none", "open " + dir + "/none: no such file"},
		{"--input " + broken + " --output " + out, broken + ":7: is no JSON object"},
		{"--input " + long + " --memory 1k --temp-dir " + dir + "/none", "temporary file in " + dir + "/none: "},
	} {
		got := sidecar(t, append([]string{"cluster"}, strings.Fields(test.args)...)...)
		if got.code != exitFailed || !strings.HasPrefix(got.stderr, "error: "+test.want) || got.stdout != "" {
			t.Errorf("cluster %s: %+v", test.args, got)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	expect.Same(t, 1, len(left), "files, of which none is left behind: %v", left)
}

func TestClusterInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	out := filepath.Join(t.TempDir(), "out.csv")
	code := run(ctx, []string{"cluster", "--input", file(t, pages), "--output", out}, strings.NewReader(""), &stdout, &stderr)
	if code != exitFailed || !strings.HasPrefix(stderr.String(), "error: interrupted: a file of --output is there only if it is whole") {
		t.Errorf("%d %s", code, stderr.String())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// byTexts is a store that has every document it is asked for by its id.
type byTexts struct {
	adapters.EngineStore
	fails error
}

func (s byTexts) Scan(_ context.Context, _ string, _ *rule.Rule, selection adapters.Selection, yield func(adapters.Page) error) error {
	var page adapters.Page
	for _, id := range selection.IDs {
		page.Documents = append(page.Documents, adapters.Stored{ID: id, Source: []byte(`{"title":"one two three"}`)})
	}
	return errors.Join(yield(page), s.fails)
}

// TestClusterReadsTheTextsOfAll documents that lack a sketch, in however many requests.
func TestClusterReadsTheTextsOfAll(t *testing.T) {
	rule := openedShelf(t, &shelf{}).Rules[0]
	corpus := expect.Value(cluster.New(cluster.Options{Rule: rule}))(t)
	defer corpus.Close()
	s := &indexSource{target: target{Job: jobs.Job{Store: byTexts{}, Rule: rule}}, command: &clusterJob{corpus: corpus}}
	var ids []string
	for n := range lackingBatch + 1 {
		ids = append(ids, fmt.Sprint(n))
	}
	expect.OK(t, s.again(t.Context(), ids))
	expect.Same(t, len(ids), corpus.Documents(), "documents")
	broken := errors.New("the line went dead")
	s.Job.Store = byTexts{fails: broken}
	if err := s.again(t.Context(), ids); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestUndoOfAnotherPlan: a run that refuses the undo file of another plan does not advise to restore from it.
func TestUndoOfAnotherPlan(t *testing.T) {
	undo := file(t, `{"neardup_undo":1,"engine":"shelf","index":"news","identity":"one","plan":"a"}`+"\n"+`{"id":"1","source":{}}`+"\n")
	for plan, want := range map[string]bool{"a": true, "b": false} {
		expect.Same(t, want, holdsDocuments(undo, plan), "the undo file of plan a for plan %s", plan)
	}
}

// TestClusterBoilerplate learns a footer from a file. A rule with what was learned parts what the footer had merged.
func TestClusterBoilerplate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	words := strings.Fields(poem)
	slices.Reverse(words)
	footer := poem + " " + strings.Join(words, " ")
	var lines strings.Builder
	for i := range 60 {
		_, _ = fmt.Fprintf(&lines, "{\"id\":%d,\"text\":\"", i)
		for word := range 20 + i {
			_, _ = fmt.Fprintf(&lines, "w%d ", 100*i+word)
		}
		_, _ = fmt.Fprintf(&lines, "%s\"}\n", footer)
	}
	expect.OK(t, os.WriteFile(at("mails.jsonl"), []byte(lines.String()), 0o600))
	learn := []string{"cluster", "--input", at("mails.jsonl"), "--boilerplate", at("footers.jsonl")}
	got := sidecar(t, learn...)
	if got.code != 0 || !strings.Contains(got.stdout, "boilerplate: 1 passage in 60 documents, each passage in 20 or more that are otherwise unlike\n  in ") ||
		!strings.Contains(got.stdout, ", 116 words: the ferry left the harbour") || !strings.Contains(got.stdout, "without it: 0 clusters in place of 1; 1 of these fall apart") {
		t.Fatalf("%+v", got)
	}
	list := expect.Value(boilerplate.Parse(expect.Value(os.ReadFile(at("footers.jsonl")))(t)))(t)
	if len(list) != 1 || list[0].Text != footer || list[0].Documents < 20 || len(list[0].IDs) != 3 {
		t.Errorf("%+v", list)
	}
	rule := "engines: [{listen: ':1', kind: elasticsearch, urls: ['http://h:1'], indices: [{match: mails, fields: [text], boilerplate: footers.jsonl}]}]"
	expect.OK(t, os.WriteFile(at("config.yaml"), []byte(rule), 0o600))
	under := []string{"--config", at("config.yaml"), "--index", "mails"}
	if got := sidecar(t, append([]string{"cluster", "--input", at("mails.jsonl")}, under...)...); got.code != 0 || !strings.Contains(got.stdout, "0 clusters") {
		t.Errorf("%+v", got)
	}
	again := sidecar(t, append(learn, append(under, "--report", "json")...)...)
	if again.code != 0 || !strings.Contains(again.stdout, `"groups_before": 1`) || !strings.Contains(again.stdout, `"groups_apart": 1`) {
		t.Errorf("under a rule with boilerplate: %+v", again)
	}
	expect.OK(t, os.WriteFile(at("few.jsonl"), []byte(pages), 0o600))
	none := sidecar(t, "cluster", "--input", at("few.jsonl"), "--boilerplate", at("none.jsonl"))
	if _, err := os.Stat(at("none.jsonl")); none.code != 0 || !strings.Contains(none.stdout, "boilerplate: none") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%+v, %v", none, err)
	}
	for args, want := range map[string]string{
		"--index x --boilerplate f --write":                                           "leave out --write",
		"--input - --boilerplate f":                                                   "name a file with --input",
		"--input x --boilerplate " + at("none/f"):                                     "there is no directory",
		"--input x --boilerplate f --algorithm exact":                                 "leave out --engine flink and --algorithm",
		"--input " + at("few.jsonl") + " --boilerplate f --config " + at("tags.yaml"): "passages are runs of words",
	} {
		expect.OK(t, os.WriteFile(at("tags.yaml"), []byte(strings.Replace(rule, "boilerplate: footers.jsonl", "preset: goods", 1)), 0o600))
		if got := sidecar(t, append([]string{"cluster"}, strings.Fields(args)...)...); got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
