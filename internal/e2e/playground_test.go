package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// pageLook is what the step "look" sees.
type pageLook struct {
	Engine                 int // hits
	Problem, Summary, YAML string
	Login                  bool
	Threshold              float64
	Window                 int
	Focus                  string
	Address                string
	Kept                   struct {
		Session, Local map[string]string
		Cookies        string
	}
}

// act is a step of a visit to the playground, with its parts in pairs.
func act(do string, parts ...any) map[string]any {
	s := map[string]any{"do": do}
	for i := 0; i+1 < len(parts); i += 2 {
		s[parts[i].(string)] = parts[i+1]
	}
	return s
}

// visitPage has a browser make a visit to the playground of an admin listener, and returns what the steps have seen. The console and the
// page's policy must have nothing to complain of, and nothing outside the page's own origin may be asked.
func visitPage(t *testing.T, admin, hash string, steps ...map[string]any) []json.RawMessage {
	t.Helper()
	text := must(json.Marshal(map[string]any{"hash": hash, "steps": steps}))(t)
	file := filepath.Join(t.TempDir(), "visit.json")
	check(t, os.WriteFile(file, text, 0o600))
	var told struct {
		Seen                  []json.RawMessage
		Complaints, Strangers []string
	}
	decode(t, clients.Run(t, "playground.js", "--url", admin, "--browser", clients.Browser(t), "--visit", file), &told)
	if len(told.Complaints)+len(told.Strangers) > 0 {
		t.Errorf("%q, asked outside: %q", told.Complaints, told.Strangers)
	}
	return told.Seen
}

// seenAs reads what a step has seen.
func seenAs[T any](t *testing.T, raw json.RawMessage) (value T) {
	t.Helper()
	decode(t, raw, &value)
	return value
}

// shelfPage starts a sidecar with an embedded engine that holds documents.
func shelfPage(t *testing.T, list []corpus.Document) *monitored {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(file, []byte(`log: {format: json}
admin: 127.0.0.1:0
engines:
  - {listen: "127.0.0.1:0", name: shelf, kind: embedded, limits: {deadline: 30s}, indices: [{match: shelf, fields: [title, body]}]}
`), 0o600))
	w := monitor(t, file, nil)
	var lines strings.Builder
	for _, d := range list {
		line := must(json.Marshal(d))(t)
		id := must(json.Marshal(d.ID))(t)
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":\"shelf\",\"_id\":%s}}\n%s\n", id, line)
	}
	api{&engines.Engine{Kind: engines.Elasticsearch}, w.base}.loadLines(t, "shelf", lines.String())
	return w
}

// TestPlaygroundByKeyboard searches, moves the threshold, copies the rule and turns pages without a mouse.
func TestPlaygroundByKeyboard(t *testing.T) {
	w := shelfPage(t, documents(t))
	seen := visitPage(t, w.admin, "#engine=shelf&index=shelf",
		act("reach", "on", "#query"), act("press", "key", "t"), act("press", "key", "h"), act("press", "key", "e"), act("press", "key", "Enter"),
		act("reach", "on", "#threshold"), act("press", "key", "ArrowLeft", "times", 9),
		act("reach", "on", "#window"), act("press", "key", "ArrowDown"),
		act("reach", "on", "#copy"), act("press", "key", "Enter"), act("tell", "script", "navigator.clipboard.readText()"),
		act("reach", "on", "#engine-list .tag.fold"), act("press", "key", "Enter"),
		act("tell", "script", "[document.activeElement.localName, document.activeElement.parentElement.open]"),
		act("reach", "on", "#collapsed-pager button:last-of-type", "back", true), act("press", "key", "Space"),
		act("tell", "script", "document.querySelector('#collapsed-pager .place').textContent"),
		act("look"))
	last := seenAs[pageLook](t, seen[3])
	if got := seenAs[string](t, seen[0]); !strings.Contains(got, "threshold: 0.55\n") || !strings.Contains(got, "window: 999\n") || got != last.YAML {
		t.Errorf("copied: %s", got)
	}
	if got := seenAs[[]any](t, seen[1]); got[0] != "summary" || got[1] != true {
		t.Errorf("from a hit that folds the way leads to %v", got)
	}
	if got := seenAs[string](t, seen[2]); !strings.HasPrefix(got, "11–") {
		t.Errorf("the second page is %q", got)
	}
	if last.Threshold != 0.55 || last.Window != 999 || !strings.Contains(last.Address, "q=the&") {
		t.Errorf("%v %v %s", last.Threshold, last.Window, last.Address)
	}
}

