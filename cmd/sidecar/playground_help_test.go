package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// lookedAt is a reply of the playground, as far as the page goes by it.
type lookedAt struct {
	Error, Hint string
	Total       int
	Hits        []struct {
		Rank     int
		ID       string
		Title    string
		Fields   map[string]string
		Cut      bool
		Sketch   string
		Shingles int
		Order    int
		Pinned   bool
	}
	Pairs [][]float64
	Rule  struct {
		Threshold  float64
		Window     int
		Preset     string
		Keep       int
		Transitive bool
		Conditions []string
	}
	Sidecar struct {
		Outcome string
		IDs     []string
		Status  int
		Error   string
	}
	Curve struct {
		Positions        int
		Matching, Errors []float64
	}
	YAML   string
	Timing map[string]float64
}

// fold is what the page does: it folds the hits by the pairs alone, and returns the documents that are shown.
func (l *lookedAt) fold(threshold float64, window int) (shown []string) {
	n := min(len(l.Hits), window)
	near := make([][]int, n) // of each rank those before it that it may fold into
	for _, pair := range l.Pairs {
		if i, j := int(pair[0]), int(pair[1]); j < n && pair[2] >= threshold {
			near[j] = append(near[j], i)
		}
	}
	groups := l.byLeaders(near)
	if l.Rule.Transitive {
		groups = l.byComponents(near)
	}
	place := make([]int, n) // which rank is shown in which place, or -1
	for i := range place {
		place[i] = -1
	}
	for leader, members := range groups {
		sorted := slices.SortedFunc(slices.Values(members), func(a, b int) int { return l.Hits[a].Order - l.Hits[b].Order })
		best := sorted[0]
		place[leader] = best
		for _, rank := range sorted[1:min(l.Rule.Keep, len(sorted))] {
			if rank == leader {
				place[best] = rank
			} else {
				place[rank] = rank
			}
		}
	}
	for _, rank := range place {
		if rank >= 0 {
			shown = append(shown, l.Hits[rank].ID)
		}
	}
	for _, hit := range l.Hits[n:] {
		shown = append(shown, hit.ID)
	}
	return shown
}

// byLeaders returns the members of each group by its leader's rank: a hit folds into the first leader that it may.
func (l *lookedAt) byLeaders(near [][]int) map[int][]int {
	groups := map[int][]int{}
	for j, before := range near {
		leader := j
		for _, i := range slices.Sorted(slices.Values(before)) {
			if _, leads := groups[i]; leads {
				leader = i
				break
			}
		}
		groups[leader] = append(groups[leader], j)
	}
	return groups
}

// byComponents returns the members of each connected component by its first rank. One of hits that are not pinned joins the first
// pinned hit before it that any of them may fold into.
func (l *lookedAt) byComponents(near [][]int) map[int][]int {
	of := make([]int, len(near))
	for j := range near {
		of[j] = j
		for _, i := range near[j] {
			if l.Hits[i].Pinned || of[i] == of[j] {
				continue
			}
			from, to := max(of[i], of[j]), min(of[i], of[j])
			for k := range of[:j+1] {
				if of[k] == from {
					of[k] = to
				}
			}
		}
	}
	into := map[int]int{}
	for j := range near {
		for _, i := range near[j] {
			if p, has := into[of[j]]; l.Hits[i].Pinned && i < of[j] && (!has || i < p) {
				into[of[j]] = i
			}
		}
	}
	groups := map[int][]int{}
	for j := range near {
		first := of[j]
		if p, joins := into[first]; joins {
			first = p
		}
		groups[first] = append(groups[first], j)
	}
	return groups
}

// ground is an engine with documents, and how its requests look.
type playGround struct {
	kind, url, key, index string
	// lines are documents that are written, half of them through the sidecar.
	lines []string
}

// playGrounds are the engines that the playground is tried on: the embedded one, which is made with its sidecar, and one of each dialect.
var playGrounds = []string{kindEmbedded, kindOpenSearch, kindTypesense}

// grounded returns an engine's ground. Documents are versions of some texts: changed a little, cut short, the same but for case,
// and without a word; some are written past the sidecar, so that they have no sketch.
func grounded(t *testing.T, kind string) *playGround {
	t.Helper()
	g := &playGround{kind: kind, index: fmt.Sprintf("neardup-play-%d", os.Getpid())}
	if kind != kindEmbedded {
		e := engines.Shared(t, kind)
		g.url, g.key = e.URL, e.Key
	}
	random := rand.New(rand.NewPCG(7, 11))
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for n := range 150 {
		text := playText(random, n%23)
		at := any(day.Add(time.Duration(random.IntN(240)) * time.Hour).Format(time.RFC3339))
		if kind == kindTypesense {
			at = day.Add(time.Duration(random.IntN(240)) * time.Hour).Unix()
		}
		document := map[string]any{
			"title": fmt.Sprint("ferry ", text[:min(len(text), 9)]), "body": text, "host": fmt.Sprintf("h%d.example", random.IntN(4)),
			"published_at": at, "votes": random.IntN(20),
		}
		if n%29 == 3 {
			delete(document, "host")
		}
		if kind == kindTypesense {
			document["id"] = fmt.Sprint("d", n)
		}
		line, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		g.lines = append(g.lines, string(line))
	}
	return g
}

