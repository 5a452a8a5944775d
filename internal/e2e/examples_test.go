package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/docs"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// examples are the commands of examples/README.md.
type examples struct {
	root   string // of the sources
	blocks []*docs.Block
	suffix string // of the indices, which the README names without one
	list   []corpus.Document
}

// TestExamples runs commands of examples/README.md in its words, but for addresses and the names of indices.
func TestExamples(t *testing.T) {
	root := must(filepath.Abs(filepath.Join("..", "..")))(t)
	text := must(os.ReadFile(filepath.Join(root, "examples", "README.md")))(t)
	x := &examples{root: root, suffix: fmt.Sprintf("-%d", os.Getpid())}
	for _, b := range docs.Parse("examples/README.md", string(text)).Blocks {
		if b.Language == "sh" || b.Language == "text" {
			x.blocks = append(x.blocks, b)
		}
	}
	x.articles(t)
	t.Run("a library", x.library)
	t.Run("the embedded engine, in Python", x.embedded)
	t.Run("pairs", x.pairs)
	t.Run("retrieval", x.retrieval)
	t.Run("in front of", func(t *testing.T) {
		t.Run("Elasticsearch", x.elasticsearch)
		t.Run("OpenSearch", x.opensearch)
		t.Run("Typesense", x.typesense)
	})
}

// articles reads what the examples write and search.
func (x *examples) articles(t *testing.T) {
	t.Helper()
	file := must(os.Open(filepath.Join(x.root, "examples", "articles.jsonl")))(t)
	defer file.Close()
	for decoder := json.NewDecoder(file); decoder.More(); {
		var d corpus.Document
		check(t, decoder.Decode(&d))
		x.list = append(x.list, d)
	}
}

// block returns the one block of the README that holds the words.
func (x *examples) block(t *testing.T, words string) string {
	t.Helper()
	i := slices.IndexFunc(x.blocks, func(b *docs.Block) bool { return strings.Contains(b.Text, words) })
	if i < 0 {
		t.Fatalf("examples/README.md has no block with %q", words)
	}
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
	sidecar := must(binary())(t)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer(replaced...).Replace(commands))
	cmd.Dir = x.root
	path := []string{filepath.Dir(clients.Python(t)), filepath.Dir(sidecar), os.Getenv("PATH")}
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(path, string(os.PathListSeparator)), "PIP_DISABLE_PIP_VERSION_CHECK=1", "HAYSTACK_TELEMETRY_ENABLED=False")
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
	text := must(os.ReadFile(filepath.Join(x.root, "examples", name)))(t)
	own := regexp.MustCompile(`listen: 127\.0\.0\.1:\d+`).ReplaceAllString(string(text), "listen: 127.0.0.1:0")
	own = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(own, url)
	own = strings.Replace(own, "    indices:\n", "    limits: "+patient("")+"\n    indices:\n", 1)
	file := filepath.Join(t.TempDir(), name)
	check(t, os.WriteFile(file, []byte("admin: 127.0.0.1:0\nlog: {format: json}\n"+own), 0o600))
	return monitor(t, file, []string{"NEARDUP_SEED=" + seed})
}

// versionLine is a folded version as the program in Go prints it.
var versionLine = regexp.MustCompile(`(?m)^      \d\.\d\d  (\S+)`)

// library holds what the library prints to what the README shows, and that to the definition.
func (x *examples) library(t *testing.T) {
	out := x.run(t, x.block(t, "examples/library"))
	same(t, x.block(t, "12 documents, 6 of them stay."), out, "")
	var ids, stay []string
	for _, d := range x.list {
		ids = append(ids, d.ID)
	}
	for line := range strings.Lines(out) {
		if id, _, _ := strings.Cut(line, " "); slices.Contains(ids, id) {
			stay = append(stay, id)
		}
	}
	same(t, oracleOf(t, api{}, x.list, "", 0.64).collapsed(ids), stay, "")
}

// pairs holds the script that reads verdicts to the definition.
func (x *examples) pairs(t *testing.T) {
	out := x.run(t, x.block(t, "read_compare.py"))
	o, want := oracleOf(t, api{}, x.list, "", 0.64), 0
	for i, a := range x.list {
		for _, b := range x.list[:i] {
			listed := regexp.MustCompile(b.ID+" +"+a.ID+" +near-duplicates").FindString(out) != ""
			near := o.near(o.sketches[a.ID], o.sketches[b.ID])
			same(t, listed, near, "that %s and %s are near, and listed", b.ID, a.ID)
			if near {
				want++
			}
		}
	}
	if want < 5 || !strings.HasPrefix(out, fmt.Sprintf("66 pairs, %d of near-duplicates", want)) {
		t.Errorf("%d pairs, of\n%s", want, out)
	}
}

