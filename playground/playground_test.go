package playground

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/try"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// scene returns a handler with one engine whose sidecar is h, and what the sidecar was asked with.
func scene(t *testing.T, h http.HandlerFunc) *Handler {
	t.Helper()
	sketcher := expect.Value(sketch.New(sketch.DefaultScheme()))(t)
	r := &rule.Rule{
		Match: "news*", Fields: []string{"body"}, Window: 1000, Compute: true, Sketcher: sketcher,
		Profile: rerank.Profile{Threshold: 0.6},
	}
	view := &View{Rules: rule.Rules{r}, Rule: r, Handler: h, MaxWindow: 1000, Preset: "default", YAML: "- match: news*\n"}
	e := Engine{
		Name: "e", Kind: "made-up", Credentials: "password",
		Rules:  []Rule{{Match: "news*", Fields: r.Fields, Threshold: 0.6, Window: 1000, Preset: "default"}},
		Source: madeUp{view},
	}
	p := New()
	p.Set(&Scene{Engines: []Engine{e}})
	return p
}

// madeUp is an engine whose replies have a hit on each line.
type madeUp struct{ view *View }

func (madeUp) Authorize(c Credentials) adapters.Header {
	return adapters.Header{"Authorization": {c.User + ":" + c.Password + c.Key}}
}

func (madeUp) ReadQuery(line string) (adapters.Query, error) {
	if strings.HasPrefix(line, "{") {
		return adapters.Query{Search: []byte(line)}, adapters.Object([]byte(line))
	}
	return adapters.Query{Words: line}, nil
}

func (madeUp) LookFor(l adapters.Look) (*adapters.Request, error) {
	body, err := json.Marshal(l.Words)
	return &adapters.Request{Method: "POST", Path: "/" + l.Index, Header: l.Header, Body: body}, err
}

func (madeUp) LookedAt(_ adapters.Look, reply *adapters.Reply) (l adapters.Looked, err error) {
	if reply.Status != 200 {
		return l, refused{reply.Status, string(reply.Body)}
	}
	for i, text := range strings.Split(string(reply.Body), "\n") {
		document, _ := json.Marshal(map[string]string{"body": text})
		seen := rule.Seen{Index: "news", ID: fmt.Sprint(i), Shown: shownText(document)}
		l.Hits = append(l.Hits, adapters.LookedHit{Seen: seen, Document: document, Name: "news"})
	}
	l.Total = len(l.Hits)
	return l, nil
}

func (madeUp) Listed(_ context.Context, header adapters.Header) ([]adapters.Listed, error) {
	return nil, errors.New("dial " + strings.Join(header["Authorization"], ""))
}

func (m madeUp) View(int, string) (*View, error) { return m.view, nil }

func (m madeUp) Match(index string) int {
	if rule.Matches(m.view.Rule.Match, index) {
		return 0
	}
	return -1
}

// refused is an engine's own error.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string   { return r.text }
func (r refused) HTTPStatus() int { return r.status }

func ask(p *Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://127.0.0.1:7610"+Prefix+"api/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

const good = `{"engine":"e","index":"news","query":"ferry","credentials":{"user":"ann","password":"hunter2","key":"k3y"}}`

// TestWhoMayAsk: only the page itself, in JSON, by POST, and not much of it.
func TestWhoMayAsk(t *testing.T) {
	sent := 0
	p := scene(t, func(w http.ResponseWriter, _ *http.Request) { sent++; _, _ = io.WriteString(w, "a ferry\na ferry") })
	for _, c := range []struct {
		name    string
		headers []string
		body    string
		status  int
	}{
		{"the page", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:7610"}, good, 200},
		{"a program", nil, good, 200},
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}, good, 403},
		{"another port of this machine", []string{"Sec-Fetch-Site", "same-site"}, good, 403},
		{"an address bar", []string{"Sec-Fetch-Site", "none"}, good, 403},
		{"another origin", []string{"Origin", "http://evil.example"}, good, 403},
		{"an origin without a name", []string{"Origin", "null"}, good, 403},
		{"a form", []string{"Content-Type", "text/plain"}, good, 415},
		{"a form of a browser", []string{"Content-Type", "application/x-www-form-urlencoded"}, good, 415},
		{"a type that only begins so", []string{"Content-Type", "application/json-but-not"}, good, 415},
		{"JSON with its encoding", []string{"Content-Type", "application/json; charset=utf-8"}, good, 200},
		{"no JSON", nil, `{"engine":`, 400},
		{"JSON of other types", nil, `{"engine":["hunter2"]}`, 400},
		{"too much", nil, `{"query":"` + strings.Repeat("x", MaxBody) + `"}`, 413},
		{"another engine", nil, `{"engine":"f"}`, 404},
		{"no index", nil, `{"engine":"e"}`, 400},
		{"an index without a rule", nil, `{"engine":"e","index":"logs"}`, 400},
		{"a threshold of 2", nil, `{"engine":"e","index":"news","threshold":2}`, 400},
		{"a threshold below all pairs", nil, `{"engine":"e","index":"news","threshold":0.01}`, 400},
		{"a key with a line end", nil, `{"engine":"e","index":"news","credentials":{"key":"hunter2\nX: y"}}`, 400},
		{"a window below 0", nil, `{"engine":"e","index":"news","window":-1}`, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent = 0
			w := ask(p, "search", c.body, c.headers...)
			if w.Code != c.status || c.status != 200 && sent > 0 {
				t.Errorf("%d, %d requests: %s", w.Code, sent, w.Body)
			}
			var e struct{ Error, Hint string }
			err := json.Unmarshal(w.Body.Bytes(), &e)
			if said := e.Error != "" && strings.HasSuffix(e.Hint, "."); err != nil || (c.status != 200) != said {
				t.Errorf("%v: %s", err, w.Body)
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("a secret is told: %s", w.Body)
			}
		})
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(method, Prefix+"api/search", nil))
		if w.Code != 405 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// TestSecretsAreNotTold: whatever goes wrong, and whoever quotes them.