// TestPlaygroundOnAPhone: the first hit is in sight, nothing is wider than the screen, and the threshold moves by mouse and by finger. A finger
// that scrolls does not move it.
func TestPlaygroundOnAPhone(t *testing.T) {
	w := shelfPage(t, documents(t))
	at := act("tell", "script", "Number(document.getElementById('threshold').getAttribute('aria-valuenow'))")
	seen := visitPage(t, w.admin, "#index=shelf&q=ferry", act("size", "width", 390, "height", 844), act("reload"),
		act("tell", "script", "[document.querySelector('#collapsed-list .snippet').getBoundingClientRect().bottom, document.documentElement.scrollWidth]"),
		act("axe"), act("drag", "to", 0.8), at, act("drag", "to", 0.2, "touch", true), at,
		act("drag", "to", 0.5, "touch", true, "down", -300), at, act("look"))
	if got := seenAs[[]float64](t, seen[0]); got[0] > 844 || got[1] > 390 {
		t.Errorf("the first hit ends at %v, the page is %v wide", got[0], got[1])
	}
	accessible(t, seen[1])
	for n, want := range []float64{0.81, 0.24, 0.24} {
		if got := seenAs[float64](t, seen[2+n]); math.Abs(got-want) > 0.011 {
			t.Errorf("drag %d: %v, want %v", n, got, want)
		}
	}
	if last := seenAs[pageLook](t, seen[5]); !strings.Contains(last.Summary, " hits hidden in ") {
		t.Errorf("summary: %q", last.Summary)
	}
}

// TestPlaygroundTakesSearches: the page takes a client's own search as JSON, all of it but its page. A mistake in it is selected, and what the
// engine says of it is shown.
func TestPlaygroundTakesSearches(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, direct := fmt.Sprintf("w-own-%d", os.Getpid()), api{e, e.URL}
		direct.create(t, index, documents(t)...)
		const wanted = `{"size": 1, "query": {"bool": {"must": {"match": {"body": "the"}}, "filter": {"match": {"title": "ferry"}}}},
"sort": [{"published_at": "desc"}, {"id": "asc"}], "highlight": {"fields": {"body": {}}}}`
		own, bad, list := wanted, `{"query": {"matc": {}}}`, page{}
		if direct.typesense() {
			own, bad = `{"q": "the", "query_by": "body,title", "per_page": 1, "filter_by": "title:ferry"}`, `{"q": "the", "query_by": "matc"}`
			list = direct.search(t, index, "the", 0, 10, "&query_by=body,title&filter_by=title:ferry")
		} else {
			r := call(t, e, "POST", e.URL+"/"+index+"/_search?size=10", strings.Replace(wanted, `"size": 1, `, "", 1)).want(t, 200)
			list.ids, list.total = idsOf(t, r)
		}
		w := monitor(t, config(t, e, setup{match: index}), nil)
		var steps []map[string]any
		if e.Key != "" {
			steps = append(steps, act("login", "key", e.Key))
		}
		seen := visitPage(t, w.admin, "#q=ferry", append(steps, act("type", "text", own, "key", "Control+Enter"), act("look"),
			act("tell", "script", "[...document.querySelectorAll('#engine-list .id')].map(id => id.textContent)"),
			act("tell", "script", "[...document.querySelectorAll('mark')].map(mark => mark.textContent.toLowerCase())"),
			act("tell", "script", "document.getElementById('rule').textContent"),
			act("type", "text", "{\"q\":\n ]", "key", "Control+Enter"), act("look"), act("axe"),
			act("tell", "script", "getSelection().toString() || query.value.slice(query.selectionStart, query.selectionEnd)"),
			act("type", "text", bad, "key", "Control+Enter"), act("look"))...)
		got := seenAs[[]string](t, seen[1])
		if list.total < 4 || len(list.ids) != min(list.total, 10) {
			t.Fatalf("the engine finds %d hits, of which %d", list.total, len(list.ids))
		}
		same(t, list.ids, got, "the engine's list")
		look := seenAs[pageLook](t, seen[0])
		if !strings.Contains(look.Address, "q="+url.QueryEscape(own)[:20]) || !strings.Contains(look.Summary, " hits hidden in ") {
			t.Errorf("%s, %s", look.Address, look.Summary)
		}
		marks := slices.Compact(seenAs[[]string](t, seen[2]))
		same(t, []string{"the"}, marks, "words that are marked")
		if rule := seenAs[string](t, seen[3]); !strings.Contains(rule, "the sidecar returns the same list") {
			t.Errorf("rule: %s", rule)
		}
		if look := seenAs[pageLook](t, seen[4]); !strings.Contains(look.Problem, "line 2, column 2") || look.Focus != "query" {
			t.Errorf("%+v", look)
		}
		accessible(t, seen[5])
		same(t, "]", seenAs[string](t, seen[6]), "what is selected")
		if look := seenAs[pageLook](t, seen[7]); !strings.Contains(look.Problem, "matc") || look.Engine > 0 {
			t.Errorf("%+v", look)
		}
	})
}

