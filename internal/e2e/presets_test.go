package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// item is a document of the tests of presets.
type item struct {
	N    int      `json:"n"` // also its id, and its place in every list
	Body string   `json:"body"`
	Host string   `json:"host,omitempty"`
	Tags []string `json:"tags,omitempty"`
	At   any      `json:"at,omitempty"`

	// text is which text the body is a version of, as the test made it; at is At.
	text string
	at   time.Time
}

// ruled writes a configuration with the rules, given as YAML flow maps without their braces.
func ruled(t *testing.T, e *engines.Engine, rules ...string) (file string) {
	t.Helper()
	credentials := ""
	if e.Key != "" {
		credentials = ", credentials: {api_key: " + e.Key + "}"
	}
	text := fmt.Sprintf("log: {format: json}\nadmin: \"\"\nsketch: {seed: %q}\nengines: [{listen: \"127.0.0.1:0\", kind: %s, urls: [%q]%s, limits: {deadline: 30s}, indices: [{%s}]}]\n",
		seed, e.Kind, e.URL, credentials, strings.Join(rules, "}, {"))
	file = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// shelve makes an index of the items. Their dates are set as the engine has them.
func (a api) shelve(t *testing.T, index string, items []item) {
	t.Helper()
	api{a.e, a.e.URL}.drop(t, index)
	if a.typesense() {
		call(t, a.e, "POST", a.base+"/collections", `{"name":"`+index+`","fields":[{"name":"n","type":"int64"},{"name":"body","type":"string"},`+
			`{"name":"host","type":"string","optional":true},{"name":"tags","type":"string[]","optional":true},{"name":"at","type":"int64","optional":true}]}`).want(t, 201)
	} else {
		call(t, a.e, "PUT", a.base+"/"+index, `{"mappings":{"properties":{"n":{"type":"integer"},"body":{"type":"text"},`+
			`"host":{"type":"keyword"},"tags":{"type":"keyword"},"at":{"type":"date"}}}}`).want(t, 200)
	}
	a.add(t, index, items)
}

// add writes items.
func (a api) add(t *testing.T, index string, items []item) {
	t.Helper()
	var lines strings.Builder
	for _, i := range items {
		if !i.at.IsZero() {
			i.At = i.at.Format(time.RFC3339)
			if a.typesense() {
				i.At = i.at.Unix()
			}
		}
		line, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		if a.typesense() {
			line = fmt.Appendf(nil, `{"id":"%d",%s`, i.N, line[1:])
		} else {
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n", index, i.N)
		}
		lines.Write(append(line, '\n'))
	}
	a.loadLines(t, index, lines.String())
}

// listed asks for a page of all items, in the order of their numbers, and returns these and the reply.
func (a api) listed(t *testing.T, index string, from, size int, params string) ([]int, reply) {
	t.Helper()
	var r reply
	if a.typesense() {
		path := fmt.Sprintf("/collections/%s/documents/search?q=*&query_by=body&sort_by=n:asc&page=%d&per_page=%d", index, from/size+1, size)
		r = call(t, a.e, "GET", a.base+path+params, "")
	} else {
		body := fmt.Sprintf(`{"from":%d,"size":%d,"sort":["n"]}`, from, size)
		r = call(t, a.e, "POST", a.base+"/"+index+"/_search?"+strings.TrimPrefix(params, "&"), body)
	}
	return numbers(t, a.e, r.want(t, 200)), r
}

// numbers returns the numbers of the items in a reply.
func numbers(t *testing.T, e *engines.Engine, r reply) (list []int) {
	t.Helper()
	var hits []struct {
		Source   item `json:"_source"`
		Document item
	}
	if err := json.Unmarshal([]byte(hitsOnly(t, e, r.body)), &hits); err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		n := h.Source.N
		if e.Kind == engines.Typesense {
			n = h.Document.N
		}
		list = append(list, n)
	}
	return list
}

// folds is a kind of duplicates: which fold by the way they were made, and which of a group is shown in its first one's place.
type folds struct {
	near func(a, b *item) bool
	// better, if not nil, says that a is to be shown rather than b.
	better func(a, b *item) bool
}