func TestSecretsAreNotTold(t *testing.T) {
	quoting := "no entry for ann with hunter2, k3y or " + base64.StdEncoding.EncodeToString([]byte("ann:hunter2"))
	for status, want := range map[int]int{401: 401, 403: 403, 404: 404, 429: 429, 503: 503, 400: 400, 422: 400, 500: 502, 504: 502} {
		p := scene(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, quoting) })
		w := ask(p, "search", good)
		if w.Code != want || strings.Contains(w.Body.String(), "hunter2") || strings.Contains(w.Body.String(), "k3y") ||
			strings.Contains(w.Body.String(), "YW5uO") || !strings.Contains(w.Body.String(), "no entry for ann") {
			t.Errorf("%d: %d %s", status, w.Code, w.Body)
		}
	}
	p := scene(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	var log strings.Builder
	p.scene.Load().Log = slog.New(slog.NewTextHandler(&log, nil))
	for path, want := range map[string]string{"search": try.ErrCutOff.Error(), "indices": "the engine can't be reached"} {
		w := ask(p, path, good)
		text := w.Body.String()
		if w.Code != 502 || strings.Contains(text, "hunter2") || strings.Contains(text, "k3y") || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, w.Code, text)
		}
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, `error="dial ann:……"`) {
		t.Errorf("the log says why, and no secret: %s", said)
	}
}

// TestWhatIsSent: to the sidecar go the search as it is and the search to be collapsed, with the user's own credentials.
func TestWhatIsSent(t *testing.T) {
	var controls []string
	p := scene(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "ann:hunter2k3y" || string(body) != `"ferry"` || r.RequestURI != "/news" {
			t.Errorf("%s %v %s", r.RequestURI, r.Header, body)
		}
		controls = append(controls, r.Header.Get(adapters.ControlHeader))
		w.Header().Set(adapters.OutcomeHeader, "collapsed; raw=2")
		_, _ = io.WriteString(w, "a ferry\na ferry")
	})
	w := ask(p, "search", strings.Replace(good, "{", `{"threshold":0.8,"window":70,`, 1))
	var f struct {
		Pairs   [][]float64
		Sidecar struct{ Outcome string }
		Timing  map[string]float64
		Hits    []struct {
			Sketch, Title string
			Fields        map[string]string
		}
	}
	expect.OK(t, json.Unmarshal(w.Body.Bytes(), &f))
	if want := "off|on; threshold=0.8; window=70"; strings.Join(controls, "|") != want || f.Sidecar.Outcome != "collapsed; raw=2" {
		t.Errorf("%q %+v", controls, f)
	}
	if fmt.Sprint(f.Pairs) != "[[0 1 1 1]]" || len(f.Timing) != 3 {
		t.Errorf("%+v", f)
	}
	if h := f.Hits[1]; h.Title != "a ferry" || h.Sketch != "computed" || h.Fields["body"] != "a ferry" {
		t.Errorf("%+v", h)
	}
}

