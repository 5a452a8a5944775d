package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// toldSearch is one search as a script in Python prints it.
type toldSearch struct {
	headline string
	shown    []string
	folded   map[string][]string // by the id of the hit that is shown
	lines    map[string]string   // of the folded ones
}

var shownLine = regexp.MustCompile(`^ {2}(\S+) +\S`)
var foldedLine = regexp.MustCompile(`^ {4}(\S+) +(agrees by .*)$`)

// readTold takes apart what a script prints. The first part is about loading.
func readTold(t *testing.T, out string) (list []toldSearch) {
	t.Helper()
	for _, part := range strings.Split(strings.TrimSpace(out), "\n\n")[1:] {
		s := toldSearch{folded: map[string][]string{}, lines: map[string]string{}}
		for line := range strings.Lines(part) {
			line = strings.TrimSuffix(line, "\n")
			if m := foldedLine.FindStringSubmatch(line); m != nil {
				leader := s.shown[len(s.shown)-1]
				s.folded[leader], s.lines[m[1]] = append(s.folded[leader], m[1]), m[2]
			} else if m := shownLine.FindStringSubmatch(line); m != nil {
				s.shown = append(s.shown, m[1])
			} else {
				s.headline += line + "\n"
			}
		}
		list = append(list, s)
	}
	if len(list) != 5 {
		t.Fatalf("%d searches are printed, not 5:\n%s", len(list), out)
	}
	return list
}

// groups holds a search with folded hits to the definition over the raw list.
func (x *examples) groups(t *testing.T, raw []string, threshold float64, s toldSearch) {
	t.Helper()
	o, want := x.oracle(t, seed, threshold), map[string][]string{}
	var shown []string
	for _, id := range raw {
		at := slices.IndexFunc(shown, func(l string) bool { return o.near(o.sketches[id], o.sketches[l]) })
		if at < 0 {
			shown = append(shown, id)
			continue
		}
		want[shown[at]] = append(want[shown[at]], id)
		a, b := o.sketches[id], o.sketches[shown[at]]
		agreement, _ := a.Agreement(&b)
		if !strings.HasPrefix(s.lines[id], fmt.Sprintf("agrees by %.2f", agreement)) {
			t.Errorf("%s: %s, want %.4f", id, s.lines[id], agreement)
		}
	}
	if diff := cmp.Diff(shown, s.shown); diff != "" {
		t.Errorf("%s: %s", s.headline, diff)
	}
	if diff := cmp.Diff(want, s.folded); diff != "" || len(want) == 0 {
		t.Errorf("%s: %s", s.headline, diff)
	}
}

// python runs the script for Elasticsearch and holds what it prints to the definition, over the list that the search left alone
// shows.
func (x *examples) python(t *testing.T, through *monitored) {
	at := strings.TrimPrefix(through.base, "http://") + " --index articles-example" + x.suffix
	out := x.run(t, x.block(t, "search_elasticsearch.py"), "localhost:9201", at)
	list := readTold(t, out)
	collapsed, off, other, explained, dry := list[0], list[1], list[2], list[3], list[4]
	for s, want := range map[*toldSearch]string{
		&collapsed: "collapsed; raw=7; ", &off: "bypassed; reason=off", &other: "collapsed; raw=7; ",
		&explained: "collapsed; ", &dry: "dry-run; raw=7; ",
	} {
		ascii := strings.IndexFunc(s.headline, func(r rune) bool { return r > '~' }) < 0 // else clients read it each in its way
		if !ascii || !strings.Contains(s.headline, "\nNeardup: "+want) {
			t.Errorf("%q, want %s", s.headline, want)
		}
	}
	raw := off.shown
	if len(raw) != 7 || !slices.Equal(raw, dry.shown) {
		t.Fatalf("left alone %q, dry run %q", raw, dry.shown)
	}
	if diff := cmp.Diff(x.oracle(t, seed, 0.64).collapsed(raw), collapsed.shown); diff != "" {
		t.Error(diff)
	}
	x.groups(t, raw, 0.9, other)
	x.groups(t, raw, 0.64, explained)
	if len(other.shown) <= len(collapsed.shown) {
		t.Errorf("at the other threshold %q are shown", other.shown)
	}
	if !strings.Contains(explained.lines["ferry-2"]+explained.lines["ferry-1"], "known by fingerprint, over 101 and 101 shingles") {
		t.Errorf("explained:\n%q", explained.lines)
	}
}

