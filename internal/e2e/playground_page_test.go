package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// pageVisit is what somebody does with the playground: playground.js says what a step can be.
type pageVisit struct {
	Name    string           `json:"name"`
	Hash    string           `json:"hash,omitempty"`
	Width   int              `json:"width,omitempty"`
	Height  int              `json:"height,omitempty"`
	Scheme  string           `json:"scheme,omitempty"`
	Reduced bool             `json:"reduced,omitempty"`
	Steps   []map[string]any `json:"steps"`
}

// pageVisited is what was seen, by step that looks, and what must be empty after every visit.
type pageVisited struct {
	Seen       []json.RawMessage
	Complaints []string
	Strangers  []string
}

// pageSeen is what the step "look" sees.
type pageSeen struct {
	Engine, Collapsed        []pageHit
	Summary, Looked, Problem string
	Empty, YAML, Says        string
	Times                    []string
	Login                    bool
	Threshold                float64
	Window                   int
	Focus, Address           string
	Asked                    []string
	AskedByLooking           int
	Credentials              []map[string]string
	Kept                     struct {
		Session, Local map[string]string
		Cookies        string
	}
}

type pageHit struct {
	Rank   int
	ID     string
	Folded []int
}

// act is a step of a visit, with its parts in pairs.
func act(do string, parts ...any) map[string]any {
	s := map[string]any{"do": do}
	for i := 0; i+1 < len(parts); i += 2 {
		s[parts[i].(string)] = parts[i+1]
	}
	return s
}

// visitPage has a browser make visits to the playground of an admin listener, and fails where one went wrong in a way that none may. Folders
// of pictures are made where NEARDUP_SCREENSHOTS says.
func visitPage(t *testing.T, admin string, visits ...pageVisit) map[string]pageVisited {
	t.Helper()
	browser := clients.Browser(t)
	text, err := json.Marshal(visits)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "visits.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := clients.Run(t, "playground.js", "--url", admin, "--browser", browser, "--visits", file, "--shots", os.Getenv("NEARDUP_SCREENSHOTS"))
	var told map[string]pageVisited
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatal(err)
	}
	for _, v := range visits {
		if got := told[v.Name]; len(got.Complaints)+len(got.Strangers) > 0 {
			t.Errorf("%s: %q, asked outside: %q", v.Name, got.Complaints, got.Strangers)
		}
	}
	return told
}

// sawPages reads what the looks of a visit have seen, all of them.
func sawPages(t *testing.T, v pageVisited) (list []pageSeen) {
	t.Helper()
	for _, raw := range v.Seen {
		var seen pageSeen
		if err := json.Unmarshal(raw, &seen); err != nil {
			t.Fatalf("%v: %.300s", err, raw)
		}
		list = append(list, seen)
	}
	return list
}

// typed asks a sidecar or an engine, as any client does, for what is typed into the page, and returns the first 200 ids.
func (a api) typed(t *testing.T, index, q, params string) []string {
	t.Helper()
	var ids []string
	if a.typesense() {
		if q == "" {
			q = "*"
		}
		path := fmt.Sprintf("/collections/%s/documents/search?q=%s&query_by=title,body&per_page=200", index, url.QueryEscape(q))
		var body struct {
			Hits []struct{ Document struct{ ID string } }
		}
		readInto(t, call(t, a.e, "GET", a.base+path+params, "").want(t, 200).body, &body)
		for _, h := range body.Hits {
			ids = append(ids, h.Document.ID)
		}
		return ids
	}
	query := any(map[string]any{"match_all": map[string]any{}})
	if q != "" {
		query = map[string]any{"multi_match": map[string]any{"query": q, "fields": []string{"title", "body"}}}
	}
	body, err := json.Marshal(map[string]any{"size": 200, "query": query, "_source": false})
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	readInto(t, call(t, a.e, "POST", a.base+"/"+index+"/_search?"+strings.TrimPrefix(params, "&"), string(body)).want(t, 200).body, &result)
	for _, h := range result.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func readInto(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
}

// TestPlayground: at any threshold and window the page shows the engine's own list, and collapsed just what the sidecar answers to the same
// search with neardup_threshold and neardup_window. To move the slider asks nobody. The YAML that it shows makes a sidecar that answers so
// without any control.
func TestPlayground(t *testing.T) {
	kinds, moves := []string{engines.Elasticsearch}, 4
	if os.Getenv("NEARDUP_SOAK") != "" {
		kinds, moves = engines.Kinds, 40
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Shared(t, kind)
			index := fmt.Sprintf("w-page-%d", os.Getpid())
			w := monitor(t, config(t, e, setup{match: index}), nil)
			through := api{e, w.base}
			through.create(t, index)
			through.drop(t, index)
			through.load(t, index, documents(t))
			random := rand.New(rand.NewPCG(5, uint64(len(kind))))
			queries, at, visits := []string{"ferry", ""}, make([][]slid, 2), make([]pageVisit, 2)
			for n, q := range queries {
				visits[n], at[n] = movesOf(q, []int{1440, 390}[n], moves, random)
				visits[n].Hash = "#index=" + index
				if e.Key != "" {
					visits[n].Steps = append([]map[string]any{act("login", "key", e.Key)}, visits[n].Steps...)
				}
			}
			visits = append(visits, presetVisit(visits[0]))
			told := visitPage(t, w.admin, visits...)
			checkPreset(t, through, index, sawPages(t, told["preset"]))
			for n, q := range queries {
				seen := sawPages(t, told[visits[n].Name])
				checkMoves(t, through, index, q, at[n], seen)
				if n == 0 {
					checkYAML(t, e, index, q, seen[len(seen)-1])
				}
			}
		})
	}
}

