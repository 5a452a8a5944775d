package docs

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

var update = flag.Bool("update", false, "write testdata/readability.txt anew")

// What the user's shelf may hold, and how hard its first half may be to read.
const (
	mostPages = 25
	mostWords = 30_000
	mostGrade = 9.0
)

// shelves are the headings of docs/README.md under which the pages for users are listed.
var shelves = []string{"Start", "Use", "Operate", "Reference"}

// shelf returns the pages that docs/README.md lists under a heading.
func shelf(t *testing.T, name string) (pages []string) {
	t.Helper()
	text := string(expect.Value(os.ReadFile("../../docs/README.md"))(t))
	_, rest, found := strings.Cut(text, "\n## "+name+"\n")
	if !found {
		t.Fatalf("docs/README.md has no shelf %q", name)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, m := range target.FindAllStringSubmatch(rest, -1) {
		file, _, _ := strings.Cut(m[1], "#")
		file = path.Join("docs", file)
		if strings.HasSuffix(file, ".md") && path.Dir(file) == "docs" && !slices.Contains(pages, file) {
			pages = append(pages, file)
		}
	}
	return pages
}

// TestReadability holds the pages under Start and Use to the Flesch-Kincaid grade that a tired reader follows, and the figures of all
// pages for users, rounded, to a golden file: a page that gets much harder or longer shows in review.
func TestReadability(t *testing.T) {
	const golden = "testdata/readability.txt"
	var out strings.Builder
	pages, total := 0, 0
	read := func(file string) (string, int) {
		text := string(expect.Value(os.ReadFile(filepath.Join("../..", file)))(t))
		n := Words(text)
		total += n
		return text, n
	}
	line := func(file string, grade float64, n int) {
		fmt.Fprintf(&out, "%-34s %5.1f %6d\n", file, math.Round(2*grade)/2, rounded(n, 50))
	}
	fmt.Fprintf(&out, "%-34s %5s %6s\n", "page", "grade", "words")
	for _, file := range []string{"README.md", "docs/README.md"} {
		text, n := read(file)
		line(file, Prose(text).Grade(), n)
	}
	listed := []string{"docs/README.md"}
	for _, name := range shelves {
		fmt.Fprintf(&out, "\n%s\n", name)
		for _, file := range shelf(t, name) {
			if slices.Contains(listed, file) {
				t.Errorf("%s is on two shelves", file)
				continue
			}
			listed = append(listed, file)
			pages++
			text, n := read(file)
			grade := Prose(text).Grade()
			line(file, grade, n)
			if (name == "Start" || name == "Use") && grade > mostGrade {
				t.Errorf("%s has the grade %.1f, at most %.1f is wanted: shorter sentences, shorter words", file, grade, mostGrade)
			}
		}
	}
	fmt.Fprintf(&out, "\n%d pages, %d words\n", pages, rounded(total, 500))
	if pages > mostPages || total > mostWords {
		t.Errorf("the shelves for users hold %d pages and %d words, at most %d and %d are wanted", pages, total, mostPages, mostWords)
	}
	all := expect.Value(filepath.Glob("../../docs/*.md"))(t)
	for _, file := range all {
		if file = "docs/" + filepath.Base(file); !slices.Contains(listed, file) {
			t.Errorf("%s is on no shelf of docs/README.md: list it there, or move it to docs/internals", file)
		}
	}
	if *update {
		expect.OK(t, os.MkdirAll("testdata", 0o755))
		expect.OK(t, os.WriteFile(golden, []byte(out.String()), 0o644))
		return
	}
	want := string(expect.Value(os.ReadFile(golden))(t))
	expect.Same(t, strings.Split(want, "\n"), strings.Split(out.String(), "\n"),
		"%s is not what the pages give: go test ./internal/docs -run Readability -update", golden)
}

// rounded rounds a figure, so that a small edit of a page leaves the golden file as it is.
func rounded(n, to int) int { return (n + to/2) / to * to }

// TestCounts holds the counting to texts that were counted by hand.
func TestCounts(t *testing.T) {
	for word, want := range map[string]int{
		"the": 1, "cat": 1, "table": 2, "made": 1, "used": 1, "wanted": 2, "indices": 3, "document": 3, "pages": 2, "near-duplicate": 4, "7": 1,
		"changed": 1, "likes": 1, "search.": 1,
	} {
		if got := Syllables(word); got != want {
			t.Errorf("%s has %d syllables, want %d", word, got, want)
		}
	}
	page := "# Title\n\nThe cat sat. It was `warm`!\n\n- One entry\n- two\n\n| a | table |\n\n```sh\nls\n```\n![a picture](x.png)\n"
	if got, want := Prose(page), (Count{9, 4, 10}); got != want {
		t.Errorf("prose: %+v, want %+v", got, want)
	}
	if got := Words(page); got != 14 { // with heading, table and the text of the picture
		t.Errorf("%d words", got)
	}
	if got := fmt.Sprintf("%.2f", Count{Words: 100, Sentences: 5, Syllables: 150}.Grade()); got != "9.91" {
		t.Errorf("grade %s", got)
	}
}
