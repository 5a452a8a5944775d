package docs

import (
	"strings"
	"testing"
)

// TestBadPages gives the checker pages with something wrong: a check that finds nothing would pass every page.
func TestBadPages(t *testing.T) {
	g, tree := program(t), &Tree{Root: "../..", Pages: map[string]*Page{}}
	for name, c := range map[string]struct{ page, want string }{
		"no end":    {"```sh\ntrue\n", "no end"},
		"marker":    {"<!-- runs: none -->\n```sh\ntrue\n```\n", `"runs" is not known`},
		"unmarked":  {"```sh\ntrue\n```\n", "is not run"},
		"command":   {"<!-- not run: why -->\n```sh\nsidecar rindex\n```\n", `no command "rindex"`},
		"flag":      {"See `sidecar verify\n--mend` there.\n", "no flag --mend"},
		"target":    {"See `make tests` there.\n", `no target "tests"`},
		"json":      {"```json\n{\"a\": }\n```\n", "no JSON"},
		"code":      {"```go\nx := nosuch.New()\n```\n", "in no file"},
		"part":      {"<!-- config: part of indices[] -->\n```yaml\n- match: a\n  treshold: 0.7\n```\n", "treshold"},
		"link":      {"[a](no.md)\n", "does not exist"},
		"anchor":    {"# Own\n\n[a](#no)\n", "its page has not"},
		"file name": {"`docs/no.md`\n", "docs/no.md does not exist"},
	} {
		p := Parse("README.md", c.page)
		tree.Pages[p.Path] = p
		var got strings.Builder
		for _, list := range [][]Fault{p.Faults, g.CheckBlocks(p), tree.CheckLinks(p), tree.CheckNames(p)} {
			for _, f := range list {
				got.WriteString(f.What + "\n")
			}
		}
		if !strings.Contains(got.String(), c.want) {
			t.Errorf("%s: it says %q, want %q", name, got.String(), c.want)
		}
	}
}
