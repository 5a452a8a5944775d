package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// library is an engine with as many documents as are asked for. The id says how large one is: 3-20 has 20 kB.
type library struct {
	t       *testing.T
	metrics *proxy.Metrics
	chunked bool // replies do not say how long they are
	// halfway, if not nil, gets word of each reply, which then waits until goOn is closed.
	halfway, goOn chan bool
}

// ServeHTTP answers a request for documents by their ids. It sends the second half of a reply when what was sent, or all that was announced, is held.
func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Docs []struct {
			ID string `json:"_id"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !strings.HasPrefix(r.RequestURI, "/news-1/_mget") {
		l.t.Errorf("%s: %v", r.RequestURI, err)
	}
	var list []string
	for _, d := range asked.Docs {
		n, kB := 0, 0
		_ = expect.Value(fmt.Sscanf(d.ID, "%d-%d", &n, &kB))(l.t)
		list = append(list, fmt.Sprintf(`{"_id":%q,"found":true,"_source":{"title":"document %d","pad":%q}}`, d.ID, n/2, strings.Repeat("x", kB<<10)))
	}
	reply := `{"docs":[` + strings.Join(list, ",") + `]}`
	half := len(reply) / 2
	held := len(reply)
	if l.chunked {
		held = half
	} else {
		w.Header().Set("Content-Length", fmt.Sprint(len(reply)))
	}
	_, _ = io.WriteString(w, reply[:half])
	_ = http.NewResponseController(w).Flush()
	for start := time.Now(); exported(l.t, l.metrics)["held_bytes"] < float64(held); time.Sleep(time.Millisecond) {
		if r.Context().Err() != nil { // it is not read any more
			return
		}
		if time.Since(start) > 10*time.Second {
			l.t.Errorf("less than %d bytes are held", held)
			return
		}
	}
	if l.halfway != nil {
		l.halfway <- true
		<-l.goOn
	}
	_, _ = io.WriteString(w, reply[half:])
}

// TestDedupeHolds: what the engine sends of stored documents counts in what is held. A list may be larger than that, and a document that is too large
// is refused.
func TestDedupeHolds(t *testing.T) {
	start := func(t *testing.T, l *library) front {
		l.t, l.metrics = t, proxy.NewMetrics(nil)
		return serve(t, newEngine("news-1").beside(l.ServeHTTP), func(e *proxy.Engine) {
			e.Metrics, e.Limits.MaxHeld = l.metrics, 2<<20
			open := elastic.Dialect{}.Open(l.metrics.Transport(e.Transport, nil), e.URLs, e.Rules)
			e.Open = func(h adapters.Header, query string) adapters.Store { return open(h, query) }
		})
	}
	free := func(t *testing.T, l *library) {
		t.Helper()
		eventually(t, "all is given back", func() bool { return exported(t, l.metrics)["held_bytes"] == 0 })
	}
	body := func(ids int, kB int) string {
		list := []string{}
		for i := range ids {
			list = append(list, fmt.Sprintf(`"%d-%d"`, i, kB))
		}
		return `{"index":"news-1","ids":[` + strings.Join(list, ",") + `]}`
	}
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprint("chunked=", chunked), func(t *testing.T) {
			l := &library{chunked: chunked}
			f := start(t, l)
			got := do(t, "POST", f.url+"/_neardup/dedupe", body(120, 40)) // 4.8 MB
			var deduped struct{ Kept []int }
			if err := json.Unmarshal([]byte(got.body), &deduped); err != nil || got.status != 200 || len(deduped.Kept) != 60 {
				t.Errorf("%d %.500s %v", got.status, got.body, err)
			}
			free(t, l)
			got = do(t, "POST", f.url+"/_neardup/dedupe", body(1, 600))
			if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(got.body, "more than 524288 bytes at once") {
				t.Errorf("%d %.500s", got.status, got.body)
			}
			free(t, l)
		})
	}
	t.Run("at once", func(t *testing.T) {
		l := &library{halfway: make(chan bool, 3), goOn: make(chan bool)}
		f := start(t, l)
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				expect.Same(t, 200, do(t, "POST", f.url+"/_neardup/dedupe", body(1, 480)).status, "one that fits")
			})
			<-l.halfway
		}
		got := do(t, "POST", f.url+"/_neardup/dedupe", body(1, 480))
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "reason=busy") {
			t.Errorf("%d %.500s", got.status, got.body)
		}
		close(l.goOn)
		wait.Wait()
		free(t, l)
	})
}

// TestSimilarHoldsReplies: what the engine sends of stored documents counts in what is held, and a document that is too large is refused.
func TestSimilarHoldsReplies(t *testing.T) {
	l := &library{t: t, metrics: proxy.NewMetrics(nil)}
	f := serve(t, newEngine("news-1").beside(l.ServeHTTP), func(e *proxy.Engine) {
		e.Metrics, e.Limits.MaxHeld = l.metrics, 2<<20
		open := elastic.Dialect{}.Open(l.metrics.Transport(settled{e.Transport}, nil), e.URLs, e.Rules)
		e.Open = func(h adapters.Header, query string) adapters.Store { return open(h, query) }
	})
	for id, says := range map[string]string{"1-600": "413 more than 524288 bytes at once", "1-20": "400 no bands are stored there"} {
		got := do(t, "GET", f.url+"/_neardup/news-1/similar/"+id, "")
		if status, reason, _ := strings.Cut(says, " "); fmt.Sprint(got.status) != status || !strings.Contains(got.body, reason) {
			t.Errorf("%s: %d %.500s", id, got.status, got.body)
		}
		eventually(t, "all is given back", func() bool { return exported(t, l.metrics)["held_bytes"] == 0 })
	}
}

// settled answers what an index's settings are, and leaves all else to the engine.
type settled struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s settled) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.RawQuery, "flat_settings=true") {
		return s.RoundTripper.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	_, _ = io.WriteString(w, `{"news-1":{"settings":{"index.uuid":"u","index.number_of_shards":"1"},"mappings":{}}}`)
	return w.Result(), nil
}