// groups returns the items' groups by the definition: the first of each leads it.
func (f folds) groups(items []item) (groups [][]int) {
	for i := range items {
		g := slices.IndexFunc(groups, func(g []int) bool { return f.near(&items[i], &items[g[0]]) })
		if g < 0 {
			groups = append(groups, []int{i})
		} else {
			groups[g] = append(groups[g], i)
		}
	}
	return groups
}

// list returns what is shown of the items.
func (f folds) list(items []item) (list []int) {
	for _, g := range f.groups(items) {
		best := g[0]
		for _, i := range g {
			if f.better != nil && f.better(&items[i], &items[best]) {
				best = i
			}
		}
		list = append(list, items[best].N)
	}
	return list
}

// check walks the pages of all items through a sidecar under the rule, and returns where it stands. The engine itself must list all of
// them, and so many must fold.
func (f folds) check(t *testing.T, e *engines.Engine, index, rule string, items []item, folded int) api {
	t.Helper()
	rule = fmt.Sprintf("match: %q, %s", index, rule)
	through, direct := api{e, serveFile(t, ruled(t, e, rule))}, api{e, e.URL}
	through.shelve(t, index, items)
	raw, _ := direct.listed(t, index, 0, 250, "")
	var all []int
	for _, i := range items {
		all = append(all, i.N)
	}
	if diff := cmp.Diff(all, raw); diff != "" {
		t.Fatalf("the engine's own list: %s", diff)
	}
	want := f.list(items)
	if len(items)-len(want) != folded {
		t.Fatalf("by the definition %d fold, the test is about %d", len(items)-len(want), folded)
	}
	f.walk(t, through, index, items)
	return through
}

// walk holds all pages of the items to what is to be shown.
func (f folds) walk(t *testing.T, through api, index string, items []item) {
	t.Helper()
	want := f.list(items)
	for _, size := range []int{3, 10, 100} {
		var pages [][]int
		for from := 0; ; from += size {
			page, r := through.listed(t, index, from, size, "")
			if len(page) == 0 {
				break
			}
			if state := r.header.Get("Neardup"); !strings.HasPrefix(state, "collapsed;") {
				t.Fatalf("from %d: %s", from, state)
			}
			pages = append(pages, page)
		}
		if diff := cmp.Diff(slices.Collect(slices.Chunk(want, size)), pages); diff != "" {
			t.Errorf("pages of %d, the definition (-), through us (+): %s", size, diff)
		}
	}
}

// writer makes texts of words that mean nothing.
type writer struct{ *rand.Rand }

func newWriter(seed uint64) writer { return writer{rand.New(rand.NewPCG(seed, 7))} }

func (w writer) words(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = w.word()
	}
	return list
}

func (w writer) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	word := make([]byte, 4+w.IntN(5))
	for i := range word {
		word[i] = letters[w.IntN(len(letters))]
	}
	return string(word)
}

// edited returns the words with n of them replaced.
func (w writer) edited(words []string, n int) []string {
	words = slices.Clone(words)
	for _, at := range w.Perm(len(words))[:n] {
		words[at] = w.word()
	}
	return words
}

func text(words []string) string { return strings.Join(words, " ") }

// inFrame returns a page of a host: the article, and what the host puts around it.
func inFrame(host string, article []string) string {
	var paragraphs strings.Builder
	for part := range slices.Chunk(article, 40) {
		paragraphs.WriteString("<p>" + text(part) + ".</p>\n")
	}
	frame := text(newWriter(uint64(len(host)) * 1000003).words(60))
	return "<html><head><title>" + host + "</title></head><body><nav><ul><li><a href=\"/\">home of " + host + "</a></li><li><a href=\"/x\">" + frame[:200] +
		"</a></li></ul></nav><article>" + paragraphs.String() + "</article><footer><a href=\"/imprint\">" + frame[200:] + "</a></footer></body></html>"
}

