package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/kind"
)

// playGround is an engine with three documents, of which two say the same.
type playGround struct {
	kind, url, key, index string
}

func grounded(t *testing.T, of string) *playGround {
	t.Helper()
	g := &playGround{kind: of, index: fmt.Sprintf("neardup-play-%d", os.Getpid())}
	if of != kind.Embedded {
		e := engines.Shared(t, of)
		g.url, g.key = e.URL, e.Key
	}
	return g
}

// config returns a configuration with the rule's keys.
func (g *playGround) config(rule string) string {
	urls, host := "", "host.keyword"
	if g.url != "" {
		urls = "    urls: [" + g.url + "]\n"
	}
	if g.kind == "typesense" {
		host = "host"
	}
	return fmt.Sprintf(`log: {level: debug, format: json}
admin: 127.0.0.1:0
engines:
  - name: e
    listen: 127.0.0.1:0
    kind: %s
%s    credentials: {api_key: of-the-operator}
    indices:
      - {match: "%s*", fields: [body], date_field: at, host_field: %s%s}
`, g.kind, urls, g.index, host, rule)
}

// fill writes the documents through the sidecar.
func (g *playGround) fill(t *testing.T, r *reloading) {
	t.Helper()
	if g.kind == "typesense" {
		collection := g.url + "/collections/" + g.index
		g.do(t, "DELETE", collection, "")
		g.do(t, "POST", r.base(t, "e")+"/collections", `{"name":"`+g.index+`","fields":[{"name":"body","type":"string"},`+
			`{"name":"host","type":"string"},{"name":"at","type":"int64"}]}`)
		t.Cleanup(func() { g.do(t, "DELETE", collection, "") })
	}
	for n, body := range []string{ferry, strings.ToUpper(ferry), "no ferry today"} {
		document := fmt.Sprintf(`{"id":"d%d","body":%q,"host":"h%d","at":%d}`, n, body, n, n)
		path := fmt.Sprintf("/%s/_doc/d%d?refresh=true", g.index, n)
		if g.kind == "typesense" {
			path = "/collections/" + g.index + "/documents"
		}
		status, text := g.do(t, "POST", r.base(t, "e")+path, document)
		expect.Must(t, http.StatusCreated, status, "%s", text)
	}
}