// TestPlaygroundShowsTextAsText: what documents, their ids and the query hold is shown and does nothing.
func TestPlaygroundShowsTextAsText(t *testing.T) {
	hostile := []string{
		`<img src=x onerror="window.hacked=1"> the town keeps its ferry for another year and a day`,
		`</li></ol><script>window.hacked=2</script> the town keeps its ferry for another year and a day`,
		`<svg onload=window.hacked=3><a href="javascript:window.hacked=4">go</a> the town keeps its ferry for a year`,
		"\u202e the town keeps \u0000its ferry {{constructor.constructor('window.hacked=5')()}} ${window.hacked=6} for another year",
	}
	var list []corpus.Document
	for n, text := range hostile {
		body := text + " " + strings.Repeat("and more of it is said here. ", 3)
		list = append(list, corpus.Document{ID: fmt.Sprintf("<b id=q%d>\"'", n), Title: text, Body: body})
	}
	query := `<img src=x onerror=window.hacked=7> ferry`
	seen := visitPage(t, shelfPage(t, list).admin, "#index=shelf&q="+url.QueryEscape(query),
		act("threshold", "value", 0.05), act("words"), act("click", "on", ".whole summary"),
		act("tell", "script", `[...document.querySelectorAll('#engine-list h3')].map(h => h.textContent)`),
		act("tell", "script", `[window.hacked ?? 0, document.querySelectorAll('main :is(img, script, iframe, object, a, b[id^=q])').length]`),
		act("tell", "script", "document.getElementById('query').value"),
		act("type", "text", `"><u>zzz`), act("tell", "script", "[window.hacked ?? 0, document.getElementById('empty').textContent]"))
	for _, name := range seenAs[[]string](t, seen[0]) {
		if !slices.Contains([]string{"ins", "del", "span", "button"}, name) {
			t.Errorf("an element %s among the words", name)
		}
	}
	got := seenAs[[]string](t, seen[1])
	slices.Sort(got)
	slices.Sort(hostile)
	same(t, hostile, got, "titles")
	if got := seenAs[[]int](t, seen[2]); got[0] != 0 || got[1] != 0 {
		t.Errorf("hacked %d, %d elements that are not ours", got[0], got[1])
	}
	same(t, query, seenAs[string](t, seen[3]), "query")
	if got := seenAs[[]any](t, seen[4]); got[0] != 0.0 || !strings.Contains(got[1].(string), `"><u>zzz`) {
		t.Errorf("%v", got)
	}
}

