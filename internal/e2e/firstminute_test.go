package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
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

	"github.com/neardup/sidecar/internal/engines"
)

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
	listensAt = regexp.MustCompile(`The sidecar listens at (\S+)\.`)
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
	raw := listed(t, call(t, e, "GET", e.URL+"/"+index+"/_search?q=ferry&size=1000", "").want(t, 200).body)
	want := initOracle(t, direct).collapsed(raw)
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
	at, end := begin(t, shell(lines[0]+"\n"+strings.Replace(lines[1], "http://localhost:9200", e.URL, 1)))
	defer end()
	search := strings.NewReplacer("localhost:9201", at, "/news/", "/"+index+"/").Replace(lines[2])
	page, err := shell(search).Output()
	if err != nil {
		t.Fatalf("%s: %v", search, err)
	}
	t.Logf("from clone to the first collapsed page: %.1f s", time.Since(began).Seconds())
	same(t, want, listed(t, page), "the first page is not the collapsed one")
	same(t, before, mapping(t, e, index), "it changed the engine")
}

// listed returns the ids of a page.
func listed(t *testing.T, body []byte) (ids []string) {
	t.Helper()
	var reply struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		t.Fatalf("%v: %.500s", err, body)
	}
	for _, h := range reply.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
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
