package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// do runs a page without any engine.
func do(t *testing.T, folder, text string, limit time.Duration) error {
	t.Helper()
	steps, err := Parse("x.md", text).Steps()
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || steps["none"] == nil {
		t.Fatalf("steps: %v", steps)
	}
	run := Run{
		Folder: folder, Tree: t.TempDir(), Limit: limit, Grace: 200 * time.Millisecond, Env: []string{"GREETING=hello"},
		Lead: func(text string) string { return strings.ReplaceAll(text, ":9200", ":12345") },
		Back: func(text string) string { return strings.ReplaceAll(text, ":12345", ":9200") },
	}
	return run.Do(t.Context(), steps["none"])
}

// TestRun runs pages that are as they should be, and pages of which a command fails, prints something else, or does not end.
func TestRun(t *testing.T) {
	sh := func(options, text string) string {
		return "<!-- run: none" + options + " -->\n```sh\n" + text + "```\n"
	}
	output := func(text string) string { return "<!-- output -->\n```text\n" + text + "```\n" }
	for _, c := range []struct{ name, page, want string }{
		{"goes on in one bash", sh("", "a=1\nmkdir x; cd x\n") + sh("", "echo $a $GREETING; basename $PWD\n") + output("1 hello\nx\n"), ""},
		{"output", sh("", "echo at localhost:9200 >&2; echo at localhost:9200 in 3 ms\n") + output("at localhost:9200 in … ms\n"), ""},
		{"other output", sh("", "echo a\n") + output("b\n"), "prints\na\n\nThe page says\nb"},
		{"led elsewhere", sh("", "echo :9200 | grep 12345\n"), ""},
		{"fails", sh("", "true\nfalse\ntrue\n"), "exit code 1 of: false"},
		{"fails in a pipe", sh("", "false | cat\n"), "exit code 1"},
		{"fails in a function", sh("", "f() { false; true; }\nf\n"), "exit code 1 of: false"},
		{"fails in the second", sh("", "true\n") + "\n" + sh("", "echo a; no-such-command\n"), "line 7: exit code 127 of: no-such-command\na\n"},
		{"is to fail", sh(", exit 3", "(exit 3)\n") + sh("", "echo on\n") + output("on\n"), ""},
		{"is to fail, and does not", sh(", exit 3", "true\n"), "exit code 0, not 3"},
		{"behind one that is to fail", sh(", exit 1", "false\n") + sh("", "false\n"), "exit code 1 of: false"},
		{"in a subshell", sh("", "(true; false)\n"), "exit code 1"},
		{"takes too long", sh("", "sleep 100\n"), "takes too long"},
		{"background", sh(", background", "echo listening >&2; sleep 100\n") + sh("", "echo b\n") + output("b\n"), ""},
		{"background that ends", sh(", background", "echo x >&2; false\n") + sh("", "true\n"), "ended before it listened"},
		{"in the tree", sh(", in the tree", "pwd >&2; echo 1 > a\n") + sh("", "[ ! -e a ]\n"), ""},
		{"file", "<!-- file: d/a.txt -->\n```text\n$a 'b' `c` :9200\n```\n" + sh("", "cat d/a.txt\n") + output("$a 'b' `c` :9200\n"), ""},
		{"file of later", sh("", "cat a.txt\n") + "<!-- file: a.txt -->\n```text\nx\n```\n", "exit code 1 of: cat a.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			limit := 20 * time.Second
			if c.name == "takes too long" {
				limit = 300 * time.Millisecond
			}
			err := do(t, t.TempDir(), c.page, limit)
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestRunEndsAll looks for what a page has left running.
func TestRunEndsAll(t *testing.T) {
	folder := t.TempDir()
	page := "<!-- run: none, background -->\n```sh\necho listening >&2; trap '' TERM; sleep 300 & echo $! > pid; wait; wait\n```\n" +
		"<!-- run: none -->\n```sh\nwhile [ ! -s pid ]; do sleep 0.02; done\n```\n"
	if err := do(t, folder, page, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("process %d still runs: %s", pid, state)
	}
}

// TestSteps holds which block is run in front of which engine.
func TestSteps(t *testing.T) {
	block := func(marker, text string) string { return "<!-- " + marker + " -->\n```sh\n" + text + "\n```\n" }
	steps, err := Parse("x.md", block("run: none", "1")+block("file: a", "2")+block("run: opensearch", "3")+block("not run: why", "4")+
		block("run: typesense, exit 2, needs helm", "5")+block("file: b", "6")+block("run: none", "7")).Steps()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for engine, list := range steps {
		for _, s := range list {
			got[engine] += strings.TrimSpace(s.Block.Text)
		}
	}
	if len(got) != 2 || got["opensearch"] != "12367" || got["typesense"] != "256" {
		t.Errorf("steps: %v", got)
	}
	if s := steps["typesense"][1]; s.How.Exit != 2 || len(s.How.Needs) != 1 || s.How.Needs[0] != "helm" {
		t.Errorf("%+v", s.How)
	}
}
