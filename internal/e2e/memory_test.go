package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
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
		fmt.Fprintf(b, `{"_index":"soak-1","_id":"%d","_source":%s,"fields":{"neardup_sketch":[%s]}}`, i, document, jsonedit.Get(members, rule.SketchField))
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

// pantry is an engine whose hits are as long as a test wants them, in replies as they are accepted. It makes each reply once.
type pantry struct {
	sink
	sketches []string // of what was written first; hits have one each in turns
	document string   // of each hit; %s stands for its number
	bare     bool     // hits have no sketches
	mu       sync.Mutex
	replies  map[string][]byte
}

// ServeHTTP implements http.Handler.
func (s *pantry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "search") {
		s.sink.ServeHTTP(w, s.kept(r))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	zipped := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	if zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	_, _ = w.Write(s.reply(strings.HasSuffix(r.URL.Path, "_msearch"), zipped, body))
}

func (s *pantry) reply(several, zipped bool, body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(several, zipped, string(body))
	if s.replies[key] == nil {
		var to bytes.Buffer
		var out io.Writer = &to
		if zipped {
			z, _ := gzip.NewWriterLevel(&to, gzip.BestSpeed)
			defer z.Close()
			out = z
		}
		if several {
			io.WriteString(out, `{"took":1,"responses":[`)
			for i, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
				if i > 1 && i%2 == 1 {
					io.WriteString(out, ",")
				}
				if i%2 == 1 {
					s.write(out, line)
				}
			}
			io.WriteString(out, `]}`)
		} else {
			s.write(out, body)
		}
		if z, ok := out.(*gzip.Writer); ok {
			z.Close()
		}
		s.replies[key] = to.Bytes()
	}
	return s.replies[key]
}

// write writes what one search finds.
func (s *pantry) write(w io.Writer, body []byte) {
	asked := struct {
		From, Size int
		Source     json.RawMessage `json:"_source"`
	}{Size: 10}
	_ = json.Unmarshal(body, &asked)
	fmt.Fprint(w, `{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":10000,"relation":"eq"},"max_score":1,"hits":[`)
	for i := asked.From; i < asked.From+asked.Size; i++ {
		if i > asked.From {
			io.WriteString(w, ",")
		}
		fmt.Fprintf(w, `{"_index":"soak-1","_id":"%d","_score":1`, i)
		if string(asked.Source) != "false" {
			io.WriteString(w, `,"_source":`+strings.Replace(s.document, "%s", fmt.Sprint(i), 1))
		}
		if !s.bare {
			fmt.Fprintf(w, `,"fields":{"neardup_sketch":[%q]}`, s.sketches[i%len(s.sketches)])
		}
		io.WriteString(w, "}")
	}
	fmt.Fprint(w, `]}}`)
}

