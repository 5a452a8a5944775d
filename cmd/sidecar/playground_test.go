package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// gate stands in front of an engine, asks for credentials and notes what comes.
type gate struct {
	*httptest.Server
	mu   sync.Mutex
	came []string
}

// newGate lets through who brings one of the values in the header; with none it lets everybody through.
func newGate(t *testing.T, target, header string, values ...string) *gate {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	onwards := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
	g := &gate{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.came = append(g.came, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get(header))
		g.mu.Unlock()
		if len(values) > 0 && !slices.Contains(values, r.Header.Get(header)) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			who := r.Header.Get(header)
			_, _ = io.WriteString(w, `{"message":"no","error":{"type":"security_exception","reason":"who is `+who+`"},"status":401}`)
			return
		}
		onwards.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.came)
}

// reading are the requests by which the playground reads.
var reading = regexp.MustCompile(`^(POST /[^/]+/_search|GET (/[^/]+)?/_mapping/field/[^/]+|(GET|POST) /[^/]+/_count|` +
	`GET /collections(/[^/]+(/documents/search)?)?|POST /multi_search) `)

// TestPlaygroundReadsOnly: whatever is asked of it, nothing reaches an engine but searches and questions about its indices, all
// of them with the user's own credentials; the operator's are never sent, and none stand in the log or an answer.
func TestPlaygroundReadsOnly(t *testing.T) {
	for _, kind := range []string{kindEmbedded, kindTypesense} { // one of each dialect
		t.Run(kind, func(t *testing.T) {
			g := grounded(t, kind)
			behind := started(t, g.config(""))
			g.fill(t, behind)
			target, header, mine := g.url, "Authorization", "ApiKey hunter2"
			if kind == kindEmbedded {
				target, g.kind = "http://"+behind.embedded["e"].addr.String(), kindElasticsearch
			}
			given := map[string]string{"key": "hunter2"}
			if kind == kindTypesense {
				header, mine, given["key"] = "X-Typesense-Api-Key", g.key, g.key
			}
			in := newGate(t, target, header, mine)
			g.url = in.URL
			r := started(t, g.config(""))
			admin := r.base(t, "admin")
			ask := func(path string, body map[string]any) (int, string) {
				body["engine"] = "e"
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				return call(t, "POST", admin+"/playground/api/"+path, string(text))
			}
			if status, text := call(t, "GET", admin+"/playground/api/engines", ""); status != 200 || len(in.all()) > 0 {
				t.Errorf("%d %s, and %v was asked", status, text, in.all())
			}
			for _, path := range []string{"indices", "search"} {
				status, text := ask(path, map[string]any{"index": g.index, "credentials": map[string]string{"key": "s3cret"}})
				if status != 401 || strings.Contains(text, "s3cret") {
					t.Errorf("%s with a wrong key: %d %s", path, status, text)
				}
			}
			status, text := ask("indices", map[string]any{"credentials": given})
			want := fmt.Sprintf(`{"name":%q,"documents":%d,"rule":0}`, g.index, len(g.lines))
			if status != 200 || !strings.Contains(text, want) {
				t.Errorf("indices: %d %s, want in it %s", status, text, want)
			}
			for _, preset := range append(presetNames(), "") {
				body := map[string]any{"index": g.index, "query": "ferry", "preset": preset, "credentials": given}
				if status, text := ask("search", body); status != 200 || strings.Contains(text, "hunter2") {
					t.Errorf("%s: %d %.300s", preset, status, text)
				}
			}
			for _, index := range []string{
				"*", "_all", g.index + "," + g.index, g.index + "/_doc/1?x=", g.index + "%2f_delete_by_query", "..", "-x", "<x>", "c:x",
			} {
				for _, before := range []string{"", g.index, g.index + "*", g.index + "/", g.index + "*/"} {
					status, text := ask("search", map[string]any{"index": before + index, "credentials": given})
					if status < 400 {
						t.Errorf("index %q: %d %.300s", before+index, status, text)
					}
				}
			}
			for _, came := range in.all() {
				if !reading.MatchString(came) || strings.Contains(came, "of-the-operator") {
					t.Errorf("the engine was sent %q", came)
				}
			}
			for _, secret := range []string{"hunter2", "s3cret", "of-the-operator"} {
				if strings.Contains(r.log.String(), secret) {
					t.Errorf("%s stands in the log", secret)
				}
			}
		})
	}
}

