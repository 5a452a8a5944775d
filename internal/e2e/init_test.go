package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
)

// asks returns a command of the sidecar that asks an engine, with the engine's key in its environment, in a folder of its own.
func asks(t *testing.T, e *engines.Engine, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	cmd := command(t, ctx, append([]string{"init"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ENGINE_API_KEY="+e.Key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// surveyed runs init to its end and returns what it printed, its exit code and what it wrote.
func surveyed(t *testing.T, e *engines.Engine, args ...string) (out string, code int, text string) {
	t.Helper()
	cmd := asks(t, e, args...)
	both, err := cmd.CombinedOutput()
	code = exitCode(t, err)
	written, err := os.ReadFile(filepath.Join(cmd.Dir, "config.yaml"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(both), code, string(written)
}

var ruleOf = regexp.MustCompile(`- match: (\S+)\n(?: +#.*\n)* +fields: \[(.*)\]`)

// rulesIn returns the rules of a configuration that init wrote, by what they match, with their fields.
func rulesIn(text string) map[string]string {
	rules := map[string]string{}
	for _, m := range ruleOf.FindAllStringSubmatch(text, -1) {
		rules[strings.Trim(m[1], `"`)] = m[2]
	}
	return rules
}

// TestInit has init serve in front of each engine with what it found there, and searches.
func TestInit(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "init-articles"
		direct, list := api{e, e.URL}, documents(t)
		direct.create(t, index, list...)
		before := stored(t, direct, index)

		serving := asks(t, e, "--serve", "--index", index, e.URL)
		at, end := begin(t, serving)
		through := api{e, "http://" + at}
		o := oracleOf(t, direct, documents(t), "", rerank.Default().Threshold)
		for _, q := range []string{"ferry", "town"} {
			same(t, o.list(t, index, q), slices.Concat(through.whole(t, index, q, 10, "")...), "%q", q)
		}
		text := must(os.ReadFile(filepath.Join(serving.Dir, "config.yaml")))(t)
		same(t, "title, body", rulesIn(string(text))[index], "the fields of the rule:\n%s", text)
		if !strings.Contains(string(text), fmt.Sprintf("# %s: %d documents.", index, len(list))) || e.Key != "" && strings.Contains(string(text), " "+e.Key+"\n") {
			t.Errorf("%s", text)
		}
		end()
		expect.By{cmp.AllowUnexported(hit{})}.Same(t, before, stored(t, direct, index), "documents after init")
		t.Setenv("ENGINE_API_KEY", e.Key)
		holds(t, doctor(t, filepath.Join(serving.Dir, "config.yaml")), "fail", "index", index+" is not ready: .*setup")
	})
}

// TestInitOnManyIndices lays out what a cluster may hold, and has init make rules of it.
func TestInitOnManyIndices(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	lay := func(name, body, document string) {
		direct.drop(t, name)
		call(t, e, "PUT", e.URL+"/"+name, body).want(t, 200)
		if document != "" {
			call(t, e, "POST", e.URL+"/"+name+"/_doc?refresh=true", document).want(t, 201)
		}
	}
	const message = `{"aliases":{"initm":{}},"mappings":{"properties":{"message":{"type":"text"},"at":{"type":"date"}}}}`
	for _, day := range []string{"01", "02", "03"} {
		lay("initm-logs-2026.01."+day, message, `{"message":"the line of a log that has words","at":"2026-01-01"}`)
	}
	lay("initm-deep", `{"aliases":{"initm":{}},"mappings":{"properties":{"meta":{"properties":{"title":{"type":"text"}}},`+
		`"parts":{"type":"nested","properties":{"text":{"type":"text"}}},"name":{"type":"keyword","fields":{"words":{"type":"text"}}}}}}`,
		`{"meta":{"title":"a title of five words"},"parts":[{"text":"one part of it"},{"text":"another"}],"name":"what the name is"}`)
	lay("initm-empty", `{"aliases":{"initm":{}},"mappings":{"properties":{"headline":{"type":"text"},"other":{"type":"text"},"body":{"type":"text"}}}}`, "")
	lay("initm-metrics", `{"aliases":{"initm":{}},"mappings":{"properties":{"load":{"type":"float"},"node":{"type":"keyword"}}}}`, `{"load":1,"node":"a"}`)
	lay("initm-closed", `{"aliases":{"initm":{}},"mappings":{"properties":{"title":{"type":"text"}}}}`, "")
	call(t, e, "POST", e.URL+"/initm-closed/_close", "").want(t, 200)

	out, code, text := surveyed(t, e, "--index", "initm", e.URL)
	expect.Must(t, 0, code, "the exit code of init: %s", out)
	want := map[string]string{
		"initm-logs-*": "message", "initm-deep": "meta.title, name, parts.text", "initm-empty": "headline, body",
	}
	same(t, want, rulesIn(text), "%s", text)
	for _, said := range []string{"# initm-logs-*: 3 indices, 3 documents.", "initm-metrics: no field holds a text", "initm-closed: is closed"} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing says %q:\n%s", said, text)
		}
	}
}

// TestInitOnCollections makes one rule of several collections, and asks with a key that may not list them.
func TestInitOnCollections(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct := api{e, e.URL}
	for i := range 3 {
		name := fmt.Sprintf("initc_2026_0%d", i+1)
		direct.drop(t, name)
		call(t, e, "POST", e.URL+"/collections", `{"name":"`+name+`","enable_nested_fields":true,"fields":[{"name":"meta","type":"object"},`+
			`{"name":"title","type":"string"},{"name":"site","type":"string","facet":true},{"name":"published_at","type":"int64"}]}`).want(t, 201)
		call(t, e, "POST", e.URL+"/collections/"+name+"/documents", `{"title":"A title with some words","site":"a","published_at":1,`+
			`"meta":{"text":"And a text with more words than the title has, which lies deeper"}}`).want(t, 201)
	}
	out, code, text := surveyed(t, e, "--index", "initc_*", e.URL)
	if code != 0 || rulesIn(text)["initc_*"] != "title, meta.text" {
		t.Errorf("init ended with %d: %s\n%s", code, out, text)
	}
	for _, said := range []string{"# initc_*: 3 indices, 3 documents.", "#date_field: published_at", "api_key: ${ENGINE_API_KEY:-}"} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing says %q:\n%s", said, text)
		}
	}

	wrong := *e
	wrong.Key = newKey(t, e, `"documents:search","debug:list"`, `"initc_*"`)
	if out, code, _ := surveyed(t, &wrong, e.URL); code != 1 || !strings.Contains(out, "export ENGINE_API_KEY") {
		t.Errorf("init ended with %d: %s", code, out)
	}
}

