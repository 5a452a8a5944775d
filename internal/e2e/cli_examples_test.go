package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonshape"
)

// section is what docs/cli.md says of one command.
type section struct {
	command  string
	examples []string
	// keys are those of the first form of JSON that the command prints; nil for none.
	keys []jsonshape.Key
}

var engineNames = regexp.MustCompile(`--engine \w+`)

var fences = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)\n```")

// pageOfCommands reads docs/cli.md, which a test of cmd/sidecar holds to the commands.
func pageOfCommands(t *testing.T) map[string]section {
	t.Helper()
	text := must(os.ReadFile("../../docs/cli.md"))(t)
	sections := map[string]section{}
	for _, part := range strings.Split(string(text), "\n## sidecar ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		s := section{command: name}
		for _, fence := range fences.FindAllStringSubmatch(rest, -1) {
			if fence[1] == "sh" {
				s.examples = strings.Split(fence[2], "\n")
			}
		}
		if _, forms, has := strings.Cut(rest, "\nWith `--output json`: "); has && name != "config print" {
			s.keys = must(jsonshape.Parse(fences.FindStringSubmatch(forms)[2]))(t)
		}
		sections[name] = s
	}
	return sections
}

// exampleFolder returns a folder with what the examples need: a configuration of engines with the names in them, and files.
func exampleFolder(t *testing.T, e *engines.Engine, index string) string {
	t.Helper()
	folder := t.TempDir()
	one := fmt.Sprintf("{kind: %s, listen: \"127.0.0.1:0\", urls: [%q], indices: [{match: \"%s-*\", fields: [title, body], bands: auto, native: true}]}",
		e.Kind, e.URL, index)
	for name, text := range map[string]string{
		"config.yaml": "admin: \"\"\nengines:\n  - " + one + "\n", "article.txt": documents(t)[0].Body,
	} {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

// TestCommandExamples runs the examples of the commands that need an engine, as docs/cli.md has them, one after the other on an index that
// has no sketch to begin with, and holds what they print as JSON to the shapes on that page.
func TestCommandExamples(t *testing.T) {
	e := engines.Shared(t, "elasticsearch")
	const index = "clix"
	direct, list := api{e, e.URL}, documents(t)[:60]
	list[0].ID = "4711"
	direct.create(t, index+"-2024")
	direct.load(t, index+"-2024", list)
	folder, page := exampleFolder(t, e, index), pageOfCommands(t)
	path := must(binary())(t)
	ran, shaped := 0, 0
	for _, name := range []string{"setup", "reindex", "verify", "calibrate", "similar", "cluster", "doctor", "remove"} {
		for _, example := range page[name].examples {
			switch {
			case strings.Contains(example, "--watch"): // has no end
				continue
			case strings.Contains(example, "flink"), strings.Contains(example, "--input"): // TestFlinkClusters; TestOfflineExamplesRun
				continue
			case strings.HasPrefix(example, "sidecar remove") && !strings.Contains(example, "--yes") && !strings.Contains(example, "--dry-run"): // asks
				continue
			}
			ran++
			line := engineNames.ReplaceAllString(example, "--engine "+e.Kind)
			line = strings.NewReplacer("news-2024", index+"-2024", "'news-*'", "'"+index+"-*'", "news-*", index+"-*").Replace(line)
			began := time.Now()
			cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", line)
			cmd.Dir, cmd.Env = folder, append(os.Environ(), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			// Nothing serves here, which doctor finds; all else must end well.
			if code := exitCode(t, cmd.Run()); code != 0 && name != "doctor" {
				t.Errorf("%s: ended with %d: %s%s", line, code, out.String(), errs.String())
			}
			t.Logf("%5.2f s: %s", time.Since(began).Seconds(), line)
			if !strings.Contains(example, "--output json") {
				continue
			}
			shaped++
			value := out.Bytes()
			if _, file, to := strings.Cut(line, " > "); to {
				value = must(os.ReadFile(filepath.Join(folder, file)))(t)
			}
			if err := jsonshape.Check(page[name].keys, value); err != nil {
				t.Errorf("%s prints what docs/cli.md does not say: %v: %s", line, err, value)
			}
		}
	}
	if ran < 20 || shaped < 6 {
		t.Errorf("only %d examples found, %d of them with --output json", ran, shaped)
	}
	for id, hit := range stored(t, direct, index+"-2024") {
		if bytes.Contains(hit.source, []byte("neardup_")) {
			t.Errorf("remove left of %s: %s", id, hit.source)
		}
	}
}