// presetVisit is a visit that looks under a preset, goes back, and looks again. It begins as another visit does.
func presetVisit(as pageVisit) pageVisit {
	v := pageVisit{Name: "preset", Hash: as.Hash, Steps: slices.Clone(as.Steps[:slices.IndexFunc(as.Steps, func(s map[string]any) bool { return s["do"] == "look" })])}
	v.Steps = append(v.Steps, act("threshold", "value", 0.5), act("choose", "what", "preset", "value", "safe"), act("look"),
		act("type", "text", "town"), act("look"), act("back"), act("look"), act("forward"), act("look"), act("back"), act("reload"))
	if v.Steps[0]["do"] == "login" {
		v.Steps = append(v.Steps, v.Steps[0])
	}
	v.Steps = append(v.Steps, act("look"), act("choose", "what", "preset", "value", ""), act("look"))
	return v
}

// checkPreset: a preset has its own threshold, and the address and the browser's way back keep it with the query.
func checkPreset(t *testing.T, through api, index string, seen []pageSeen) {
	t.Helper()
	for n, s := range seen {
		threshold, query := 0.88, []string{"ferry", "town", "ferry", "town", "ferry", "ferry"}[n]
		if n == 5 {
			threshold = 0.7
		}
		want := through.typed(t, index, query, fmt.Sprintf("&neardup=on&neardup_threshold=%v", threshold))
		if diff := cmp.Diff(want, hitIDs(s.Collapsed)); diff != "" || s.Threshold != threshold {
			t.Errorf("look %d at a preset: %v: %s", n, s.Threshold, diff)
		}
		if has := strings.Contains(s.YAML, "preset: safe"); has != (n < 5) || strings.Contains(s.Address, "preset=safe") != (n < 5) {
			t.Errorf("look %d at a preset: %s %s", n, s.Address, s.YAML)
		}
	}
}

// TestPlaygroundNamedIndex: a key that may search but not list finds its way by the index's name.
func TestPlaygroundNamedIndex(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	index := fmt.Sprintf("w-named-%d", os.Getpid())
	direct := api{e, e.URL}
	direct.create(t, index)
	direct.drop(t, index)
	direct.load(t, index, documents(t)[:30])
	key := newKey(t, e, `"documents:search"`, `"w-named-.*"`)
	file := config(t, e, setup{match: "w-named-*"})
	steps := []map[string]any{act("login", "key", key), act("look"), act("name", "text", index), act("look")}
	seen := sawPages(t, visitPage(t, monitor(t, file, nil).admin, pageVisit{Name: "named", Steps: steps})["named"])
	if s := seen[0]; !strings.Contains(s.Problem, "type the name of an index") {
		t.Errorf("a key that may not list: %q", s.Problem)
	}
	if diff := cmp.Diff(direct.typed(t, index, "", ""), hitIDs(seen[1].Engine)); diff != "" {
		t.Errorf("%q: %s", seen[1].Problem, diff)
	}
}

// slid is where the slider stands, and the window.
type slid struct {
	threshold float64
	window    int
}

