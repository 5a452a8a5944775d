package pictures

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

// flinkPage has the table of the same figures as the picture.
const flinkPage = "../../docs/internals/clusters.md"

// shapeOfBands is into how many bands sketches are cut, and how many bits each has: its rows times the bits of a position, at most 32.
type shapeOfBands struct{ bands, bits float64 }

var (
	usualBands  = shapeOfBands{32, 3 * 8}
	longerBands = shapeOfBands{24, 4 * 8}
)

// candidates is how many pairs of n texts are compared: those of clusters, and those that share a band by chance.
func (s shapeOfBands) candidates(n float64) float64 {
	return 6.36*n + s.bands*n*n/math.Exp2(s.bits+1)
}

// onFlink is the processor time of Flink, in seconds: of sorting the keys, and of the candidates.
func (s shapeOfBands) onFlink(n float64) float64 {
	return 0.855e-6*s.bands/usualBands.bands*n*math.Log2(n) + 7.07e-6*s.candidates(n)
}

// inProcess is that of the command, reading and output included, where it does all itself.
func (s shapeOfBands) inProcess(n float64) float64 { return 4.5e-6*n + 0.62e-6*s.candidates(n) }

// flinkCurve is what was measured, and the formula that fits it, continued to a thousand million texts.
func flinkCurve() measured.Curve {
	const share = 0.936 // of the documents that have a text of their own
	c := measured.Curve{Name: "flink", Title: "Clusters in process and on Flink, measured and on paper", Across: "documents", Up: "minutes of processor time"}
	for _, p := range []struct {
		name     string
		measured []float64
		cost     func(shapeOfBands, float64) float64
	}{{"in process", []float64{1.9 / 60, 6.3 / 60, 131.7 / 60}, shapeOfBands.inProcess}, {"on Flink", []float64{14. / 60, 64. / 60, 1200. / 60}, shapeOfBands.onFlink}} {
		lines := []measured.Line{{Name: "measured"}, {Name: "on paper, 32 bands of 3 rows"}, {Name: "on paper, 24 bands of 4 rows"}}
		for i, documents := range []float64{0.2e6, 1e6, 10e6, 100e6, 1000e6} {
			if i < len(p.measured) {
				lines[0].Points = append(lines[0].Points, measured.Point{X: documents, Y: p.measured[i]})
			}
			for j, s := range []shapeOfBands{usualBands, longerBands} {
				cost := p.cost(s, share*documents) / 60
				digits := math.Pow(10, math.Floor(math.Log10(cost))-1) // two are known at best
				lines[1+j].Points = append(lines[1+j].Points, measured.Point{X: documents, Y: math.Round(cost/digits) * digits})
			}
		}
		c.Panels = append(c.Panels, measured.Panel{Name: p.name, Lines: lines})
	}
	return c
}

// TestFlinkCurve holds the table in the page to the formula, and the formula to what was measured. TestPictures does it with the picture.
func TestFlinkCurve(t *testing.T) {
	c := flinkCurve()
	for _, p := range c.Panels {
		for i, m := range p.Lines[0].Points {
			if off := p.Lines[1].Points[i].Y / m.Y; off < 0.7 || off > 1.4 {
				t.Errorf("%s, %v documents: on paper %v, measured %v", p.Name, m.X, p.Lines[1].Points[i].Y, m.Y)
			}
		}
	}
	for i, compared := range []float64{1.27e6, 6.8e6, 143.5e6} { // as Flink counted them
		texts := []float64{186957, 936786, 9360566}[i]
		if off := usualBands.candidates(texts) / compared; off < 0.95 || off > 1.05 {
			t.Errorf("%v texts: %v candidates on paper, %v counted", texts, usualBands.candidates(texts), compared)
		}
	}
	if table := curveTable(c); !strings.Contains(string(expect.Value(os.ReadFile(flinkPage))(t)), "\n\n"+table) {
		t.Errorf("%s does not have this table:\n%s", flinkPage, table)
	}
}
