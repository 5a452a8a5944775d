package e2e

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// calibration is what calibrate says of one index.
type calibration struct {
	Documents, Read int
	Whole           bool
	Way             string
	Shares          []struct{ Threshold, Folded, Low, High float64 }
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
	text := must(json.Marshal(whole))(t)
	check(t, json.Unmarshal(text, &c))
	return c, whole
}

// TestCalibrate has both dialects give the same report of the sample corpus, whose share of near-duplicates is known. It writes nothing.
func TestCalibrate(t *testing.T) {
	var first map[string]any
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-1", documents(t)
		direct := api{e, e.URL}
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)
		file := config(t, e, setup{match: index, threshold: 0.64})
		c, whole := calibrate(t, file, index)
		if first == nil {
			first = whole
		}
		same(t, first, whole, "another report than of another engine")
		if c.Documents != len(list) || c.Read != len(list) || !c.Whole {
			t.Errorf("%d documents, %d read, want %d", c.Documents, c.Read, len(list))
		}
		groups := map[string]bool{}
		for _, d := range list {
			groups[d.Group] = true
		}
		want := 1 - float64(len(groups))/float64(len(list))
		for _, s := range c.Shares {
			if s.Threshold == 0.5 && math.Abs(s.Folded-want) > 0.01 {
				t.Errorf("%.3f would fold at 0.5, want %.3f", s.Folded, want)
			}
		}
		page := filepath.Join(t.TempDir(), "report.html")
		succeed(t, "calibrate", "--config", file, "--html", page)
		if text, err := os.ReadFile(page); err != nil || strings.Count(string(text), "<table") != 4 || strings.Contains(string(text), "<script") {
			t.Errorf("%v: %.2000s", err, text)
		}
		same(t, versions(before), versions(stored(t, direct, index)), "calibrate wrote")
	})
}

// TestCalibrateByStoredBands looks a sample up in the whole of an index that is larger than what may be read of it.
func TestCalibrateByStoredBands(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "calibrated-2", documents(t)
		direct := api{e, e.URL}
		file := richly(t, config(t, e, setup{match: index}), index)
		through := api{e, serveFile(t, file)}
		direct.create(t, index)
		succeed(t, "setup", "--config", file)
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