// TestPresetMirrors has the same article on several hosts, each with its own frame, and twice on some of them.
func TestPresetMirrors(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w, hosts := newWriter(1), []string{"a.example", "bb.example", "ccc.example"}
		var items []item
		for range 8 {
			article := w.words(160)
			for _, host := range []int{0, 1, 0, 2} {
				items = append(items, item{Body: inFrame(hosts[host], w.edited(article, 2)), Host: hosts[host], text: article[0]})
			}
			items = append(items, item{Body: inFrame("dddd.example", w.words(160)), Host: "dddd.example", text: "alone"})
			items = append(items, item{Body: inFrame("a.example", article), text: article[0]}) // of a host that nobody knows
		}
		numbered(w, items)
		sameText := func(a, b *item) bool { return a.text == b.text && a.text != "alone" }
		f := folds{near: func(a, b *item) bool { return sameText(a, b) && a.Host != "" && b.Host != "" && a.Host != b.Host }}
		f.check(t, e, "preset-mirrors", "fields: [body], preset: mirrors, host_field: host", items, len(items)-len(f.list(items)))
		if kept := len(f.list(items)); kept < 8*3 || kept > 8*5 {
			t.Errorf("%d of %d are left: the test is about fewer", kept, len(items))
		}
	})
}

// numbered puts the items into a random order, which is that of their numbers.
func numbered(w writer, items []item) {
	w.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for i := range items {
		items[i].N = i
	}
}

// TestPresetNews has an agency's report in several papers within days, and printed again a year later.
func TestPresetNews(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w, began := newWriter(2), time.Date(2024, 2, 27, 18, 30, 0, 0, time.UTC)
		var items []item
		for n := range 8 {
			report := w.words(120)
			for _, after := range []time.Duration{0, time.Hour, 72 * time.Hour, 366 * 24 * time.Hour, 367 * 24 * time.Hour} {
				cut := w.edited(report, 1)[:110]
				items = append(items, item{Body: text(append(w.words(4), cut...)), text: report[0], at: began.Add(after + time.Duration(n)*time.Minute)})
			}
			items = append(items, item{Body: text(w.edited(report, 4)), text: report[0]}) // without a date
		}
		items = append(items, item{Body: text(w.words(100)), text: "edge", at: began}, item{text: "edge", at: began.Add(72*time.Hour + time.Second)})
		items[len(items)-1].Body = items[len(items)-2].Body
		numbered(w, items)
		f := folds{near: func(a, b *item) bool {
			return a.text == b.text && !a.at.IsZero() && !b.at.IsZero() && a.at.Sub(b.at).Abs() <= 72*time.Hour
		}}
		f.check(t, e, "preset-news", "fields: [body], preset: news, date_field: at", items, 8*3)
	})
}

// TestPresetVersions has versions of texts, of which the newest is shown wherever it ranks, and one without a date never.
func TestPresetVersions(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w, began := newWriter(3), time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC)
		var items []item
		for range 8 {
			version := w.words(120)
			name := version[0]
			for v := range 4 {
				items = append(items, item{Body: text(version), text: name, at: began.Add(time.Duration(v) * 400 * 24 * time.Hour)})
				version = w.edited(version, 3)
			}
			items = append(items, item{Body: text(version), text: name})
		}
		items = append(items, item{Body: text(w.words(90)), text: "alone"})
		numbered(w, items)
		f := folds{
			near:   func(a, b *item) bool { return a.text == b.text },
			better: func(a, b *item) bool { return a.at.After(b.at) },
		}
		f.check(t, e, "preset-versions", "fields: [body], preset: versions, date_field: at", items, 8*4)
	})
}

// TestPresetPlagiarism has texts and excerpts of them, some with words replaced: the whole is shown, and which excerpts fold into it.
func TestPresetPlagiarism(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w := newWriter(14)
		var items []item
		for range 6 {
			whole := w.words(800)
			items = append(items, item{Body: text(whole), text: whole[0]})
			for _, words := range []int{80, 160, 400} { // a tenth, a fifth, a half
				from := w.IntN(len(whole) - words)
				items = append(items, item{Body: text(whole[from : from+words]), text: whole[0]})
				items = append(items, item{Body: text(w.edited(whole[from:from+words], words/20)), text: whole[0]})
			}
			items = append(items, item{Body: text(w.words(200)), text: "alone"})
		}
		w.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		slices.SortStableFunc(items, func(a, b item) int { return wholeFirst(&a, &b) })
		for i := range items {
			items[i].N = i
		}
		f := folds{near: func(a, b *item) bool { return a.text == b.text && a.text != "alone" }}
		through := f.check(t, e, "preset-plagiarism", "fields: [body], preset: plagiarism", items, 6*6)
		_, r := through.listed(t, "preset-plagiarism", 0, 10, "")
		for rank, found := range folded(t, e, r) {
			if want := map[bool]int{true: 6}[rank < 6]; found != want {
				t.Errorf("hit %d is shown with %d folded ones, want %d: %.300s", rank, found, want, r.body)
			}
		}
	})
}

