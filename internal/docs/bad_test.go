package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadPages gives the checker a page for each thing that it is to find, and one beside it that is as it should be.
func TestBadPages(t *testing.T) {
	g := program(t)
	g.Sources = map[string][]string{"go": {"func ExampleNew() {\n\tx := sketch.New()\n\n\tfmt.Println(x)\n}\n"}}
	whole := "engines:\n  - listen: 127.0.0.1:9201\n    kind: elasticsearch\n    urls: [\"http://127.0.0.1:9200\"]\n" +
		"    indices: [{match: news, fields: [title]}]\n"
	for _, c := range []struct{ name, bad, want, good string }{
		{"no end", "```sh\ntrue\n", "no end", "<!-- run: none -->\n```sh\ntrue\n```\n"},
		{"stray marker", "<!-- run: none -->\n\n```text\nx\n```\n", "right before no block", "<!-- a remark -->\n\n```text\nx\n```\n"},
		{"unknown marker", "<!-- runs: none -->\n```sh\ntrue\n```\n", `"runs" is not known`, "<!-- run: none -->\n```sh\ntrue\n```\n"},
		{"unknown engine", "<!-- run: solr -->\n```sh\ntrue\n```\n", `"solr"`, "<!-- run: typesense -->\n```sh\ntrue\n```\n"},
		{"unknown option", "<!-- run: none, quickly -->\n```sh\ntrue\n```\n", `"quickly"`, "<!-- run: none, exit 3, in the tree -->\n```sh\ntrue\n```\n"},
		{"an index of no engine", "<!-- run: none, index a -->\n```sh\ntrue\n```\n", "in front of none",
			"<!-- run: opensearch, index a, makes b, prepared, served -->\n```sh\ntrue\n```\n"},
		{"unmarked", "```sh\ntrue\n```\n", "is not run", "<!-- not run: takes a cluster -->\n```sh\ntrue\n```\n"},
		{"both", "<!-- run: none -->\n<!-- not run: no -->\n```sh\ntrue\n```\n", "as run and as not run", "<!-- first minute -->\n```sh\ntrue\n```\n"},
		{"no reason", "<!-- not run -->\n```sh\ntrue\n```\n", "says not why", "<!-- not run: no Docker -->\n```sh\ntrue\n```\n"},
		{"shell", "<!-- not run: why -->\n```sh\nif true\n```\n", "bash can't read it", "<!-- not run: why -->\n```sh\nif true; then :; fi\n```\n"},
		{"command", "<!-- not run: why -->\n```sh\nsidecar rindex\n```\n", `no command "rindex"`, "<!-- not run: why -->\n```sh\nsidecar reindex\n```\n"},
		{"flag", "<!-- not run: why -->\n```sh\nX=1 sidecar reindex \\\n  --indx a\n```\n", "no flag --indx",
			"<!-- not run: why -->\n```sh\nX=1 sidecar reindex \\\n  --index a | head --lines 3 # --indx\n```\n"},
		{"flag in prose", "See `sidecar verify\n--mend` there.\n", "no flag --mend", "See `sidecar verify\n--repair` and the `sidecar` itself.\n"},
		{"command in prose", "See `sidecar config chck`.\n", `no command "chck"`, "See `sidecar config check` and `sidecar similar ID`.\n"},
		{"command as text", "```\nsidecar serve\n```\n", "give it the language sh", "```\nsidecars serve\n```\n"},
		{"target", "See `make tests` there.\n", `no target "tests"`, "See `make test` and `makeshift`.\n"},
		{"target in a block", "<!-- not run: why -->\n```sh\nX=1\nmake check VERSION=1 tests # x\n```\n", `no target "tests"`,
			"<!-- not run: why -->\n```sh\nmake check VERSION=1 test # them\n```\n"},
		{"language", "```shell\ntrue\n```\n", `"shell"`, "```promql\nup\n```\n"},
		{"json", "```json\n{\"a\": }\n```\n", "no JSON", "```json\n{\"a\": …, \"b\": [1, …], \"c\": {…}, …}\n{\"d\": \"…\"}\n```\n"},
		{"code", "```go\nx := sketch.New()\nfmt.Printf(x)\n```\n", "in no file", "```go\nx := sketch.New()\nfmt.Println(x)\n```\n"},
		{"output of nothing", "<!-- not run: why -->\n```sh\ntrue\n```\n<!-- output -->\n```text\nx\n```\n", "behind a block that is run",
			"<!-- run: none -->\n```sh\ntrue\n```\nprints\n<!-- output -->\n```text\nx\n```\n"},
		{"yaml", "<!-- yaml: kubernetes -->\n```yaml\na: [\n```\n", "no YAML", "<!-- yaml: kubernetes -->\n```yaml\na: []\n---\nb: 1\n```\n"},
		{"yaml of nothing", "<!-- yaml -->\n```yaml\na: 1\n```\n", "not of what", "<!-- yaml: values -->\n```yaml\na: 1\n```\n"},
		{"values", "<!-- yaml: values -->\n```yaml\nconfig: {engins: []}\n```\n", "engins", "<!-- yaml: values -->\n```yaml\njobs: {}\n```\n"},
		{"config", "```yaml\n" + strings.Replace(whole, "match", "mach", 1) + "```\n", "mach", "```yaml\n" + whole + "```\n"},
		{"config value", "```yaml\n" + strings.Replace(whole, "9201", "92010", 1) + "```\n", "92010", "<!-- config -->\n```yaml\n" + whole + "```\n"},
		{"part", "<!-- config: part of indices[] -->\n```yaml\n- match: a\n  treshold: 0.7\n```\n", "treshold",
			"<!-- config: part of indices[] -->\n```yaml\n- match: a\n  threshold: 0.7\n- match: b\n```\n"},
		{"part of one entry", "<!-- config: part of indices[] -->\n```yaml\nthreshold: 7\n```\n", "threshold",
			"<!-- config: part of indices[] -->\n```yaml\nthreshold: 0.7\n```\n"},
		{"part under its key", "<!-- config: part of indices[] -->\n```yaml\n    indices:\n      - bands: on\n```\n", "bands",
			"<!-- config: part of indices[] -->\n```yaml\n    indices:\n      - bands: auto\n```\n"},
		{"part below", "<!-- config: part of engines[].limits -->\n```yaml\ndeadline: 1\n```\n", "deadline",
			"<!-- config: part of engines[].limits -->\n```yaml\ndeadline: 1s\n```\n"},
		{"part of the root", "<!-- config: part -->\n```yaml\nlog: {level: loud}\n```\n", "loud",
			"<!-- config: part -->\n```yaml\nlog: {level: warn}\nengines: [{name: a}]\n```\n"},
		{"files and variables", "<!-- config: part of engines[] -->\n```yaml\nlisten_tls: {cert_file: /etc/a.crt}\n```\n", "key_file",
			"<!-- config: part of engines[] -->\n```yaml\nlisten_tls: {cert_file: /etc/a.crt, key_file: /etc/a.key}\n" +
				"credentials: {api_key: \"${file:/run/x/key}\", bearer: \"\"}\n```\n<!-- config: part -->\n```yaml\nsketch: {seed: \"${SEED}\"}\n```\n"},
		{"file", "<!-- file: ../x -->\n```text\nx\n```\n", "says which file", "<!-- file: a/x.jsonl -->\n```text\nx\n```\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := func(text string) (all string) {
				p := Parse("x.md", text)
				for _, f := range append(p.Faults, g.CheckBlocks(p)...) {
					all += f.What + "\n"
				}
				return all
			}
			if all := found(c.bad); !strings.Contains(all, c.want) {
				t.Errorf("of the bad page it says %q, nothing of %q", all, c.want)
			}
			if all := found(c.good); all != "" {
				t.Errorf("of the good page it says %q", all)
			}
		})
	}
}