// TestPlaygroundCredentials: the page asks for them where the engine refuses, and has them for as long as it was told: until it is left, or
// until its tab is closed. They never stand in the address, in a cookie or in what outlives the tab.
func TestPlaygroundCredentials(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	target := must(url.Parse(e.URL))(t)
	onwards := httputil.NewSingleHostReverseProxy(target)
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user+password != "readersecret" && r.Header.Get("Authorization") != "ApiKey c2VjcmV0" {
			w.Header().Set("WWW-Authenticate", `Basic realm="security"`)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"type":"security_exception","reason":"missing authentication credentials"},"status":401}`)
			return
		}
		r.Header.Del("Authorization")
		onwards.ServeHTTP(w, r)
	}))
	defer locked.Close()
	index := fmt.Sprintf("w-login-%d", os.Getpid())
	direct := api{e, e.URL}
	direct.create(t, index)
	direct.drop(t, index)
	direct.load(t, index, documents(t)[:40])
	w := monitor(t, config(t, e, setup{match: index, urls: []string{locked.URL}}), nil)

	right := []any{"user", "reader", "password", "secret"}
	seen := visitPage(t, w.admin, "",
		act("look"), act("login", "user", "reader", "password", "wrong"), act("look"), act("login", right...), act("look"),
		act("reload"), act("look"), act("login", append(right, "keep", true)...), act("look"), act("reload"), act("look"),
		act("tab"), act("look"), act("login", "key", "c2VjcmV0"), act("look"), act("click", "on", "#login-open"), act("axe"), act("click", "on", "#forget"), act("look"))
	accessible(t, seen[8])
	seen = slices.Delete(seen, 8, 9)
	type want struct {
		found, login, problem bool
		session               int
	}
	wants := []want{
		{login: true}, {login: true, problem: true}, {found: true}, // none given, wrong ones, the right ones
		{login: true}, {found: true, session: 1}, {found: true, session: 1}, // after leaving; kept; and so after leaving
		{login: true}, {found: true}, {login: true}, // in another tab; with a key; forgotten
	}
	for n := range wants {
		s := seenAs[pageLook](t, seen[n])
		if got := (want{s.Engine > 0, s.Login, s.Problem != "", len(s.Kept.Session)}); got != wants[n] {
			t.Errorf("look %d: %+v, want %+v: %s", n, got, wants[n], s.Problem)
		}
		if len(s.Kept.Local) > 0 || s.Kept.Cookies != "" || strings.Contains(s.Address, "secret") || strings.Contains(s.Address, "reader") {
			t.Errorf("look %d: kept %v, address %s", n, s.Kept, s.Address)
		}
		if n == 0 && s.Focus != "user" {
			t.Errorf("the focus is at %q", s.Focus)
		}
	}
	if log := strings.Join(w.lines(), "\n"); strings.Contains(log, "secret") || strings.Contains(log, "c2VjcmV0") {
		t.Errorf("credentials in the log: %s", log)
	}
}

// accessible fails the test for what axe-core has against states of a page.
func accessible(t *testing.T, states ...json.RawMessage) {
	t.Helper()
	for n, state := range states {
		for _, violation := range seenAs[[][]string](t, state) {
			t.Errorf("axe %d: %q", n, violation)
		}
	}
}

// TestPlaygroundAccessible has axe-core look at the page: with results, with versions compared word by word, and without results.
func TestPlaygroundAccessible(t *testing.T) {
	w := shelfPage(t, documents(t))
	seen := visitPage(t, w.admin, "#engine=shelf&index=shelf", act("axe"),
		act("type", "text", "the"), act("axe"), act("words"), act("axe"),
		act("type", "text", "zzz"), act("axe"), act("tell", "script", "document.documentElement.lang = ''"), act("axe"))
	accessible(t, seen[0], seen[1], seen[3], seen[4])
	if broken := seenAs[[][]string](t, seen[6]); len(broken) != 2 || broken[1][0] != "dark" || broken[1][1] != "html-has-lang" {
		t.Errorf("of a page that breaks a rule axe says %q", broken)
	}
}

const playgroundAssets = "../../playground/assets"

// modules has the playground's scripts answer cases of one kind.
func modules[Case, Answer any](t *testing.T, kind string, cases []Case) []Answer {
	t.Helper()
	text := must(json.Marshal(map[string][]Case{kind: cases}))(t)
	file := filepath.Join(t.TempDir(), "cases.json")
	check(t, os.WriteFile(file, text, 0o600))
	var answers map[string][]Answer
	out := clients.Run(t, "playground_modules.js", "--assets", playgroundAssets, "--cases", file)
	decode(t, out, &answers)
	expect.Must(t, len(cases), len(answers[kind]), "answers to cases")
	return answers[kind]
}

type foldHit struct {
	Order  int  `json:"order"`
	Pinned bool `json:"pinned,omitempty"`
}

type foldOption struct {
	Threshold  float64 `json:"threshold"`
	Window     int     `json:"window"`
	Keep       int     `json:"keep"`
	Transitive bool    `json:"transitive"`
}

type foldCase struct {
	Hits    []foldHit    `json:"hits"`
	Pairs   [][]float64  `json:"pairs"`
	Options []foldOption `json:"options"`

	hits []rerank.Hit
}

type foldAnswer struct {
	Groups []struct {
		Leader, Representative int
		Kept, Folded           []int
	}
	Group   []int
	Shown   []int
	Nearest []float64
}

// TestPlaygroundFolds holds what the page makes of agreements against rerank.Collapse over the sketches.
func TestPlaygroundFolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 10))
	var cases []foldCase
	for range 100 {
		cases = append(cases, randomFolds(random))
	}
	folded := 0
	for n, answers := range modules[foldCase, []foldAnswer](t, "fold", cases) {
		for i, got := range answers {
			c, o := cases[n], cases[n].Options[i]
			profile := *c.hits[0].Profile
			profile.Threshold, profile.Keep = o.Threshold, o.Keep
			hits := slices.Clone(c.hits)
			for i := range hits {
				if hits[i].Profile != nil {
					hits[i].Profile = &profile
				}
			}
			collapse := rerank.Collapse
			if o.Transitive {
				collapse = rerank.CollapseTransitive
			}
			want := collapse(hits, o.Window)
			for rank := min(o.Window, len(hits)); rank < len(hits); rank++ {
				want.Shown = append(want.Shown, rank)
			}
			expect.Must(t, want.Shown, got.Shown, "case %d, %+v: shown", n, o)
			expect.Must(t, len(want.Groups), len(got.Groups), "case %d, %+v: groups", n, o)
			for g, w := range want.Groups {
				is := rerank.Group{Leader: got.Groups[g].Leader, Representative: got.Groups[g].Representative}
				is.Kept, is.Folded = append(is.Kept, got.Groups[g].Kept...), append(is.Folded, got.Groups[g].Folded...)
				expect.Must(t, w, is, "case %d, %+v, group %d", n, o, g)
				for _, rank := range append(w.Folded, w.Leader) {
					expect.Must(t, g, got.Group[rank], "case %d, %+v: the group of rank %d", n, o, rank)
				}
				folded += len(w.Folded)
			}
			c.checkNearest(t, o.Window, got.Nearest)
		}
	}
	if folded < 5000 {
		t.Errorf("only %d hits fold", folded)
	}
}

func (c *foldCase) checkNearest(t *testing.T, window int, got []float64) {
	t.Helper()
	want := make([]float64, min(window, len(c.hits)))
	for _, pair := range c.Pairs {
		if j := int(pair[1]); j < len(want) {
			want[j] = max(want[j], pair[2])
		}
	}
	if !slices.Equal(want, got) {
		t.Fatalf("nearest: %v, want %v", got, want)
	}
}

// randomFolds makes hits whose sketches agree to all degrees, and their pairs as a reply has them.
func randomFolds(random *rand.Rand) foldCase {
	var c foldCase
	p := &rerank.Profile{MinShingles: 8, Chooses: random.IntN(2) == 0}
	n, bases := 1+random.IntN(90), make([][]byte, 1+random.IntN(12))
	for i := range bases {
		bases[i] = make([]byte, 128)
		for k := range bases[i] {
			bases[i][k] = byte(random.Uint32())
		}
	}
	for i := range n {
		k := sketch.Sketch{Scheme: 1, Bits: 8, Shingles: uint32(4 + random.IntN(100)), Fingerprint: uint64(i + 1)}
		if random.IntN(6) == 0 {
			k.Fingerprint = uint64(1000 + random.IntN(5))
		}
		k.Payload = slices.Clone(bases[random.IntN(len(bases))])
		for range random.IntN(110) {
			k.Payload[random.IntN(128)] = byte(random.Uint32())
		}
		hit := rerank.Hit{ID: fmt.Sprint(i), Sketch: &k, Profile: p, Pinned: random.IntN(15) == 0}
		if i > 0 && random.IntN(12) == 0 { // the first has the profile
			hit.Sketch, hit.Profile = nil, nil
		}
		if random.IntN(5) > 0 {
			hit.Traits.Merit = rerank.Merit{Known: true, Number: float64(random.IntN(6))}
		}
		c.hits = append(c.hits, hit)
		c.Hits = append(c.Hits, foldHit{Order: orderOf(hit, i), Pinned: hit.Pinned})
	}
	c.Pairs = pairsBetween(c.hits)
	for range 12 {
		o := foldOption{Threshold: 0.05 + 0.95*random.Float64(), Window: random.IntN(n + 20), Keep: 1 + random.IntN(3), Transitive: random.IntN(2) == 0}
		if len(c.Pairs) > 0 && random.IntN(2) == 0 {
			o.Threshold = c.Pairs[random.IntN(len(c.Pairs))][2] // right on the edge, or beside it
			if random.IntN(2) == 0 {
				o.Threshold = min(1, math.Nextafter(o.Threshold, 2))
			}
		}
		c.Options = append(c.Options, o)
	}
	return c
}

// orderOf is by what the page chooses a group's representative.
func orderOf(hit rerank.Hit, rank int) int {
	merit := hit.Traits.Merit
	switch {
	case hit.Profile == nil || !hit.Profile.Chooses:
		return rank
	case !merit.Known:
		return 1000
	}
	return 100 - int(merit.Number)
}

// pairsBetween are the pairs that can fold at a threshold of at least 0.05, each with the greatest at which they do.
func pairsBetween(hits []rerank.Hit) [][]float64 {
	pairs := [][]float64{}
	for j := range hits {
		for i := range j {
			a, b := hits[i], hits[j]
			if a.Sketch == nil || b.Sketch == nil || b.Pinned {
				continue
			}
			agreement, _ := b.Sketch.Agreement(a.Sketch)
			switch {
			case b.Sketch.SameText(a.Sketch):
				pairs = append(pairs, []float64{float64(i), float64(j), 1, 1})
			case agreement >= 0.05 && min(a.Sketch.Shingles, b.Sketch.Shingles) >= 8:
				pairs = append(pairs, []float64{float64(i), float64(j), agreement})
			}
		}
	}
	return pairs
}

type wordsCase struct {
	A string `json:"a"`
	B string `json:"b"`
}

type wordsAnswer struct {
	A     []string  `json:"a"`
	B     []string  `json:"b"`
	Whole [2]string `json:"whole"`
	Runs  []struct {
		Kind string `json:"kind"`
	} `json:"runs"`
}

// TestPlaygroundWords: the page cuts texts into the words that sketches are made of, numbers and signs among them, and shows all of the text.
func TestPlaygroundWords(t *testing.T) {
	cases := []wordsCase{
		{"Take 1.5 mg or 4.0 mg.", "Take 15 mg or 40 mg."},
		{"EUR 1.250,00", "EUR -125.000"},
		{"nginx 1.25.3", "nginx 12.5.3"},
		{"if a == b && c", "if a != b && c"},
		{"-3 degrees", "3 degrees"},
		{"a well-known co-op, pages 3-4", "a well known co op, pages 3 5"},
		{"10² is 100", "102 is 100"},
		{"50% off, $5", "50 off, 5"},
		{"Résumé: don’t", "resume dont"},
		{"(see below)", "see below!"},
	}
	for i, got := range modules[wordsCase, wordsAnswer](t, "diff", cases) {
		c := cases[i]
		same(t, sketch.Words(c.A), got.A, c.A)
		same(t, sketch.Words(c.B), got.B, c.B)
		same(t, [2]string{c.A, c.B}, got.Whole, c.A)
		differ := slices.ContainsFunc(got.Runs, func(run struct {
			Kind string `json:"kind"`
		}) bool {
			return run.Kind != "same"
		})
		if equal := i >= len(cases)-2; differ == equal {
			t.Errorf("%s | %s: %+v", c.A, c.B, got.Runs)
		}
	}
}

type queryCase struct {
	Query string `json:"query"`
	Text  string `json:"text"`
}

type queryAnswer struct {
	Words   []string
	Excerpt string
}

// TestPlaygroundMarks: the words of a query are found in a text, those of a client's own search without its fields and filters; an excerpt begins
// shortly before the first.
func TestPlaygroundMarks(t *testing.T) {
	filler := strings.Repeat("filler ", 20)
	cases := []queryCase{
		{"ferry (or) a+b", "The FERRY, a ferryman and b."},
		{"", "nothing is sought"},
		{"東京", "新しい東京都庁"},
		{`{"query": {"bool": {"must": [{"match": {"body": {"query": "late ferry", "operator": "or"}}}],
			"filter": {"term": {"kind": "boat"}}}}, "sort": ["body"]}`, "A late boat or a ferry: body."},
		{`{"q": "ferry", "query_by": "title"}`, filler + "the title: ferry times and more of it"},
		{"elsewhere", filler},
	}
	want := []queryAnswer{
		{[]string{"FERRY", "a", "b"}, "The FERRY, a ferryman and b."},
		{[]string{}, "nothing is sought"},
		{[]string{"東京"}, "新しい東京都庁"},
		{[]string{"late", "ferry"}, "A late boat or a ferry: body."},
		{[]string{"ferry"}, "… filler the title: ferry times "},
		{[]string{}, filler[:30]},
	}
	same(t, want, modules[queryCase, queryAnswer](t, "query", cases), "words that are marked")
}
