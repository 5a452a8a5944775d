package pictures

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// colour is red, green and blue, 0 to 1.
type colour [3]float64

func colourOf(t *testing.T, hex string) (c colour) {
	t.Helper()
	for i := range c {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c[i] = float64(v) / 255
	}
	return c
}

// over is the colour laid over another with an opacity.
func (c colour) over(under colour, opacity float64) (mixed colour) {
	for i := range c {
		mixed[i] = opacity*c[i] + (1-opacity)*under[i]
	}
	return mixed
}

// luminance is that of WCAG 2.
func (c colour) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

func contrast(a, b colour) float64 {
	light, dark := max(a.luminance(), b.luminance()), min(a.luminance(), b.luminance())
	return (light + 0.05) / (dark + 0.05)
}

var rule = regexp.MustCompile(`(?m)^\s+([^{}\n]+?) \{ fill: (#[0-9a-f]{6})(?:; fill-opacity: (\.\d+))?`)

// TestContrast holds every colour of text to 4.5 : 1 on what it stands on (WCAG 2.2, 1.4.3), in light and in dark.
func TestContrast(t *testing.T) {
	light, dark, found := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style knows no dark")
	}
	for mode, part := range map[string]string{"light": light, "dark": dark} {
		fills, opacity := map[string]colour{}, map[string]float64{}
		for _, m := range rule.FindAllStringSubmatch(part, -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				fills[name] = colourOf(t, m[2])
				opacity[name], _ = strconv.ParseFloat("0"+m[3], 64) // 0 where it says none
			}
		}
		paper := fills[".paper"]
		veil := func(name string) colour { return fills[name].over(paper, opacity[name]) }
		for _, c := range []struct {
			text string
			on   []colour
		}{
			{"text", []colour{paper, fills[".panel"]}}, {".ink", []colour{paper, fills[".panel"]}}, {".title", []colour{paper}},
			{"text.one", []colour{paper, veil(".fill-one")}}, {"text.two", []colour{paper, fills[".panel"], veil(".fill-two")}},
			{"text.three", []colour{paper}},
		} {
			for _, on := range c.on {
				if got := contrast(fills[c.text], on); got < 4.5 || fills[c.text] == on {
					t.Errorf("%s: %s has a contrast of %.2f", mode, c.text, got)
				}
			}
		}
	}
}