// retrieval runs the wrappers of the three frameworks: one over the articles of the README, and all over those of the demo. There it holds what each keeps
// to the definition, and says how many different texts are among the first eight passages, with the wrapper and without.
func (x *examples) retrieval(t *testing.T) {
	base := x.serve(t, "embedded.yaml", "").base
	command := x.block(t, "dedupe_langchain.py --url")
	same(t, x.block(t, "\n\nferry-1"), strings.TrimRight(x.run(t, command, "http://localhost:9201", base), "\n")+"\n", "what the README shows")
	var list []corpus.Document
	for _, d := range documents(t) {
		list = append(list, corpus.Document{ID: d.ID, Title: d.Title, Body: d.Body})
	}
	file := corpusFile(t, list)
	for i := range list { // a passage is one text
		list[i].Title, list[i].Body = "", list[i].Title+"\n"+list[i].Body
	}
	o := oracleOf(t, api{}, list, "texts of no index\n"+seed, 0.64)
	for script, query := range map[string]string{"langchain": "the town", "llamaindex": "a long road", "haystack": "bridge river"} {
		out := x.run(t, command, "http://localhost:9201 ferry", base+" --documents "+file+" '"+query+"'", "langchain", script)
		var shown [2][]string
		for i, part := range strings.SplitN(strings.TrimSpace(out), "\n\n", 2) {
			for line := range strings.Lines(part) {
				id, _, _ := strings.Cut(line, " ")
				shown[i] = append(shown[i], id)
			}
		}
		found, kept := shown[0], shown[1]
		first := o.collapsed(found)
		t.Logf("%s: %d different texts among the first 8 passages, %d with the wrapper", script, len(first), len(kept))
		same(t, first, kept[:min(len(first), len(kept))], "%s: the first of what is kept", script)
		same(t, kept, o.collapsed(kept), "%s: what is kept", script)
		if len(found) != 8 || len(kept) != 8 || len(first) > 6 {
			t.Errorf("%s: %q, of which are kept %q", script, found, kept)
		}
	}
}

// embedded runs the script for Elasticsearch in front of the engine inside the sidecar.
func (x *examples) embedded(t *testing.T) {
	expect.Must(t, "go run ./cmd/sidecar serve --config examples/embedded.yaml\n", x.block(t, "examples/embedded.yaml"), "how the README starts it")
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
	x.golang(t, through.base, index)
	x.run(t, x.block(t, "articles-example/_mapping"),
		"http://localhost:9201", through.base, "articles-example", index, "curl ", "curl -sSf ")
	x.dashboard(t, string(call(t, e, "GET", through.admin+"/metrics", "").want(t, 200).body))
}

// opensearch runs the script for OpenSearch and holds what it shows to the definition, over the list that the search left alone shows.
func (x *examples) opensearch(t *testing.T) {
	t.Parallel()
	e := engines.Shared(t, engines.OpenSearch)
	index := "articles-example" + x.suffix
	direct := api{e: e, base: e.URL}
	direct.drop(t, index)
	defer direct.drop(t, index)
	base := x.serve(t, "opensearch.yaml", e.URL).base
	out := x.run(t, x.block(t, "search_opensearch.py"), "http://localhost:9201", base+" --index "+index)
	var shown [2][]string
	for i, part := range strings.Split(strings.TrimSpace(out), "\n\n")[1:] {
		for line := range strings.Lines(part) {
			if m := shownLine.FindStringSubmatch(line); m != nil {
				shown[i] = append(shown[i], m[1])
			}
		}
	}
	want := oracleOf(t, api{}, x.list, seed, 0.64).collapsed(shown[1])
	if diff := cmp.Diff(want, shown[0]); diff != "" || len(shown[1]) != 7 || !strings.Contains(out, " agrees by 0.") {
		t.Errorf("%s\n%s", diff, out)
	}
	x.alerts(t, direct, x.block(t, "alerts_opensearch.py"), "http://localhost:9201", base+" --index stories"+x.suffix)
	x.feed(t, direct, base)
}

// toldSearch is one search as a script in Python prints it.
type toldSearch struct {
	headline string
	shown    []string
}

var (
	shownLine  = regexp.MustCompile(`^ {2}(\S+) +\S`)
	foldedLine = regexp.MustCompile(`^ {4}\S+ +agrees by `)
)

// readTold takes apart what a script prints. The first part is about loading.
func readTold(t *testing.T, out string) (list []toldSearch) {
	t.Helper()
	for _, part := range strings.Split(strings.TrimSpace(out), "\n\n")[1:] {
		var s toldSearch
		for line := range strings.Lines(part) {
			if m := shownLine.FindStringSubmatch(line); m != nil {
				s.shown = append(s.shown, m[1])
			} else if !foldedLine.MatchString(line) {
				s.headline += line
			}
		}
		list = append(list, s)
	}
	expect.Must(t, 5, len(list), "searches that are printed:\n%s", out)
	return list
}

