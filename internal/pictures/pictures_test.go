package pictures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
	"github.com/neardup/sidecar/sketch"
)

var update = flag.Bool("update", false, "draw the pictures anew")

const folder = "../../docs/images"

// pictures are all that are drawn here, by the names of their files.
var pictures = map[string]func() ([]byte, error){
	"sketch.svg":    drawShingles,
	"threshold.svg": drawThreshold,
	"error.svg":     drawError,
	"peers.svg":     drawPeers,
}

// allPictures are these, and the curves of what runs have measured.
func allPictures(t *testing.T) map[string]func() ([]byte, error) {
	t.Helper()
	all := maps.Clone(pictures)
	for _, path := range []string{performanceData, beforeData} {
		for _, c := range expect.Value(measured.Read(path))(t).Curves {
			all[growthFile(c)] = func() ([]byte, error) { return drawGrowth(c) }
		}
	}
	_, reindexing := reindexReports(t)
	for _, c := range reindexing.Curves {
		all[growthFile(c)] = func() ([]byte, error) { return drawGrowth(c) }
	}
	clusters := clustersCurve(expect.Value(measured.ReadGrowth(clustersData))(t))
	all[growthFile(clusters)] = func() ([]byte, error) { return drawGrowth(clusters) }
	all[growthFile(flinkCurve())] = func() ([]byte, error) { return drawGrowth(flinkCurve()) }
	return all
}

// simulated are the pictures with dots that were counted among some ten thousand pairs of texts.
var simulated = []string{"threshold.svg", "error.svg"}

// simulates leaves a test out of the short form, which runs with the race detector and would take a minute over it.
func simulates(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("sketches some ten thousand pairs of texts")
	}
}

// TestPictures holds every picture against the one in the tree, and the tree to those that are drawn.
func TestPictures(t *testing.T) {
	for name, draw := range allPictures(t) {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(simulated, name) {
				simulates(t)
			}
			got := expect.Value(draw())(t)
			path := filepath.Join(folder, name)
			if *update {
				expect.OK(t, os.WriteFile(path, got, 0o644))
			}
			want := expect.Value(os.ReadFile(path))(t)
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what the code draws: go test ./internal/pictures -update, and look at it", path)
			}
			wellFormed(t, got)
		})
	}
}

// wellFormed reports what is no XML, and what would ask for something from elsewhere or run.
func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	var seen []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		expect.OK(t, err)
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !slices.Contains(seen, element.Name.Local) {
			seen = append(seen, element.Name.Local)
		}
		for _, a := range element.Attr {
			if a.Name.Local == "href" || a.Name.Local == "src" || a.Name.Local == "onload" {
				t.Errorf("%s has a %s", element.Name.Local, a.Name.Local)
			}
		}
	}
	for _, name := range seen {
		if !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "path", "text", "tspan", "circle"}, name) {
			t.Errorf("has an element %s", name)
		}
	}
	for _, name := range []string{"title", "desc", "style"} {
		if !slices.Contains(seen, name) {
			t.Errorf("has no %s", name)
		}
	}
	if bytes.Contains(svg, []byte("url(")) || bytes.Contains(svg, []byte("@import")) {
		t.Error("its style asks for something from elsewhere")
	}
}

// TestShinglesAreThoseOfTheSketcher holds the shingles that are shown to those that are sketched.
func TestShinglesAreThoseOfTheSketcher(t *testing.T) {
	s := sketcher(nil)
	for _, text := range []string{report, reprint, unlike} {
		var one []uint64
		for _, shingle := range shinglesOf(text) {
			one = append(one, s.Shingles(shingle)...)
		}
		slices.Sort(one)
		if !slices.Equal(slices.Compact(one), s.Shingles(text)) {
			t.Errorf("%q has other shingles", text)
		}
	}
	common, union := commonOf(shinglesOf(report), shinglesOf(reprint))
	expect.Same(t, sketch.Resemblance(s.Shingles(report), s.Shingles(reprint)), float64(common)/float64(union), "the resemblance that is shown")
}