// firstMinute returns the commands of README's first minute, line by line.
func firstMinute(t *testing.T) []string {
	t.Helper()
	text := must(os.ReadFile(filepath.Join("..", "..", "README.md")))(t)
	_, after, found := strings.Cut(string(text), "<!-- first minute -->\n```sh\n")
	block, _, closed := strings.Cut(after, "```")
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if !found || !closed || len(lines) != 3 {
		t.Fatalf("README.md has no block of three lines behind <!-- first minute -->: %q", block)
	}
	return lines
}

// snapshot returns a repository that holds the tree as it is at this moment.
func snapshot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root := must(filepath.Abs(filepath.Join("..", "..")))(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", `
		tar -C "$0" --exclude .git --exclude .cache --exclude bin --exclude node_modules -c . | tar -x
		git init -q -b main
		git add -A
		git -c user.name=neardup -c user.email=neardup@localhost -c commit.gpgsign=false commit -q -m "the tree as it is"`,
		root)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

var (
	listensAt = regexp.MustCompile(`(?:The sidecar listens at |Send clients to http://)(\S+?)\.?\s`)
	cloned    = regexp.MustCompile(`git clone (\S+)`)
)

// TestFirstMinute does what README says on a cluster that holds an index with near-duplicates, written before the sidecar came: it
// clones, asks the engine, serves and searches. The clone comes from the tree as it is, the ports are those that are free.
func TestFirstMinute(t *testing.T) {
	for _, tool := range []string{"git", "bash", "curl", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			engines.Unavailable(t, err)
		}
	}
	e := engines.Shared(t, engines.Elasticsearch)
	index := "news"
	if e.PID == 0 { // the engine is not ours alone, and its news may be somebody's
		index = "news-first-minute"
	}
	direct := api{e, e.URL}
	direct.drop(t, index)
	direct.load(t, index, documents(t)) // which makes the index, as it comes
	raw, _ := idsOf(t, call(t, e, "GET", e.URL+"/"+index+"/_search?q=ferry&size=1000", ""))
	want := oracleOf(t, direct, documents(t), "", rerank.Default().Threshold).collapsed(raw)
	want = want[:min(10, len(want))]
	if slices.Equal(want, raw[:len(want)]) {
		t.Fatal("nothing folds on the first page: the corpus or the threshold is wrong")
	}
	before := mapping(t, e, index)

	lines, origin, dir := firstMinute(t), snapshot(t), t.TempDir()
	from := cloned.FindStringSubmatch(lines[0])
	if from == nil {
		t.Fatalf("%q clones nothing", lines[0])
	}
	shell := func(script string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -e\n"+script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+origin+".insteadOf", "GIT_CONFIG_VALUE_0="+from[1])
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it and all it starts are interrupted together
		return cmd
	}
	if _, err := binary(); err != nil { // has the packages compiled, as they are on the second day
		t.Fatal(err)
	}
	began := time.Now()
	at, end := begin(t, shell(lines[0]+"\n"+strings.Replace(lines[1], "http://localhost:9200", e.URL, 1)+" --listen "+port(t)))
	defer end()
	search := strings.NewReplacer("localhost:9201", at, "/news/", "/"+index+"/").Replace(lines[2])
	page, err := shell(search).Output()
	if err != nil {
		t.Fatalf("%s: %v", search, err)
	}
	t.Logf("from clone to the first collapsed page: %.1f s", time.Since(began).Seconds())
	shown, _ := idsOf(t, reply{body: page})
	same(t, want, shown, "the first page is not the collapsed one")
	same(t, before, mapping(t, e, index), "it changed the engine")
}

// begin starts what is to serve, and returns the address that it tells once it does, and what ends it.
func begin(t *testing.T, serving *exec.Cmd) (at string, end func()) {
	t.Helper()
	out := must(serving.StdoutPipe())(t)
	var errOut bytes.Buffer
	serving.Stderr = &errOut
	check(t, serving.Start())
	lines := bufio.NewScanner(out)
	for at == "" && lines.Scan() {
		if m := listensAt.FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
		}
	}
	if at == "" {
		err := serving.Wait()
		t.Fatalf("it ended before it listened: %v: %s", err, errOut.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return at, func() {
		_ = syscall.Kill(-serving.Process.Pid, syscall.SIGINT)
		err := serving.Wait()
		if err != nil && !strings.Contains(errOut.String(), "drained") {
			t.Errorf("it ended with %v: %s", err, errOut.String())
		}
	}
}

// mapping returns how the fields of an index are declared.
func mapping(t *testing.T, e *engines.Engine, index string) string {
	t.Helper()
	return string(call(t, e, "GET", e.URL+"/"+index+"/_mapping", "").want(t, 200).body)
}
