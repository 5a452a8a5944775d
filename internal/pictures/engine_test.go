package pictures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/demo/embedded"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// exchange is a request as the engine saw it, and its reply.
type exchange struct {
	method, path string
	body, reply  []byte
}

// cluster is the walk-through's engine with its corpus, and the sidecar in front of it. The sidecar's window is that of the
// pictures.
type cluster struct {
	engine, before *httptest.Server
	inside         *embedded.Engine
	byID           map[string]corpus.Document

	mu   sync.Mutex
	seen []exchange
}

// window and pageSize are those of the pictures: small enough that a list shows what is beyond both.
const (
	window   = 16
	pageSize = 4
	query    = "bridge"
)

func startCluster() (*cluster, error) {
	c := &cluster{inside: embedded.New(), byID: map[string]corpus.Document{}}
	c.engine = httptest.NewServer(http.HandlerFunc(c.record))
	at, err := url.Parse(c.engine.URL)
	if err != nil {
		return nil, err
	}
	profile := rerank.Profile{Threshold: rerank.Default.Threshold, MinShingles: rerank.Default.MinShingles}
	rules := adapters.Rules{{
		Match: "news", Fields: []string{"title", "body"}, Window: window, Compute: true,
		Sketcher: sketcher(nil), Profile: profile,
	}}
	dialect, nodes := elastic.Dialect{Named: true}, []*url.URL{at}
	handler, err := proxy.New(proxy.Engine{
		Dialect: dialect, Open: elastic.Open(proxy.NewTransport(), nodes, rules), ErrorReply: dialect.ErrorReply,
		Rules: rules, URLs: nodes, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: proxy.Limits{Deadline: time.Minute}, // a picture must not depend on how busy the machine is
	})
	if err != nil {
		return nil, err
	}
	c.before = httptest.NewServer(handler)
	return c, c.load()
}

func (c *cluster) close() {
	c.before.Close()
	c.engine.Close()
	_ = c.inside.Close() // it holds nothing but memory
}

// record passes a request on to the engine and notes both.
func (c *cluster) record(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what breaks off here fails in the engine
	r.Body = io.NopCloser(bytes.NewReader(body))
	reply := httptest.NewRecorder()
	c.inside.ServeHTTP(reply, r)
	c.mu.Lock()
	c.seen = append(c.seen, exchange{r.Method, r.URL.RequestURI(), body, reply.Body.Bytes()})
	c.mu.Unlock()
	for name, values := range reply.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.Code)
	_, _ = w.Write(reply.Body.Bytes())
}

// asked returns what the engine saw since it was last asked for.
func (c *cluster) asked() []exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// do sends a request and returns the reply's body and header.
func do(method, at, contentType string, body []byte) ([]byte, http.Header, error) {
	r, err := http.NewRequest(method, at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %.200s", method, at, resp.StatusCode, text)
	}
	return text, resp.Header, err
}

// load writes the corpus through the sidecar.
func (c *cluster) load() error {
	documents, err := corpus.Load()
	if err != nil {
		return err
	}
	var body bytes.Buffer
	for _, document := range documents {
		line, err := json.Marshal(document)
		if err != nil {
			return err
		}
		c.byID[document.ID] = document
		fmt.Fprintf(&body, "{\"index\":{\"_id\":%q}}\n%s\n", document.ID, line)
	}
	reply, _, err := do(http.MethodPost, c.before.URL+"/news/_bulk?refresh=true", "application/x-ndjson", body.Bytes())
	if err == nil && bytes.Contains(reply, []byte(`"errors":true`)) {
		err = fmt.Errorf("a document was refused: %.200s", reply)
	}
	return err
}

// found is a hit of a reply.
type found struct{ id, title, host string }

// search searches for the query of the pictures and returns the hits and the header that says what was done.
func (c *cluster) search(at string, from, size int) (hits []found, header string, err error) {
	path := fmt.Sprintf("%s/news/_search?q=%s&from=%d&size=%d", at, query, from, size)
	reply, headers, err := do(http.MethodGet, path, "application/json", nil)
	if err != nil {
		return nil, "", err
	}
	return hitsOf(reply), headers.Get("Neardup"), nil
}

func hitsOf(reply []byte) (hits []found) {
	var result struct {
		Hits struct {
			Hits []struct {
				ID     string                       `json:"_id"`
				Source struct{ Title, Host string } `json:"_source"`
			}
		}
	}
	if json.Unmarshal(reply, &result) != nil {
		return nil
	}
	for _, h := range result.Hits.Hits {
		hits = append(hits, found{h.ID, h.Source.Title, h.Source.Host})
	}
	return hits
}

// ranked returns the engine's whole list with its sketches.
func (c *cluster) ranked() ([]found, []rerank.Hit, error) {
	list, _, err := c.search(c.engine.URL, 0, 100)
	if err != nil {
		return nil, nil, err
	}
	s, profile := sketcher(nil), rerank.Default
	var hits []rerank.Hit
	for _, f := range list {
		k := new(sketch.Sketch)
		if !s.SketchInto(k, c.byID[f.id].Title, c.byID[f.id].Body) {
			return nil, nil, fmt.Errorf("%s has no sketch", f.id)
		}
		hits = append(hits, rerank.Hit{ID: f.id, Sketch: k, Profile: &profile})
	}
	return list, hits, nil
}

// collapsedList returns the ranks of the collapsed list: what is shown over the window, then what lies beyond it.
func collapsedList(c rerank.Collapsed, hits int) []int {
	list := slices.Clone(c.Shown)
	for rank := window; rank < hits; rank++ {
		list = append(list, rank)
	}
	return list
}
