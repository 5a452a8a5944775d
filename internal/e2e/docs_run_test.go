package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/docs"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/expect/jsonshape"
)

// TestDocs runs the commands in the project's pages: those of each page in front of each engine that it names, as package docs
// says. NEARDUP_DOCS names one page.
func TestDocs(t *testing.T) {
	tree := must(docs.Load(filepath.Join("..", "..")))(t)
	blocks := 0
	for _, engine := range slices.Concat(engines.Kinds, []string{"none"}) {
		var names []string // pages in front of this engine
		steps := map[string][]*docs.Step{}
		for _, name := range tree.Names() {
			if only := os.Getenv("NEARDUP_DOCS"); only != "" && only != name {
				continue
			}
			byEngine, err := tree.Pages[name].Steps()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if steps[name] = byEngine[engine]; len(steps[name]) > 0 {
				names = append(names, name)
				blocks += len(steps[name])
			}
		}
		// Pages in front of one engine go one after the other: they share the names of indices.
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) { runPage(t, tree.Pages[name], engine, steps[name]) })
			}
		})
	}
	if blocks == 0 {
		t.Error("no page has a block that is run")
	}
}

// runPage runs the steps of a page in front of one engine. Where one of them goes on, as a sidecar does, the page's links to this machine
// are followed in the end.
func runPage(t *testing.T, page *docs.Page, engine string, steps []*docs.Step) {
	p := newWalkthrough(t, engine)
	p.had(t, steps)
	var indices, made []string
	prepared, served, serving := false, false, false
	for _, s := range steps {
		serving = serving || s.How.Served || s.How.Background
		indices, made = append(indices, s.How.Indices...), append(made, s.How.Makes...)
		prepared, served = prepared || s.How.Prepared, served || s.How.Served
	}
	for _, index := range indices {
		p.load(t, index)
	}
	for _, index := range made {
		p.claim(t, index)
	}
	var first string
	if len(indices) > 0 {
		p.configure(t, indices)
	}
	if prepared {
		first += "sidecar setup\nsidecar reindex\n"
		for _, index := range indices {
			if engine != engines.Typesense {
				first += fmt.Sprintf("curl -X POST %s/%s/_refresh\n", p.engine.URL, index)
			}
		}
	}
	var before, after []*docs.Step
	if first != "" {
		before = append(before, &docs.Step{Block: &docs.Block{Text: first}})
	}
	if served {
		before = append(before, &docs.Step{Block: &docs.Block{Text: "sidecar serve\n"}, How: docs.How{Background: true}})
	}
	for _, link := range page.Local() {
		if serving {
			after = append(after, &docs.Step{Block: &docs.Block{Text: "curl -o /dev/null " + link + "\n"}})
		}
	}
	run := docs.Run{
		Folder: p.folder, Tree: p.tree, Limit: 5 * time.Minute, Lead: p.lead, Back: p.back,
		Env: []string{"PATH=" + p.programs + string(os.PathListSeparator) + os.Getenv("PATH"), "ENGINE_API_KEY=" + p.key()},
	}
	begin := time.Now()
	if err := run.Do(t.Context(), slices.Concat(before, steps, after)); err != nil {
		t.Errorf("%s, %v", page.Path, err)
	}
	t.Logf("%d blocks in %.1f s", len(steps), time.Since(begin).Seconds())
}

// walkthrough is what a page's commands are run in: a folder with ./sidecar and deploy/, programs that stand in for others, and
// where its addresses lead.
type walkthrough struct {
	engine                 *engines.Engine // nil for none
	folder, tree, programs string
	there, here            *strings.Replacer
}

// usualPorts are those in pages where a sidecar, or something else that a page starts, listens.
var usualPorts = []string{"9201", "9202", "8109", "7610", "7611", "8000"}

// theirs are the ports of engines in pages.
var theirs = map[string]string{engines.Elasticsearch: "9200", engines.OpenSearch: "9200", engines.Typesense: "8108"}

func newWalkthrough(t *testing.T, kind string) *walkthrough {
	t.Helper()
	tree := must(filepath.Abs(filepath.Join("..", "..")))(t)
	p := &walkthrough{folder: t.TempDir(), programs: t.TempDir(), tree: tree}
	var there, here []string
	if kind != "none" {
		p.engine = engines.Shared(t, kind)
		u := must(url.Parse(p.engine.URL))(t)
		for _, host := range []string{"localhost:", "127.0.0.1:"} {
			there = append(there, host+theirs[kind], u.Host)
		}
		here = append(here, u.Host, "localhost:"+theirs[kind])
		if p.engine.Key != "" {
			there = append(there, "KEY=xyz", "KEY="+p.engine.Key)
		}
	}
	free := freePorts(t, len(usualPorts))
	for i, port := range usualPorts {
		there, here = append(there, ":"+port, ":"+free[i]), append(here, ":"+free[i], ":"+port)
	}
	p.there, p.here = strings.NewReplacer(there...), strings.NewReplacer(append(here, "127.0.0.1:", "localhost:")...)
	p.stand(t)
	return p
}

