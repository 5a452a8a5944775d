package calibrate

import (
	"embed"
	htmltemplate "html/template"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/terminal"
)

// Took is how long it took, as people read it.
func (r *Report) Took() time.Duration {
	return time.Duration(r.Seconds * 1e9).Round(10 * time.Millisecond)
}

const (
	// textWidth is how wide the report is on a terminal, barWidth how wide the longest bar is.
	textWidth, barWidth = 100, 26
)

//go:embed calibrate.txt calibrate.html
var files embed.FS

// functions are those of both templates.
var functions = map[string]any{
	"count":   terminal.Count,
	"join":    func(list []string) string { return strings.Join(list, " | ") },
	"percent": func(share float64) float64 { return 100 * share },
	"bar":     bar,
	"wrapped": wrapped,
	"plain":   Plain,
	// lower and upper are the bounds of a bin.
	"lower": func(bin int) float64 { return float64(bin) / Bins },
	"upper": func(bin int) float64 { return float64(bin+1) / Bins },
	"steps": func(points []Point) []Point {
		return slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.hundredth()%5 != 0 || p.hundredth() < 20 })
	},
}

var (
	textReport = template.Must(template.New("calibrate.txt").Funcs(functions).ParseFS(files, "calibrate.txt"))
	htmlReport = htmltemplate.Must(htmltemplate.New("calibrate.html").Funcs(functions).ParseFS(files, "calibrate.html"))
	lineEnds   = regexp.MustCompile(`(?m) +$`)
)

// String returns the report for a terminal.
func (r *Report) String() string {
	var b strings.Builder
	if err := textReport.Execute(&b, r); err != nil {
		return err.Error()
	}
	return lineEnds.ReplaceAllString(b.String(), "")
}

// WriteHTML writes the page of a report. What stood in the file stays until the new one is whole.
func WriteHTML(file string, list []*Report) error {
	return terminal.WriteFile(file, func(w io.Writer) error { return htmlReport.Execute(w, list) })
}

// LogShare is a number of pairs as a share of the most of one bin, on a logarithmic scale where one is a little more than nothing.
func (r *Report) LogShare(pairs float64) float64 {
	most := max(slices.Max(r.Random.Estimated[:]), slices.Max(r.Candidates.Estimated[:]))
	if pairs <= 0 || most <= 0 {
		return 0
	}
	return math.Log10(pairs+1) / math.Log10(most+1)
}

// At returns what was measured around a point of the curve, nil where no pair was.
func (c *Curve) At(p Point) *Measured {
	for i, m := range c.Measured {
		if int(m.Resemblance*Bins) == p.hundredth()/5 {
			return &c.Measured[i]
		}
	}
	return nil
}

func (p Point) hundredth() int { return int(math.Round(p.Resemblance * 100)) }

// wrapped breaks a text into lines that begin with the indent.
func wrapped(indent, text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case width == 0:
			b.WriteString(indent)
			width = len(indent)
		case width+1+n > textWidth:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}

// bar returns a bar for a share of the longest one.
func bar(share float64) string {
	eighths := int(math.Round(max(0, min(1, share)) * barWidth * 8))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat(" ", barWidth-utf8.RuneCountInString(text))
}

// Plain returns a text on one line, cut to a number of characters, without what a terminal would obey.
func Plain(most int, text string) string {
	return terminal.Cut(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' &&
			r <= '\u2069' {
			return ' '
		}
		return r
	}, text), most)
}
