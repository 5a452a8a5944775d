package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// shelf is a store in memory that tells who asked.
type shelf struct {
	documents map[string]string // by id
	indices   []adapters.Index
	resolves  error
	scans     func(ctx context.Context, s adapters.Selection) error // before a scan
	asked     []string
}

type reader struct {
	adapters.Store
	*shelf
	key string
}

func (r reader) Resolve(context.Context, string) ([]adapters.Index, error) {
	return r.indices, r.resolves
}

func (r reader) Scan(
	ctx context.Context, index string, _ *rule.Rule, s adapters.Selection, yield func(adapters.Page) error,
) error {
	r.asked = append(r.asked, r.key+" "+index)
	if r.scans != nil {
		if err := r.scans(ctx, s); err != nil {
			return err
		}
	}
	for id, source := range r.documents {
		keys := rule.OursOf([]byte(source)).Bands
		if s.IDs != nil && !slices.Contains(s.IDs, id) ||
			s.Bands != nil && !slices.ContainsFunc(keys, func(key int64) bool { return slices.Contains(s.Bands, key) }) {
			continue
		}
		if err := yield(adapters.Page{Documents: []adapters.Stored{{ID: id, Source: []byte(source)}}}); err != nil {
			return err
		}
	}
	return nil
}

// shelved starts a sidecar before a store in memory and an engine that answers 418 to all that gets to it, but
// for a document that no search shows.
func shelved(t testing.TB, s *shelf, change func(*proxy.Engine)) front {
	t.Helper()
	r := newRule(t)
	r.Bands, r.Rows = 24, 4
	if s.documents == nil {
		s.documents = map[string]string{}
		for i := range 20 {
			text := fmt.Sprintf(`{"title":"the story of number %d as it was told to us by the elders of the town on the day %d of the year"}`, i/4, i/4)
			want, _ := r.OursFor([]byte(text), "0")
			s.documents[fmt.Sprint(i)] = string(expect.Value(rule.WithOurs([]byte(text), want))(t))
		}
	}
	engine := newEngine()
	engine.answer = func(w http.ResponseWriter, a arrival) {
		if a.uri != "/news-1/_doc/unseen" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, `{"said":"engine: `+a.method+` `+strings.ReplaceAll(a.uri, `"`, "")+` `+fmt.Sprint(len(a.body))+`"}`)
	}
	return serve(t, engine, func(e *proxy.Engine) {
		e.Rules = rule.Rules{r}
		e.Open = func(header adapters.Header, _ string) adapters.Store {
			return reader{shelf: s, key: http.Header(header).Get("Authorization")}
		}
		e.Document = func(index, id string) *adapters.Request {
			return &adapters.Request{Method: "GET", Path: "/" + index + "/_doc/" + id}
		}
		if change != nil {
			change(e)
		}
	})
}

// refusing is an engine's refusal.
type refusing int

func (r refusing) Error() string   { return fmt.Sprintf("the engine answered %d", int(r)) }
func (r refusing) HTTPStatus() int { return int(r) }

// TestSimilarAnswers: each request is answered from the store under its own credentials, or by the engine.
func TestSimilarAnswers(t *testing.T) {
	news := []adapters.Index{{Name: "news-1"}}
	for name, c := range map[string]struct {
		shelf             shelf
		method, uri, sent string
		status            int
		says              string
	}{
		"stored":              {shelf{indices: news}, "GET", "/_neardup/news-1/similar/1", "", 200, `"total":3`},
		"posted":              {shelf{indices: news}, "POST", "/_neardup/news-1/similar?size=2", `{"title":"the story of number 2 as it was told to us by the elders of the town on the day 2 of the year"}`, 200, `"total":4`},
		"gone":                {shelf{indices: news}, "GET", "/_neardup/news-1/similar/none", "", 418, "/news-1/_doc/none"},
		"not yet shown":       {shelf{indices: news}, "GET", "/_neardup/news-1/similar/unseen", "", 404, "not to be searched, or not yet"},
		"refused":             {shelf{indices: news, scans: func(context.Context, adapters.Selection) error { return refusing(403) }}, "GET", "/_neardup/news-1/similar/1", "", 418, "/news-1/_doc/1"},
		"look-up refused":     {shelf{indices: news, scans: noBands(refusing(403))}, "GET", "/_neardup/news-1/similar/1", "", 403, "the engine answered 403"},
		"look-up fails":       {shelf{indices: news, scans: noBands(errors.New("broken"))}, "POST", "/_neardup/news-1/similar", `{"title":"a word"}`, 502, "can't be reached"},
		"not configured":      {shelf{indices: []adapters.Index{{Name: "other"}}}, "GET", "/_neardup/other/similar/1", "", 418, "engine: GET /_neardup/other/similar/1 0"},
		"unknown, matches":    {shelf{resolves: refusing(401)}, "POST", "/_neardup/news-1/similar", `{"title":"a word"}`, 200, `"index":"news-1"`},
		"compared":            {shelf{indices: news}, "POST", "/_neardup/compare", `{"index":"news-1","a":{"title":"a b c d e"},"b":{"text":"a b c d e f"}}`, 200, `"a_in_b":1,`},
		"a mistyped name":     {shelf{indices: news}, "GET", "/_neardup/news-1/similar/1?sise=3", "", 400, `\"sise\" is an unknown URL parameter: use threshold, size, source`},
		"compared with size":  {shelf{indices: news}, "POST", "/_neardup/compare?size=3", `{"index":"news-1","a":{},"b":{}}`, 400, `\"size\" is an unknown URL parameter: use threshold`},
		"compared in nothing": {shelf{indices: news}, "POST", "/_neardup/compare", `{"a":{},"b":{}}`, 418, "engine: POST /_neardup/compare 15"},
		"compared by one who may search": {shelf{resolves: refusing(401)}, "POST", "/_neardup/compare",
			`{"index":"news-1","a":{"title":"a b c d e"},"b":{}}`, 200, `"folds":false`},
		"compared by nobody": {shelf{resolves: refusing(401), scans: func(context.Context, adapters.Selection) error { return refusing(401) }},
			"POST", "/_neardup/compare", `{"index":"news-1","a":{"title":"a b c d e"},"b":{}}`, 401, "the engine answered 401"},
	} {
		t.Run(name, func(t *testing.T) {
			f := shelved(t, &c.shelf, nil)
			got := do(t, c.method, f.url+c.uri, c.sent, "Authorization: key of a client")
			if got.status != c.status || !strings.Contains(got.body, c.says) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if got.status == 200 && got.header.Get("X-Elastic-Product") == "" || strings.Contains(got.body, "neardup_") && got.status == 200 {
				t.Errorf("%v %s", got.header, got.body)
			}
			for _, asked := range c.shelf.asked {
				expect.Same(t, "key of a client news-1", asked, "who asked")
			}
		})
	}
}

