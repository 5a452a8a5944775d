package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
)

func TestInit(t *testing.T) {
	logs := func(field string) *surveyedIndex {
		return &surveyedIndex{fields: map[string]string{field: "text"}, documents: []string{fmt.Sprintf(`{%q:"a line of a log with some words"}`, field)}}
	}
	hidden := articles()
	hidden.attributes = []string{"hidden"}
	closed := articles()
	closed.attributes = []string{"closed"}
	aliased := articles()
	aliased.aliases = []string{"shop"}
	stream := articles()
	stream.stream = true
	numbers := &surveyedIndex{fields: map[string]string{"n": "long", "host": "keyword"}, documents: []string{`{"n":1,"host":"a"}`}}
	for _, c := range []struct {
		name    string
		indices map[string]*surveyedIndex
		args    []string
		want    []string
		says    []string // patterns of what the file and the output say
	}{
		{
			name: "an index", indices: map[string]*surveyedIndex{"news": articles()}, want: []string{"news: title body"},
			says: []string{
				`# news: 5 documents\.\n +# Of all of them, 2 are near-duplicates`, `url +100 % +\d+ +left out: no sentences`, `#date_field: published_at`,
				`#host_field: host`, `news  5 documents  title, body  2 of 5 near-duplicates`,
			},
		},
		{
			name: "what looks alike", want: []string{"shop-v*: title body", "logs-*: message"},
			indices: map[string]*surveyedIndex{"logs-2026.01": logs("message"), "logs-2026.02": logs("message"), "shop-v7": aliased},
			says:    []string{`# logs-\*: 2 indices, 2 documents`, `Now: logs-2026\.02, logs-2026\.01`, `Aliases that lead there: shop;`},
		},
		{
			name: "a pattern that takes another one's index", want: []string{"logs-errors: note", "logs-*: message"},
			indices: map[string]*surveyedIndex{"logs-1": logs("message"), "logs-2": logs("message"), "logs-errors": logs("note")},
		},
		{
			name: "a data stream", indices: map[string]*surveyedIndex{"reports-app-default": stream}, want: []string{"reports-app-default: title body"},
			says: []string{"a data stream, 5 documents"},
		},
		{
			name: "what is left alone", want: []string{"news: title body"},
			indices: map[string]*surveyedIndex{
				"news": articles(), "secret": hidden, "old": closed, "metrics": numbers, ".kibana": articles(), "neardup-jobs": articles(),
			},
			says: []string{"# +secret: is hidden", "# +old: is closed", "# +metrics: no field holds a text"},
		},
		{
			name: "a name that no rule can have", indices: map[string]*surveyedIndex{"my news": articles(), "news": articles()}, want: []string{"news: title body"},
			says: []string{`# +my news: no rule can be written for it: match: "my news" is no single name`},
		},
		{name: "nothing", want: []string{"news-*: title body"}},
		{
			name: "odd names", indices: map[string]*surveyedIndex{"true": articles(), "$x": articles(), "été": articles()},
			want: []string{"$x: title body", "true: title body", "été: title body"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &surveyedEngine{t: t, version: "8.19.13", indices: c.indices}
			got, text := surveyedFor(t, append(c.args, e.at())...)
			if got.code != exitDone || got.stderr != "" {
				t.Fatalf("%+v", got)
			}
			rules := ruled(t, text)
			slices.Sort(c.want)
			ordered := slices.Clone(rules)
			slices.Sort(ordered)
			expect.Same(t, c.want, ordered, "%s", text)
			for _, pattern := range c.says {
				if !regexp.MustCompile(pattern).MatchString(text + got.stdout) {
					t.Errorf("nothing says %q:\n%s%s", pattern, text, got.stdout)
				}
			}
			for line := range strings.Lines(text) {
				if len([]rune(line)) > 150 {
					t.Errorf("a long line: %s", line)
				}
			}
		})
	}
}

// TestInitOnHundreds meets hundreds of names that have nothing in common, of which few hold texts.
func TestInitOnHundreds(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{}}
	name := func(kind string, i int) string {
		return kind + strings.Repeat("x", 1+i/26) + string(rune('a'+i%26))
	}
	for i := range 200 { // with more documents than those with texts
		e.indices[name("metrics-", i)] = &surveyedIndex{fields: map[string]string{"host": "keyword"}, documents: slices.Repeat([]string{`{"host":"a"}`}, 20)}
	}
	for i := range 60 {
		e.indices[name("articles-", i)] = articles()
	}
	for i := range 300 { // which comes behind the others
		e.indices[name("numbers-", i)] = &surveyedIndex{fields: map[string]string{"n": "long"}, documents: []string{`{"n":1}`}}
	}
	got, text := surveyedFor(t, e.at())
	expect.Must(t, exitDone, got.code, "%+v", got)
	rules := ruled(t, text)
	if len(rules) != 40 || slices.ContainsFunc(rules, func(r string) bool { return !strings.HasPrefix(r, "articles-") }) {
		t.Errorf("%d rules: %q", len(rules), rules)
	}
	expect.Same(t, 300, int(e.described.Load()), "indices whose fields were asked for")
	if lines := strings.Count(text, "\n"); lines > 1000 || !strings.Contains(text, "not looked at, as there are many: name it with --index") {
		t.Errorf("%d lines: %s", lines, text)
	}
}

