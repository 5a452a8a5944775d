package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// mostMemory is how much memory a sidecar may have had at most, in bytes.
const mostMemory = 64 << 20

// larder is an engine that discards bulks, as a sink does, but for the first: its documents are what searches find, every eighth twice.
type larder struct {
	sink
	wait      time.Duration // before a search is answered
	searches  atomic.Int64
	mu        sync.Mutex
	documents [][]byte
}

// ServeHTTP implements http.Handler.
func (s *larder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/_search") {
		s.sink.ServeHTTP(w, s.kept(r))
		return
	}
	asked := struct {
		From, Size int
	}{Size: 10}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil && err != io.EOF {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.searches.Add(1)
	time.Sleep(s.wait)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	s.mu.Lock()
	documents := s.documents
	s.mu.Unlock()
	b := bufio.NewWriter(w)
	fmt.Fprint(b, `{"took":1,"hits":{"total":{"value":1000,"relation":"eq"},"hits":[`)
	for i := asked.From; i < asked.From+asked.Size; i++ {
		if i > asked.From {
			b.WriteByte(',')
		}
		document := documents[(i-i/8)%len(documents)]
		members, _ := jsonedit.Members(document)
		fmt.Fprintf(b, `{"_index":"soak-1","_id":"%d","_source":%s,"fields":{"neardup_sketch":[%s]}}`, i, document, jsonedit.Get(members, adapters.SketchField))
	}
	fmt.Fprint(b, `]}}`)
	_ = b.Flush()
}

// kept keeps the documents of the first bulk.
func (s *larder) kept(r *http.Request) *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.documents != nil || r.Method != "POST" {
		return r
	}
	body, err := io.ReadAll(r.Body)
	for i, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
		if i%2 == 1 && err == nil {
			s.documents = append(s.documents, line)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// TestMemoryUnderLoad streams a bulk of 128 MB, or of 1 GB by make soak, while a hundred searches with replies of 100 kB are under way all
// the time: they are collapsed, and the sidecar never has more than 64 MB.
func TestMemoryUnderLoad(t *testing.T) {
	size, atOnce := 128<<20, 100
	if soaking() {
		size = 1 << 30
	}
	s := &larder{wait: 50 * time.Millisecond}
	engine := httptest.NewServer(s)
	defer engine.Close()
	e := &engines.Engine{Kind: engines.Elasticsearch, URL: engine.URL}
	base, pid := process(t, config(t, e, setup{match: "soak-*", limits: "{engine_max_body: 32GB}"}))
	call(t, e, "POST", base+"/_bulk", string(must(io.ReadAll(newBulkStream(100)))(t))).want(t, 200)
	before := peak(t, pid)

	var collapsed, other, bytesRead atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}, Timeout: 30 * time.Second}
	for range atOnce {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Post(base+"/soak-1/_search", "application/json", strings.NewReader(`{"size":12,"query":{"match_all":{}}}`))
				if err != nil {
					t.Error(err)
					return
				}
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if bytesRead.Add(n); err == nil && strings.HasPrefix(resp.Header.Get("Neardup"), "collapsed") {
					collapsed.Add(1)
				} else if other.Add(1); err != nil || resp.StatusCode != 200 {
					t.Error(resp.StatusCode, err)
					return
				}
			}
		})
	}
	began, documents := time.Now(), size/8290
	resp := must(http.Post(base+"/_bulk", "application/x-ndjson", newBulkStream(documents)))(t)
	reply, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	took := time.Since(began)
	close(stop)
	wg.Wait()
	after := peak(t, pid)
	n := collapsed.Load() + other.Load()
	t.Logf("%d MB in %v, and %d searches; the sidecar's memory went from %d to %d MB", size>>20, took, n, before>>20, after>>20)
	if got := s.sketches.Load(); resp.StatusCode != 200 || got < int64(documents) {
		t.Errorf("%d %s: %d sketches of %d", resp.StatusCode, reply, got, documents)
	}
	if other.Load() > 0 || n < int64(atOnce) || bytesRead.Load()/n < 95<<10 {
		t.Errorf("of %d searches %d were not collapsed, of %d bytes each", n, other.Load(), bytesRead.Load()/max(n, 1))
	}
	if after > mostMemory {
		t.Errorf("the sidecar had %d MB, more than %d", after>>20, mostMemory>>20)
	}
}
