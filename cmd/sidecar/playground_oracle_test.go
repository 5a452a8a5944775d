package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// randomRule returns the keys of a rule that is valid.
func (g *playGround) randomRule(random *rand.Rand) string {
	for {
		rule := g.anyRule(random)
		if _, err := parse([]byte(g.config(rule)), os.LookupEnv); err == nil {
			return rule
		}
	}
}

func (g *playGround) anyRule(random *rand.Rand) string {
	var b strings.Builder
	some := func(chance float64, lines ...string) {
		if random.Float64() < chance {
			b.WriteString("        " + strings.ReplaceAll(lines[random.IntN(len(lines))], "HOST", g.hostField()) + "\n")
		}
	}
	some(0.8, "preset: default", "preset: safe", "preset: thorough", "preset: mirrors", "preset: news", "preset: versions",
		"preset: plagiarism", "preset: soft404", "preset: goods", "preset: chunks")
	some(0.4, "keep: 2", "keep: 3")
	some(0.3, "transitive: true")
	some(0.3, "missing: alone")
	some(0.3, "measure: containment", "measure: resemblance")
	some(0.2, "min_shingles: 0", "min_shingles: 30")
	some(0.2, "dry_run: true")
	some(0.4, "representative: newest", "representative: oldest", "representative: longest", "representative: rank",
		"representative: {field: votes, order: asc}", "representative: {field: votes}",
		"representative: {prefer: HOST, values: [h2.example, h0.example]}")
	some(0.2, "within: {span: 2d}", "within: {span: 12h}")
	switch random.IntN(5) {
	case 0:
		some(1, "same: [HOST]")
	case 1:
		some(1, "different: [HOST]")
	}
	some(0.3, "sketch: {positions: 64, bits: 4}", "sketch: {family: m_smallest}", "sketch: {family: simhash, positions: 256}",
		"sketch: {family: zero_mod_m}", "sketch: {family: permutations}")
	return b.String()
}

// pinning are rules under which it matters that hits are pinned.
var pinning = []string{
	"        transitive: true\n", "        representative: {field: votes}\n        keep: 2\n        preset: thorough\n",
}

// TestPlaygroundFoldsAsTheSidecarDoes: what the page makes of its pairs is what the sidecar answers with neardup_threshold, at
// any threshold, for any rule, and under any preset that the page may ask for.
func TestPlaygroundFoldsAsTheSidecarDoes(t *testing.T) {
	rules, moves := 6, 4
	if testing.Short() {
		rules = 3
	}
	if os.Getenv("NEARDUP_SOAK") != "" {
		rules, moves = 60, 12
	}
	for _, kind := range playGrounds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := grounded(t, kind)
			random := rand.New(rand.NewPCG(3, uint64(len(kind))))
			r := started(t, g.config(""))
			g.fill(t, r)
			folded := 0
			for n := range rules {
				rule, query := g.randomRule(random), []string{"ferry", "", "ferry w1 w2 w3", "w5"}[random.IntN(4)]
				if n < len(pinning) {
					rule, query = pinning[n], "ferry"
				}
				r.become(t, g.config(rule))
				folded += g.compare(t, r, random, rule, query, moves)
			}
			if folded < 10*rules {
				t.Errorf("only %d hits were folded in all", folded)
			}
		})
	}
}

// compare holds the page against the sidecar under one rule, and returns how many hits were folded.
func (g *playGround) compare(t *testing.T, r *reloading, random *rand.Rand, rule, query string, moves int) (folded int) {
	t.Helper()
	admin := r.base(t, "admin")
	for _, preset := range []string{"", presetNames()[random.IntN(len(presetNames()))]} {
		ask := map[string]any{"query": query, "preset": preset, "window": 1000}
		status, page := g.look(t, admin, ask)
		if status != 200 {
			t.Fatalf("%d %+v under:\n%s", status, page, rule)
		}
		if rule == pinning[0] && preset == "" {
			from := map[string]int{}
			for _, hit := range page.Hits {
				from[hit.Sketch]++
			}
			if from["stored"] < len(page.Hits)/2 || from["computed"] < len(page.Hits)/4 || from["none"] > 0 {
				t.Errorf("sketches are from %v", from)
			}
		}
		if g.kind == kindTypesense && query == "ferry" && !(page.Hits[1].Pinned && page.Hits[4].Pinned) {
			t.Error("the hits that the operator pinned are not said to be")
		}
		for range moves {
			threshold, window := page.anyThreshold(random), 1+random.IntN(220)
			ask["threshold"], ask["window"] = threshold, window
			_, now := g.look(t, admin, ask)
			want := page.fold(threshold, window)
			about := fmt.Sprintf("query %q, preset %q, threshold %v, window %d, rule:\n%s", query, preset, threshold, window, rule)
			if !strings.HasPrefix(now.Sidecar.Outcome, "collapsed") {
				t.Fatalf("%+v: %s", now.Sidecar, about)
			}
			if !slices.Equal(now.Sidecar.IDs, want) {
				t.Fatalf("the page shows\n%v\nthe sidecar\n%v\n%s", want, now.Sidecar.IDs, about)
			}
			if preset == "" {
				g.throughTheDoor(t, r, query, threshold, min(window, 200), want, about)
			}
			folded += len(page.Hits) - len(want)
		}
	}
	return folded
}

// anyThreshold returns a threshold: any, that of a pair, or one that lies right above it.
func (l *lookedAt) anyThreshold(random *rand.Rand) float64 {
	if len(l.Pairs) > 0 && random.IntN(2) == 0 {
		at := l.Pairs[random.IntN(len(l.Pairs))][2]
		if random.IntN(2) == 0 {
			at = min(1, math.Nextafter(at, 2))
		}
		return at
	}
	return 0.05 + 0.95*random.Float64()
}

// throughTheDoor asks as any client does.
func (g *playGround) throughTheDoor(
	t *testing.T, r *reloading, query string, threshold float64, window int, want []string, about string,
) {
	t.Helper()
	controls := fmt.Sprintf("neardup=on&neardup_threshold=%v&neardup_window=%d", threshold, window)
	var ids []string
	if g.kind == kindTypesense {
		words := query
		if words == "" {
			words = "*"
		}
		params := url.Values{"q": {words}, "query_by": {"title,body"}, "per_page": {"200"}}
		text := g.must(t, "GET", r.base(t, "e")+"/collections/"+g.index+"/documents/search?"+params.Encode()+"&"+controls, "")
		var reply struct {
			Hits []struct{ Document struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			t.Fatal(err)
		}
		for _, hit := range reply.Hits {
			ids = append(ids, hit.Document.ID)
		}
	} else {
		wanted := map[string]any{"match_all": map[string]any{}}
		if query != "" {
			wanted = map[string]any{"multi_match": map[string]any{"query": query, "fields": []string{"title", "body"}}}
		}
		body, err := json.Marshal(map[string]any{"size": 200, "query": wanted})
		if err != nil {
			t.Fatal(err)
		}
		text := g.must(t, "POST", r.base(t, "e")+"/"+g.index+"/_search?"+controls, string(body))
		var reply struct {
			Hits struct {
				Hits []struct {
					ID string `json:"_id"`
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			t.Fatal(err)
		}
		for _, hit := range reply.Hits.Hits {
			ids = append(ids, hit.ID)
		}
	}
	if len(ids) < len(want) || !slices.Equal(ids[:len(want)], want) {
		t.Fatalf("the page shows\n%v\na client of the sidecar sees\n%v\n%s", want, ids, about)
	}
}
