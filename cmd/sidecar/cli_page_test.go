package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/expect/jsonshape"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/onboard"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/internal/try"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/calibrate"
	"github.com/neardup/sidecar/jobs/cluster"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const cliPage = "../../docs/cli.md"

// TestCLIPage holds docs/cli.md to the commands: the page is made from their help, and from the types of their results.
func TestCLIPage(t *testing.T) {
	made := pageOfCommands()
	if *update {
		expect.OK(t, os.WriteFile(cliPage, []byte(made), 0o644))
	}
	text := expect.Value(os.ReadFile(cliPage))(t)
	expect.Same(t, string(text), made, "docs/cli.md says (-), the commands say (+); write it anew with: go test ./cmd/sidecar -run TestCLIPage -update")
}

// lineOfSketch and lineOfPair are what sketch and compare print for each document and each pair.
type (
	lineOfSketch struct {
		Scheme string `json:"scheme"`
		Sketch string `json:"sketch"`
	}
	lineOfPair struct {
		A         string  `json:"id_a"`
		B         string  `json:"id_b"`
		Agreement float64 `json:"agreement"`
		Error     float64 `json:"error"`
		Near      bool    `json:"near_duplicate"`
	}
	lineOfCluster struct {
		ID        string  `json:"id"`
		Cluster   string  `json:"cluster"`
		Size      int     `json:"size"`
		Agreement float64 `json:"agreement"`
	}
)

// printedJSON is a form of JSON that a command prints.
type printedJSON struct {
	what string
	keys []jsonshape.Key
}

func printed[T any](what string) printedJSON {
	return printedJSON{what, jsonshape.Of(reflect.TypeFor[T]())}
}

// printsJSON are the results of the commands.
var printsJSON = map[string][]printedJSON{
	"setup":        {printed[setupResult]("One object:")},
	"ready":        {printed[readiness]("One object:")},
	"reindex":      {printed[indicesOf[jobs.Report]]("One object, printed at the end:")},
	"verify":       {printed[verifyResult]("One object, printed at the end:")},
	"calibrate":    {printed[indicesOf[calibrate.Report]]("One object, printed at the end:")},
	"similar":      {printed[similar.Similar]("One object:")},
	"try":          {printed[try.Report]("One object, printed at the end:")},
	"remove":       {printed[indicesOf[jobs.Removal]]("One object, printed at the end:")},
	"config check": {printed[config.CheckedConfig]("One object:")},
	"config test":  {printed[onboard.Tested]("One object:")},
	"version":      {printed[buildinfo.Info]("One object:")},
	"cluster": {
		printed[cluster.Report]("One object, the report:"),
		printed[lineOfCluster]("In a file of `--output` whose name ends in .jsonl, an object on each line:"),
	},
	"compare": {
		printed[offline.Explanation]("Of two files, one object:"),
		printed[lineOfPair]("With `--docs` and `--pairs`, an object on each line:"),
	},
	"sketch": {{"An object on each line:", slices.Concat([]jsonshape.Key{{Path: "id", Is: "any JSON"}}, jsonshape.Of(reflect.TypeFor[lineOfSketch]()))}},
	"doctor": {printed[struct {
		Checks []onboard.Check `json:"checks"`
		OK     int             `json:"ok"`
		Warn   int             `json:"warn"`
		Fail   int             `json:"fail"`
	}]("One object, printed at the end:")},
}

