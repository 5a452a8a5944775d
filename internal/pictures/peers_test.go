package pictures

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/measured"
)

const (
	peersPage = "../../docs/internals/comparison.md"
	peersData = "../../docs/internals/clusters-peers.json"
)

// drawPeers shows what `make bench-clusters-peers` has measured of the first corpus: how right the clusters of each program are, over its speed.
func drawPeers() ([]byte, error) {
	r, err := measured.Read(peersData)
	if err != nil {
		return nil, err
	}
	row := r.Tables[0].Rows[0]
	var speeds []float64
	for _, c := range row.Contenders {
		if _, found := c.Figures["F1"]; found {
			speeds = append(speeds, c.Figures["per core"])
		}
	}
	below := scaleOf(speeds)
	p := plot{left: 84, right: 764, top: 64, bottom: 344, fromX: below.from, toX: below.to, fromY: 0.7, toY: 1}
	title := "How right the clusters are, by how fast they are made: " + row.What
	var d drawing
	d.text(24, 38, "title", title)
	p.up(&d, []float64{0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1}, func(v float64) string { return fmt.Sprintf("%.2f", v) })
	d.line(p.left, p.bottom, p.right, p.bottom, "axis")
	for _, v := range below.marks {
		d.line(p.x(below.at(v)), p.bottom, p.x(below.at(v)), p.bottom+6, "axis")
		d.text(p.x(below.at(v)), p.bottom+21, "middle small", grouped(v))
	}
	var said []string
	for _, c := range row.Contenders {
		f1, found := c.Figures["F1"]
		if !found {
			continue
		}
		x, y, ours := p.x(below.at(c.Figures["per core"])), p.y(math.Max(f1, p.fromY)), strings.HasPrefix(c.Name, "sidecar")
		switch {
		case ours:
			d.dot(x, y, 5, "dot-one")
			d.text(x-8, y-7, "end small", c.Name)
		default:
			d.dot(x, y, 5, "dot-two")
			d.text(x+10, y+4, "small", c.Name)
		}
		said = append(said, fmt.Sprintf("%s: F1 %.3f at %s MB/s", c.Name, f1, figureOf(c.Figures["per core"])))
	}
	p.name(&d, "MB of text per second of one core", "F1 of pairs in one cluster")
	return d.done(p.bottom+64, title, strings.Join(said, "; ")+"."), nil
}

// peersSection is the part of docs/internals/comparison.md that a run writes.
func peersSection(r measured.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured on %s by `%s` on %s.\n", r.Date, r.Command, r.Machine)
	for _, r := range r.Tables[0].Rows {
		fmt.Fprintf(&b, "\n%s:\n\n", strings.TrimSuffix(r.What, "."))
		header(&b, "lr", "contender", "wall, s", "processor, s", "MB/s per core", "memory, MB", "F1", "precision", "recall", "F1 of pairs", "F1 of copies")
		for _, who := range r.Contenders {
			cells := []string{who.Name}
			for i, name := range []string{"wall", "processor", "per core", "memory", "F1", "precision", "recall", "F1 of pairs", "F1 of copies"} {
				v, found := who.Figures[name]
				switch {
				case !found:
					cells = append(cells, "–")
				case i < 4:
					cells = append(cells, figureOf(v))
				default:
					cells = append(cells, strconv.FormatFloat(v, 'f', 3, 64))
				}
			}
			row(&b, cells...)
		}
	}
	return b.String() + "\n"
}

// TestPeers holds the table of clusters beside other programs to what was measured.
func TestPeers(t *testing.T) {
	drawn(t, peersPage, "clusters beside other programs", peersSection(expect.Value(measured.Read(peersData))(t)))
}
