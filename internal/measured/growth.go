package measured

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// Growth is the cost of a job for one number of documents: a part of docs/internals/clusters.json.
type Growth struct {
	Documents int    `json:"documents"`
	Memory    int64  `json:"memory"` // the limit
	Date      string `json:"date"`
	Commit    string `json:"commit"`
	Steps     []Step `json:"steps"`
	Texts     int    `json:"texts"`
	Clusters  int    `json:"clusters"`  // of two documents or more
	Clustered int    `json:"clustered"` // documents in these
	Cut       int    `json:"cut_buckets"`
	Digest    string `json:"digest"` // of the CSV
}

// Step is what one step of it took.
type Step struct {
	Step string  `json:"step"`
	Wall float64 `json:"wall_s"`
	CPU  float64 `json:"cpu_s"`
	// RSS is the most memory that the process had in it, Disk the most that its temporary files took, both in bytes.
	RSS  int64 `json:"rss"`
	Disk int64 `json:"disk"`
}

// ReadGrowth returns what is in a file.
func ReadGrowth(path string) (list []Growth, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}

// StepsOf returns the names of the steps, in order.
func StepsOf(list []Growth) (steps []string) {
	for _, g := range list {
		for _, s := range g.Steps {
			if !slices.Contains(steps, s.Step) {
				steps = append(steps, s.Step)
			}
		}
	}
	return steps
}

// PointsOf returns one figure of a step for each number of documents.
func PointsOf(list []Growth, step string, of func(Step) float64) (points []Point) {
	for _, g := range list {
		for _, s := range g.Steps {
			if s.Step == step {
				points = append(points, Point{float64(g.Documents), of(s)})
			}
		}
	}
	return points
}

// Exponent fits y = a (x log x)^e by least squares of the logarithms, and returns e.
func Exponent(points []Point) float64 {
	var x, y, xx, xy float64
	for _, p := range points {
		a, b := math.Log(p.X*math.Log(p.X)), math.Log(p.Y)
		x, y, xx, xy = x+a, y+b, xx+a*a, xy+a*b
	}
	n := float64(len(points))
	return (n*xy - x*y) / (n*xx - x*x)
}

// GrowthTable is a table in Markdown: a row for each step of each size, and the exponents of processor time below.
func GrowthTable(list []Growth) string {
	var b strings.Builder
	b.WriteString("| documents | step | wall | processor time | most memory | most temporary disk |\n|---:|---|---:|---:|---:|---:|\n")
	for _, g := range list {
		for i, s := range g.Steps {
			documents := ""
			if i == 0 {
				documents = fmt.Sprintf("%g million", float64(g.Documents)/1e6)
			}
			fmt.Fprintf(&b, "| %s | %s | %.1f s | %.1f s | %.2f GB | %.2f GB |\n", documents, s.Step, s.Wall, s.CPU, float64(s.RSS)/1e9, float64(s.Disk)/1e9)
		}
	}
	if len(list) < 2 {
		return b.String()
	}
	b.WriteString("\n| step | processor time grows as (n log n) to the power of |\n|---|---:|\n")
	for _, step := range StepsOf(list) {
		fmt.Fprintf(&b, "| %s | %.2f |\n", step, Exponent(PointsOf(list, step, func(s Step) float64 { return s.CPU })))
	}
	return b.String()
}
