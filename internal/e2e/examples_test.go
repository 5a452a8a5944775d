package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/docs"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/sketch"
)

// examples are the commands of examples/README.md.
type examples struct {
	root   string // of the sources
	blocks []*docs.Block
	suffix string // of the indices, which the README names without one
	list   []corpus.Document

	mu     sync.Mutex
	ran    map[*docs.Block]bool
	parts  int  // that were run
	missed bool // something is not installed
}

// TestExamples runs every command of examples/README.md that says so, in its words, but for addresses and the names of indices.
func TestExamples(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	x := &examples{root: root, ran: map[*docs.Block]bool{}, suffix: fmt.Sprintf("-%d", os.Getpid())}
	for _, b := range docs.Parse("examples/README.md", string(text)).Blocks {
		if b.Language == "sh" || b.Language == "text" {
			x.blocks = append(x.blocks, b)
		}
	}
	x.articles(t)
	x.part(t, "the walk-through, in Go", x.walkThrough)
	x.part(t, "a library", x.library)
	x.part(t, "the embedded engine, in Python", x.embedded)
	x.part(t, "pairs", x.pairs)
	t.Run("in front of", func(t *testing.T) {
		x.part(t, "Elasticsearch", x.elasticsearch)
		x.part(t, "Typesense", x.typesense)
	})
	if t.Failed() || x.missed || x.parts < 10 { // not all are asked for
		return
	}
	for _, b := range x.blocks {
		reason, left := b.Marker("not run")
		if !x.ran[b] && (b.Language != "sh" || left && strings.HasPrefix(reason, "TestExamples")) {
			t.Errorf("no test runs the block of line %d:\n%s", b.Line, b.Text)
		}
	}
}

// part is a part of the test, which may be skipped.
func (x *examples) part(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		defer func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.parts++
			x.missed = x.missed || t.Skipped()
		}()
		test(t)
	})
}

// articles reads what the examples write and search.
func (x *examples) articles(t *testing.T) {
	t.Helper()
	file, err := os.Open(filepath.Join(x.root, "examples", "articles.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); decoder.More(); {
		var d corpus.Document
		if err := decoder.Decode(&d); err != nil {
			t.Fatal(err)
		}
		x.list = append(x.list, d)
	}
}

// oracle is the definition over the articles at a threshold, with the sketches of a seed.
func (x *examples) oracle(t *testing.T, seed string, threshold float64) *oracle {
	t.Helper()
	scheme := sketch.DefaultScheme()
	scheme.Seed = seed
	sketcher, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{sketches: map[string]sketch.Sketch{}, threshold: threshold, window: 1000}
	for _, d := range x.list {
		o.sketches[d.ID], _ = sketcher.Sketch(d.Title, d.Body)
	}
	return o
}

// block returns the one block of the README that holds the words, and takes it as run.
func (x *examples) block(t *testing.T, words string) string {
	t.Helper()
	i := slices.IndexFunc(x.blocks, func(b *docs.Block) bool { return strings.Contains(b.Text, words) })
	if i < 0 {
		t.Fatalf("examples/README.md has no block with %q", words)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ran[x.blocks[i]] = true
	return x.blocks[i].Text
}

// run runs commands of the README in the root of the sources, with pairs of texts replaced, and returns what they print.
func (x *examples) run(t *testing.T, commands string, replaced ...string) string {
	t.Helper()
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(commands, replaced[i]) {
			t.Errorf("the README's commands do not say %q:\n%s", replaced[i], commands)
		}
	}
	sidecar, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer(replaced...).Replace(commands))
	cmd.Dir = x.root
	path := []string{filepath.Dir(clients.Python(t)), filepath.Dir(sidecar), os.Getenv("PATH")}
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(path, string(os.PathListSeparator)), "PIP_DISABLE_PIP_VERSION_CHECK=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s%v\n%s%s", commands, err, out, stderr.Bytes())
	}
	return string(out)
}

// serve starts the sidecar with a configuration of the examples, on a free port and with time for collapsing on a busy machine,
// in front of the engine at a URL.
func (x *examples) serve(t *testing.T, name, url string) *monitored {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(x.root, "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`listen: 127\.0\.0\.1:\d+`).ReplaceAllString(string(text), "listen: 127.0.0.1:0")
	own = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(own, url)
	own = strings.Replace(own, "    indices:\n", "    limits: "+patient("")+"\n    indices:\n", 1)
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte("admin: 127.0.0.1:0\nlog: {format: json}\n"+own), 0o600); err != nil {
		t.Fatal(err)
	}
	return monitor(t, file, []string{"NEARDUP_SEED=" + seed})
}

