package docs

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
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

// figures are the grade and the number of words of a page.
type figures struct {
	grade float64
	words int
}

const golden = "testdata/readability.txt"

// TestReadability holds the pages under Start and Use to the Flesch-Kincaid grade that a tired reader follows, and the figures of all
// pages for users to a golden file: a page that gets much harder or longer shows in review, a small edit does not.
func TestReadability(t *testing.T) {
	var out strings.Builder
	list, pages, total := []string{"README.md", "docs/README.md"}, 0, 0
	got := map[string]figures{}
	write := func(file string) {
		text := string(expect.Value(os.ReadFile(filepath.Join("../..", file)))(t))
		got[file] = figures{Prose(text).Grade(), Words(text)}
		total += got[file].words
		fmt.Fprintf(&out, "%-34s %5.1f %6d\n", file, got[file].grade, got[file].words)
	}
	fmt.Fprintf(&out, "%-34s %5s %6s\n", "page", "grade", "words")
	for _, file := range list {
		write(file)
	}
	for _, name := range shelves {
		fmt.Fprintf(&out, "\n%s\n", name)
		for _, file := range shelf(t, name) {
			if slices.Contains(list, file) {
				t.Errorf("%s is on two shelves", file)
				continue
			}
			list = append(list, file)
			pages++
			write(file)
			if grade := got[file].grade; (name == "Start" || name == "Use") && grade > mostGrade {
				t.Errorf("%s has the grade %.1f, at most %.1f is wanted: shorter sentences, shorter words", file, grade, mostGrade)
			}
		}
	}
	fmt.Fprintf(&out, "\n%d pages on the shelves, %d words\n", pages, total)
	if pages > mostPages || total > mostWords {
		t.Errorf("the shelves for users hold %d pages and %d words, at most %d and %d are wanted", pages, total, mostPages, mostWords)
	}
	for _, file := range expect.Value(filepath.Glob("../../docs/*.md"))(t) {
		if file = "docs/" + filepath.Base(file); !slices.Contains(list, file) {
			t.Errorf("%s is on no shelf of docs/README.md: list it there, or move it to docs/internals", file)
		}
	}
	if *update {
		expect.OK(t, os.MkdirAll("testdata", 0o755))
		expect.OK(t, os.WriteFile(golden, []byte(out.String()), 0o644))
		return
	}
	was := figuresOf(string(expect.Value(os.ReadFile(golden))(t)))
	for _, file := range list {
		had, has := was[file], got[file]
		if math.Abs(had.grade-has.grade) > 0.5 || math.Abs(float64(had.words-has.words)) > 50+0.1*float64(had.words) {
			t.Errorf("%s has the grade %.1f and %d words; %s says %.1f and %d: go test ./internal/docs -run Readability -update",
				file, has.grade, has.words, golden, had.grade, had.words)
		}
	}
}

// figuresOf reads the lines of the golden file.
func figuresOf(text string) map[string]figures {
	read := map[string]figures{}
	for line := range strings.Lines(text) {
		var file string
		var f figures
		if n, _ := fmt.Sscanf(line, "%s %f %d", &file, &f.grade, &f.words); n == 3 {
			read[file] = f
		}
	}
	return read
}

// plainer are turns of phrase that readers stumbled over, and what to say instead.
var plainer = map[string]string{
	"so many": "this many, or the number", "anew": "again", "of late": "recently", "whereupon": "and then", "mend": "fix, repair",
	"comes of": "results in", "came of": "resulted in", "is none": "is not a …", "be it": "whether", "be they": "whether",
	"is told": "gets, is informed", "are told": "get, are informed", "stands behind": "follows, is the reason for", "as it stands": "unchanged",
	"at hand": "present, current", "does so too": "the same", "in place of": "instead of", "behind which": "a new sentence",
}

// TestPlainWords holds the pages for users to words that are understood at the first reading.
func TestPlainWords(t *testing.T) {
	files := []string{"README.md", "docs/README.md", "config.yaml"}
	for _, name := range shelves {
		files = append(files, shelf(t, name)...)
	}
	phrases := regexp.MustCompile(`(?i)\b(` + strings.Join(slices.Sorted(maps.Keys(plainer)), "|") + `)(?:s|ed)?\b`)
	lines := func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }
	for _, file := range files {
		text := string(expect.Value(os.ReadFile(filepath.Join("../..", file)))(t))
		for n, line := range strings.Split(fenced.ReplaceAllStringFunc(text, lines), "\n") {
			if m := phrases.FindStringSubmatch(line); m != nil {
				t.Errorf("%s, line %d says %q: say %s", file, n+1, m[0], plainer[strings.ToLower(m[1])])
			}
		}
	}
}

// TestCounts holds the counting to texts that were counted by hand.
func TestCounts(t *testing.T) {
	for word, want := range map[string]int{
		"the": 1, "cat": 1, "table": 2, "made": 1, "used": 1, "wanted": 2, "indices": 3, "document": 3, "pages": 2, "near-duplicate": 4, "7": 1,
		"changed": 1, "likes": 1, "search.": 1,
	} {
		expect.Same(t, want, Syllables(word), "syllables of %s", word)
	}
	page := "# Title\n\nThe cat sat. It was `warm`!\n\n- One entry\n- two\n\n| a | table |\n\n```sh\nls\n```\n![a picture](x.png)\n"
	expect.Same(t, Count{9, 4, 10}, Prose(page), "prose")
	if got := Words(page); got != 14 { // with heading, table and the text of the picture
		t.Errorf("%d words", got)
	}
	expect.Same(t, "9.91", fmt.Sprintf("%.2f", Count{Words: 100, Sentences: 5, Syllables: 150}.Grade()), "grade")
}
