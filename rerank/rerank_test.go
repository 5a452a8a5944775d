package rerank

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

var profile = &Profile{Threshold: 0.8}

// hit makes a hit of a family of texts: members of one family agree on all positions but those in which they differ.
func hit(id string, family byte, differ int) Hit {
	payload := make([]byte, 100)
	for i := range payload {
		payload[i] = family*31 + byte(i)
		if i < differ {
			payload[i] = byte(differ*7) ^ family ^ byte(i*13) ^ 0x55
		}
	}
	return Hit{ID: id, Profile: profile, Sketch: &sketch.Sketch{Scheme: 1, Shingles: 100, Bits: 8, Fingerprint: uint64(family)<<32 | uint64(differ), Payload: payload}}
}

func cut(list []int, from, size int) []int {
	return list[min(from, len(list)):min(from+size, len(list))]
}

func TestShortTextsFoldByFingerprintAlone(t *testing.T) {
	short := &Profile{Threshold: 0.5, MinShingles: 200}
	same, near := hit("b", 1, 0), hit("c", 1, 3)
	same.Profile, near.Profile = short, short
	hits := []Hit{hit("a", 1, 0), near, same}
	expect.Same(t, []Group{{Leader: 0, Representative: 0, Folded: []int{2}}, {Leader: 1, Representative: 1}}, Collapse(hits, 3).Groups, "")
}

func ids(hits []Hit, ranks []int) []string {
	list := []string{}
	for _, r := range ranks {
		list = append(list, hits[r].ID)
	}
	return list
}

func TestPagerReadsLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	once, cases, read := 0, effort.Rounds(2000), 0
	for range cases {
		hits := make([]Hit, 300)
		for i := range hits {
			hits[i] = hit(fmt.Sprint(i), byte(i), 90)
			if i > 0 && r.Float64() < 0.3 {
				hits[i] = hits[r.IntN(i)]
			}
		}
		e := still(hits)
		_, p, err := e.serve(t, Page{Size: 10, Window: 200, Widening: Widening{Rate: 0.3}})
		expect.OK(t, err)
		if e.readings == 1 {
			once++
		}
		read += p.Stats().Read
	}
	if share := float64(once) / float64(cases); share < 0.95 {
		t.Errorf("page 1 took one reading in %.1f %% of cases, want at least 95 %%", share*100)
	}
	t.Logf("one reading in %.1f %%, %.1f ranks read for 10 hits", 100*float64(once)/float64(cases), float64(read)/float64(cases))
}

// TestListThatEndsWithTheWindow is not taken for one that has moved: its sources are read once.
func TestListThatEndsWithTheWindow(t *testing.T) {
	hits := []Hit{hit("a", 1, 0), hit("b", 2, 0), hit("c", 3, 0), hit("d", 4, 0), hit("e", 5, 0)}
	e := still(hits)
	got, _, err := e.serve(t, Page{From: 3, Size: 10, Window: 5, SketchFirst: true})
	if diff := cmp.Diff([]string{"d", "e"}, got); diff != "" || err != nil || e.moved != 0 || e.readings != 2 {
		t.Errorf("%v, moved %d times, %d readings: %s", err, e.moved, e.readings, diff)
	}
}

// TestReasons holds each reason of a verdict.
func TestReasons(t *testing.T) {
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	long := strings.Repeat("the council of the town met on monday and spoke of a ferry that leaves at ten ", 1)
	for i := range 80 {
		long += fmt.Sprintf("word%c%c ", 'a'+i%26, 'a'+i/26)
	}
	for _, c := range []struct {
		a, b string
		p    Profile
		want Reason
	}{
		{"Take 1.5 mg a day", "take  1.5 MG a day", Default(), SameText},
		{"iPhone 15", "iphone 15!", Default(), SameWords},
		{"Take 1.5 mg twice", "Take 15 mg twice", Default(), Disagrees},
		{"Take one tablet of 1.5 mg every morning with a glass of water", "Take one tablet of 15 mg every morning with a glass of water", Default(), TooShort},
		{"I agree with all that was said here today by the members of the council", "I do not agree with all that was said here today by the members of the council", Default(), TooShort},
		{long + "costs 5 euro", long + "costs 6 euro", Default(), Agrees},
		{long + "costs 5 euro", long + "costs 6 euro", Profile{Threshold: 0.64, Numbers: DecideByNumbers}, OtherNumbers},
		{"pylint " + strings.ReplaceAll(long, " wordc", " pylint wordc"), "eslint " + strings.ReplaceAll(long, " wordc", " eslint wordc"), Profile{Threshold: 0.5}, OtherTopics},
		{"pylint " + strings.ReplaceAll(long, " wordc", " pylint wordc"), "eslint " + strings.ReplaceAll(long, " wordc", " eslint wordc"), Profile{Threshold: 0.5, Measure: Containment}, Agrees},
		{long, "another text altogether that has nothing in common with the first one", Default(), Disagrees},
	} {
		a, _ := sketcher.Sketch(c.a)
		b, _ := sketcher.Sketch(c.b)
		agreement, got := c.p.Judge(&a, &b)
		expect.Same(t, c.want, got, "%.40q and %.40q: the reason at %.3f", c.a, c.b, agreement)
	}
}