// meanings explain members of the results whose names do not, by command and the end of their path.
var meanings = map[string]map[string]string{
	"reindex": {
		"right":             "had the right sketch already",
		"gone":              "deleted after they were read",
		"refused":           "the engine did not take them",
		"cut":               "ended by --max-docs",
		"scanned_by_all":    "by all machines that share the job",
		"whole":             "it came to its end",
		"parts":             "of the index",
		"parts_done":        "by this run",
		"resumed":           "it joined or continued another run",
		"index_made_anew":   "the index was created again, so the job began again",
		"leases_taken_over": "parts that this run took over from others that had ended",
		"leases_lost":       "parts that others took over from this run",
		"retries":           "sent again because the engine was busy",
		"no_checkpoint":     "why no progress is stored in the engine",
	},
	"verify": {
		"examples[]":        "ids of some documents with a stale sketch",
		"left_over":         "with bands or a cluster that the rule does not store",
		"mended":            "repaired",
		"changed_meanwhile": "again and again, so they were left",
		"gone":              "deleted after they were read",
		"refused":           "the engine did not take them",
		"whole":             "all documents were read, not a sample",
	},
	"try": {
		"repeating":      "queries that show the same text more than once on page 1",
		"repeating_hits": "hits of their pages",
		"folded":         "hits of page 1 that are hidden behind others of it",
		"new":            "results that were not on page 1",
		"filled":         "of these, those in a slot that became free",
		"empty":          "slots that stay free",
		"groups":         "results that stand for several",
		"changes":        "results that differ",
		"only[]":         "ids that only this one of two pages shows",
	},
	"remove": {
		"found":   "with something of ours",
		"gone":    "deleted after they were read",
		"refused": "the engine did not take them",
		"left":    "changed again and again, and still have it",
	},
	"calibrate": {
		"textless":               "have no word, and so no sketch",
		"copies":                 "with the same text as another one",
		"whole":                  "all documents were read",
		"way":                    "how candidates were found",
		"bands":                  "in a sketch",
		"rows":                   "positions in a band",
		".indices[].compared":    "pairs",
		"capped":                 "more pairs were alike than it compares",
		"random.found[]":         "pairs by agreement, in 20 steps of 0.05",
		"random.estimated[]":     "the same, with those that bands miss",
		"candidates.found[]":     "pairs by agreement, in 20 steps of 0.05",
		"candidates.estimated[]": "the same, with those that bands miss",
		"level":                  "an agreement, rounded to tenths",
		"levels[].compared":      "pairs of which the texts were compared",
		"rmse":                   "measured error of the agreement (root mean square)",
		"promised":               "error of the agreement as the sketches tell it",
		"curve.matches":          "positions that must be equal to fold",
		"points[].folds":         "share of the pairs of this resemblance that fold",
		"points[].candidate":     "share of these pairs that share a band",
		"curve.from":             "resemblance at which 5 % of pairs fold",
		"curve.to":               "resemblance at which 95 % of pairs fold",
		"low":                    "the true value lies between low and high, with a probability of 95 %",
		"high":                   "see low",
		"folded":                 "share of the documents",
		"shares[].contested":     "share of the documents for which chance decides",
		"presets[].contested":    "share of the documents for which chance decides",
		"suggestion.contested":   "documents for which chance decides",
		"contested_now":          "at the present threshold",
		"contested_below":        "at the worst threshold below the suggested one",
		"contested_above":        "at the worst threshold above it",
		"partnered":              "documents that agree with another text by 0.3 or more",
	},
	"cluster": {
		".bands":          "in a sketch",
		"rows":            "positions in a band",
		".texts":          "different texts",
		"clustered":       "documents in clusters",
		"alone":           "documents in no cluster",
		"common_a":        "pages of host_a with a near-duplicate on host_b",
		"common_b":        "pages of host_b with a near-duplicate on host_a",
		"elements":        "tags or links in common",
		"expected":        "documents that would have these in common by chance",
		"common_shingles": "left out by --common",
		"common_texts":    "with these shingles, at most",
		"cut_buckets":     "groups of more than 50 texts that share a band: not all pairs were compared",
		"cut_texts":       "texts in these groups",
		"wide_clusters":   "on more than 100 hosts: they do not count for mirrors",
		".written.right":  "had the right cluster already",
		"changed":         "after they were read, so they were left",
		"gone":            "deleted after they were read",
		"refused":         "the engine did not take them",
	},
	"similar": {
		"cut":    "only 10,000 of the documents that share a band were compared",
		"recall": "share of near-duplicates at the threshold that a look-up finds",
	},
	"compare": {
		"coverage": "see docs/similar.md",
	},
	"config test": {
		".cases[].case": "its place among the cases of its rule, from 0",
		"line":          "of the file",
		"want":          "same or different",
		"cases[].ok":    "it is as it must be",
		"compared":      "both documents could be compared",
		"found":         "what decides, in words",
		".ok":           "cases that are as they must be",
	},
}

// meaningOf returns the key in meanings that fits a member, or nothing. If several fit, the longest counts.
func meaningOf(command string, k jsonshape.Key) (longest string) {
	for end := range meanings[command] {
		whole := strings.HasPrefix(end, ".") && "."+k.Path == end || !strings.HasPrefix(end, ".") && strings.HasSuffix("."+k.Path, "."+end)
		if whole && len(end) > len(longest) {
			longest = end
		}
	}
	return longest
}

