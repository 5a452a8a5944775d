package main

import (
	"fmt"
	"io"
	"slices"
)

// target is what a figure must come to.
type target struct {
	what    string
	wanted  float64
	atMost  bool // the figure must not exceed wanted; otherwise it must reach it
	seen    float64
	printed func(float64) string
}

func (t target) verdict() string {
	switch {
	case t.seen == 0:
		return "not measured"
	case t.atMost == (t.seen <= t.wanted), t.seen == t.wanted:
		return "reached"
	}
	return "**missed**"
}

// english are the corpora of English documents of about 2 kB, by which the ratios are judged.
var english = []string{"synth", "real"}

// targets are the speeds the project has set itself, as ratios within one run, since absolute figures are the machine's.
func (r report) targets() []target {
	var list []target
	atLeast := func(wanted float64, what string, seen float64, printed func(float64) string) {
		list = append(list, target{what: what, wanted: wanted, seen: seen, printed: printed})
	}
	for _, share := range []struct {
		corpus string
		wanted float64
	}{{"synth", .08}, {"real", .08}, {"intl", .055}} {
		atLeast(share.wanted, "share of xxhash64, "+share.corpus, r.times(ours, hashing, share.corpus), percent)
		atLeast(share.wanted, "share of xxhash64, from memory, "+share.corpus, r.times(oursCold, hashCold, share.corpus), percent)
	}
	for _, against := range []struct {
		peer   string
		wanted float64
	}{{daft, 6.5}, {daftFull, 6.5}, {lshdedup, 7.5}, {idiom, 18}, {lucene, 25}} {
		for _, corpus := range english {
			atLeast(against.wanted, fmt.Sprintf("times %s, %s", against.peer, corpus), r.times(ours, against.peer, corpus), times)
		}
	}
	best, ratio := r.bestPeer("short")
	atLeast(2.5, fmt.Sprintf("times the best peer (%s), short", best), ratio, times)
	for _, p := range r.parts {
		if p.who != ours || p.absent != "" {
			continue
		}
		switch p.what {
		case comparing:
			list = append(list, target{what: p.what + ", ns", wanted: 13, atMost: true, seen: p.nanoseconds, printed: plain})
		case collapsing:
			list = append(list, target{what: p.what + ", µs", wanted: 70, atMost: true, seen: p.nanoseconds / 1000, printed: plain})
		}
	}
	return list
}

// bestPeer returns the fastest contender on a corpus other than ours and the ceiling, and how many times as fast ours is.
func (r report) bestPeer(corpus string) (name string, ratio float64) {
	for _, c := range r.contenders {
		if slices.Contains(ceiling, c.name) {
			continue
		}
		if t := r.times(ours, c.name, corpus); t > 0 && (ratio == 0 || t < ratio) {
			name, ratio = c.name, t
		}
	}
	return name, ratio
}

func times(x float64) string { return figure(x, 3) + " ×" }
func plain(x float64) string { return figure(x, 3) }

func (r report) printTargets(w io.Writer) {
	row(w, "target", "wanted", "seen", "")
	row(w, "---", "---", "---", "---")
	for _, t := range r.targets() {
		relation := "≥ "
		if t.atMost {
			relation = "≤ "
		}
		seen := "–"
		if t.seen != 0 {
			seen = t.printed(t.seen)
		}
		row(w, t.what, relation+t.printed(t.wanted), seen, t.verdict())
	}
}
