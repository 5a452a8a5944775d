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
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
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
	check(t, os.WriteFile(file, []byte(text), 0o600))
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
		line := must(json.Marshal(i))(t)
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
	decode(t, []byte(hitsOnly(t, e, r.body)), &hits)
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

// list returns what is shown of the items: of each group, which its first one leads, the best.
func (f folds) list(items []item) (list []int) {
	var leaders, best []int
	for i := range items {
		g := slices.IndexFunc(leaders, func(l int) bool { return f.near(&items[i], &items[l]) })
		if g < 0 {
			leaders, best = append(leaders, i), append(best, i)
		} else if f.better != nil && f.better(&items[i], &items[best[g]]) {
			best[g] = i
		}
	}
	for _, i := range best {
		list = append(list, items[i].N)
	}
	return list
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
	frame := text(newWriter(uint64(len(host)) * 1000003).words(60))
	return "<html><head><title>" + host + "</title></head><body><nav><ul><li><a href=\"/x\">" + frame[:200] + "</a></li></ul></nav><article><p>" +
		text(article) + ".</p></article><footer><a href=\"/imprint\">" + frame[200:] + "</a></footer></body></html>"
}

// numbered puts the items into a random order, which is that of their numbers.
func numbered(w writer, items []item) {
	w.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	for i := range items {
		items[i].N = i
	}
}

// TestPresets has each preset fold documents of the kind it is for, and no others.
func TestPresets(t *testing.T) {
	began := time.Date(2024, 2, 27, 18, 30, 0, 0, time.UTC)
	alike := func(a, b *item) bool { return a.text == b.text }
	const families = 4
	cases := []struct {
		name, rule string
		family     func(w writer) []item // of which some fold
		folded     int                   // in each family
		folds
	}{
		{"mirrors", "fields: [body], preset: mirrors, host_field: host", mirrored, 2, folds{near: func(a, b *item) bool {
			return alike(a, b) && a.Host != "" && b.Host != "" && a.Host != b.Host
		}}},
		{"news", "fields: [body], preset: news, date_field: at", func(w writer) (items []item) {
			// An agency's report in several papers within days, again a year later, and without a date.
			report := w.words(120)
			for _, after := range []time.Duration{0, time.Hour, 72 * time.Hour, 366 * 24 * time.Hour, 367 * 24 * time.Hour} {
				items = append(items, item{Body: text(append(w.words(4), w.edited(report, 1)[:110]...)), text: report[0], at: began.Add(after)})
			}
			return append(items, item{Body: text(w.edited(report, 4)), text: report[0]})
		}, 3, folds{near: func(a, b *item) bool {
			return alike(a, b) && !a.at.IsZero() && !b.at.IsZero() && a.at.Sub(b.at).Abs() <= 72*time.Hour
		}}},
		{"versions", "fields: [body], preset: versions, date_field: at", func(w writer) (items []item) {
			// The newest is shown wherever it ranks, and one without a date never.
			version := w.words(120)
			name := version[0]
			for v := range 4 {
				items = append(items, item{Body: text(version), text: name, at: began.Add(time.Duration(v) * 400 * 24 * time.Hour)})
				version = w.edited(version, 3)
			}
			return append(items, item{Body: text(version), text: name})
		}, 4, folds{alike, func(a, b *item) bool { return a.at.After(b.at) }}},
		{"plagiarism", "fields: [body], preset: plagiarism", func(w writer) []item {
			// The whole is shown in the place of an excerpt that ranks before it.
			whole := w.words(600)
			return []item{{Body: text(w.edited(whole[200:320], 3)), text: whole[0]}, {Body: text(whole), text: whole[0]}}
		}, 1, folds{alike, func(a, b *item) bool { return len(a.Body) > len(b.Body) }}},
		{"soft404", "fields: [body], preset: soft404, host_field: host", func(w writer) (items []item) {
			// Error pages of a host that answers them with 200, and articles between.
			host := w.word() + ".example"
			for n := range 5 {
				page := fmt.Sprintf("We are sorry, but the page /shop/item/%d that you are looking for does not exist. It may have been moved, or "+
					"its name may have changed. Please check the address, or go back to the start page.", n)
				items = append(items, item{Body: page, Host: host, text: host}, item{Body: text(w.words(80)), Host: host, text: w.word()})
			}
			return items
		}, 4, folds{near: alike}},
		{"goods", "fields: [tags], preset: goods", tagged, 2, folds{near: alike}},
	}
	onEach(t, true, []string{engines.OpenSearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		var rules []string
		for _, c := range cases {
			rules = append(rules, fmt.Sprintf("match: preset-%s, %s", c.name, c.rule))
		}
		through := api{e, serveFile(t, ruled(t, e, rules...))}
		for _, c := range cases {
			w, index := newWriter(1), "preset-"+c.name
			var items []item
			for range families {
				items = append(items, c.family(w)...)
			}
			numbered(w, items)
			want := c.list(items)
			expect.Must(t, c.folded*families, len(items)-len(want), "%s: what folds by the definition", c.name)
			through.shelve(t, index, items)
			for from := 0; from < len(want); from += 7 {
				page, r := through.listed(t, index, from, 7, "")
				same(t, want[from:min(from+7, len(want))], page, "%s from %d, %s: the definition (-), through us (+)", c.name, from, r.header.Get("Neardup"))
			}
		}
	})
}