// TestPlaygroundYAML: the entry that is shown, with what the sliders say put in, makes a sidecar that shows every client the
// same.
func TestPlaygroundYAML(t *testing.T) {
	g := grounded(t, kindEmbedded)
	random := rand.New(rand.NewPCG(5, 5))
	r := started(t, g.config(""))
	g.fill(t, r)
	for _, preset := range append(presetNames(), "") {
		rule := g.randomRule(random)
		r.become(t, g.config(rule))
		threshold, window := 0.3+0.01*float64(random.IntN(70)), 20+random.IntN(150)
		_, page := g.look(t, r.base(t, "admin"), map[string]any{"query": "ferry w1", "preset": preset})
		entry := replaceLine(t, replaceLine(t, page.YAML, "threshold", threshold), "window", window)
		file, _, _ := strings.Cut(g.config(""), "      - match")
		r.become(t, file+"      "+strings.TrimSpace(strings.ReplaceAll(entry, "\n", "\n      "))+"\n")
		if log := r.log.String(); strings.Contains(log, "not reloaded") {
			t.Fatalf("%s\n%s", entry, log[strings.LastIndex(log, "not reloaded"):])
		}
		if i := r.config.Engines[0].Indices[0]; i.Threshold != threshold || i.Window != window {
			t.Fatalf("%+v", i)
		}
		_, now := g.look(t, r.base(t, "admin"), map[string]any{"query": "ferry w1"})
		if want := page.fold(threshold, window); !slices.Equal(now.Sidecar.IDs, want) {
			t.Errorf("the page shows\n%v\nwith the entry it is\n%v (%s)\nrule:\n%s\nentry:\n%s",
				want, now.Sidecar.IDs, now.Sidecar.Outcome, rule, entry)
		}
		if now.YAML != entry {
			t.Errorf("the entry\n%sis shown as\n%s", entry, now.YAML)
		}
	}
}