// golang runs the program in Go over an index of the articles, and holds what it prints to the definition.
func (x *examples) golang(t *testing.T, e *engines.Engine, base, index string) {
	search := func(control string) (shown, folded []string) {
		command := "go run -C examples/search . -url " + base + " -index " + index + " -control " + control + " ferry\n"
		for line := range strings.Lines(x.run(t, command)) {
			if m := versionLine.FindStringSubmatch(line); m != nil {
				folded = append(folded, m[1])
				continue
			}
			for _, d := range x.list { // a title on a host stands once among the articles
				if strings.HasSuffix(line, ". "+d.Title+"  ("+d.Host+")\n") {
					shown = append(shown, d.ID)
				}
			}
		}
		return shown, folded
	}
	raw, none := search("off")
	shown, folded := search("expand=source")
	if diff := cmp.Diff(x.oracle(t, seed, 0.64).collapsed(raw), shown); diff != "" || len(raw) != 7 || len(none) > 0 {
		t.Errorf("left alone %q %q: %s", raw, none, diff)
	}
	if both := slices.Sorted(slices.Values(slices.Concat(shown, folded))); !slices.Equal(slices.Sorted(slices.Values(raw)), both) {
		t.Errorf("shown %q and folded %q are not all of %q", shown, folded, raw)
	}
}

// typesense runs what the README does with Typesense: the script in Python, and the page.
func (x *examples) typesense(t *testing.T) {
	t.Parallel()
	e := engines.Shared(t, engines.Typesense)
	if got := x.block(t, "examples/typesense.yaml"); got != "go run ./cmd/sidecar serve --config examples/typesense.yaml\n" {
		t.Fatalf("the README starts %q", got)
	}
	through, name := x.serve(t, "typesense.yaml", e.URL), "articles-example"+x.suffix
	api{e: e}.drop(t, name)
	out := x.run(t, x.block(t, "search_typesense.py"),
		"TYPESENSE_API_KEY=xyz", "TYPESENSE_API_KEY="+e.Key,
		"localhost:8109", strings.TrimPrefix(through.base, "http://")+" --collection "+name)
	list := readTold(t, out)
	collapsed, off, other, explained, totals := list[0], list[1], list[2], list[3], list[4]
	raw := off.shown
	want := x.oracle(t, seed, 0.64).collapsed(raw)
	if diff := cmp.Diff([][]string{want, want}, [][]string{collapsed.shown, totals.shown}); diff != "" || len(raw) != 7 {
		t.Errorf("left alone %q: %s", raw, diff)
	}
	x.groups(t, raw, 0.9, other)
	x.groups(t, raw, 0.64, explained)
	if counted := fmt.Sprintf(": %d found, %d shown\n", len(want), len(want)); !strings.HasSuffix(totals.headline, counted) {
		t.Errorf("%q, want %s", totals.headline, counted)
	}
	x.part(t, "page", func(t *testing.T) { x.page(t, e, through) })
}

// shownPage is what the page shows: examples_page.js says of what.
type shownPage struct {
	Stats, Trouble string
	Pages          int
	Hits           []struct {
		ID, Title, Versions string
		Folded              []string
	}
}

// page has a visitor use the search page in a browser, and holds what it shows to the definition over what its key finds.
func (x *examples) page(t *testing.T, e *engines.Engine, through *monitored) {
	block := x.block(t, "npm start")
	const said = "cd examples/instantsearch\nnpm install\n" +
		"TYPESENSE_API_KEY=xyz npm run setup -- --url http://localhost:8109\nnpm start\n"
	if block != said { // the driver does each of them, with the packages that the other tests have
		t.Fatalf("the README says\n%s", block)
	}
	browser, dir, name := clients.Browser(t), t.TempDir(), "articles-page"+x.suffix
	page := filepath.Join(dir, "instantsearch")
	if err := os.Mkdir(page, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"index.html", "app.js", "setup.js", "package.json"} {
		copyFile(t, filepath.Join(x.root, "examples", "instantsearch", file), filepath.Join(page, file))
	}
	copyFile(t, filepath.Join(x.root, "examples", "articles.jsonl"), filepath.Join(dir, "articles.jsonl"))
	x.packages(t)
	api{e: e}.drop(t, name)
	defer x.dropKeys(t, e, name)
	args := []string{"--url", through.base, "--key", e.Key, "--index", name, "--page", page, "--browser", browser}
	if shots := os.Getenv("NEARDUP_SCREENSHOTS"); shots != "" {
		args = append(args, "--screenshots", shots)
	}
	var seen struct {
		Key        string `json:"search_key"`
		Steps      map[string]shownPage
		Requests   []int
		Complaints []string
	}
	if err := json.Unmarshal(clients.Run(t, "examples_page.js", args...), &seen); err != nil {
		t.Fatal(err)
	}
	refused := slices.ContainsFunc(seen.Requests, func(status int) bool { return status != 200 })
	if len(seen.Complaints) > 0 || len(seen.Steps) != 7 || refused {
		t.Errorf("%d steps, %v, %q", len(seen.Steps), seen.Requests, seen.Complaints)
	}
	x.scoped(t, e, through.base, name, seen.Key)
	o := x.oracle(t, seed, 0.64)
	for step, s := range seen.Steps {
		query, all, _ := strings.Cut(strings.TrimSuffix(step, " again"), ", ")
		if query == "at first" {
			query = ""
		}
		x.checkPage(t, o, step, x.found(t, e, name, query, seen.Key), all, s)
	}
}

