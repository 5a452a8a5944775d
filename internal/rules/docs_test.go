package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	testName = regexp.MustCompile("`[^`]*\\b((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*)[^`]*`")
)

// TestDocsNameWhatExists holds the links between the documents, and the tests that they name.
func TestDocsNameWhatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	var tests strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		contract := strings.HasSuffix(path, ".go") && strings.Contains(path, "adaptertest") // exports its tests
		if err == nil && (strings.HasSuffix(path, "_test.go") || contract) {
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		}
		return err
	})
	expect.OK(t, err)
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/internals/*.md", "docs/decisions/*.md", "bench/*.md", "examples/*.md"} {
		found := expect.Value(filepath.Glob(filepath.Join(root, pattern)))(t)
		documents = append(documents, found...)
	}
	if len(documents) < 15 {
		t.Fatalf("only %d documents found", len(documents))
	}
	for _, path := range documents {
		text := expect.Value(os.ReadFile(path))(t)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s leads to %s, which does not exist", path, m[1])
			}
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "func "+m[1]) {
				t.Errorf("%s names %s, which is no test", path, m[1])
			}
		}
	}
}
