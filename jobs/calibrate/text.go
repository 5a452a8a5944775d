package calibrate

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/internal/terminal"
)

const (
	// textWidth is how wide the report is.
	textWidth = 100
	// barWidth is how wide the longest bar is.
	barWidth = 26
)

// String returns the report for a terminal.
func (c Result) String() string {
	var b strings.Builder
	r := c.Report
	b.WriteString(wrapped(fmt.Sprintf("%s: %s: %s, %d read, %d without text, %d copies of others; in %s", c.Engine, r.Index,
		terminal.Count(r.Documents, "document"), r.Read, r.Textless, r.Copies, time.Duration(c.Seconds*1e9).Round(10*time.Millisecond)), ""))
	fmt.Fprintf(&b, "%s\n", wrapped(fmt.Sprintf("%s; present threshold %.2f, min_shingles %d; candidates by %s",
		schemeText(r), r.Threshold, r.MinShingles, wayText(r)), ""))
	verb := "Suggested threshold"
	if !r.Suggestion.Sure {
		verb = "Suggested threshold, for want of a better one"
	}
	fmt.Fprintf(&b, "%s: %.2f\n%s\n", verb, r.Suggestion.Threshold, wrapped(r.Suggestion.Reason, "  "))
	writeHistogram(&b, r)
	writeShares(&b, r)
	writeCurve(&b, r)
	writeErrors(&b, r)
	writeExamples(&b, r)
	if len(r.Notes) > 0 {
		b.WriteString("Notes\n")
		for _, note := range r.Notes {
			b.WriteString(wrapped(note, "  "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func schemeText(r *Report) string {
	return fmt.Sprintf("scheme %s: %s, %d positions", r.Scheme, r.Family, r.Positions)
}

func wayText(r *Report) string {
	if r.Bands > 0 {
		return fmt.Sprintf("%s (%dx%d)", r.Way, r.Bands, r.Rows)
	}
	return r.Way
}

// wrapped breaks a text into lines that begin with the indent.
func wrapped(text, indent string) string {
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
	return b.String() + "\n"
}

// bar returns a bar for a share of the longest one.
func bar(share float64, width int) string {
	eighths := int(math.Round(max(0, min(1, share)) * float64(width) * 8))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}

// logShare is a number's share of the largest on a logarithmic scale, on which one is a little more than nothing.
func logShare(n, most float64) float64 {
	if n <= 0 || most <= 0 {
		return 0
	}
	return math.Log10(n+1) / math.Log10(most+1)
}

func largest(h *Histogram) (most float64) {
	for _, n := range h.Estimated {
		most = max(most, n)
	}
	return most
}

func writeHistogram(b *strings.Builder, r *Report) {
	fmt.Fprintf(b, "Pairs by agreement (bars on a logarithmic scale)\n  %-11s %11s %-*s %12s\n", "agreement", "random",
		barWidth+1, "", "candidates")
	most := max(largest(&r.Random), largest(&r.Candidates))
	for bin := range Bins {
		x, y := r.Random.Found[bin], r.Candidates.Estimated[bin]
		line := fmt.Sprintf("  %.2f–%.2f  %12.0f %s %12.0f %s", float64(bin)/Bins, float64(bin+1)/Bins,
			x, bar(logShare(x, most), barWidth), y, bar(logShare(y, most), barWidth))
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(b, "  same text   %12.0f %*s %12.0f\n\n", r.Random.Same, barWidth, "", r.Candidates.Same)
}

func writeShares(b *strings.Builder, r *Report) {
	b.WriteString("What each threshold makes of the documents\n  threshold            would fold                              " +
		"        contested\n")
	line := func(s Share) {
		name := fmt.Sprintf("%.2f", s.Threshold)
		if s.Name != "" {
			name += " " + s.Name
		}
		between := ""
		if s.High > s.Low {
			between = fmt.Sprintf("(%.1f–%.1f)", 100*s.Low, 100*s.High)
		}
		fmt.Fprintf(b, "  %-16s %8.2f %% %-13s %s %6.2f %%\n", name, 100*s.Folded, between, bar(s.Folded, barWidth), 100*s.Contested)
	}
	for _, s := range r.Shares {
		line(s)
	}
	for _, s := range r.Presets {
		line(s)
	}
	b.WriteString(wrapped("Contested are documents with a partner within one standard error of the threshold: chance decides "+
		"whether they fold.", "  "))
	b.WriteByte('\n')
}

func writeCurve(b *strings.Builder, r *Report) {
	k := &r.Curve
	fmt.Fprintf(b, "p(r) at the threshold %.2f: how probable it is that a pair of the resemblance r folds\n", k.Threshold)
	line := ""
	if k.Positions > 0 {
		line = fmt.Sprintf("%d of %d positions have to agree. ", k.Matches, k.Positions)
	}
	line += fmt.Sprintf("One pair in twenty folds at %.2f, nineteen in twenty at %.2f; the standard error at the threshold is %.3f.",
		k.From, k.To, k.Error)
	b.WriteString(wrapped(line, "  "))
	fmt.Fprintf(b, "  %-6s %7s %-*s %s\n", "r", "p(r)", barWidth+1, "", "measured on pairs of this index")
	measured := map[int]Measured{}
	for _, m := range k.Measured {
		measured[int(m.Resemblance*Bins)] = m
	}
	for _, p := range k.Points {
		at := int(math.Round(p.Resemblance * 100))
		if at%5 != 0 || at < 20 {
			continue
		}
		line := fmt.Sprintf("  %.2f   %7.3f %s", p.Resemblance, p.Folds, bar(p.Folds, barWidth))
		if m, ok := measured[at/5]; ok {
			line += fmt.Sprintf("  %.2f–%.2f: %.3f (%.3f–%.3f) of %d", float64(at)/100, float64(at)/100+0.05, m.Folds, m.Low, m.High,
				m.Pairs)
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	b.WriteByte('\n')
}

func writeErrors(b *strings.Builder, r *Report) {
	b.WriteString("Agreement and exact value\n  level   compared   mean agreement   mean exact   RMSE    promised\n")
	for _, l := range r.Levels {
		if l.Compared > 0 {
			fmt.Fprintf(b, "  %.1f     %8d   %14.3f   %10.3f   %.3f   %.3f\n", l.Level, l.Compared, l.Agreement, l.Exact, l.Measured,
				l.Promised)
		}
	}
	e := r.Error
	fmt.Fprintf(b, "  all     %8d   %14.3f   %10.3f   %.3f   %.3f\n\n", e.Pairs, e.Agreement, e.Exact, e.Measured, e.Promised)
}

func writeExamples(b *strings.Builder, r *Report) {
	for _, l := range r.Levels {
		if len(l.Examples) == 0 {
			continue
		}
		fmt.Fprintf(b, "Pairs at %.1f (about %.0f among the candidates)\n", l.Level, l.Estimated)
		for _, e := range l.Examples {
			fmt.Fprintf(b, "  agreement %.3f ± %.3f, exactly %.3f\n", e.Agreement, e.Error, e.Exact)
			for _, s := range []struct {
				name string
				side Side
			}{{"A", e.A}, {"B", e.B}} {
				fmt.Fprintf(b, "    %s %s: %s (%s)\n", s.name, plain(s.side.ID, 24), plain(s.side.Title, 48), terminal.Count(s.side.Shingles,
					"shingle"))
			}
			for _, p := range []struct {
				name string
				list []string
			}{{"both   ", e.Shared}, {"A alone", e.OnlyA}, {"B alone", e.OnlyB}} {
				if len(p.list) > 0 {
					fmt.Fprintf(b, "    %s: %s\n", p.name, plain(strings.Join(p.list, " | "), textWidth-14))
				}
			}
		}
		b.WriteByte('\n')
	}
}

// plain returns a text on one line of at most so many characters, without what a terminal would obey.
func plain(text string, most int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' &&
			r <= '\u2069' {
			return ' '
		}
		return r
	}, text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// Result is what was found in one index.
type Result struct {
	Engine string `json:"engine"`
	*Report
	Seconds float64 `json:"seconds"`
}
