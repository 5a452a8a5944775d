package onboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
)

// clinic is an engine as doctor sees it, with a place for each thing that can be wrong.
type clinic struct {
	products  map[string]adapters.Product // by URL; one that is not there can't be reached
	refuses   error                       // of every node
	condition adapters.Condition
	sources   []string // of the one index
	// unsearchable says that the engine refuses searches.
	unsearchable bool
	index        adapters.Index
	indices      map[string][]adapters.Index // by name, in place of the one index
}

func (c *clinic) open(e *config.Engine) (*upstream.Engine, error) {
	rules, err := e.Rules()
	return &upstream.Engine{Config: e, Rules: rules, Kind: kind.Of(e.Kind), Store: ward{clinic: c, url: strings.Join(e.URLs, " ")}, Transport: directly{c}}, err
}

func (w ward) Product(context.Context) (adapters.Product, error) {
	product, ok := w.products[w.url]
	if c := w.clinic; c.refuses != nil || !ok {
		return product, errors.Join(c.refuses, errors.New("connection refused"))
	}
	return product, nil
}

func (w ward) Condition(context.Context, adapters.Index, *rule.Rule) (adapters.Condition, error) {
	return w.condition, nil
}

// ward is a store of the clinic at one URL.
type ward struct {
	adapters.EngineStore
	*clinic
	url string
}

func (w ward) Resolve(_ context.Context, name string) ([]adapters.Index, error) {
	if w.indices != nil {
		return w.indices[name], nil
	}
	return []adapters.Index{w.index}, nil
}

func (w ward) Scan(_ context.Context, _ string, _ *rule.Rule, _ adapters.Selection, yield func(adapters.Page) error) error {
	page := adapters.Page{}
	for i, source := range w.sources {
		page.Documents = append(page.Documents, adapters.Stored{ID: fmt.Sprint(i), Source: []byte(source)})
	}
	return yield(page)
}

// examined returns the lines on an engine of the kind, below the one on the configuration.
func (c *clinic) examined(t *testing.T, e config.Engine) string {
	t.Helper()
	var out strings.Builder
	p := engineChecks{
		report: &report{out: &out, text: true}, engine: &e, key: "engines[0]",
		network: c,
	}
	p.check(t.Context())
	for _, found := range p.Checks {
		if found.State != stateOK && found.Hint == "" {
			t.Errorf("nothing says what to do: %v", found)
		}
	}
	return tookTime.ReplaceAllString(out.String(), "answered in TIME")
}

var tookTime = regexp.MustCompile(`answered in \S+`)

// directly carries requests to the engine.
type directly struct{ *clinic }

func (d directly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "a:9200" {
		return nil, fmt.Errorf("nothing is at %s", r.URL.Host)
	}
	recorder := httptest.NewRecorder()
	if d.unsearchable {
		http.Error(recorder, "no\n rights", http.StatusForbidden)
	}
	return recorder.Result(), nil
}

// patientZero is an engine with one rule, behind a listener that is chosen at start.
func patientZero() config.Engine {
	e := config.DefaultEngine()
	e.Name, e.Kind, e.Listen, e.URLs = "es", "elasticsearch", "127.0.0.1:0", []string{"http://a:9200"}
	index := config.DefaultIndex()
	index.Match, index.Fields = "news-*", []string{"title", "body"}
	e.Indices = []config.Index{index}
	return e
}

// healthy is a clinic in which nothing is wrong, but that clients which sniff go past.
func healthy(t *testing.T) *clinic {
	t.Helper()
	e := patientZero()
	rules := expect.Value(e.Rules())(t)
	c := &clinic{
		products: map[string]adapters.Product{
			"http://a:9200": {Name: "Elasticsearch", Version: "8.19.13", Cluster: "c", Nodes: []string{"10.0.0.1:9200"}},
		},
		index:     adapters.Index{Name: "news-1", Ready: true},
		condition: adapters.Condition{Documents: 30, Sketched: 30, Fields: 8, Limit: 1000},
	}
	for i := range 4 {
		source := fmt.Sprintf(`{"title":"the ferry number %d","body":"was late again"}`, i)
		computed, _ := rules[0].SketchOf([]byte(source))
		c.sources = append(c.sources, strings.TrimSuffix(source, "}")+`,"neardup_sketch":"`+computed.Text+`"}`)
	}
	return c
}