// replaceLine puts a value into the one line of a key.
func replaceLine(t *testing.T, text, key string, value any) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^( *` + key + `:) .*$`)
	if n := len(line.FindAllString(text, -1)); n != 1 {
		t.Fatalf("%d lines of %s in\n%s", n, key, text)
	}
	return line.ReplaceAllString(text, fmt.Sprintf("${1} %v", value))
}

// TestPlaygroundHidesTheSeed: what is secret of an entry does not stand in what is shown to copy.
func TestPlaygroundHidesTheSeed(t *testing.T) {
	section, i := DefaultConfig().Sketch, DefaultIndex()
	i.Match, i.Fields, i.Sketch.Seed, i.Sketch.Bits = "a", []string{"b"}, secretOf("hunter2"), 4
	text := i.yaml(section)
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "sketch: {bits: 4}  # and its seed") {
		t.Error(text)
	}
}

// TestPlaygroundReloads: a new configuration reaches the playground at once, and can turn it off.
func TestPlaygroundReloads(t *testing.T) {
	g := grounded(t, kindEmbedded)
	r := started(t, g.config(""))
	admin := r.base(t, "admin")
	engines := func() string {
		_, text := call(t, "GET", admin+"/playground/api/engines", "")
		return text
	}
	first := engines()
	r.become(t, g.config("        threshold: 0.77\n"))
	if now := engines(); strings.Contains(first, "0.77") || !strings.Contains(now, `"threshold":0.77`) {
		t.Errorf("%s became %s", first, now)
	}
	g.fill(t, r)
	if _, page := g.look(t, admin, map[string]any{"query": "ferry"}); page.Rule.Threshold != 0.77 || len(page.Hits) == 0 {
		t.Errorf("%+v", page.Rule)
	}
	r.become(t, "playground: false\n"+g.config(""))
	status, text := call(t, "GET", admin+"/playground/api/engines", "")
	if status != 404 || !strings.Contains(text, "playground: true") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := call(t, "GET", admin+"/", ""); status != 200 || !strings.Contains(text, "/readyz?verbose") {
		t.Errorf("%d %s", status, text)
	}
	r.become(t, g.config(""))
	if now := engines(); !strings.Contains(now, `"engines":[{"name":"e"`) {
		t.Error(now)
	}
}

// TestPlaygroundIsGuarded: as the other pages, it is not for strangers whose name was made to lead here.
func TestPlaygroundIsGuarded(t *testing.T) {
	r := started(t, grounded(t, kindEmbedded).config(""))
	for _, path := range []string{"/", "/playground/main.js", "/playground/api/engines"} {
		request := httptest.NewRequest("GET", path, nil)
		for host, want := range map[string]bool{"evil.example": false, "127.0.0.1:9600": true, "localhost:9600": true} {
			request.Host = host
			w := httptest.NewRecorder()
			r.status.handler().ServeHTTP(w, request)
			if got := w.Code != http.StatusMisdirectedRequest; got != want {
				t.Errorf("%s of %s: %d", path, host, w.Code)
			}
			if want && w.Header().Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, w.Header())
			}
		}
	}
}

// TestPlaygroundTells: where a stored sketch is of another text that is said, and so is where a preset lacks what it needs.
func TestPlaygroundTells(t *testing.T) {
	r := started(t, `admin: 127.0.0.1:0
engines:
  - {name: e, listen: "127.0.0.1:0", kind: embedded, indices: [{match: a, fields: [body]}]}
`)
	g := &playGround{kind: kindEmbedded, index: "a"}
	g.must(t, "POST", r.base(t, "e")+"/a/_bulk?refresh=true", `{"index":{"_id":"1"}}
{"body":"<p>the ferry <b>sails</b> at noon</p>"}
`)
	status, page := g.look(t, r.base(t, "admin"), map[string]any{"preset": "news"})
	const hint = "Add date_field to the rule of a in the configuration."
	if status != 400 || page.Error != "preset news needs date_field" || page.Hint != hint {
		t.Errorf("%d %+v", status, page)
	}
	status, page = g.look(t, r.base(t, "admin"), map[string]any{"preset": "x"})
	if status != 400 || !strings.Contains(page.Error, "unknown") {
		t.Errorf("%d %+v", status, page)
	}
	status, page = g.look(t, r.base(t, "admin"), nil)
	if status != 200 || page.Hits[0].Fields["body"] != "the ferry sails at noon" || page.Hits[0].Title != "the ferry sails at noon" {
		t.Errorf("%d %+v", status, page)
	}
	if page.Timing["engine_ms"] <= 0 || page.Timing["plain_ms"] <= 0 || page.Timing["total_ms"] < page.Timing["engine_ms"] {
		t.Errorf("%v", page.Timing)
	}
}

// TestPlaygroundOfASearchOnlyKey: a key that may search one collection and nothing else is enough, where a rule names the
// collection.
func TestPlaygroundOfASearchOnlyKey(t *testing.T) {
	g := grounded(t, kindTypesense)
	text := strings.Replace(g.config(""), g.index+"*", g.index, 1)
	r := started(t, text)
	g.fill(t, r)
	made := g.must(t, "POST", g.url+"/keys", `{"description":"t","actions":["documents:search"],"collections":["`+g.index+`"]}`)
	var key struct {
		ID    int
		Value string
	}
	if err := json.Unmarshal([]byte(made), &key); err != nil {
		t.Fatal(err)
	}
	all := g.key
	defer func() {
		g.key = all
		g.do(t, "DELETE", fmt.Sprintf("%s/keys/%d", g.url, key.ID), "")
	}()
	g.key = key.Value
	body := `{"engine":"e","credentials":{"key":"` + g.key + `"}}`
	status, list := call(t, "POST", r.base(t, "admin")+"/playground/api/indices", body)
	want := fmt.Sprintf(`{"indices":[{"name":%q,"documents":-1,"rule":0}],"note":`, g.index)
	if status != 200 || !strings.HasPrefix(list, want) {
		t.Errorf("%d %s", status, list)
	}
	status, page := g.look(t, r.base(t, "admin"), map[string]any{"query": "ferry", "threshold": 0.5})
	if want := page.fold(0.5, 200); status != 200 || !slices.Equal(want, page.Sidecar.IDs) || len(want) == len(page.Hits) {
		t.Errorf("%d %s: the page shows\n%v\nthe sidecar\n%v", status, page.Sidecar.Outcome, want, page.Sidecar.IDs)
	}
}

// TestPlaygroundWhileReloading: searches go on while the configuration changes under them, each by one configuration or the other.
func TestPlaygroundWhileReloading(t *testing.T) {
	g := grounded(t, kindEmbedded)
	r := started(t, g.config(""))
	g.fill(t, r)
	admin, over := r.base(t, "admin"), make(chan bool)
	var users sync.WaitGroup
	for n := range 3 {
		users.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				preset := append(presetNames(), "")[(i+n)%11]
				body := fmt.Sprintf(`{"engine":"e","index":%q,"query":"ferry","preset":%q}`, g.index, preset)
				status, text := call(t, "POST", admin+"/playground/api/search", body)
				if status != 200 || !strings.Contains(text, `"outcome":"collapsed`) {
					t.Errorf("%d %.300s", status, text)
					return
				}
			}
		})
	}
	for i := range 12 {
		r.become(t, g.config(fmt.Sprintf("        keep: %d\n", 1+i%3)))
	}
	close(over)
	users.Wait()
}
