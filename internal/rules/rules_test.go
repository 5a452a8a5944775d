// Package rules holds the tests of how the code is cut: who may import whom, what stays pure, and where engine
// words may stand. The rules are those of ARCHITECTURE.md.
package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

const module = "github.com/neardup/sidecar/"

// source is one Go file of the project that is no test.
type source struct {
	path string // from the root, with slashes
	dir  string
	file *ast.File
	text string
	set  *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	root := filepath.Join("..", "..")
	expect.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		list = append(list, source{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), file: file, text: string(text), set: set})
		return nil
	}))
	if len(list) < 30 {
		t.Fatalf("only %d files found: the walk went wrong", len(list))
	}
	return list
}

// dialects returns the folders of the dialects: all below adapters but the contract's.
func dialects(t *testing.T) []string {
	t.Helper()
	folders := expect.Value(os.ReadDir(filepath.Join("..", "..", "adapters")))(t)
	var list []string
	for _, f := range folders {
		if f.IsDir() && f.Name() != "adaptertest" && f.Name() != "testdata" {
			list = append(list, "adapters/"+f.Name())
		}
	}
	if len(list) < 2 {
		t.Fatalf("only the dialects %v found", list)
	}
	return list
}

// ofDialect is what a dialect may import of ours.
var ofDialect = []string{"sketch", "rerank", "adapters", "internal/rule", "internal/jsonedit"}

// allowed lists what each package but the dialects may import of ours.
var allowed = map[string][]string{
	"sketch":                 {"sketch/content"},
	"sketch/content":         {},
	"rerank":                 {"sketch"},
	"adapters":               {"rerank", "internal/rule", "internal/jsonedit"},
	"internal/rule":          {"sketch", "rerank", "internal/jsonedit"},
	"internal/similar":       {"internal/decided", "sketch", "rerank", "adapters", "internal/rule", "internal/jsonedit"},
	"adapters/adaptertest":   {"internal/rule", "sketch", "rerank", "adapters", "internal/collapse", "internal/effort", "internal/expect", "internal/jsonedit"},
	"internal/collapse":      {"internal/rule", "sketch", "rerank", "adapters", "internal/jsonedit"},
	"internal/jsonedit":      {},
	"proxy":                  {"internal/similar", "internal/decided", "internal/rule", "sketch", "rerank", "adapters", "internal/collapse", "internal/jsonedit"},
	"jobs":                   {"internal/rule", "adapters", "internal/terminal", "internal/jsonedit"},
	"jobs/ask":               {},
	"jobs/calibrate":         {"internal/rule", "sketch", "rerank", "adapters", "jobs/ask", "internal/documents", "internal/terminal"},
	"jobs/cluster":           {"internal/boilerplate", "internal/decided", "internal/rule", "sketch", "rerank", "adapters", "jobs", "internal/terminal", "internal/jsonedit"},
	"jobs/cleanup":           {"internal/rule", "rerank", "adapters", "jobs", "jobs/cluster", "internal/decided", "internal/documents", "internal/terminal", "internal/jsonedit"},
	"jobs/flink":             {"sketch", "internal/terminal"},
	"demo":                   {"demo/corpus", "internal/rule", "internal/config", "internal/server", "internal/jsonedit", "internal/onboard", "internal/terminal"},
	"demo/corpus":            {},
	"demo/embedded":          {},
	"playground":             {"internal/rule", "sketch", "rerank", "adapters", "proxy", "jobs/calibrate", "internal/try", "internal/jsonedit"},
	"internal/try":           {"adapters", "proxy", "internal/terminal"},
	"examples/search":        {}, // a module of its own
	"examples/library":       {"sketch", "rerank"},
	"internal/engines":       {},
	"internal/clients":       {"internal/engines"},
	"cmd/sidecar":            nil, // anything
	"internal/e2e":           nil,
	"internal/quality":       {"sketch", "rerank", "demo/corpus", "internal/config"},
	"bench":                  nil, // a module of its own
	"bench/fieldtypes":       nil,
	"bench/clusters":         nil,
	"bench/curve":            nil,
	"bench/clusterpeers":     nil,
	"bench/internal/peers":   nil,
	"bench/e2e":              nil,
	"bench/internal/corpora": nil,
	"bench/internal/cost":    nil,
	"internal/terminal":      {},
	"internal/unseen":        {"internal/rule", "sketch", "rerank", "internal/terminal"},
	"internal/decided":       {"internal/rule", "rerank", "adapters"},
	"internal/documents":     {"internal/rule", "adapters", "internal/jsonedit"},
	"internal/offline":       {"internal/unseen", "internal/rule", "sketch", "sketch/content", "rerank", "adapters", "internal/config", "internal/documents", "internal/terminal", "internal/jsonedit"},
	"internal/buildinfo":     {},
	"internal/cases":         {"internal/rule", "sketch", "rerank", "adapters", "internal/config", "internal/upstream"},
	"internal/upstream":      {"internal/rule", "adapters", "proxy", "internal/kind", "internal/certs", "internal/config"},
	"internal/server": {
		"internal/rule", "sketch", "adapters", "proxy", "jobs", "jobs/cluster", "playground", "demo/embedded",
		"internal/kind", "internal/certs", "internal/config", "internal/upstream", "internal/terminal", "internal/buildinfo", "internal/cases",
		"internal/decided",
	},
	"internal/onboard": {
		"internal/rule", "sketch", "sketch/content", "rerank", "adapters", "jobs",
		"internal/kind", "internal/config", "internal/upstream", "internal/server", "internal/terminal", "internal/cases", "internal/jsonedit",
	},
	"internal/localpage":        {"playground"},
	"internal/groups":           {"internal/boilerplate", "sketch", "adapters", "internal/decided", "internal/jsonedit", "internal/localpage", "jobs", "jobs/cleanup"},
	"internal/conversation":     {"internal/rule", "adapters", "internal/config", "internal/upstream", "internal/cases", "internal/decided", "internal/localpage", "jobs/ask", "jobs/calibrate"},
	"internal/logtest":          {},
	"internal/certs":            {},
	"internal/boilerplate":      {"sketch"},
	"internal/config":           {"internal/boilerplate", "internal/rule", "sketch", "rerank", "adapters", "proxy", "internal/kind", "internal/certs"},
	"internal/kind":             {"internal/rule", "adapters"}, // and the dialects
	"internal/differ":           {},
	"internal/docs":             {},
	"internal/effort":           {},
	"internal/expect":           {},
	"internal/expect/jsonshape": {},
	"internal/measured":         {},
	"internal/faults":           {},
	"internal/chaos":            {"sketch"},
	"internal/packages":         {},
	"internal/pictures":         {},
	"tools/mutate":              {},
	"tools/test":                {"internal/engines"},
	"tools/inspect":             nil, // a module of its own
}

