package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// calibration is what calibrate says of one index.
type calibration struct {
	Documents, Read int
	Whole           bool
	Way             string
	Candidates      struct{ Found []float64 }
	Levels          []struct {
		Level    float64
		Compared int
		Examples []struct {
			A, B             struct{ ID, Title string }
			Agreement, Exact float64
		}
	}
	Error      struct{ Rmse, Promised float64 }
	Shares     []struct{ Threshold, Folded, Low, High float64 }
	Suggestion struct {
		Threshold    float64
		Kind, Reason string
	}
}

// calibrate runs the command, and returns what it said of its one index, and that as it stands less what differs from run to run.
func calibrate(t *testing.T, file, index string, args ...string) (c calibration, whole map[string]any) {
	t.Helper()
	out, code := sidecar(t, append([]string{"calibrate", "--config", file, "--index", index, "--output", "json"}, args...)...)
	var report struct{ Indices []map[string]any }
	if err := json.Unmarshal([]byte(out[max(0, strings.Index(out, "{")):]), &report); err != nil || code != 0 ||
		len(report.Indices) != 1 {
		t.Fatalf("calibrate ended with %d, %v: %.2000s", code, err, out)
	}
	whole = report.Indices[0]
	delete(whole, "engine")
	delete(whole, "seconds")
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c, whole
}

// TestCalibrate looks at the sample corpus, of which it is known what is near what. All engines have to give the same report,
// whether their documents have sketches or not.
func TestCalibrate(t *testing.T) {
	var first map[string]any
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-1", documents(t)
		direct := api{e, e.URL}
		direct.drop(t, index)
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)
		file := config(t, e, setup{match: index, threshold: 0.64})
		page := filepath.Join(t.TempDir(), "report.html")
		c, whole := calibrate(t, file, index)
		if first == nil {
			first = whole
		}
		if diff := cmp.Diff(first, whole); diff != "" {
			t.Errorf("another report than of another engine: %s", diff)
		}
		if c.Documents != len(list) || c.Read != len(list) || !c.Whole {
			t.Errorf("%d documents, %d read, want %d", c.Documents, c.Read, len(list))
		}
		checkCalibration(t, c, list)
		out, code := sidecar(t, "calibrate", "--config", file, "--html", page)
		if code != 0 {
			t.Fatalf("calibrate ended with %d: %s", code, out)
		}
		for line := range strings.Lines(out) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 100 {
				t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
			}
		}
		checkPage(t, page)
		if diff := cmp.Diff(versions(before), versions(stored(t, direct, index))); diff != "" {
			t.Errorf("calibrate wrote: %s", diff)
		}
	})
}

// checkCalibration holds the report against the labels of the corpus.
func checkCalibration(t *testing.T, c calibration, list []corpus.Document) {
	t.Helper()
	groups, group := map[string]bool{}, map[string]string{}
	for _, d := range list {
		groups[d.Group], group[d.ID] = true, d.Group
	}
	if c.Suggestion.Threshold < 0.3 || c.Suggestion.Threshold > 0.62 {
		t.Errorf("suggested %v, and the corpus falls apart from 0.3 to 0.62: %s", c.Suggestion.Threshold, c.Suggestion.Reason)
	}
	want := 1 - float64(len(groups))/float64(len(list))
	for _, s := range c.Shares {
		if s.Threshold == 0.5 && math.Abs(s.Folded-want) > 0.01 {
			t.Errorf("%.3f would fold at 0.5, want %.3f", s.Folded, want)
		}
		if s.Low != s.Folded || s.High != s.Folded {
			t.Errorf("of all documents %v to %v would fold", s.Low, s.High)
		}
	}
	if ratio := c.Error.Rmse / c.Error.Promised; !(ratio > 0.5 && ratio < 1.2) {
		t.Errorf("an error of %.4f, and the sketches tell %.4f", c.Error.Rmse, c.Error.Promised)
	}
	for _, l := range c.Levels {
		for _, x := range l.Examples {
			if math.Round(x.Agreement*10) != l.Level*10 || math.Abs(x.Agreement-x.Exact) > 0.2 || x.A.Title == "" || group[x.B.ID] == "" {
				t.Errorf("at %.1f: %+v", l.Level, x)
			}
			if same := group[x.A.ID] == group[x.B.ID]; l.Level >= 0.7 && !same || l.Level <= 0.2 && same {
				t.Errorf("at %.1f: %s and %s", l.Level, group[x.A.ID], group[x.B.ID])
			}
		}
	}
}

// checkPage reads a report as a browser does: it has to be well formed, to ask for nothing, and to have no text of documents as
// markup.
func checkPage(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "img", "link", "iframe", "object", "a":
			t.Errorf("a %s in the report", n.Data)
		case "svg":
			pictures++
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%s=%q in a %s of the report", a.Key, a.Val, n.Data)
			}
		}
	}
	if pictures != 4 {
		t.Errorf("%d pictures", pictures)
	}
}

// TestCalibrateByStoredBands looks a sample up in the whole of an index that is larger than what may be read of it.
func TestCalibrateByStoredBands(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-2", documents(t)
		direct := api{e, e.URL}
		direct.drop(t, index)
		file := richly(t, config(t, e, setup{match: index}), index)
		through := api{e, serveFile(t, file)}
		direct.create(t, index)
		if out, code := sidecar(t, "setup", "--config", file); code != 0 {
			t.Fatalf("setup ended with %d: %s", code, out)
		}
		through.load(t, index, list)
		whole, _ := calibrate(t, file, index)
		looked, _ := calibrate(t, file, index, "--documents", "200", "--sample", "150")
		if looked.Way != "stored bands" || looked.Whole || looked.Documents != len(list) {
			t.Fatalf("%d documents by %s", looked.Documents, looked.Way)
		}
		for i, s := range looked.Shares {
			if want := whole.Shares[i].Folded; s.Threshold >= 0.6 && (want < s.Low-0.02 || want > s.High+0.02) {
				t.Errorf("at %.2f %.3f to %.3f would fold by a sample, %.3f do", s.Threshold, s.Low, s.High, want)
			}
		}
	})
}