func TestInitEndsWithWords(t *testing.T) {
	good := func(t *testing.T) *surveyedEngine {
		return &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{"news": articles()}}
	}
	locked := func(s *surveyedEngine) { s.locked = true }
	for _, c := range []struct {
		name   string
		change func(*surveyedEngine)
		env    map[string]string
		args   []string
		code   int
		want   string // pattern of both streams
	}{
		{name: "locked", change: locked, code: exitFailed, want: `Elasticsearch wants credentials: export ENGINE_USERNAME and ENGINE_PASSWORD, or ENGINE_API_KEY, and run it again`},
		{name: "good credentials", change: locked, env: map[string]string{"ENGINE_USERNAME": "elastic", "ENGINE_PASSWORD": "canary-password"}, want: "title, body"},
		{name: "another index", args: []string{"--index", "x"}, code: exitFailed, want: "--index: the engine has no x: it has news"},
		{
			name: "a web page", change: func(s *surveyedEngine) { s.distorted = "<html>" }, code: exitFailed,
			want: "is not Elasticsearch, OpenSearch or Typesense: name the engine's own address",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			e := good(t)
			if c.change != nil {
				c.change(e)
			}
			got, text := surveyedFor(t, append(c.args, e.at())...)
			if got.code != c.code || !regexp.MustCompile(c.want).MatchString(got.stdout+got.stderr) {
				t.Errorf("%+v", got)
			}
			if login := "    credentials:\n      username: ${ENGINE_USERNAME:-}\n"; text != "" && strings.Contains(text, login) != (len(c.env) > 0) {
				t.Errorf("%s", text)
			}
			expect.Same(t, c.code != exitDone, text == "", "that nothing is written; it ended with %d: %s", got.code, text)
			for _, secret := range []string{"canary", surveyedLogin} {
				if strings.Contains(text+got.stdout+got.stderr, secret) {
					t.Errorf("it shows a secret: %+v: %s", got, text)
				}
			}
		})
	}
	got, text := surveyedFor(t, "http://user:pw@127.0.0.1:1")
	if got.code != exitFailed || !strings.Contains(got.stderr, "the URL contains a user name") || text != "" {
		t.Errorf("%+v", got)
	}
}

// TestInitWritesNothingOver looks at what is there already, and at the manual in its place.
func TestInitWritesNothingOver(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{"news": articles()}}
	at := e.at()
	manual := expect.Value(os.ReadFile(filepath.Join("..", "..", "config.yaml")))(t)
	t.Chdir(t.TempDir())
	put := func(name, text string) {
		expect.OK(t, os.WriteFile(name, []byte(text), 0o600))
	}
	holds := func(name, want string) {
		t.Helper()
		if text, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %v: %.80s", name, err, text)
		}
	}
	const written = "# Written by `sidecar init` for Elasticsearch 8.19.13 at http://"
	put("config.yaml", "mine")
	got := sidecar(t, "init", at)
	if got.code != exitFailed || !strings.Contains(got.stderr, "config.yaml is there already: run it with: sidecar serve; or write it anew with --force") {
		t.Errorf("%+v", got)
	}
	holds("config.yaml", "mine")
	if got := sidecar(t, "init", "--output", "other name.yaml", at); got.code != exitDone ||
		!strings.Contains(got.stdout, "sidecar serve --config 'other name.yaml'") {
		t.Errorf("%+v", got)
	}
	holds("other name.yaml", written)
	expect.Same(t, exitDone, sidecar(t, "init", "--force", at).code, "with --force")
	holds("config.yaml", written)
	put("config.yaml", string(manual))
	for _, args := range [][]string{{}, {"--force"}} {
		if got := sidecar(t, append([]string{"init", at}, args...)...); got.code != exitDone ||
			!strings.Contains(got.stdout, "sidecar serve --config config.local.yaml") {
			t.Errorf("%+v", got)
		}
		holds("config.yaml", string(manual))
		holds("config.local.yaml", written)
	}
	got = sidecar(t, "init", "--output", "-", at)
	if got.code != exitDone || !strings.HasPrefix(got.stdout, written) || !strings.Contains(got.stderr, "news ") {
		t.Errorf("%+v", got)
	}
	ruled(t, got.stdout)
}

