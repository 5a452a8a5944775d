package main

import (
	"strconv"
	"testing"

	"github.com/neardup/sidecar/sketch"
)

// TestMade holds what is made to the statistics that it is made by. Strangers, which share a band by a template, are nearer to one another than real
// ones: of those that are made by the agreement of real ones, the nearer share a band more often.
func TestMade(t *testing.T) {
	want, err := learned()
	if err != nil {
		t.Fatal(err)
	}
	r, err := theRule()
	if err != nil {
		t.Fatal(err)
	}
	const n = 60000
	m := newMaker(n, 1, r.Sketcher.SchemeID(), want)
	list, places := make([]sketch.Sketch, n), map[uint64]bool{}
	for i := range list {
		m.document(i, &list[i])
		places[m.permuted(uint64(i))] = true
	}
	if len(places) != n {
		t.Errorf("%d documents are at %d places", n, len(places))
	}
	l := newCollector(r)
	if err := l.add(t.Context(), "made", list); err != nil {
		t.Fatal(err)
	}
	got := l.done()
	within := func(what string, got, least, most float64) {
		t.Helper()
		if got < least || got > most {
			t.Errorf("%s: %.3f, not from %.3f to %.3f", what, got, least, most)
		}
	}
	within("copies among duplicates", got.Copies, want.Copies-0.05, want.Copies+0.05)
	within("short texts", got.Short, want.Short-0.02, want.Short+0.02)
	chance := want.Chance * n / float64(want.Documents) // each text meets as many more
	within("bands shared by chance", got.Chance, 0.8*chance, 1.2*chance)
	clusters := 0
	for _, count := range got.Clusters {
		clusters += count
	}
	within("duplicates", 1-float64(clusters)/n, duplicates-0.04, duplicates+0.04)
	for _, q := range []int{8, 16, 24} {
		at := " at " + strconv.Itoa(q) + " of 32"
		within("agreement of near-duplicates"+at, got.Near[q], want.Near[q]-0.03, want.Near[q]+0.03)
		within("agreement of unrelated texts"+at, got.Unrelated[q], want.Unrelated[q]-0.015, want.Unrelated[q]+0.015)
		within("agreement of strangers that share a band"+at, got.Strangers[q], want.Strangers[q]-0.02, want.Strangers[q]+0.2)
	}
}
