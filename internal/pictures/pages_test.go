package pictures

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// elsewhere are the pictures that were drawn or taken once: playground.png by a browser of 1100 x 1400 pixels in front of `sidecar demo`.
var elsewhere = []string{"curve.svg", "flow.svg", "fold.svg", "playground.png", "valley.svg"}

var image = regexp.MustCompile(`!\[([^\]]*)\]\((?:docs/|\.\./)?images/([a-z0-9-]+\.(?:svg|png))\)`)

var (
	// figure is a number in a text.
	figure = regexp.MustCompile(`\d+(\.\d+)?`)
	// markup is what of a picture can't be read in it.
	markup = regexp.MustCompile(`(?s)<style>.*</style>|<title.*</desc>|<[^>]*>`)
)

func figuresOf(text string) (list []float64) {
	for _, n := range figure.FindAllString(text, -1) {
		v, _ := strconv.ParseFloat(n, 64) // is one by its form
		list = append(list, v)
	}
	return list
}

// TestPicturesAreShown holds that every picture is drawn by a test, or was drawn once, and stands on a page, with a text for those who don't see it whose
// figures are in the picture.
func TestPicturesAreShown(t *testing.T) {
	shown := map[string]bool{}
	drawing := func(name string) string {
		text := expect.Value(os.ReadFile(filepath.Join(folder, name)))(t)
		return markup.ReplaceAllString(string(text), " ")
	}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/internals/*.md", "../../README.md"} {
		pages := expect.Value(filepath.Glob(pattern))(t)
		for _, path := range pages {
			text := expect.Value(os.ReadFile(path))(t)
			for _, m := range image.FindAllStringSubmatch(string(text), -1) {
				shown[m[2]] = true
				if len(m[1]) < 40 {
					t.Errorf("%s shows %s and says only %q of it", path, m[2], m[1])
				}
				for _, n := range figuresOf(m[1]) {
					if !slices.Contains(figuresOf(drawing(m[2])), n) {
						t.Errorf("%s says %v of %s, which is not in it", path, n, m[2])
					}
				}
			}
		}
	}
	drawn := map[string]bool{}
	for name := range allPictures(t) {
		drawn[name] = true
	}
	for _, name := range elsewhere {
		drawn[name] = true
	}
	files := expect.Value(os.ReadDir(folder))(t)
	for _, f := range files {
		if !drawn[f.Name()] {
			t.Errorf("docs/images/%s is drawn by no test", f.Name())
		}
		if !shown[f.Name()] {
			t.Errorf("docs/images/%s stands on no page", f.Name())
		}
	}
}

var (
	decision = regexp.MustCompile(`(?m)^# (\d{3}): (.+)$`)
	entry    = regexp.MustCompile(`(?m)^\| \[(\d{3})\]\(([^)]+)\) \| (.+?) \|`)
	replaced = regexp.MustCompile(`(?m)^Status: superseded by \[(\d{3})\]`)
)

// TestDecisionsAreListed holds the index of the decisions to the folder: every one with its number, file and title, in their
// order, and those that another has replaced with that one's number.
func TestDecisionsAreListed(t *testing.T) {
	const dir = "../../docs/decisions/"
	paths, err := filepath.Glob(dir + "[0-9]*.md")
	if err != nil || len(paths) < 20 {
		t.Fatal(len(paths), err)
	}
	index := expect.Value(os.ReadFile(dir + "README.md"))(t)
	var want, got []string
	for _, path := range paths {
		text := expect.Value(os.ReadFile(path))(t)
		name := filepath.Base(path)
		m := decision.FindStringSubmatch(string(text))
		if m == nil || !strings.HasPrefix(name, m[1]+"-") {
			t.Errorf("%s has no heading with its number", name)
			continue
		}
		title := m[2]
		if by := replaced.FindStringSubmatch(string(text)); by != nil {
			title += fmt.Sprintf(" (replaced by %s)", by[1])
		}
		want = append(want, fmt.Sprintf("%s %s %s", m[1], name, title))
	}
	for _, m := range entry.FindAllStringSubmatch(string(index), -1) {
		got = append(got, strings.Join(m[1:], " "))
	}
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			t.Errorf("the index lacks %s", want[i])
		case i >= len(want):
			t.Errorf("the index has %s, which does not exist", got[i])
		case got[i] != want[i]:
			t.Errorf("the index has %q, the folder %q", got[i], want[i])
		}
	}
}