// do sends a request with the engine's own key, also when the test has ended.
func (g *playGround) do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r := expect.Value(http.NewRequest(method, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Typesense-Api-Key", g.key)
	resp := expect.Value(http.DefaultClient.Do(r))(t)
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(expect.Value(io.ReadAll(resp.Body))(t))
}

// gate stands in front of an engine, asks for credentials and notes what comes.
type gate struct {
	*httptest.Server
	mu   sync.Mutex
	came []string
}

// newGate lets through who brings one of the values in the header; with none it lets everybody through.
func newGate(t *testing.T, target, header string, values ...string) *gate {
	t.Helper()
	u := expect.Value(url.Parse(target))(t)
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
	for _, of := range []string{kind.Embedded, "typesense"} { // one of each dialect
		t.Run(of, func(t *testing.T) {
			g := grounded(t, of)
			behind := started(t, g.config(""))
			g.fill(t, behind)
			target, header, mine := g.url, "Authorization", "ApiKey hunter2"
			if of == kind.Embedded {
				target, g.kind = "http://"+behind.embedded["e"].Addr, "elasticsearch"
			}
			given := map[string]string{"key": "hunter2"}
			if of == "typesense" {
				header, mine, given["key"] = "X-Typesense-Api-Key", g.key, g.key
			}
			in := newGate(t, target, header, mine)
			g.url = in.URL
			r := started(t, g.config(""))
			admin := r.base(t, "admin")
			ask := func(path string, body map[string]any) (int, string) {
				body["engine"] = "e"
				text := expect.Value(json.Marshal(body))(t)
				return call(t, "POST", admin+"/playground/api/"+path, string(text))
			}
			if status, text := call(t, "GET", admin+"/playground/api/engines", ""); status != 200 || len(in.all()) > 0 {
				t.Errorf("%d %s, and %v was asked", status, text, in.all())
			}
			for _, path := range []string{"indices", "search", "try"} {
				status, text := ask(path, map[string]any{"index": g.index, "credentials": map[string]string{"key": "s3cret"}})
				if status != 401 || strings.Contains(text, "s3cret") {
					t.Errorf("%s with a wrong key: %d %s", path, status, text)
				}
			}
			status, text := ask("indices", map[string]any{"credentials": given})
			want := fmt.Sprintf(`{"name":%q,"documents":%d,"rule":0}`, g.index, 3)
			if status != 200 || !strings.Contains(text, want) {
				t.Errorf("indices: %d %s, want in it %s", status, text, want)
			}
			for _, preset := range append(config.PresetNames(), "") {
				body := map[string]any{"index": g.index, "query": "ferry", "preset": preset, "credentials": given}
				want := 200
				if preset == "vectors" { // the rule is of texts
					want = 400
				}
				if status, text := ask("search", body); status != want || strings.Contains(text, "hunter2") {
					t.Errorf("%s: %d %.300s", preset, status, text)
				}
			}
			own := map[string]string{kind.Embedded: `{"query":{"match_all":{}}}`, "typesense": "x=q&q=ferry&query_by=title"}[of]
			for _, query := range []string{"ferry", own, `{"q":"ferry","query_by":"title"}`} {
				body := map[string]any{"index": g.index, "query": query, "against": 0.5, "credentials": given}
				if status, text := ask("try", body); status != 200 || strings.Contains(text, "hunter2") {
					t.Errorf("try %s: %d %.300s", query, status, text)
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

// TestPlaygroundHidesTheSeed: what is secret of an entry does not stand in what is shown to copy.
func TestPlaygroundHidesTheSeed(t *testing.T) {
	section, i := config.Default().Sketch, config.DefaultIndex()
	i.Match, i.Fields, i.Sketch.Seed, i.Sketch.Bits = "a", []string{"b"}, config.SecretOf("hunter2"), 4
	text := i.YAML(section)
	if !strings.HasPrefix(text, "- match: a\n  fields: [b]\n") || !strings.HasSuffix(text, "\n  sketch: {advanced: {bits: 4}} # and its seed\n") || strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

// TestPlaygroundReloads: a new configuration reaches the playground at once, and can turn it off.
func TestPlaygroundReloads(t *testing.T) {
	g := grounded(t, kind.Embedded)
	r := started(t, g.config(""))
	admin := r.base(t, "admin")
	engines := func() string {
		_, text := call(t, "GET", admin+"/playground/api/engines", "")
		return text
	}
	first := engines()
	r.become(t, g.config(", threshold: 0.77"))
	if now := engines(); strings.Contains(first, "0.77") || !strings.Contains(now, `"threshold":0.77`) {
		t.Errorf("%s became %s", first, now)
	}
	r.become(t, "playground: false\n"+g.config(""))
	status, text := call(t, "GET", admin+"/playground/api/engines", "")
	if status != 404 || !strings.Contains(text, "playground: true") {
		t.Errorf("%d %s", status, text)
	}
}

// TestPlaygroundIsGuarded: as the other pages, it is not for strangers whose name was made to lead here.
func TestPlaygroundIsGuarded(t *testing.T) {
	r := started(t, grounded(t, kind.Embedded).config(""))
	for _, path := range []string{"/", "/playground/main.js", "/playground/api/engines"} {
		request := httptest.NewRequest("GET", path, nil)
		for host, want := range map[string]bool{"evil.example": false, "127.0.0.1:7610": true, "localhost:7610": true} {
			request.Host = host
			w := httptest.NewRecorder()
			r.status.handler().ServeHTTP(w, request)
			expect.Same(t, want, w.Code != http.StatusMisdirectedRequest, "%s of %s: %d", path, host, w.Code)
			if want && w.Header().Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, w.Header())
			}
		}
	}
}