// noBands has look-ups by bands fail.
func noBands(err error) func(context.Context, adapters.Selection) error {
	return func(_ context.Context, s adapters.Selection) error {
		if s.Bands != nil {
			return err
		}
		return nil
	}
}

// TestSimilarLimits: what is too large is refused, before it is read whole; compressed bodies count as what they are; the source of what
// is found has bounds too.
func TestSimilarLimits(t *testing.T) {
	s := &shelf{indices: []adapters.Index{{Name: "news-1"}}}
	f := shelved(t, s, func(e *proxy.Engine) { e.Limits.MaxSearchBody, e.Limits.MaxReply = 1000, 600 })
	long := `{"title":"` + strings.Repeat("word ", 1000) + `"}`
	for name, c := range map[string]struct {
		uri, body, header string
		status            int
	}{
		"long":        {"/_neardup/news-1/similar", long, "X-A: b", 413},
		"long zipped": {"/_neardup/news-1/similar", zipped(long), "Content-Encoding: gzip", 413},
		"zipped":      {"/_neardup/news-1/similar", zipped(`{"title":"words enough"}`), "Content-Encoding: gzip", 200},
		"not zipped":  {"/_neardup/news-1/similar", `{"title":"words enough"}`, "Content-Encoding: gzip", 400},
		"encoding":    {"/_neardup/news-1/similar", `x`, "Content-Encoding: br", 400},
		"compared":    {"/_neardup/compare", `{"index":"news-1","a":` + long + `}`, "X-A: b", 418},
		"sources": {
			"/_neardup/news-1/similar?source=true&size=1000&threshold=0.1",
			`{"title":"the story of number 2 as it was told to us by the elders of the town on the day 2 of the year"}`, "X-A: b", 413,
		},
	} {
		expect.Same(t, c.status, do(t, "POST", f.url+c.uri, c.body, c.header).status, "%s", name)
	}
}

// TestSimilarHolds: the document that is asked about and those that are kept to be answered count in what is held; more than there is room for are refused.
func TestSimilarHolds(t *testing.T) {
	metrics := proxy.NewMetrics(nil)
	s := &shelf{indices: []adapters.Index{{Name: "news-1"}, {Name: "news-2"}}}
	var held []float64
	s.scans = func(context.Context, adapters.Selection) error {
		held = append(held, exported(t, metrics)["held_bytes"])
		return nil
	}
	f := shelved(t, s, func(e *proxy.Engine) {
		e.Metrics, e.Limits.MaxHeld = metrics, 2<<20
		for id, source := range s.documents {
			s.documents[id] = source[:len(source)-1] + `,"pad":"` + strings.Repeat("x", 40<<10) + `"}`
		}
	})
	expect.Same(t, 200, do(t, "GET", f.url+"/_neardup/news-1/similar/1?source=true&size=7", "").status, "the answer")
	// Scans: the document, sketches and documents of the one index, and of the other.
	if len(held) != 5 || held[1]-held[0] < 256<<10+40<<10 || held[2] != held[1] || held[3]-held[2] < 2*3*40<<10 || held[4] != held[3] {
		t.Errorf("held at each scan: %v", held)
	}
	eventually(t, "all is given back", func() bool { return exported(t, metrics)["held_bytes"] == 0 })
	asked := `{"title":"the story of number 2 as it was told to us by the elders of the town on the day 2 of the year"}`
	expect.Same(t, 413, do(t, "POST", f.url+"/_neardup/news-1/similar?source=true&size=20&threshold=0.1", asked).status, "with its copy, more than a quarter of what may be held")
	eventually(t, "all is given back", func() bool { return exported(t, metrics)["held_bytes"] == 0 })
}