// walkThrough has the program in Go search the corpus of the walk-through.
func (x *examples) walkThrough(t *testing.T) {
	if got := x.block(t, "sidecar demo"); got != "go run ./cmd/sidecar demo\n" {
		t.Fatalf("the README starts %q", got)
	}
	if help, _ := sidecar(t, "demo", "--help"); !strings.Contains(help, `"127.0.0.1:9281"`) {
		t.Errorf("the walk-through is not at the README's address:\n%s", help)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	cmd := command(t, t.Context(), "demo", "--listen", at)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }() // it would run until a signal comes
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		reply, err := http.Get("http://" + at + "/news/_search?q=ferry")
		if err == nil {
			reply.Body.Close()
		}
		if err == nil && reply.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the walk-through does not answer: %v", err)
		}
	}
	out := x.run(t, x.block(t, "-index news ferry"), "localhost:9281", at)
	first, second, found := strings.Cut(out[1:], " hits in the engine. Neardup: collapsed; ")
	second, third, more := strings.Cut(second, " hits in the engine. Neardup: collapsed; ")
	if !found || !more || first == "" || !strings.Contains(second, " 1. Saltmere votes to bring back late ferry") {
		t.Fatalf("it prints\n%s", out)
	}
	if a, b := len(versionLine.FindAllString(second, -1)), len(versionLine.FindAllString(third, -1)); b == 0 || b >= a {
		t.Errorf("%d versions are folded, and %d at a higher threshold:\n%s", a, b, out)
	}
}

// versionLine is a folded version as the program in Go prints it.
var versionLine = regexp.MustCompile(`(?m)^      \d\.\d\d  (\S+)`)

// library holds what the library prints to what the README shows, and that to the definition.
func (x *examples) library(t *testing.T) {
	out := x.run(t, x.block(t, "examples/library"))
	if diff := cmp.Diff(x.block(t, "12 documents, 6 of them stay."), out); diff != "" {
		t.Error(diff)
	}
	var ids, stay []string
	for _, d := range x.list {
		ids = append(ids, d.ID)
	}
	for line := range strings.Lines(out) {
		if id, _, _ := strings.Cut(line, " "); slices.Contains(ids, id) {
			stay = append(stay, id)
		}
	}
	if diff := cmp.Diff(x.oracle(t, "", 0.64).collapsed(ids), stay); diff != "" {
		t.Error(diff)
	}
}

// pairs holds the script that reads verdicts to the definition.
func (x *examples) pairs(t *testing.T) {
	out := x.run(t, x.block(t, "read_compare.py"))
	o, want := x.oracle(t, "", 0.64), 0
	for i, a := range x.list {
		for _, b := range x.list[:i] {
			listed := regexp.MustCompile(b.ID+" +"+a.ID+" +near-duplicates").FindString(out) != ""
			near := o.near(o.sketches[a.ID], o.sketches[b.ID])
			if near != listed {
				t.Errorf("%s and %s: listed %v", b.ID, a.ID, listed)
			}
			if near {
				want++
			}
		}
	}
	if want < 5 || !strings.HasPrefix(out, fmt.Sprintf("66 pairs, %d of near-duplicates", want)) {
		t.Errorf("%d pairs, of\n%s", want, out)
	}
}

// embedded runs the script for Elasticsearch in front of the engine inside the sidecar.
func (x *examples) embedded(t *testing.T) {
	if got := x.block(t, "examples/embedded.yaml"); got != "go run ./cmd/sidecar serve --config examples/embedded.yaml\n" {
		t.Fatalf("the README starts %q", got)
	}
	x.python(t, x.serve(t, "embedded.yaml", ""))
}

// elasticsearch runs what the README does with Elasticsearch: the script in Python, and over the same index the program in Go and
// the dashboard.
func (x *examples) elasticsearch(t *testing.T) {
	t.Parallel()
	e := engines.Shared(t, engines.Elasticsearch)
	through := x.serve(t, "elasticsearch.yaml", e.URL)
	index := "articles-example" + x.suffix
	api{e: e}.drop(t, index)
	x.python(t, through)
	x.part(t, "in Go", func(t *testing.T) { x.golang(t, e, through.base, index) })
	x.part(t, "dashboard", func(t *testing.T) { x.dashboard(t, e, through, index) })
}
