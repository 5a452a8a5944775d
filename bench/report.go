package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/bench/internal/corpora"
)

// report is all that a run has found.
type report struct {
	corpora    corpora.Corpora
	missing    []string
	contenders []contender
	results    map[key]cell
	agreements map[string]float64
	parts      []part
}

func (r report) print(w io.Writer, rounds int, took time.Duration) {
	fmt.Fprintf(w, "%s, %s/%s, %s; best of %d rounds; one core for each contender; %.0f s.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, processor(), rounds, took.Seconds())
	for _, c := range r.corpora.Timed() {
		fmt.Fprintf(w, "- %s: %d documents of %d bytes\n", c.Name, len(c.Documents), len(c.Text)/len(c.Documents)-1)
	}
	for _, m := range r.missing {
		fmt.Fprintf(w, "- missing: %s\n", m)
	}
	fmt.Fprint(w, "\nDocuments a second / MB/s / how many times as fast ours is. The agreement is the mean over near-duplicates "+
		"whose resemblance is ", figure(r.agreements[exactly], 3), ".\n\n")
	r.printSpeeds(w)
	fmt.Fprintln(w)
	r.printParts(w)
	fmt.Fprintln(w)
	r.printTargets(w)
}

func (r report) printSpeeds(w io.Writer) {
	header := []string{"contender", "made of"}
	for _, c := range r.corpora.Timed() {
		header = append(header, c.Name)
	}
	row(w, append(header, "agreement", "its job, where it differs")...)
	row(w, slices.Repeat([]string{"---"}, len(header)+2)...)
	for _, who := range r.ordered() {
		cells := []string{who.name, who.madeOf}
		for _, c := range r.corpora.Timed() {
			cells = append(cells, r.speed(who, c.Name))
		}
		agreement, notes := "", who.notes
		if a, ok := r.agreements[who.name]; ok {
			agreement = figure(a, 3)
		}
		if who.absent != nil {
			notes = "absent: " + oneCell(who.absent)
		}
		row(w, append(cells, agreement, notes)...)
	}
	for _, line := range []struct{ what, sketching, hashing string }{
		{"share of xxhash64", ours, hashing}, {"share of xxhash64, from memory", oursCold, hashCold},
	} {
		share := []string{line.what, "ours"}
		for _, c := range r.corpora.Timed() {
			share = append(share, percent(r.times(line.sketching, line.hashing, c.Name)))
		}
		row(w, append(share, "", "")...)
	}
}

// ceiling are the lines that are no peers, in their order at the top of the table.
var ceiling = []string{copying, hashing, hashCold, ours, oursCold, oursSet}

// ordered returns the ceiling, ours, and the others, the fastest first and absent ones last.
func (r report) ordered() []contender {
	list := slices.Clone(r.contenders)
	place := func(c contender) float64 {
		if i := slices.Index(ceiling, c.name); i >= 0 {
			return float64(i - len(ceiling))
		}
		if found := r.results[key{c.name, "synth"}]; found.seconds > 0 {
			return found.seconds / float64(found.bytes)
		}
		return 1e9
	}
	slices.SortStableFunc(list, func(a, b contender) int { return cmp.Compare(place(a), place(b)) })
	return list
}

func (r report) speed(who contender, corpus string) string {
	found := r.results[key{who.name, corpus}]
	if found.err != nil {
		return "failed: " + oneCell(found.err)
	}
	if found.seconds == 0 {
		return "absent"
	}
	return fmt.Sprintf("%s / %s / %s", thousands(found.documentsPerSecond()), figure(found.megabytesPerSecond(), 3),
		figure(r.times(ours, who.name, corpus), 3))
}

// times returns how many times as fast a is as b on a corpus; 0 where one of them has no result.
func (r report) times(a, b, corpus string) float64 {
	x, y := r.results[key{a, corpus}], r.results[key{b, corpus}]
	if x.seconds == 0 || y.seconds == 0 || x.err != nil || y.err != nil {
		return 0
	}
	return x.megabytesPerSecond() / y.megabytesPerSecond()
}

func (r report) printParts(w io.Writer) {
	row(w, "part", "whose", "time")
	row(w, "---", "---", "---")
	for _, p := range r.parts {
		took := "absent: " + p.absent
		if p.absent == "" {
			took = figure(p.nanoseconds, 3) + " ns a " + p.per
		}
		row(w, p.what, p.who, took)
	}
}

func row(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// oneCell makes an error fit into a cell.
func oneCell(err error) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(err.Error()), " "), "|", "/")
}

// figure prints a number with some significant digits, without an exponent.
func figure(x float64, digits int) string {
	decimals := digits
	for limit := 1.0; decimals > 0 && limit <= x+math.Pow10(-decimals)/2; limit *= 10 {
		decimals--
	}
	if x >= 1000 {
		return thousands(x)
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

func percent(x float64) string {
	if x == 0 {
		return "–"
	}
	return figure(100*x, 3) + " %"
}

// thousands prints a number of three significant digits or more with commas: 302,000.
func thousands(x float64) string {
	unit := 1.0
	for x/unit >= 1000 {
		unit *= 10
	}
	digits := fmt.Sprintf("%.0f", float64(int64(x/unit+.5))*unit)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// processor returns the processor's name as Linux tells it.
func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