const (
	bareNode    = "ok    es: http://a:9200 is Elasticsearch 8.19.13\n"
	loginLine   = "ok    es: it answers without credentials, and none are configured\n"
	nodeLine    = bareNode + loginLine
	indexLine   = "ok    es: news-1 is ready: 30 documents, of which 100 % have a sketch\n"
	searchLine  = "ok    es: a search of news-1, sent to the engine itself: answered in TIME\n"
	portLine    = searchLine + barePort
	barePort    = "ok    es: its port is chosen when it starts, so it can't be checked\n"
	sniffedLine = "warn  es: clients that sniff get 10.0.0.1:9200, and bypass the sidecar: " +
		"set engines[0].rewrite_sniffing: true, or switch sniffing off in the clients\n"
)

var doctorCases = []struct {
	name   string
	engine func(*config.Engine)
	clinic func(*clinic)
	want   string
}{
	{name: "all is well", want: nodeLine + indexLine + portLine + sniffedLine},
	{
		name: "no node is up", clinic: func(c *clinic) { c.products = nil },
		want: "fail  es: http://a:9200: connection refused: start it, or correct engines[0].urls[0]\n",
	},
	{
		name: "wrong credentials", clinic: func(c *clinic) { c.refuses = errors.New("the engine answered 401: who are you") },
		want: "fail  es: http://a:9200: the engine answered 401: who are you; connection refused: " +
			"set engines[0].credentials to some that may log in\n",
	},
	{
		name:   "another product",
		engine: func(e *config.Engine) { e.Kind = "opensearch" },
		want:   "fail  es: http://a:9200 is Elasticsearch 8.19.13: set engines[0].kind: elasticsearch, or correct its urls\n",
	},
	{
		name:   "two clusters",
		engine: func(e *config.Engine) { e.URLs = append(e.URLs, "http://b:9200") },
		clinic: func(c *clinic) {
			c.products["http://b:9200"] = adapters.Product{Name: "Elasticsearch", Version: "8.19.0", Cluster: "d"}
		},
		want: bareNode + "ok    es: http://b:9200 is Elasticsearch 8.19.0\n" +
			"fail  es: http://b:9200 belongs to another cluster than the nodes before it: " +
			"make an entry in engines for each cluster, with the nodes of one cluster in engines[0].urls\n" + loginLine +
			indexLine + portLine + sniffedLine,
	},
	{
		name:   "no index yet",
		clinic: func(c *clinic) { c.indices = map[string][]adapters.Index{} },
		want: nodeLine + "warn  es: news-* matches no index yet: it applies to the first one of that name; " +
			"if there should be one, correct engines[0].indices[0].match\n" + barePort + sniffedLine,
	},
	{
		name:   "not ready",
		clinic: func(c *clinic) { c.index.Ready, c.index.Why = false, "it is not declared" },
		want:   nodeLine + "fail  es: news-1 is not ready: it is not declared: run: sidecar setup\n" + portLine + sniffedLine,
	},
	{
		name: "seven of them not ready, and without sketches",
		clinic: func(c *clinic) {
			var list []adapters.Index
			for i := range 7 {
				list = append(list, adapters.Index{Name: fmt.Sprintf("news-%d", i+1), Why: "it is not declared"})
			}
			c.indices = map[string][]adapters.Index{"news-*": list}
			c.condition.Sketched = 0
			c.sources = []string{`{"title":"no sketch"}`}
		},
		want: nodeLine + "fail  es: 7 indices (news-1, news-2, news-3 and 4 more): not ready: it is not declared: run: sidecar setup\n" +
			"warn  es: 7 indices (news-1, news-2, news-3 and 4 more): documents have no sketch yet: " +
			"run: sidecar reindex; until then searches compute them\n" + portLine + sniffedLine,
	},
	{
		name: "half of them sketched",
		clinic: func(c *clinic) {
			c.condition.Sketched = 29
			c.sources = append(c.sources[:3], `{"title":"no sketch"}`)
		},
		want: nodeLine + "warn  es: news-1: 30 documents, of which 96 % have a sketch: " +
			"run: sidecar reindex; until then searches compute them\n" +
			portLine + sniffedLine,
	},
	{
		name: "stale and of another scheme",
		clinic: func(c *clinic) {
			c.sources[1] = strings.Replace(c.sources[1], "ferry", "train", 1)
			c.sources[2] = `{"title":"a","neardup_sketch":"x"}`
		},
		want: nodeLine + "fail  es: news-1: 1 of 4 documents looked at have the sketch of another text than theirs, such as 1: " +
			"count them with: sidecar verify; mend them with: sidecar reindex\n" +
			"warn  es: news-1: 1 of 4 documents looked at have a sketch of an older format, another scheme or other fields, which counts as none: " +
			"replace them with: sidecar reindex\n" + portLine + sniffedLine,
	},
	{
		name:   "no text at all",
		clinic: func(c *clinic) { c.sources, c.condition.Sketched = []string{`{"titel":"a b c"}`}, 0 },
		want: nodeLine + "warn  es: news-1: none of the fields title, body has a text in 1 document looked at: " +
			"correct engines[0].indices[0].fields\n" + portLine + sniffedLine,
	},
	{
		name:   "sniffing is rewritten",
		engine: func(e *config.Engine) { e.RewriteSniffing, e.Advertise = true, "search.example:443" },
		want:   nodeLine + indexLine + portLine + "ok    es: clients that sniff will get search.example:443\n",
	},
	{
		name:   "a search that is refused",
		clinic: func(c *clinic) { c.unsearchable = true },
		want: nodeLine + indexLine + "fail  es: a search of news-1, sent to the engine itself, failed: 403 Forbidden: no rights: " +
			"check the engine's log, and whether engines[0].credentials may search\n" + barePort + sniffedLine,
	},
	{
		name:   "embedded",
		engine: func(e *config.Engine) { e.Kind, e.URLs = kind.Embedded, nil },
		want:   "ok    es: the embedded engine runs inside serve: there is nothing to check from outside\n" + barePort,
	},
}

