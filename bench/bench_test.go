package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/internal/expect"
)

// near are two texts of 60 words that differ in one: 53 of 61 shingles are common.
var near = corpus{Name: "near", Documents: []string{text(-1), text(30)}}

func text(changed int) string {
	list := make([]string, 60)
	for i := range list {
		list[i] = strings.Repeat(string(rune('a'+i%26)), 1+i/26)
		if i == changed {
			list[i] = "changed"
		}
	}
	return strings.Join(list, " ")
}

func TestGoContendersEstimateResemblance(t *testing.T) {
	exact := expect.Value(meanResemblance(near.Documents))(t)
	expect.Must(t, 53.0/61, exact, "resemblance")
	for _, c := range goContenders() {
		if c.agree == nil || c.name == oursSet { // which may have other shingles
			continue
		}
		got, err := c.agree(near)
		if deviation := math.Sqrt(exact * (1 - exact) / positions); err != nil || math.Abs(got-exact) > 4*deviation {
			t.Errorf("%s: agreement = %v, %v; want %v ± %v", c.name, got, err, exact, 4*deviation)
		}
	}
}

func TestIdiomaticWords(t *testing.T) {
	got := idiomaticWords("“Don't\tpanic”, he said – TWICE.")
	if want := []string{"don't", "panic", "he", "said", "twice"}; !slices.Equal(got, want) {
		t.Errorf("words = %q, want %q", got, want)
	}
}

func TestFirst(t *testing.T) {
	c := corpus{Documents: []string{"12345", "123", "1234"}}
	for _, tc := range []struct{ bytes, count, size int }{{0, 1, 5}, {7, 1, 5}, {8, 2, 8}, {99, 3, 12}} {
		if count, size := c.First(tc.bytes); count != tc.count || size != tc.size {
			t.Errorf("first(%d) = %d, %d; want %d, %d", tc.bytes, count, size, tc.count, tc.size)
		}
	}
}

func TestFigure(t *testing.T) {
	for x, want := range map[float64]string{
		.0015: "0.002", .5: "0.500", 1: "1.00", 9.996: "10.0", 28.14: "28.1", 592.4: "592", 6104: "6,100", 14205: "14,200", 302499: "302,000",
	} {
		expect.Same(t, want, figure(x, 3), "figure(%v)", x)
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		target target
		want   string
	}{
		{target{wanted: 8, seen: 8}, "reached"},
		{target{wanted: 8, seen: 7.99}, "**missed**"},
		{target{wanted: 13, seen: 13, atMost: true}, "reached"},
		{target{wanted: 13, seen: 13.1, atMost: true}, "**missed**"},
		{target{wanted: 13, atMost: true}, "not measured"},
	} {
		expect.Same(t, tc.want, tc.target.verdict(), "%+v", tc.target)
	}
}

// An absent peer keeps its line, and a failed cell says why.
func TestReportDropsNothing(t *testing.T) {
	r := report{
		corpora:    corpora.Corpora{"synth": {Name: "synth", Documents: near.Documents}},
		contenders: []contender{{name: ours}, {name: "peer", absent: errors.New("no\nsuch | tool")}, {name: "broken"}},
		results: map[key]cell{
			{ours, "synth"}:     {documents: 2, bytes: 200, seconds: 1},
			{"broken", "synth"}: {err: errors.New("out of luck")},
		},
	}
	var out strings.Builder
	r.printSpeeds(&out)
	for _, want := range []string{"| peer |  | absent |  | absent: no such / tool |", "| broken |  | failed: out of luck |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, out.String())
		}
	}
}
