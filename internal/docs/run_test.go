package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

// do runs a page without any engine.
func do(t *testing.T, folder, text string, limit time.Duration) error {
	t.Helper()
	steps := expect.Value(Parse("x.md", text).Steps())(t)
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
		{"fails", sh("", "true\nfalse\ntrue\n"), "exit code 1 of: false"},
		{"fails in the second", sh("", "true\n") + "\n" + sh("", "echo a; no-such-command\n"), "line 7: exit code 127 of: no-such-command\na\n"},
		{"is to fail", sh(", exit 3", "(exit 3)\n") + sh("", "echo on\n") + output("on\n"), ""},
		{"takes too long", sh("", "sleep 100\n"), "takes too long"},
		{"background", sh(", background", "echo listening >&2; sleep 100\n") + sh("", "echo b\n") + output("b\n"), ""},
		{"in the tree", sh(", in the tree", "pwd >&2; echo 1 > a\n") + sh("", "[ ! -e a ]\n"), ""},
		{"file", "<!-- file: d/a.txt -->\n```text\n$a 'b' `c` :9200\n```\n" + sh("", "cat d/a.txt\n") + output("$a 'b' `c` :9200\n"), ""},
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

// TestStepsOfTwoEngines runs one block in front of two engines, and one without any in front of the first.
func TestStepsOfTwoEngines(t *testing.T) {
	const page = "<!-- run: elasticsearch and opensearch -->\n```sh\ntrue\n```\n<!-- output -->\n```text\na\n```\n<!-- run: none -->\n```sh\ntrue\n```\n"
	steps := expect.Value(Parse("x.md", page).Steps())(t)
	es, os := steps["elasticsearch"], steps["opensearch"]
	if len(steps) != 2 || len(es) != 2 || len(os) != 1 || es[0].Output == nil || os[0].Output == nil {
		t.Errorf("steps: %v", steps)
	}
}