func (p *walkthrough) lead(text string) string { return p.there.Replace(text) }

// back also says localhost for 127.0.0.1, of which a reader sees either.
func (p *walkthrough) back(text string) string {
	return strings.ReplaceAll(p.here.Replace(text), "127.0.0.1", "localhost")
}

func (p *walkthrough) key() string {
	if p.engine == nil {
		return ""
	}
	return p.engine.Key
}

// ofSidecar is the built program, of which init writes the addresses that the page leads to.
const ofSidecar = `#!/usr/bin/env bash
case " $* " in
*' init '*)
  %[1]s "$@" || exit
  sed -E -i -e 's/^( *(- )?listen: .*):[0-9]+/\1%[2]s/' -e 's/^(admin: .*):[0-9]+/\1%[3]s/' *.yaml 2>/dev/null || true ;;
*) exec %[1]s "$@" ;;
esac
`

// ofCurl is a curl that fails where it is answered with an error.
const ofCurl = `#!/usr/bin/env bash
exec %s -q -sS --fail-with-body --max-time 30 "$@"
`

// stand puts these programs in place.
func (p *walkthrough) stand(t *testing.T) {
	t.Helper()
	built := must(binary())(t)
	curl, err := exec.LookPath("curl")
	if err != nil {
		engines.Unavailable(t, err)
	}
	for name, text := range map[string]string{
		"sidecar": fmt.Sprintf(ofSidecar, built, p.lead(p.door()), p.lead(":7610")), "curl": fmt.Sprintf(ofCurl, curl),
	} {
		check(t, os.WriteFile(filepath.Join(p.programs, name), []byte(text), 0o755))
	}
	links := map[string]string{"sidecar": filepath.Join(p.programs, "sidecar"), "deploy": filepath.Join(p.tree, "deploy")}
	for from, to := range links {
		check(t, os.Symlink(to, filepath.Join(p.folder, from)))
	}
}

// door is the port at which pages have the sidecar in front of the engine.
func (p *walkthrough) door() string {
	if p.engine != nil && p.engine.Kind == engines.Typesense {
		return ":8109"
	}
	return ":9201"
}

// had has the programs found that the steps need, and ends the test where one is not to be had.
func (p *walkthrough) had(t *testing.T, steps []*docs.Step) {
	t.Helper()
	for _, s := range steps {
		for _, name := range s.How.Needs {
			path := whereabouts(t, p.tree, name)
			if path == "" {
				engines.Unavailable(t, fmt.Errorf("line %d: %s is missing", s.Block.Line, name))
			}
			if err := os.Symlink(path, filepath.Join(p.programs, name)); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
	}
}

// claim sees to it that an index is gone when the test ends. One that is there already is somebody's.
func (p *walkthrough) claim(t *testing.T, index string) {
	t.Helper()
	a := api{p.engine, p.engine.URL}
	path := "/" + index
	if a.typesense() {
		path = "/collections/" + index
	}
	expect.Must(t, 404, call(t, p.engine, "GET", p.engine.URL+path, "").status, "%s has an index %s: it is not ours to write to", p.engine.URL, index)
	a.drop(t, index)
}

// load fills an index with the sample corpus.
func (p *walkthrough) load(t *testing.T, index string) {
	t.Helper()
	p.claim(t, index)
	a := api{p.engine, p.engine.URL}
	a.create(t, index, documents(t)...)
	a.refresh(t, index)
}

// configure writes a configuration with a rule for each of the indices.
func (p *walkthrough) configure(t *testing.T, indices []string) {
	t.Helper()
	rules := ""
	for _, index := range indices {
		rules += fmt.Sprintf("      - {match: %s, fields: [title, body], bands: auto, on_duplicate: tag}\n", index)
	}
	credentials := ""
	if p.key() != "" {
		credentials = "    credentials: {api_key: \"${ENGINE_API_KEY}\"}\n"
	}
	text := p.lead(fmt.Sprintf(`admin: 127.0.0.1:7610
engines:
  - listen: 127.0.0.1%s
    kind: %s
    urls: [%s]
%s    limits: %s
    indices:
%s`, p.door(), p.engine.Kind, p.engine.URL, credentials, patient(""), rules))
	check(t, os.WriteFile(filepath.Join(p.folder, "config.yaml"), []byte(text), 0o600))
}

// freePorts returns ports at which nothing listens.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close() // when all are found, so that they differ
		_, port, err := net.SplitHostPort(l.Addr().String())
		check(t, err)
		ports = append(ports, port)
	}
	return ports
}

// whereabouts returns where a program is, or "". Where no test may be left out, helm is made by internal/packages.
func whereabouts(t *testing.T, tree, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil || name != "helm" || !engines.Required() {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(tree, "internal", "packages", "tools.sh"), name).Output()
	if err != nil {
		t.Logf("%s can't be made: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

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
			case strings.Contains(example, "--watch"), strings.Contains(example, "--open"): // has no end
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