func TestDoctor(t *testing.T) {
	for _, c := range doctorCases {
		t.Run(c.name, func(t *testing.T) {
			e, at := patientZero(), healthy(t)
			if c.engine != nil {
				c.engine(&e)
			}
			if c.clinic != nil {
				c.clinic(at)
			}
			expect.Same(t, c.want, at.examined(t, e), "the checks")
		})
	}
}

// TestDoctorAsksTheSidecar lets different things answer where the sidecar should run.
func TestDoctorAsksTheSidecar(t *testing.T) {
	for _, c := range []struct {
		name, outcome string
		status        int
		want          string
	}{
		{"collapsed", "collapsed; raw=3", 200, "ok    es: a search of news-1 through the sidecar at HOST: collapsed; raw=3, in "},
		{"left alone", "bypassed; reason=format", 200,
			"warn  es: a search of news-1 through the sidecar at HOST is left alone (bypassed; reason=format, in "},
		{"no sidecar", "", 200,
			"fail  es: a search of news-1 at HOST is answered without the header Neardup: no sidecar, or one with other rules: "},
		{"an error", "", 502, "fail  es: a search of news-1 through the sidecar at HOST failed: 502 Bad Gateway: no engine: check its log; `sidecar ready` says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
				if c.outcome != "" {
					w.Header().Set("Neardup", c.outcome)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("no\n engine"))
			}))
			defer server.Close()
			e := patientZero()
			e.Listen, e.Credentials.Bearer = strings.TrimPrefix(server.URL, "http://"), config.SecretOf("token")
			got := healthy(t).examined(t, e)
			if want := strings.ReplaceAll(c.want, "HOST", e.Listen); !strings.Contains(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
			expect.Same(t, []string{"GET /news-1/_search?q=%2A Bearer token"}, asked, "what was asked")
		})
	}
}

// TestDoctorGivesCredentialsToNoOther: what answers may lead elsewhere, and the credentials do not go there.
func TestDoctorGivesCredentialsToNoOther(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("asked elsewhere, with %q", r.Header.Get("X-Typesense-Api-Key"))
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	e, c := patientZero(), healthy(t)
	e.Kind, e.Listen, e.Credentials.APIKey = "typesense", strings.TrimPrefix(server.URL, "http://"), config.SecretOf("key")
	c.products["http://a:9200"] = adapters.Product{Name: "Typesense", Version: "0.24.1"}
	if got := c.examined(t, e); !strings.Contains(got, "failed: 307 Temporary Redirect") {
		t.Error(got)
	}
}

// TestDoctorMovesNoTerminal: engines and documents are quoted as text.
func TestDoctorMovesNoTerminal(t *testing.T) {
	var out strings.Builder
	d := report{out: &out, text: true}
	d.add(Check{stateFail, "es", "sketches", "stale, such as \x1b[2J1", "see \u009b2J", nil})
	expect.Same(t, "fail  es: stale, such as \uFFFD[2J1: see \uFFFD2J\n", out.String(), "")
}
