package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// TestSkipAtRandom keeps a ledger of random bulks: every operation is answered in its place; what was left out has a near-duplicate that is
// stored, under another id, in the end; and all else is stored as it would be without us.
func TestSkipAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	skipped := 0
	rounds := effort.Rounds(1000)
	for range rounds {
		b := newBank(t, "news-1", rule.SkipDuplicates, random.IntN(2) == 0)
		model := map[string]string{}
		for n := range random.IntN(4) {
			id, title := fmt.Sprint("d", n), told(random.IntN(5), random.IntN(3))
			b.put(id, title)
			model[id] = title
		}
		b.refused = map[string]bool{"d9": true, "d8": true}
		var ops []string
		var body strings.Builder
		titles := []string{}
		for range 1 + random.IntN(8) {
			id := fmt.Sprint("d", random.IntN(10))
			op := []string{"index " + id, "index " + id, "create", "create", "index", "delete " + id, "update " + id}[random.IntN(7)]
			title := told(random.IntN(5), random.IntN(3))
			ops, titles = append(ops, op), append(titles, title)
			body.WriteString(line(op, title))
		}
		f := b.front(t)
		a := do(t, "POST", f.url+"/news-1/_bulk", body.String())
		got := results(t, a.body)
		if a.status != 200 || len(got) != len(ops) {
			t.Fatalf("%d operations, %d answers: %s", len(ops), len(got), a.body)
		}
		skipped += checkLedger(t, b, model, ops, titles, got)
		if t.Failed() {
			t.Fatalf("%s\n%s", body.String(), a.body)
		}
		f.behind.Close()
	}
	if skipped < rounds/6 {
		t.Errorf("only %d documents were left out", skipped)
	}
}

// checkLedger plays the operations that were answered as done, and compares what is then stored.
func checkLedger(t *testing.T, b *bank, model map[string]string, ops, titles, got []string) (skipped int) {
	t.Helper()
	before := map[string]bool{}
	for id := range model {
		before[id] = true
	}
	stands := map[string]string{}
	for i, op := range ops {
		name, own, _ := strings.Cut(op, " ")
		parts := strings.Split(got[i], " ")
		if len(parts) != 3 || parts[0] != name {
			t.Errorf("operation %d, %s, is answered by %s", i, op, got[i])
			return skipped
		}
		id, result := parts[1], parts[2]
		switch {
		case result == "noop":
			skipped++
			if name == "delete" || name == "update" || id == own || before[own] {
				t.Errorf("%s was left out for %s", op, id)
			}
			stands[titles[i]] = id
		case result != "done" || own != "" && own != id:
			if !b.refused[own] {
				t.Errorf("%s is answered by %s", op, got[i])
			}
		case name == "delete":
			delete(model, id)
		case name != "update":
			model[id] = titles[i]
		}
	}
	stored := map[string]string{}
	for id, document := range b.docs {
		members := expect.Value(jsonedit.Members([]byte(document)))(t)
		stored[id], _ = jsonedit.Text(jsonedit.Get(members, "title"))
	}
	expect.Same(t, model, stored, "what is stored is not what was answered")
	for title, id := range stands {
		one, _ := b.rule.Sketch([]string{title})
		other, _ := b.rule.Sketch([]string{stored[id]})
		if near, _ := b.rule.Profile.NearDuplicates(&one, &other); !near {
			t.Errorf("%s stands for a text that it is no near-duplicate of, or is not there", id)
		}
	}
	return skipped
}