// TestInitKeepsAFileThatAppears: another program writes the file while init asks the engine.
func TestInitKeepsAFileThatAppears(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{"news": articles()}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := os.WriteFile("config.yaml", []byte("of another program, and quite long\n"), 0o600); err != nil {
			t.Error(err)
		}
		e.ServeHTTP(w, r)
	}))
	defer server.Close()
	got, text := surveyedFor(t, server.URL)
	if got.code != exitFailed || !strings.Contains(got.stderr, "config.yaml is there already: run it with: sidecar serve; or write it anew with --force") {
		t.Errorf("%+v", got)
	}
	expect.Same(t, "of another program, and quite long\n", text, "")
	if got, text = surveyedFor(t, "--force", server.URL); got.code != exitDone || len(ruled(t, text)) != 1 {
		t.Errorf("%+v: %s", got, text)
	}
}

// TestInitOnTLS meets an engine that speaks TLS alone, under a certificate that nobody vouches for.
func TestInitOnTLS(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{"news": articles()}}
	server := httptest.NewTLSServer(e)
	defer server.Close()
	u := expect.Value(url.Parse(server.URL))(t)
	for _, at := range []string{server.URL, "http://" + u.Host} {
		got, text := surveyedFor(t, at)
		if got.code != exitFailed || text != "" || !strings.Contains(got.stderr, "knows no authority that vouches for its certificate: give that of the authority with --ca-file") {
			t.Errorf("%s: %+v", at, got)
		}
	}
	got, text := surveyedFor(t, "--insecure", "http://"+u.Host)
	if got.code != exitDone || !strings.Contains(got.stdout, "note: the engine speaks TLS: it is at "+server.URL) ||
		!strings.Contains(text, "insecure_skip_verify: true") || !strings.Contains(text, server.URL) {
		t.Errorf("%+v: %s", got, text)
	}
	ca := filepath.Join(t.TempDir(), "ca file.pem")
	expect.OK(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	got, text = surveyedFor(t, "--ca-file", ca, server.URL)
	if got.code != exitDone || !strings.Contains(text, "ca_file: \""+ca+`"`) {
		t.Errorf("%+v: %s", got, text)
	}
}

// goods are fields and documents of a shop: shirts by size and colour, and disks by capacity, which is in their texts alone.
func goods(disks bool) *surveyedIndex {
	i := &surveyedIndex{fields: map[string]string{
		"title": "text", "description": "text", "size": "keyword", "colour": "text", "colour.keyword": "keyword", "price": "float", "sku": "keyword",
	}}
	for n := range 40 {
		name, size, colour := "Plain shirt", []string{"S", "M", "L", "XL"}[n%4], []string{"red", "blue", "green"}[n%3]
		about := "A shirt of soft cotton with a round neck, washed before it is sewn, for work and for days off"
		if n >= 30 {
			about = "Warm and woven from the wool of sheep that graze by the sea, with buttons of horn and pockets on either side"
		}
		if disks {
			name, size, colour = fmt.Sprintf("Quiet hard disk %d TB", 1+n), "", ""
			about = fmt.Sprintf("A disk of %d TB for servers that run day and night, with five years of warranty and a quiet motor, for racks and desks alike. "+
				"It comes with four screws, a short cable and a card that says how to claim a new one, and it is tested for a week before it leaves "+
				"the works, so that nobody has to open a case twice", 1+n)
		}
		i.documents = append(i.documents, fmt.Sprintf(`{"title":%q,"description":%q,"size":%q,"colour":%q,"price":%d.5,"sku":"s-%d"}`, name, about, size, colour, n, n))
	}
	return i
}

// TestInitOnAShop: variants of goods are shown in pairs, the fields that tell them apart are suggested, and nothing folds yet.
func TestInitOnAShop(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{"disks": goods(true), "news": articles(), "shirts": goods(false)}}
	got, text := surveyedFor(t, e.at())
	if got.code != exitDone || len(ruled(t, text)) != 3 {
		t.Fatalf("%+v", got)
	}
	for _, pattern := range []string{
		`#   A shirt of soft cotton .*… \(colour: red, size: S\)\n +#     and A shirt of soft cotton .*… \(colour: blue, size: M\)\n`,
		`#   Warm and woven .*… \(colour: red, size: L\)\n +#     and Warm and woven .*… \(colour: blue, size: XL\)\n`,
		`# Most such pairs differ in colour\.keyword, size\.`, `#same: \[colour\.keyword, size\]\n`,
		`#   Quiet hard disk 1 TB\n +#     and Quiet hard disk 2 TB\n`,
		`note: shirts: 38 of 40 would fold, and most differ in colour\.keyword, size: its rule has dry_run: true`, `note: disks: 39 of 40 would fold: `,
	} {
		if !regexp.MustCompile(pattern).MatchString(text + got.stdout) {
			t.Errorf("nothing says %q:\n%s%s", pattern, text, got.stdout)
		}
	}
	c := expect.Value(config.Parse([]byte(text), os.LookupEnv))(t)
	for _, i := range c.Engines[0].Indices {
		expect.Same(t, i.Match != "news", i.DryRun, "%s: dry_run", i.Match)
	}
}