// playText returns a version of a text.
func playText(random *rand.Rand, of int) string {
	own := rand.New(rand.NewPCG(uint64(of), 5))
	words := make([]string, 4+own.IntN(90))
	for i := range words {
		words[i] = fmt.Sprintf("w%d", own.IntN(400))
	}
	for range random.IntN(1 + len(words)/5) {
		words[random.IntN(len(words))] = fmt.Sprintf("x%d", random.IntN(400))
	}
	switch random.IntN(8) {
	case 0:
		words = words[:1+len(words)/2]
	case 1:
		return strings.ToUpper(strings.Join(words, "  "))
	case 2:
		return strings.Join(append(words, "ferry"), " ")
	}
	return strings.Join(words, " ")
}

// hostField is the field that holds the host by document.
func (g *playGround) hostField() string {
	if g.kind == kindTypesense {
		return "host"
	}
	return "host.keyword"
}

// config returns a configuration with the rule's keys.
func (g *playGround) config(rule string) string {
	urls := ""
	if g.url != "" {
		urls = "    urls: [" + g.url + "]\n"
	}
	return fmt.Sprintf(`log: {level: debug, format: json}
admin: 127.0.0.1:0
sketch: {seed: a secret seed}
engines:
  - name: e
    listen: 127.0.0.1:0
    kind: %s
%s    credentials: {api_key: of-the-operator}
    limits: {deadline: 30s}
    indices:
      - match: %s*
        fields: [title, body]
        date_field: published_at
        host_field: %s
%s`, g.kind, urls, g.index, g.hostField(), rule)
}

// fill writes the documents: all but every third through the sidecar, and every seventh once more past it, with another text.
func (g *playGround) fill(t *testing.T, r *reloading) {
	t.Helper()
	through, direct := r.base(t, "e"), g.url
	if direct == "" {
		direct = "http://" + r.embedded["e"].addr.String()
	}
	if g.kind == kindTypesense {
		g.do(t, "DELETE", direct+"/collections/"+g.index, "")
		schema := `{"name":"` + g.index + `","fields":[{"name":"title","type":"string"},{"name":"body","type":"string"},` +
			`{"name":"host","type":"string","optional":true},{"name":"published_at","type":"int64"},{"name":"votes","type":"int32"}]}`
		g.must(t, "POST", through+"/collections", schema)
		t.Cleanup(func() { g.do(t, "DELETE", direct+"/collections/"+g.index, "") })
	} else {
		g.do(t, "DELETE", direct+"/"+g.index, "")
		settings := ""
		if g.kind == kindOpenSearch { // lists of several shards are put together by score
			settings = `"settings":{"number_of_shards":3,"number_of_replicas":0},`
		}
		g.must(t, "PUT", through+"/"+g.index, `{`+settings+`"mappings":{"properties":{"published_at":{"type":"date"}}}}`)
		t.Cleanup(func() { g.do(t, "DELETE", direct+"/"+g.index, "") })
	}
	var bodies [3]strings.Builder // through the sidecar, past it, past it once more
	for n, line := range g.lines {
		first := 0
		if n%3 == 1 {
			first = 1
		}
		g.add(&bodies[first], n, line)
		if n%7 == 0 {
			g.add(&bodies[2], n, g.again(line))
		}
	}
	if g.kind == kindTypesense { // the operator's own places for two hits, of which one has many versions
		g.must(t, "PUT", direct+"/collections/"+g.index+"/overrides/pins", `{"rule":{"query":"ferry","match":"exact"},`+
			`"includes":[{"id":"d5","position":2},{"id":"d28","position":5}]}`)
	}
	for i, base := range []string{through, direct, direct} {
		if g.kind == kindTypesense {
			action := []string{"create", "create", "upsert"}[i]
			g.must(t, "POST", base+"/collections/"+g.index+"/documents/import?action="+action, bodies[i].String())
		} else {
			g.must(t, "POST", base+"/"+g.index+"/_bulk?refresh=true", bodies[i].String())
		}
	}
}

// again returns what a document is replaced with past the sidecar.
func (g *playGround) again(line string) string {
	return strings.Replace(line, `"body":"`, `"body":"quite another beginning of it `, 1)
}

func (g *playGround) add(b *strings.Builder, n int, line string) {
	if g.kind != kindTypesense {
		fmt.Fprintf(b, `{"index":{"_id":"d%d"}}`+"\n", n)
	}
	b.WriteString(line + "\n")
}

func (g *playGround) do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if t.Context().Err() != nil { // cleaning up
		r, err = http.NewRequest(method, url, strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if g.key != "" {
		r.Header.Set("X-Typesense-Api-Key", g.key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (g *playGround) must(t *testing.T, method, url, body string) string {
	t.Helper()
	status, text := g.do(t, method, url, body)
	if status >= 300 || strings.Contains(text, `"errors":true`) || strings.Contains(text, `"success":false`) {
		t.Fatalf("%s %s: %d %.500s", method, url, status, text)
	}
	return text
}

// look asks the playground.
func (g *playGround) look(t *testing.T, admin string, ask map[string]any) (int, *lookedAt) {
	t.Helper()
	if ask == nil {
		ask = map[string]any{}
	}
	ask["engine"], ask["index"] = "e", g.index
	if g.key != "" {
		ask["credentials"] = map[string]string{"key": g.key}
	}
	body, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	status, text := call(t, "POST", admin+"/playground/api/search", string(body))
	l := &lookedAt{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return status, l
}
