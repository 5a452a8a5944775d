package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs/calibrate"
)

const hostile = `<script>alert(1)</script></title><b onclick='x'>"'&amp; \u001b[31m \u202e`

// openedLibrary returns a stock of versions of texts with titles that are markup.
func openedLibrary(t *testing.T) *upstream.Engine {
	t.Helper()
	l := &stocked{shelf{documents: map[string]int{"news-1": 60, "news-2": 0}, sources: map[string][]string{}}}
	for i := range 60 {
		text := hostile
		for w := range 80 {
			word := fmt.Sprintf("w%dx%d", i/2, w)
			if i%2 == 1 && w < i {
				word = "changed" + word
			}
			text += " " + word
		}
		l.sources["news-1"] = append(l.sources["news-1"], string(expect.Value(json.Marshal(map[string]string{"title": text}))(t)))
	}
	e := openedShelf(t, &l.shelf)
	e.Store = l
	return e
}

// calibrateShelf runs the command on the library.
func calibrateShelf(t *testing.T, html string) (string, error) {
	t.Helper()
	var out strings.Builder
	r := calibrateJob{html: html, Options: calibrate.DefaultOptions, job: job{
		output: formText, out: &out, err: io.Discard, engines: []*upstream.Engine{openedLibrary(t)},
	}}
	err := r.run(t.Context())
	return out.String(), err
}

// TestCalibrateFitsATerminal reads the text as a terminal does: no line is too long, and nothing in it is obeyed.
func TestCalibrateFitsATerminal(t *testing.T) {
	out := expect.Value(calibrateShelf(t, ""))(t)
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > 100 || strings.HasSuffix(line, " ") {
			t.Errorf("%d characters: %q", utf8.RuneCountInString(line), line)
		}
	}
	if strings.ContainsAny(out, "\x1b\u202e\r\t") {
		t.Error("what a terminal obeys got through")
	}
	for _, part := range []string{
		"shelf: news-1: 60 documents, 60 read", "Suggested threshold", "Pairs by agreement", "What each threshold makes",
		"p(r) at the threshold 0.64",
		"Agreement and exact value", "Pairs at 0.9", "A alone: ", "B alone: ", "both   : ", "0.88 safe",
		"shelf: news-2: 0 documents",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in:\n%s", part, out)
		}
	}
}

// TestCalibratePage reads the report as a browser does. What documents say is text in it, and nothing in it asks for anything.
func TestCalibratePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	expect.Value(calibrateShelf(t, file))(t)
	page := expect.Value(os.ReadFile(file))(t)
	root := expect.Value(html.Parse(bytes.NewReader(page)))(t)
	counts, shown := map[string]int{}, false
	for n := range root.Descendants() {
		if n.Type == html.TextNode && strings.Contains(n.Data, "<script>alert(1)</script>") {
			shown = true
		}
		if n.Type != html.ElementNode {
			continue
		}
		counts[n.Data]++
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "url(") {
				t.Errorf("%s=%q in a %s", a.Key, a.Val, n.Data)
			}
		}
	}
	for _, active := range []string{"script", "b", "img", "link", "iframe", "object", "a", "form"} {
		if counts[active] > 0 {
			t.Errorf("%d of %s", counts[active], active)
		}
	}
	if !shown || counts["table"] != 8 || counts["i"] < 100 || strings.Contains(string(page), "NaN") ||
		strings.Contains(string(page), "ZgotmplZ") {
		t.Errorf("the title is shown: %v; %v", shown, counts)
	}
	if bytes.Contains(page, []byte("http:")) || bytes.Contains(page, []byte("https:")) || bytes.Contains(page, []byte("@import")) {
		t.Error("the page names something elsewhere")
	}
}
