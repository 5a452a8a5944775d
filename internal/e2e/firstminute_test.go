package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

const (
	// minute is what README promises from the clone to the first collapsed page.
	minute = time.Minute
	// mostTyped is how many commands may be typed until then.
	mostTyped = 4
)

// firstMinute returns the commands of README's first minute, line by line.
func firstMinute(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	dir, root := t.TempDir(), filepath.Join("..", "..")
	skipped := []string{".git", ".cache", "bin", "node_modules", "__pycache__"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		switch {
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) { // somebody's temporary file
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=neardup", "-c", "user.email=neardup@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "the tree as it is"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	return dir
}

// newbie types commands into a shell of his own, in a folder that was empty.
type newbie struct {
	t   *testing.T
	dir string
	env []string
}

// shell returns a shell that runs a script. It and all it starts can be interrupted together.
func (p *newbie) shell(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -e\n"+script)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

var (
	listensAt = regexp.MustCompile(`The sidecar listens at (\S+)\.`)
	cloned    = regexp.MustCompile(`git clone (\S+)`)
)

// TestFirstMinute does what README says on a cluster that holds an index with near-duplicates, written before the sidecar came: it
// clones, asks the engine, serves and searches. The clone comes from the tree as it is, the ports are those that are free. With
// NEARDUP_SOAK the module and build caches are empty, too.
func TestFirstMinute(t *testing.T) {
	for _, tool := range []string{"git", "bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			engines.Unavailable(t, err)
		}
	}
	e := engines.Shared(t, engines.Elasticsearch)
	f := newFirst(t, e)
	t.Run("warm", func(t *testing.T) {
		if _, err := binary(); err != nil { // has the packages compiled, as they are on the second day
			t.Fatal(err)
		}
		f.live(t, nil)
	})
	t.Run("cold", func(t *testing.T) {
		if os.Getenv("NEARDUP_SOAK") == "" {
			t.Skip("it downloads and compiles everything: set NEARDUP_SOAK")
		}
		caches := t.TempDir()
		f.live(t, []string{"GOCACHE=" + filepath.Join(caches, "build"), "GOMODCACHE=" + filepath.Join(caches, "modules"), "GOFLAGS=-modcacherw"})
	})
}

// first is a first minute, and what is to come of it.
type first struct {
	e      *engines.Engine
	index  string
	lines  []string
	origin string
	raw    []string // the engine's own list
	want   []string // the page that it is to become
}

// newFirst lays out the cluster.
func newFirst(t *testing.T, e *engines.Engine) *first {
	t.Helper()
	f := &first{e: e, index: "news", lines: firstMinute(t), origin: snapshot(t)}
	if e.PID == 0 { // the engine is not ours alone, and its news may be somebody's
		f.index = "news-first-minute"
	}
	typed := strings.FieldsFunc(strings.ReplaceAll(strings.Join(f.lines, "\n"), "&&", "\n"), func(r rune) bool { return r == '\n' })
	if len(typed) > mostTyped {
		t.Errorf("%d commands are to be typed, %d at most: %q", len(typed), mostTyped, typed)
	}
	direct, list := api{e, e.URL}, documents(t)
	direct.drop(t, f.index)
	direct.load(t, f.index, list) // which makes the index, as it comes
	f.raw = listed(t, call(t, e, "GET", e.URL+"/"+f.index+"/_search?q=ferry&size=1000", "").want(t, 200).body)

	o := initOracle(t, direct)
	f.want = o.collapsed(f.raw)
	f.want = f.want[:min(10, len(f.want))]
	if slices.Equal(f.want, f.raw[:len(f.want)]) {
		t.Fatal("nothing folds on the first page: the corpus or the threshold is wrong")
	}
	return f
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

// live types the commands and takes the time.
func (f *first) live(t *testing.T, env []string) {
	from := cloned.FindStringSubmatch(f.lines[0])
	if from == nil {
		t.Fatalf("%q clones nothing", f.lines[0])
	}
	p := &newbie{t, t.TempDir(), append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+f.origin+".insteadOf", "GIT_CONFIG_VALUE_0="+from[1])}
	before := mapping(t, f.e, f.index)
	ctx, cancel := context.WithTimeout(t.Context(), 4*minute)
	defer cancel()
	busy := load(t)
	began := time.Now()
	serving := p.shell(ctx, f.lines[0]+"\n"+strings.Replace(f.lines[1], "http://localhost:9200", f.e.URL, 1))
	at, ended := f.begin(t, serving)
	defer ended()
	search := strings.Replace(f.lines[2], "localhost:9201", at, 1)
	search = strings.Replace(search, "/news/", "/"+f.index+"/", 1)
	page, err := p.shell(ctx, search).Output()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%s: %v", search, err)
	}
	if diff := cmp.Diff(f.want, listed(t, page)); diff != "" {
		t.Errorf("the first page is not the collapsed one: %s", diff)
	}
	t.Logf("from clone to the first collapsed page: %.1f s (%d cores, load %.1f at the beginning)", took.Seconds(), runtime.NumCPU(), busy)
	if soaking() && took > minute && busy < float64(runtime.NumCPU())/2 { // else others have the cores
		t.Errorf("it took %v, more than %v", took, minute)
	}
	if diff := cmp.Diff(before, mapping(t, f.e, f.index)); diff != "" {
		t.Errorf("it changed the engine: %s", diff)
	}
	f.tidy(t, filepath.Join(p.dir, "sidecar"))
}

// load returns how many processes wanted to run in the last minute, 0 where that is not told.
func load(t *testing.T) (busy float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &busy)
	}
	if err != nil {
		t.Log(err)
	}
	return busy
}

// begin starts what is to serve, and returns the address that it tells once it does, and what ends it.
func (f *first) begin(t *testing.T, serving *exec.Cmd) (at string, end func()) {
	t.Helper()
	out, err := serving.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	serving.Stderr = &errOut
	if err := serving.Start(); err != nil {
		t.Fatal(err)
	}
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
		used := serving.ProcessState.UserTime() + serving.ProcessState.SystemTime()
		t.Logf("%.1f s of processor time", used.Seconds())
		if err != nil && !strings.Contains(errOut.String(), "drained") {
			t.Errorf("it ended with %v: %s", err, errOut.String())
		}
	}
}

// tidy checks that the clone holds the configuration, and is otherwise as it came.
func (f *first) tidy(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "status", "--porcelain")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.local.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(fmt.Sprintf("- match: %s\n        # ", f.index))) && !bytes.Contains(text, []byte("- match: "+f.index+"\n")) {
		t.Errorf("no rule is for %s:\n%s", f.index, text)
	}
	for line := range strings.Lines(string(out)) {
		if strings.TrimSpace(line) != "?? config.local.yaml" {
			t.Errorf("the clone is not as it came: %s", line)
		}
	}
}

// mapping returns how the fields of an index are declared.
func mapping(t *testing.T, e *engines.Engine, index string) string {
	t.Helper()
	return string(call(t, e, "GET", e.URL+"/"+index+"/_mapping", "").want(t, 200).body)
}
