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
	"github.com/neardup/sidecar/internal/jsonshape"
	"github.com/neardup/sidecar/internal/offline"
	"github.com/neardup/sidecar/internal/onboard"
	"github.com/neardup/sidecar/internal/similar"
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
	"remove":       {printed[indicesOf[jobs.Removal]]("One object, printed at the end:")},
	"config check": {printed[config.CheckedConfig]("One object:")},
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
    indices: [{match: "news-*", fields: [title]}, {match: links, fields: [links], preset: goods, sketch: {family: m_smallest}}]
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
		if !slices.Contains([]string{"sketch", "compare", "cluster", "config", "config check", "config print", "version", "man"}, path) {
			return
		}
		script := "set -x\n"
		for line := range strings.Lines(cmd.Example) {
			line = strings.NewReplacer("/etc/neardup/", "", "/big/disk", ".").Replace(strings.TrimSpace(line))
			if path == "cluster" && !strings.Contains(line, "--input") || strings.Contains(line, onFlink) {
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
	if ran < 17 {
		t.Errorf("only %d examples found", ran)
	}
}