func imports(s source) (ours, others []string) {
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if rest, ok := strings.CutPrefix(path, module); ok {
			ours = append(ours, rest)
		} else {
			others = append(others, path)
		}
	}
	return ours, others
}

func TestDependencyRule(t *testing.T) {
	folders := dialects(t)
	for _, s := range sources(t) {
		may, known := allowed[s.dir]
		if slices.Contains(folders, s.dir) {
			may, known = ofDialect, true
		}
		if s.dir == "internal/kind" {
			may = append(folders, may...)
		}
		if !known {
			t.Errorf("%s: package %s has no line in the dependency rule", s.path, s.dir)
			continue
		}
		ours, _ := imports(s)
		for _, path := range ours {
			if may != nil && !slices.Contains(may, path) {
				t.Errorf("%s imports %s", s.path, path)
			}
		}
	}
}

// TestLibrariesOfTheCommandLine: one package reads the configuration's file, and only commands know the command line.
func TestLibrariesOfTheCommandLine(t *testing.T) {
	home := map[string]string{"github.com/spf13/viper": "internal/config", "github.com/spf13/cobra": "cmd/sidecar", "github.com/spf13/pflag": "cmd/sidecar"}
	for _, s := range sources(t) {
		_, others := imports(s)
		for _, path := range others {
			if where, has := home[path]; has && s.dir != where {
				t.Errorf("%s imports %s, which belongs to %s", s.path, path, where)
			}
		}
	}
}

// pure reports whether a file does no I/O, starts no goroutine and reads no clock.
func pure(s source, dialects []string) bool {
	switch s.dir {
	case "sketch", "rerank", "adapters", "internal/collapse", "internal/jsonedit", "internal/rule":
		return true
	}
	return slices.Contains(dialects, s.dir) && !strings.HasPrefix(filepath.Base(s.path), "store")
}

func TestPureHalvesStayPure(t *testing.T) {
	folders := dialects(t)
	for _, s := range sources(t) {
		if !pure(s, folders) {
			continue
		}
		_, others := imports(s)
		for _, path := range others {
			switch path {
			case "net", "net/http", "os", "time", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "syscall":
				t.Errorf("%s imports %s", s.path, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", s.set.Position(g.Pos()))
			}
			return true
		})
	}
}

func TestExportedFunctionsAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() && f.Doc == nil && f.Recv == nil {
				t.Errorf("%s: %s has no doc comment", s.path, f.Name.Name)
			}
		}
	}
}

// TestLibraryStandsAlone: whoever imports sketch and rerank gets these modules and no other.
func TestLibraryStandsAlone(t *testing.T) {
	out := expect.Value(exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+"sketch", module+"rerank").Output())(t)
	got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	want := []string{
		"codeberg.org/readeck/go-readability/v2", "github.com/andybalholm/cascadia", "github.com/cespare/xxhash/v2", "github.com/clipperhouse/uax29/v2",
		"github.com/go-shiori/dom", "github.com/gogs/chardet", "github.com/itlightning/dateparse", strings.TrimSuffix(module, "/"),
		"golang.org/x/net", "golang.org/x/text",
	}
	if !slices.Equal(got, want) {
		t.Errorf("sketch and rerank need %v, want %v", got, want)
	}
}