// TestBounds: replies that are too large, engines that are too slow, and more searches than are worked on at once.
func TestBounds(t *testing.T) {
	t.Run("large reply", func(t *testing.T) {
		piece := bytes.Repeat([]byte("x"), 1<<20)
		p := scene(t, func(w http.ResponseWriter, r *http.Request) {
			for range 2 * try.MaxReply >> 20 {
				if _, err := w.Write(piece); err != nil {
					panic(http.ErrAbortHandler) // as a reverse proxy does
				}
			}
			t.Error("all of it was taken")
		})
		if w := ask(p, "search", good); w.Code != 502 || !strings.Contains(w.Body.String(), "too large") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("gone user", func(t *testing.T) {
		began := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		p := scene(t, func(_ http.ResponseWriter, r *http.Request) { leave(); <-r.Context().Done() })
		r := httptest.NewRequestWithContext(ctx, "POST", Prefix+"api/search", strings.NewReader(good))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != 504 || time.Since(began) > timeout/2 {
			t.Errorf("%d after %v: %s", w.Code, time.Since(began), w.Body)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		entered, leave := make(chan bool, 10*concurrency), make(chan bool)
		p := scene(t, func(w http.ResponseWriter, _ *http.Request) { entered <- true; <-leave; _, _ = io.WriteString(w, "a") })
		for range 2 * concurrency {
			go ask(p, "search", good)
		}
		for range concurrency {
			<-entered
		}
		time.Sleep(50 * time.Millisecond)
		if len(entered) > 0 {
			t.Errorf("%d more are worked on", len(entered))
		}
		close(leave)
	})
	t.Run("long texts", func(t *testing.T) {
		long := strings.Repeat("ä", MaxText)
		p := scene(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long+"\n"+long+" and more") })
		var f struct {
			Hits []struct {
				Cut    bool
				Fields map[string]string
			}
			Pairs [][]float64
		}
		w := ask(p, "search", good)
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || len(f.Hits) != 2 {
			t.Fatalf("%v %.200s", err, w.Body)
		}
		if text := f.Hits[0].Fields["body"]; !f.Hits[0].Cut || len(text) != MaxText || strings.Trim(text, "ä") != "" {
			t.Errorf("%d bytes: %.20q", len(text), text)
		}
		if len(f.Pairs) == 1 && len(f.Pairs[0]) == 4 {
			t.Error("the whole texts are not the same")
		}
	})
}

// TestAssets: the page and its files are served with their types and under the policy, and nothing else is.
func TestAssets(t *testing.T) {
	p := New()
	files := expect.Value(embedded.ReadDir("assets"))(t)
	for _, file := range files {
		at := Prefix + file.Name()
		if file.Name() == "index.html" {
			at = "/"
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", at, nil))
		text, err := embedded.ReadFile("assets/" + file.Name())
		if err != nil || w.Code != 200 || !bytes.Equal(w.Body.Bytes(), text) || w.Header().Get("Content-Security-Policy") != Policy {
			t.Errorf("%s: %d %v %v", at, w.Code, err, w.Header())
		}
		kind := w.Header().Get("Content-Type")
		if kind == "" || strings.HasSuffix(at, ".js") && kind != "text/javascript; charset=utf-8" {
			t.Errorf("%s: type %q", at, kind)
		}
	}
	for _, at := range []string{"", "none.js", "..%2fplayground.go", "%2e%2e", "none/none", "api/none"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("GET", Prefix+at, nil))
		expect.Same(t, 404, w.Code, "%s", at)
	}
}

// TestErrors: the error of an agreement is that of the scheme, never 0 where positions are counted, and larger for containment.
func TestErrors(t *testing.T) {
	usual := sketch.Scheme{Family: sketch.FastSimilarity, Positions: 128, Bits: 8}
	errs, contained := errorsOf(usual, rerank.Resemblance, nil), errorsOf(usual, rerank.Containment, nil)
	if e := errs[50]; e < 0.042 || e > 0.046 {
		t.Errorf("error at 0.5: %v; config.yaml says at most 0.044", e)
	}
	if errs[100] <= 0 || errs[100] > 0.01 || contained[50] <= errs[33] {
		t.Errorf("at 1: %v, half of a text in another of its size: %v", errs[100], contained[50])
	}
}

// TestTextsAreCutBetweenCharacters, and it is said which are.
func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for most, want := range []string{"", "a", "a", "a", "a€", "a€"} {
		if got, cut := cutAt("a€", most); got != want || cut != (most < 4) {
			t.Errorf("%d: %q, %v", most, got, cut)
		}
	}
}

// shownText is a document that is shown whole.
type shownText []byte

func (s shownText) Document(*rule.Rule) []byte { return s }

func (shownText) Values(rule.Deciding) []string { return nil }