// movesOf is a visit that types a query and moves the threshold and the window, and looks each time.
func movesOf(q string, width, moves int, random *rand.Rand) (v pageVisit, at []slid) {
	v = pageVisit{Name: fmt.Sprintf("%q", q), Width: width}
	v.Steps = []map[string]any{act("type", "text", q), act("look")}
	at = []slid{{0.7, 200}}
	for n := range moves {
		p := at[len(at)-1]
		switch n % 3 {
		case 0:
			p.threshold = float64(5+random.IntN(96)) / 100
			v.Steps = append(v.Steps, act("slide", "value", p.threshold))
		case 1:
			p.window = 1 + random.IntN(60)
			v.Steps = append(v.Steps, act("window", "value", p.window))
		case 2:
			p.threshold = float64(50+random.IntN(950)) / 1000
			v.Steps = append(v.Steps, act("threshold", "value", p.threshold))
		}
		at = append(at, p)
		v.Steps = append(v.Steps, act("look"))
	}
	return v, at
}

func checkMoves(t *testing.T, through api, index, q string, at []slid, seen []pageSeen) {
	t.Helper()
	direct := api{through.e, through.e.URL}.typed(t, index, q, "")
	folded := 0
	for n, s := range seen {
		about := fmt.Sprintf("%q at %+v", q, at[n])
		if diff := cmp.Diff(direct, hitIDs(s.Engine)); diff != "" {
			t.Fatalf("%s: the engine's list: %s", about, diff)
		}
		want := through.typed(t, index, q, fmt.Sprintf("&neardup=on&neardup_threshold=%v&neardup_window=%d", at[n].threshold, at[n].window))
		for len(want) > 0 && !slices.Contains(direct, want[len(want)-1]) {
			want = want[:len(want)-1] // a page that is filled from behind the ranks that are looked at
		}
		if diff := cmp.Diff(want, hitIDs(s.Collapsed)); diff != "" {
			t.Fatalf("%s: the sidecar's list: %s", about, diff)
		}
		if s.Threshold != at[n].threshold || s.Window != at[n].window || s.AskedByLooking != 0 || len(s.Asked) != len(seen[0].Asked) {
			t.Errorf("%s: %v %d, %q were asked", about, s.Threshold, s.Window, s.Asked)
		}
		if strings.Contains(s.Looked, "another list") {
			t.Errorf("%s: the page says: %s", about, s.Looked)
		}
		folded += checkFolded(t, about, s)
	}
	if folded == 0 {
		t.Errorf("%q: nothing folds", q)
	}
}

// checkFolded checks that every rank is in one place: shown, or below one that is.
func checkFolded(t *testing.T, about string, s pageSeen) (folded int) {
	t.Helper()
	var ranks []int
	for _, hit := range s.Collapsed {
		ranks = append(append(ranks, hit.Rank), hit.Folded...)
		folded += len(hit.Folded)
	}
	slices.Sort(ranks)
	for rank := range s.Engine {
		if rank >= len(ranks) || ranks[rank] != rank {
			t.Fatalf("%s: the ranks in the collapsed list are %v", about, ranks)
		}
	}
	if !strings.HasPrefix(s.Summary, fmt.Sprintf("%d hit", len(s.Engine))) || folded > 0 && !strings.Contains(s.Summary, fmt.Sprintf("%d shown: %d folded", len(s.Collapsed), folded)) {
		t.Errorf("%s: %d hits, %d folded, but it says %q", about, len(s.Engine), folded, s.Summary)
	}
	return folded
}

func hitIDs(hits []pageHit) (ids []string) {
	for _, h := range hits {
		ids = append(ids, h.ID)
	}
	return ids
}

// checkYAML starts a sidecar with the rule that the page shows.
func checkYAML(t *testing.T, e *engines.Engine, index, q string, s pageSeen) {
	t.Helper()
	file := config(t, e, setup{match: index})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "    indices:\n")
	rule := "    indices:\n      " + strings.ReplaceAll(strings.TrimSpace(s.YAML), "\n", "\n      ") + "\n"
	if err := os.WriteFile(file, []byte(head+rule), 0o600); err != nil {
		t.Fatal(err)
	}
	got := api{e, serveFile(t, file)}.typed(t, index, q, "")
	if diff := cmp.Diff(hitIDs(s.Collapsed), got); diff != "" {
		t.Errorf("with\n%s: %s", rule, diff)
	}
}