// TestMeanings holds the explanations to the results.
func TestMeanings(t *testing.T) {
	for command, ends := range meanings {
		used := map[string]bool{}
		for _, form := range printsJSON[command] {
			for _, k := range form.keys {
				used[meaningOf(command, k)] = true
			}
		}
		for end := range ends {
			if !used[end] {
				t.Errorf("%s prints no %s", command, end)
			}
		}
	}
}

// pageOfCommands makes the page.
func pageOfCommands() string {
	var b strings.Builder
	root := newRoot()
	b.WriteString("# The command line\n\n")
	b.WriteString("<!-- Made from the commands: go test ./cmd/sidecar -run TestCLIPage -update -->\n\n")
	writeLong(&b, root.Long)
	b.WriteString("`sidecar help COMMAND` says the same on a terminal, and `man sidecar-COMMAND` where a package has installed the manual. " +
		"The keys of the\nconfiguration are explained in [config.yaml](../config.yaml).\n")
	for _, g := range commandGroups() {
		fmt.Fprintf(&b, "\n%s\n\n", g.title)
		for _, cmd := range commandsOf(root, g.id) {
			fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), unmarked(cmd.Short))
		}
	}
	b.WriteString("\n`sidecar completion bash`, `zsh`, `fish` and `powershell` print a script. With it that shell completes commands, flags and the names in the\n" +
		"configuration; `sidecar completion bash --help` says where that goes. Packages install it.\n")
	b.WriteString("\nOf every command:\n\n")
	fenced(&b, "text", root.PersistentFlags().FlagUsages())
	for _, g := range commandGroups() {
		for _, cmd := range commandsOf(root, g.id) {
			writeCommand(&b, cmd)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// commandsOf returns the commands of a group, and in the place of one that does nothing by itself those below it.
func commandsOf(root *cobra.Command, group string) (list []*cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.GroupID != group || cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.HasSubCommands() {
			list = append(list, cmd.Commands()...)
			continue
		}
		list = append(list, cmd)
	}
	return list
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n`%s`\n\n", cmd.CommandPath(), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	writeLong(b, cmd.Long)
	b.WriteString("<!-- not run: the tests of cmd/sidecar and internal/e2e run the examples of this page -->\n")
	var lines []string
	for line := range strings.Lines(cmd.Example) {
		lines = append(lines, strings.TrimSpace(line))
	}
	fenced(b, "sh", strings.Join(lines, "\n"))
	if usages := cmd.LocalFlags().FlagUsages(); usages != "" {
		fenced(b, "text", usages)
	}
	name := strings.TrimPrefix(cmd.CommandPath(), "sidecar ")
	if name == "config print" {
		b.WriteString("With `--output json`: one object with the keys of config.yaml; a secret is `…`.\n\n")
	}
	for i, form := range printsJSON[name] {
		if i == 0 {
			b.WriteString("With `--output json`: ")
			form.what = strings.ToLower(form.what[:1]) + form.what[1:]
		}
		b.WriteString(form.what + "\n\n")
		var keys []string
		for _, k := range form.keys {
			k.Means = meanings[name][meaningOf(name, k)]
			keys = append(keys, k.String())
		}
		fenced(b, "text", strings.Join(keys, "\n"))
	}
}

func fenced(b *strings.Builder, language, text string) {
	fmt.Fprintf(b, "```%s\n%s\n```\n\n", language, strings.Trim(text, "\n"))
}

// writeLong writes the long text of a command: an indented paragraph as it stands, the others as text.
func writeLong(b *strings.Builder, long string) {
	for paragraph := range strings.SplitSeq(strings.Trim(long, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, "  ") {
			fenced(b, "text", paragraph)
			continue
		}
		b.WriteString(unmarked(paragraph) + "\n\n")
	}
}

var (
	flagInText = regexp.MustCompile(`--[a-z][a-z-]*(=[a-z0-9]+)?`)
	escapes    = strings.NewReplacer("*", `\*`, "_", `\_`, "<", "&lt;", "`", "\\`", "[", `\[`, "]", `\]`)
)

// unmarked returns a text in which Markdown finds no marks of its own, with flags as code.
func unmarked(text string) string { return flagInText.ReplaceAllString(escapes.Replace(text), "`$0`") }

// TestResultsHaveTheirShape runs the examples that need no engine, and holds what they print as JSON to the shapes of the page.
func TestResultsHaveTheirShape(t *testing.T) {
	ofProcesses(t)
	folder := offlineFolder(t)
	for _, c := range []struct {
		command string
		form    int
		line    string
	}{
		{"version", 0, "sidecar version --output json"},
		{"config check", 0, "sidecar config check --output json"},
		{"config test", 0, "sidecar config test --texts --output json"},
		{"config check", 0, "sidecar config check --output json --config bad.yaml"},
		{"sketch", 0, "sidecar sketch --fields headline,body.text --output json docs.jsonl"},
		{"compare", 0, "sidecar compare --output json old.txt new.html"},
		{"compare", 0, "sidecar compare --output json old.txt empty.txt"},
		{"compare", 1, "sidecar compare --config config.yaml --index news-2024 --docs docs.jsonl --pairs pairs.tsv --output json"},
		{"cluster", 0, "sidecar cluster --input pages.jsonl --id url --fields body --host-field url --output json"},
		{"cluster", 1, "sidecar cluster --input pages.jsonl --id url --fields body --output all.jsonl > report.txt; cat all.jsonl"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			cmd := shell(t, folder, c.line)
			out, _ := cmd.Output()
			decoder, values := json.NewDecoder(strings.NewReader(string(out))), 0
			for ; decoder.More(); values++ {
				var value json.RawMessage
				expect.OK(t, decoder.Decode(&value))
				if err := jsonshape.Check(printsJSON[c.command][c.form].keys, value); err != nil {
					t.Errorf("%v: %s", err, value)
				}
			}
			if values == 0 {
				t.Errorf("nothing was printed: %s", out)
			}
		})
	}
}