// TestBadLinks gives the checker a tree in which each link of a page leads nowhere, and one in which each leads somewhere.
func TestBadLinks(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "# A title, of `code` & [more](docs/a.md)\n\n## Twice\n\n## Twice\n<a id=\"here\"></a>\n\n```text\n# no heading\n[no](link)\n```\n" +
			"`[no](link)` <!-- x -->\n",
		"docs/a.md": "x", "docs/island.md": "y", "testdata/b.md": "[no](link)", "x.svg": "z",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(tree.Names(), " "); got != "README.md docs/a.md docs/island.md" {
		t.Errorf("the pages are %s", got)
	}
	if faults := tree.CheckLinks(tree.Pages["README.md"]); len(faults) > 0 {
		t.Error(faults)
	}
	if reached := tree.Reached("README.md"); !reached["docs/a.md"] || reached["docs/island.md"] {
		t.Errorf("reached: %v", reached)
	}
	names := tree.CheckNames(Parse("docs/a.md", "`docs/a.md`, `docs/b.md`,\n`docs/`, `no/b.md`, `docs/*.md`, `docs`, ``docs/c``\n"))
	if len(names) != 2 || names[0] != (Fault{1, "docs/b.md does not exist"}) || names[1] != (Fault{2, "docs/c does not exist"}) {
		t.Error(names)
	}
	local := Parse("a.md", "<http://localhost:1/x>, [a](http://127.0.0.1:2), <https://example.org> and `<http://localhost:3>`\n").Local()
	if strings.Join(local, " ") != "http://127.0.0.1:2 http://localhost:1/x" {
		t.Error(local)
	}
	for _, c := range []struct{ link, want string }{
		{"[a](../README.md)", ""}, {"[a](../README.md#a-title-of-code--more)", ""}, {"[a](../README.md#twice-1)", ""}, {"[a](../README.md#here)", ""},
		{"[a](island.md \"title\")", ""}, {"![a](../x.svg)", ""}, {"<img src=\"../x.svg\">", ""}, {"[a]: ../x.svg", ""}, {"[a](#own)", ""},
		{"[a](https://example.org/x)", ""}, {"[a](mailto:a@example.org)", ""}, {"[a](..)", ""}, {"`[a](no.md)`", ""}, {"``a ` [a](no.md)``", ""},
		{"[a](no.md)", "does not exist"}, {"[a](../docs/no.md)", "does not exist"}, {"![a](no.svg)", "does not exist"}, {"<img src=\"no.svg\">", "does not exist"},
		{"<source srcset=\"no.svg\">", "does not exist"}, {"[a]: no.md", "does not exist"}, {"[![a](../x.svg)](no.md)", "does not exist"},
		{"[a](../README.md#no-heading)", "its page has not"}, {"[a](../README.md#twice-2)", "its page has not"}, {"[a](#no)", "its page has not"},
		{"[a](../x.svg#L3)", "lines move"}, {"[a](/docs/a.md)", "root of whatever host"}, {"[a](../../a.md)", "out of the tree"}, {"[a](../..)", "out of the tree"},
		{"[a]()", "leads nowhere"}, {"[a](ftp://example.org)", "not known"}, {"[a](http:///x)", "no host"}, {"a ` [a](no.md)", "does not exist"},
	} {
		p := Parse("docs/a.md", "# Own\n\ntext "+c.link+" text\n")
		if strings.HasPrefix(c.link, "[a]:") {
			p = Parse("docs/a.md", "# Own\n\n"+c.link+"\n")
		}
		tree.Pages["docs/a.md"] = p
		var got string
		for _, f := range tree.CheckLinks(p) {
			got += f.What
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("of %s it says %q, want %q", c.link, got, c.want)
		}
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		language, want, got string
		same                bool
	}{
		{"text", "a\nb\n", "a  \nb\n\n", true},
		{"text", "a\nb\n", "a\nb\nc\n", false},
		{"text", "a\n", "b\na\n", false},
		{"text", "took … ms\n", "took 1.5 ms\n", true},
		{"text", "took … ms\n", "took 1.5 s\n", false},
		{"text", "a\n…\nc\n", "a\nb\nb\nc\n", true},
		{"text", "a\n…\nc\n", "a\nc\n", true},
		{"text", "a\n…\nc\n", "a\nb\n", false},
		{"text", "a+b\n", "aab\n", false},
		{"json", `{"a": [1, 2]}`, "{\n\"a\":[1,2]}\n", true},
		{"json", `{"a": "b c"}`, `{"a":"bc"}`, false},
		{"json", `{"took": …, "a": 1}`, `{"took":17,"a":1}`, true},
		{"json", `{"took": …, "a": 1}`, `{"took":17,"a":2}`, false},
		{"json", `{"a": "\" b"}`, `{"a":"\" b"}`, true},
	} {
		if got := Same(c.language, c.want, c.got); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.got, got)
		}
	}
}