// python runs the script for Elasticsearch and holds what it prints to the definition, over the list that the search left alone
// shows: collapsed, left alone, at another threshold, explained, and as a dry run.
func (x *examples) python(t *testing.T, through *monitored) {
	at := strings.TrimPrefix(through.base, "http://") + " --index articles-example" + x.suffix
	list := readTold(t, x.run(t, x.block(t, "search_elasticsearch.py"), "localhost:9201", at))
	raw := list[1].shown
	for i, want := range []string{"collapsed; raw=7; ", "bypassed; reason=off", "collapsed; raw=7; ", "collapsed; ", "dry-run; raw=7; "} {
		if s := list[i]; !strings.Contains(s.headline, "\nNeardup: "+want) {
			t.Errorf("%q, want %s", s.headline, want)
		}
	}
	usual, other := oracleOf(t, api{}, x.list, seed, 0.64).collapsed(raw), oracleOf(t, api{}, x.list, seed, 0.9).collapsed(raw)
	for i, want := range [][]string{usual, raw, other, usual, raw} {
		if diff := cmp.Diff(want, list[i].shown); diff != "" || len(raw) != 7 {
			t.Errorf("%s: %s", list[i].headline, diff)
		}
	}
}

// golang runs the program in Go over an index of the articles, and holds what it prints to the definition.
func (x *examples) golang(t *testing.T, base, index string) {
	search := func(control string) (shown, folded []string) {
		command := "go run -C examples/search . -url " + base + " -index " + index + " -control " + control + " ferry\n"
		for line := range strings.Lines(x.run(t, command)) {
			if m := versionLine.FindStringSubmatch(line); m != nil {
				folded = append(folded, m[1])
				continue
			}
			for _, d := range x.list { // a title on a host stands once among the articles
				if strings.HasSuffix(line, ". "+d.Title+"  ("+d.Host+")\n") {
					shown = append(shown, d.ID)
				}
			}
		}
		return shown, folded
	}
	raw, none := search("off")
	shown, folded := search("expand=source")
	if diff := cmp.Diff(oracleOf(t, api{}, x.list, seed, 0.64).collapsed(raw), shown); diff != "" || len(raw) != 7 || len(none) > 0 {
		t.Errorf("left alone %q %q: %s", raw, none, diff)
	}
	same(t, len(raw), len(shown)+len(folded), "shown %q and folded %q of %q", shown, folded, raw)
}

// dashboard holds what the dashboard names to what the sidecar exports: every metric with every label.
func (x *examples) dashboard(t *testing.T, exported string) {
	t.Helper()
	text := must(os.ReadFile(filepath.Join(x.root, "examples", "dashboard", "articles.json")))(t)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	decode(t, text, &board)
	checked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			metric := regexp.MustCompile(`neardup_\w+`).FindString(target.Expr)
			labels := regexp.MustCompile(`(\w+)[!=]=?~?"|by \((\w+)\)`).FindAllStringSubmatch(target.Expr, -1)
			for _, label := range labels {
				checked++
				if named := metric + `\{[^}]*\b` + label[1] + label[2] + `="`; !regexp.MustCompile(named).MatchString(exported) {
					t.Errorf("%s: nothing exports %s", target.Expr, named)
				}
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d labels are named", checked)
	}
}

// typesense runs the script in Python that the README has for Typesense.
func (x *examples) typesense(t *testing.T) {
	t.Parallel()
	e := engines.Shared(t, engines.Typesense)
	expect.Must(t, "go run ./cmd/sidecar serve --config examples/typesense.yaml\n", x.block(t, "examples/typesense.yaml"), "how the README starts it")
	through, name := x.serve(t, "typesense.yaml", e.URL), "articles-example"+x.suffix
	api{e: e}.drop(t, name)
	list := readTold(t, x.run(t, x.block(t, "search_typesense.py"),
		"TYPESENSE_API_KEY=xyz", "TYPESENSE_API_KEY="+e.Key,
		"localhost:8109", strings.TrimPrefix(through.base, "http://")+" --collection "+name))
	raw := list[1].shown
	usual, other := oracleOf(t, api{}, x.list, seed, 0.64).collapsed(raw), oracleOf(t, api{}, x.list, seed, 0.9).collapsed(raw)
	for i, want := range [][]string{usual, raw, other, usual, usual} {
		if diff := cmp.Diff(want, list[i].shown); diff != "" || len(raw) != 7 {
			t.Errorf("%s: %s", list[i].headline, diff)
		}
	}
	if counted := fmt.Sprintf(": %d found, %d shown\n", len(usual), len(usual)); !strings.HasSuffix(list[4].headline, counted) {
		t.Errorf("%q, want %s", list[4].headline, counted)
	}
	x.alerts(t, api{e: e, base: e.URL}, x.block(t, "alerts_typesense.py"),
		"TYPESENSE_API_KEY=xyz", "TYPESENSE_API_KEY="+e.Key, "http://localhost:8109", through.base+" --collection stories"+x.suffix)
}