// offlineFolder returns a folder with the files of the examples that need no engine.
func offlineFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	const text = "The ferry to the island leaves at nine in the morning and at five in the afternoon, on Sundays at ten."
	for name, content := range map[string]string{
		"old.txt": text, "new.html": "<p>" + text + "</p>", "empty.txt": "",
		"docs.jsonl":   `{"id":"a","title":"` + text + `","headline":"` + text + `"}` + "\n" + `{"id":7,"title":"` + text + ` Or not.","headline":"Ferry"}` + "\n",
		"lyrics.jsonl": `{"id":"a","title":"` + text + `"}` + "\n",
		"pages.jsonl":  `{"url":"https://a.example/1","body":"` + text + `"}` + "\n" + `{"url":"https://b.example/1","body":"` + text + `"}` + "\n",
		"links.jsonl":  `{"id":"a","links":["https://a.example/1"]}` + "\n",
		"pairs.tsv":    "a\t7\n",
		"bad.yaml":     "admin: x\n",
		"config.yaml": `admin: 127.0.0.1:1
engines:
  - kind: elasticsearch
    listen: 127.0.0.1:0
    urls: ["http://127.0.0.1:1"]
    indices: [{match: "news-*", fields: [title], cases: [{same: [a ferry, A ferry]}]}, {match: links, fields: [links], preset: goods, sketch: {family: m_smallest}}]
`,
	} {
		expect.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return folder
}

// TestOfflineExamplesRun runs the examples that need neither an engine nor a sidecar, as they stand.
func TestOfflineExamplesRun(t *testing.T) {
	ofProcesses(t)
	folder := offlineFolder(t)
	if out, err := shell(t, folder, "gzip -k docs.jsonl lyrics.jsonl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ran := 0
	eachCommand(newRoot(), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "sidecar ")
		if !slices.Contains([]string{"sketch", "compare", "unseen", "cluster", "config", "config check", "config print", "version", "man"}, path) {
			return
		}
		script := "set -x\n"
		for line := range strings.Lines(cmd.Example) {
			line = strings.NewReplacer("/etc/neardup/", "", "/big/disk", ".").Replace(strings.TrimSpace(line))
			if path == "cluster" && !strings.Contains(line, "--input") || strings.Contains(line, onFlink) || strings.Contains(line, "tail -F") {
				continue
			}
			script += line + "\n"
			ran++
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			if out, err := shell(t, folder, script).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	})
	if ran < 21 {
		t.Errorf("only %d examples found", ran)
	}
}
