package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/kind"
)

// wordShape is the form of an engine's words: several in one, joined or led by underscores.
var wordShape = regexp.MustCompile(`^(_[a-z]+|_?[a-z]+(_[a-z]+)+)$`)

// reasons returns the words that belong to the port: the reasons for which a search is left alone.
func reasons(all []source) map[string]bool {
	words := map[string]bool{}
	for _, s := range all {
		if s.path == "adapters/reason.go" {
			for _, word := range quoted.FindAllStringSubmatch(s.text, -1) {
				words[word[1]] = true
			}
		}
	}
	return words
}

var quoted = regexp.MustCompile(`"(\w+)"`)

// engineWords returns the words of the engines' APIs: what the dialects have as strings.
func engineWords(t *testing.T, all []source) map[string]string {
	t.Helper()
	words, folders, shared := map[string]string{}, dialects(t), reasons(all)
	for _, s := range all {
		if !slices.Contains(folders, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			word, _ := strconv.Unquote(literal.Value)
			if wordShape.MatchString(word) && !strings.HasPrefix(word, "neardup_") && !shared[word] {
				words[word] = s.dir
			}
			return true
		})
	}
	if len(words) < 100 {
		t.Fatalf("only %d words found", len(words))
	}
	return words
}

var anyWord = regexp.MustCompile(`\w+`)

func TestEngineWordsStayInTheAdapters(t *testing.T) {
	all := sources(t)
	words := engineWords(t, all)
	for _, s := range all {
		switch s.dir {
		case "sketch", "rerank", "adapters", "internal/rule", "internal/similar", "internal/collapse", "proxy", "jobs", "playground", "adapters/adaptertest":
			for _, word := range anyWord.FindAllString(s.text, -1) {
				expect.Same(t, "", words[word], "whose word is %s, in %s", word, s.path)
			}
		}
	}
}

// calls returns the functions of package adaptertest that a folder's tests call.
func calls(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths := expect.Value(filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go")))(t)
	for _, path := range paths {
		file := expect.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok {
					if of, ok := f.X.(*ast.Ident); ok && of.Name == "adaptertest" {
						names = append(names, f.Sel.Name)
					}
				}
			}
			return true
		})
	}
	return names
}

// TestKindsAreTestedOnEngines: the tests on real engines run on each kind of engine.
func TestKindsAreTestedOnEngines(t *testing.T) {
	for _, k := range kind.Engines() {
		if !slices.Contains(engines.Kinds, k.Name) {
			t.Errorf("internal/engines has no entry for %s", k.Name)
		}
		if k.Port == 0 || len(k.Versions) == 0 || k.KeyHeader == "" {
			t.Errorf("kind.All says too little of %s: %+v", k.Name, k)
		}
	}
}

// TestDialectsKeepTheContract holds the recipe of CONTRIBUTING.md: every folder below adapters runs the whole contract, and internal/kind knows it.
func TestDialectsKeepTheContract(t *testing.T) {
	var known []string
	for _, s := range sources(t) {
		if s.dir == "internal/kind" {
			ours, _ := imports(s)
			known = append(known, ours...)
		}
	}
	for _, dir := range dialects(t) {
		called := calls(t, dir)
		for _, part := range []string{"Test", "TestStore", "TestStoreJobs", "FuzzWrites", "FuzzReplies", "FuzzSearches"} {
			if !slices.Contains(called, part) {
				t.Errorf("%s: no test calls adaptertest.%s", dir, part)
			}
		}
		if !slices.Contains(known, dir) {
			t.Errorf("internal/kind does not import %s", dir)
		}
	}
}
