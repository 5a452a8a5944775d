package pictures

import (
	"fmt"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

const (
	clustersPage = "../../docs/internals/clusters.md"
	clustersData = "../../docs/internals/clusters.json"
)

// clustersCurve is the time of each step of clustering, by the number of documents,.
func clustersCurve(list []measured.Growth) measured.Curve {
	c := measured.Curve{
		Name: "clusters", Title: "Clusters by bands, by the number of documents", Across: "documents", Up: "seconds",
		Panels: []measured.Panel{{Name: "processor time"}, {Name: "wall time"}},
	}
	for i, of := range []func(measured.Step) float64{
		func(s measured.Step) float64 { return s.CPU },
		func(s measured.Step) float64 { return s.Wall },
	} {
		for _, step := range measured.StepsOf(list)[1:] { // making sketches is no part of the job
			c.Panels[i].Lines = append(c.Panels[i].Lines, measured.Line{Name: step, Points: measured.PointsOf(list, step, of)})
		}
	}
	return c
}

// TestClustersCurve holds the section of docs/internals/clusters.md to what `make bench-curve` has measured; TestPictures does it with the picture.
func TestClustersCurve(t *testing.T) {
	list := expect.Value(measured.ReadGrowth(clustersData))(t)
	c := clustersCurve(list)
	want := fmt.Sprintf("\n![%s: %s over %s, the same figures as in the table below](../images/%s)\n\n%s\n", c.Title, c.Up, c.Across, growthFile(c), measured.GrowthTable(list))
	drawn(t, clustersPage, "curve", want)
}