// dropKeys removes the keys that were made for a collection.
func (x *examples) dropKeys(t *testing.T, e *engines.Engine, name string) {
	t.Helper()
	var all struct {
		Keys []struct {
			ID          int
			Collections []string
		}
	}
	if err := json.Unmarshal(call(t, e, "GET", e.URL+"/keys", "").want(t, 200).body, &all); err != nil {
		t.Fatal(err)
	}
	for _, key := range all.Keys {
		if slices.Equal(key.Collections, []string{name}) {
			call(t, e, "DELETE", fmt.Sprint(e.URL, "/keys/", key.ID), "").want(t, 200)
		}
	}
}

// copyFile copies a file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// packages checks that the versions which the page names are those that it is tested with.
func (x *examples) packages(t *testing.T) {
	t.Helper()
	var lists [2]struct{ Dependencies map[string]string }
	for i, path := range []string{"examples/instantsearch/package.json", "internal/clients/package.json"} {
		text, err := os.ReadFile(filepath.Join(x.root, path))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &lists[i]); err != nil {
			t.Fatal(err)
		}
	}
	for name, version := range lists[0].Dependencies {
		if tested := lists[1].Dependencies[name]; tested != version {
			t.Errorf("the page takes %s %s, and is tested with %q", name, version, tested)
		}
	}
	if want := slices.Sorted(maps.Keys(lists[0].Dependencies)); len(want) != 3 {
		t.Errorf("the page takes %q", want)
	}
}

// found returns what the engine itself finds with a key.
func (x *examples) found(t *testing.T, e *engines.Engine, name, query, key string) (ids []string) {
	t.Helper()
	if query == "" {
		query = "*"
	}
	reply := call(t, e, "GET", e.URL+"/collections/"+name+"/documents/search?q="+query+"&query_by=title,body&per_page=250", "",
		"X-Typesense-Api-Key", key).want(t, 200)
	var body struct {
		Hits []struct{ Document struct{ ID string } }
	}
	if err := json.Unmarshal(reply.body, &body); err != nil {
		t.Fatal(err)
	}
	for _, h := range body.Hits {
		ids = append(ids, h.Document.ID)
	}
	return ids
}

// checkPage holds one page to the definition. all is "", "all" or "all, page 2".
func (x *examples) checkPage(t *testing.T, o *oracle, step string, raw []string, all string, s shownPage) {
	t.Helper()
	const size = 5
	want, from := o.collapsed(raw), 0
	if all != "" {
		want = raw
	}
	if strings.HasSuffix(all, "page 2") {
		from = size
	}
	pages := max((len(want)+size-1)/size, 1)
	if stats := fmt.Sprintf("%d found", len(want)); s.Stats != stats || s.Trouble != "" || s.Pages != pages {
		t.Errorf("%s: %q, %d pages, %q; want %s", step, s.Stats, s.Pages, s.Trouble, stats)
	}
	want = want[from:min(from+size, len(want))]
	if len(s.Hits) != len(want) {
		t.Fatalf("%s: %d hits, want %q", step, len(s.Hits), want)
	}
	for i, hit := range s.Hits {
		versions := 1
		for _, id := range raw {
			if all == "" && id != want[i] && slices.Contains(o.collapsed(raw), want[i]) && x.leader(o, raw, id) == want[i] {
				versions++
			}
		}
		shown := ""
		if versions > 1 {
			shown = fmt.Sprintf("%d versions", versions)
		}
		if hit.ID != want[i] || hit.Versions != shown || len(hit.Folded) != versions-1 {
			t.Errorf("%s: %+v, want %s with %q", step, hit, want[i], shown)
		}
	}
}

// leader returns the leader of a hit's group.
func (x *examples) leader(o *oracle, raw []string, id string) string {
	for _, l := range o.collapsed(raw) {
		if l == id || o.near(o.sketches[id], o.sketches[l]) {
			return l
		}
	}
	return ""
}

// scoped checks that the key of the page finds no draft, and can do nothing but search this collection.
func (x *examples) scoped(t *testing.T, e *engines.Engine, base, name, key string) {
	t.Helper()
	all, some := x.found(t, e, name, "", e.Key), x.found(t, e, name, "", key)
	if len(all) != 12 || len(some) != 11 || slices.Contains(some, "choir-2") {
		t.Errorf("of %q the key finds %q", all, some)
	}
	for _, request := range [][2]string{
		{"GET", "/collections"}, {"GET", "/keys"}, {"DELETE", "/collections/" + name + "/documents/ferry-1"},
		{"POST", "/collections/" + name + "/documents"}, {"GET", "/collections/" + name + "/documents/export"},
	} {
		if r := call(t, e, request[0], base+request[1], `{"id":"x"}`, "X-Typesense-Api-Key", key); r.status != 401 {
			t.Errorf("%s %s with the page's key: %d", request[0], request[1], r.status)
		}
	}
}