// mirrored is an article on several hosts, each with its own frame, on a host that nobody knows, and another one in such a frame.
func mirrored(w writer) (items []item) {
	article := w.words(160)
	for _, host := range []string{"a.example", "bb.example", "ccc.example"} {
		items = append(items, item{Body: inFrame(host, w.edited(article, 2)), Host: host, text: article[0]})
	}
	other := item{Body: inFrame("dddd.example", w.words(160)), Host: "dddd.example", text: w.word()}
	return append(items, other, item{Body: inFrame("a.example", article), text: article[0]})
}

// tagged are things that are known by their tags, whatever is said of them, and one that shares half of them.
func tagged(w writer) (items []item) {
	tags := make([]string, 20)
	for i := range tags {
		tags[i] = text(w.words(1 + 12*(i%2)))
	}
	other := slices.Concat(tags[:10], w.words(10))
	for i := 11; i < 20; i += 2 {
		other[i] = tags[i] + " " + other[i] // nearly the words of a tag: another tag
	}
	one, shuffled := slices.Clone(tags), slices.Clone(tags)
	one[4] = w.word()
	w.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, list := range [][]string{tags, one, shuffled} {
		items = append(items, item{Body: text(w.words(30)), Tags: list, text: tags[0]})
	}
	return append(items, item{Body: items[2].Body, Tags: other, text: w.word()})
}

// TestPresetChunks retrieves passages by the distance of their vectors. Each was cut out three times, a few words on and shorter: the page
// holds as many different ones as were asked for.
func TestPresetChunks(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const index, passages, size = "preset-chunks", 40, 10
	through := api{e, serveFile(t, ruled(t, e, fmt.Sprintf("match: %q, fields: [body], preset: chunks", index)))}
	through.drop(t, index)
	call(t, e, "POST", through.base+"/collections", `{"name":"`+index+`","fields":[{"name":"n","type":"int64"},{"name":"body","type":"string"},`+
		`{"name":"v","type":"float[]","num_dim":2}]}`).want(t, 201)
	w := newWriter(9)
	var lines strings.Builder
	var want []int
	for p := range passages {
		source := w.words(140)
		for c, cut := range [][]string{source[:120], source[20:], source[30:90]} { // 100 and 60 words of the first
			fmt.Fprintf(&lines, `{"id":"%d","n":%d,"body":%q,"v":[%d,1]}`+"\n", p*3+c, p*3+c, text(cut), p*3+c)
		}
		want = append(want, p*3)
	}
	through.loadLines(t, index, lines.String())
	for from := 0; from < 3*size; from += size {
		path := fmt.Sprintf("/collections/%s/documents/search?q=*&page=%d&per_page=%d&vector_query=%s",
			index, from/size+1, size, url.QueryEscape(fmt.Sprintf("v:([0.001,1],k:%d)", 3*size)))
		r := call(t, e, "GET", through.base+path, "").want(t, 200)
		same(t, want[from:from+size], numbers(t, e, r), "from %d, %s", from, r.header.Get("Neardup"))
	}
}