// wholeFirst orders the longest texts first.
func wholeFirst(a, b *item) int {
	return map[bool]int{true: 1}[len(a.Body) < 4000] - map[bool]int{true: 1}[len(b.Body) < 4000]
}

// folded returns how many hits are said to be folded into each hit of a reply.
func folded(t *testing.T, e *engines.Engine, r reply) (counts []int) {
	t.Helper()
	var hits []struct {
		Inner struct {
			Neardup struct {
				Hits struct{ Total struct{ Value int } }
			}
		} `json:"inner_hits"`
		Neardup struct{ Found int }
	}
	if err := json.Unmarshal([]byte(hitsOnly(t, e, r.body)), &hits); err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		counts = append(counts, max(h.Inner.Neardup.Hits.Total.Value, h.Neardup.Found))
	}
	return counts
}

// TestPresetPlagiarismBehindExcerpts has an excerpt rank before its whole: the whole is shown in its place.
func TestPresetPlagiarismBehindExcerpts(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w := newWriter(5)
		var items []item
		for range 6 {
			whole := w.words(600)
			items = append(items, item{Body: text(whole[200:320]), text: whole[0]}, item{Body: text(whole), text: whole[0]},
				item{Body: text(w.words(200)), text: "alone"})
		}
		numbered(w, items)
		f := folds{
			near:   func(a, b *item) bool { return a.text == b.text && a.text != "alone" },
			better: func(a, b *item) bool { return len(a.Body) > len(b.Body) },
		}
		f.check(t, e, "preset-excerpts", "fields: [body], preset: plagiarism", items, 6)
	})
}

// TestPresetSoft404 has error pages under other addresses on several hosts, which answer them with 200, and articles between.
func TestPresetSoft404(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w := newWriter(6)
		var items []item
		for h := range 4 {
			host := fmt.Sprintf("host%d.example", h)
			apology := "We are sorry, but the page /shop/item/%d that you are looking for does not exist. It may have been moved, or its name may have " +
				"changed. Please check the address, or go back to the start page."
			if h > 1 { // some hosts run the same program
				apology = "Error 404: the requested address was not found on this server"
			}
			for n := range 5 {
				page := apology
				if h < 2 {
					page = fmt.Sprintf(apology, n)
				} else {
					page += strings.Repeat("!", n) // another fingerprint
				}
				items = append(items, item{Body: page, Host: host, text: "soft"}, item{Body: text(w.words(80)), Host: host, text: "article"})
			}
		}
		numbered(w, items)
		f := folds{near: func(a, b *item) bool { return a.text == "soft" && b.text == "soft" && a.Host == b.Host }}
		f.check(t, e, "preset-soft404", "fields: [body], preset: soft404, host_field: host", items, 4*4)
	})
}

// TestPresetGoods has things that are known by their tags, whatever is said of them.
func TestPresetGoods(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		w := newWriter(8)
		var items []item
		for range 8 {
			tags := make([]string, 20)
			for i := range tags {
				tags[i] = text(w.words(1 + 12*(i%2)))
			}
			other := slices.Concat(tags[:10], w.words(10)) // shares half of them
			for i := 11; i < 20; i += 2 {
				other[i] = tags[i] + " " + other[i] // nearly the words of a tag: another tag
			}
			one := slices.Clone(tags)
			one[4] = w.word()
			shuffled := slices.Clone(tags)
			w.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			for _, list := range [][]string{tags, one, shuffled} {
				items = append(items, item{Body: text(w.words(30)), Tags: list, text: tags[0]})
			}
			items = append(items, item{Body: items[len(items)-1].Body, Tags: other, text: "other " + tags[0]})
		}
		numbered(w, items)
		f := folds{near: func(a, b *item) bool { return a.text == b.text }}
		f.check(t, e, "preset-goods", "fields: [tags], preset: goods", items, 8*2)
	})
}