// kept keeps the sketches of the first bulk.
func (s *pantry) kept(r *http.Request) *http.Request {
	if s.sketches != nil || r.Method != "POST" {
		return r
	}
	body, _ := io.ReadAll(r.Body)
	for _, line := range strings.Split(string(body), "\n") {
		if _, after, found := strings.Cut(line, `"neardup_sketch":"`); found {
			sketch, _, _ := strings.Cut(after, `"`)
			s.sketches = append(s.sketches, sketch)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

// TestMemoryOfTheWorst sends what takes the most memory for what it counts of max_held (128 MB), by two clients, each to a sidecar of its
// own: none ever has more than config.yaml says, three times that and 20 MB. By make soak it tries more. With NEARDUP_PROFILES, the
// name of a folder, profiles of the heap are put there, as of about the peak.
func TestMemoryOfTheWorst(t *testing.T) {
	text := func(n int) string { return string(newBulkStream(1).words(nil, n)) }
	doc := func(text string) string { return `{"title":"number %s","body":"` + text + `"}` }
	search := func(from, size int) func(i int) request {
		return func(i int) request {
			return request{"POST", "/soak-1/_search", fmt.Sprintf(`{"from":%d,"size":%d,"query":{"match":{"body":"x%d"}}}`, from, size, i%4)}
		}
	}
	put := func(text string) func(i int) request {
		return func(i int) request {
			return request{"PUT", fmt.Sprintf("/soak-1/_doc/%d", i), `{"body":"` + text + `"}`}
		}
	}
	line := `{"index":{"_index":"soak-1","_id":"1"}}` + "\n" + `{"body":"` + text(60000) + `"}` + "\n"
	for _, c := range []worst{
		{name: "eight multi-searches of 1,000 by 100", document: doc(text(100)), clients: 8, ask: multiOf(1000, 100)},
		{soak: true, name: "hits of 80 kB, compressed", document: doc(text(80000)), zipped: true, clients: 64, ask: search(0, 100)},
		{name: "texts of 1 MB without sketches", document: doc(letters(1 << 20)), bare: true, clients: 100, ask: search(0, 10)},
		{name: "documents of 6 MB", clients: 2, ask: put(letters(6 << 20))},
		{soak: true, name: "multi-search of 1,000 by 100", document: doc(text(100)), clients: 1, ask: multiOf(1000, 100)},
		{soak: true, name: "compressed multi-searches of 1,000 by 100", document: doc(text(100)), zipped: true, clients: 8, ask: multiOf(1000, 100)},
		{soak: true, name: "multi-searches of 100 by 10", document: doc(text(1000)), clients: 64, ask: multiOf(100, 10)},
		{soak: true, name: "hits of 3 MB", document: doc(text(3 << 20)), clients: 16, ask: search(0, 10)},
		{soak: true, name: "hits of 3 MB, compressed", document: doc(text(3 << 20)), zipped: true, clients: 16, ask: search(0, 10)},
		{soak: true, name: "deep pages", document: doc(text(2000)), clients: 200, ask: search(700, 10)},
		{soak: true, name: "texts of 60 kB without sketches", document: doc(letters(60000)), bare: true, clients: 100, ask: search(0, 50)},
		{soak: true, name: "many small members", document: `{"title":"number %s","list":[` + strings.Repeat(`{"a":1},`, 20000) + `0]}`, clients: 32, ask: search(0, 50)},
		{soak: true, name: "stalled replies of 100 kB", document: doc(text(9000)), stalled: true, zipped: true, clients: 800, ask: search(0, 10)},
		{soak: true, name: "stalled replies of 1 MB", document: doc(text(90000)), stalled: true, zipped: true, clients: 400, ask: search(0, 10)},
		{soak: true, name: "documents of 60 kB", clients: 1000, ask: put(letters(60 << 10))},
		{soak: true, name: "bulks of documents of 60 kB", clients: 100, ask: func(int) request { return request{"POST", "/_bulk", strings.Repeat(line, 40)} }},
	} {
		if soaking() || !c.soak {
			t.Run(c.name, c.measure)
		}
	}
}

// worst is what many clients send at once.
type worst struct {
	name, document        string
	bare, zipped, stalled bool // hits have no sketches; replies are compressed; the clients wait six seconds before they read them
	soak                  bool
	clients               int
	ask                   func(i int) request
}

type request struct{ method, path, body string }

func (c worst) measure(t *testing.T) {
	s := &pantry{document: c.document, bare: c.bare, replies: map[string][]byte{}}
	engine := httptest.NewServer(s)
	defer engine.Close()
	e := &engines.Engine{Kind: engines.Elasticsearch, URL: engine.URL}
	var args []string
	profiles := os.Getenv("NEARDUP_PROFILES")
	if profiles != "" {
		args = append(args, "--pprof")
	}
	w := monitor(t, config(t, e, setup{match: "soak-*"}), nil, args...)
	defer w.stop(t)
	who := []string{"ApiKey one", "ApiKey two"} // each may take half of max_held before the engine has answered
	for _, key := range who {
		call(t, e, "POST", w.base+"/_bulk", string(must(io.ReadAll(newBulkStream(100)))(t)), "Authorization", key).want(t, 200)
	}
	pid := w.cmd.Process.Pid
	before := peak(t, pid)
	done := make(chan struct{})
	var held, heap float64
	var watch sync.WaitGroup
	watch.Go(func() {
		for most := before; ; {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			_, series := scraped(t, w.admin)
			held, heap = max(held, valueOf(series, "neardup_held_bytes")), max(heap, series["go_memstats_heap_inuse_bytes"])
			if now, err := peakOf(pid); err == nil && profiles != "" && now > most+most/10 {
				most = now
				profile := call(t, e, "GET", w.admin+"/debug/pprof/heap", "").body
				_ = os.WriteFile(filepath.Join(profiles, strings.ReplaceAll(c.name, " ", "-")), profile, 0o600)
			}
		}
	})
	var sent, collapsed atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.clients, DisableCompression: true}, Timeout: time.Minute}
	var wg sync.WaitGroup
	for i := range c.clients {
		wg.Go(func() {
			for range 2 {
				q := c.ask(i)
				r, _ := http.NewRequest(q.method, w.base+q.path, strings.NewReader(q.body))
				r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {who[i%2]}}
				if c.zipped {
					r.Header.Set("Accept-Encoding", "gzip")
				}
				resp, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				if c.stalled {
					time.Sleep(6 * time.Second)
				}
				if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode/100 != 2 {
					t.Error(resp.StatusCode, err)
				}
				resp.Body.Close()
				if sent.Add(1); strings.HasPrefix(resp.Header.Get("Neardup"), "collapsed") {
					collapsed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	watch.Wait()
	after := peak(t, pid)
	t.Logf("the most: %d MB of memory, %.0f MB of heap, %.0f MB held; %d of %d collapsed", after>>20, heap/(1<<20), held/(1<<20), collapsed.Load(), sent.Load())
	if most := int64(3*128+20) << 20; after > most {
		t.Errorf("the sidecar had %d MB, more than %d", after>>20, most>>20)
	}
}

// valueOf returns the value of the first series of that name, whatever its labels.
func valueOf(series map[string]float64, name string) float64 {
	for key, value := range series {
		if strings.HasPrefix(key, name) {
			return value
		}
	}
	return 0
}

// letters returns so many bytes of words of one letter, of which no four in a row are alike soon.
func letters(n int) string {
	r, b := rand.New(rand.NewPCG(3, 4)), make([]byte, n)
	for i := range b {
		if b[i] = ' '; i%2 == 0 {
			b[i] = 'a' + byte(r.IntN(26))
		}
	}
	return string(b)
}

// multiOf returns multi-searches of so many searches for so many hits.
func multiOf(searches, size int) func(i int) request {
	one := fmt.Sprintf("{\"index\":\"soak-1\"}\n{\"size\":%d,\"query\":{\"match_all\":{}}}\n", size)
	return func(int) request { return request{"POST", "/_msearch", strings.Repeat(one, searches)} }
}
