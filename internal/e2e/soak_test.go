package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// sink is an engine that discards what it is sent, in which every index is prepared. No real one takes more than 100 MB in one
// body.
type sink struct {
	bytes, sketches, whole atomic.Int64
}

// ServeHTTP implements http.Handler.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	if index, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/_mapping/field/neardup_sketch"); ok {
		fmt.Fprintf(w, `{%q:{"mappings":{"neardup_sketch":{"mapping":{"neardup_sketch":{"type":"binary","doc_values":true}}}}}}`, index)
		return
	}
	buf, at := make([]byte, 256<<10), 0 // what is before at was left over
	for {
		n, err := r.Body.Read(buf[at:])
		s.bytes.Add(int64(n))
		data := buf[:at+n]
		s.sketches.Add(int64(bytes.Count(data, []byte(`"neardup_sketch":"`))))
		at = copy(buf, data[max(0, len(data)-len(`"neardup_sketch":"`)+1):])
		if err == io.EOF {
			s.whole.Add(1)
		}
		if err != nil {
			break
		}
	}
	_, _ = io.WriteString(w, `{"took":1,"errors":false,"items":[]}`)
}

// bulkStream yields a bulk of documents of 8 kB, half of it text to sketch, the same each time, without holding it.
type bulkStream struct {
	documents int
	random    *rand.Rand
	left      []byte
	line      []byte
}

func newBulkStream(documents int) *bulkStream {
	return &bulkStream{documents: documents, random: rand.New(rand.NewPCG(1, 2))}
}

// Read implements io.Reader.
func (b *bulkStream) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.documents == 0 {
			return 0, io.EOF
		}
		b.documents--
		line := fmt.Appendf(b.line[:0], "{\"index\":{\"_index\":\"soak-1\",\"_id\":\"%08d\"}}\n{\"title\":\"the story number %08d\",\"body\":\"", b.documents, b.documents)
		line = b.words(line, 4<<10)
		line = append(line, `","pad":"`...)
		line = b.words(line, 4<<10)
		b.line = append(line, "\"}\n"...)
		b.left = b.line
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// words appends n bytes of words of four letters.
func (b *bulkStream) words(line []byte, n int) []byte {
	for range n / 5 {
		x := b.random.Uint32()
		line = append(line, 'a'+byte(x%20), 'a'+byte(x>>8%20), 'a'+byte(x>>16%20), 'a'+byte(x>>24%20), ' ')
	}
	return line
}

// peak returns the most memory that a process has had, in bytes.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	most, err := peakOf(pid)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("only Linux tells the memory of a process: ", err)
	}
	check(t, err)
	return most
}

// peakOf returns the most memory that a process has had, in bytes, or an error if the system does not tell, as of one that ended.
func peakOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("no VmHWM")
}

// zip returns a reader of what it reads, compressed. Its goroutine ends when all is read.
func zip(src io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
		_, err := io.Copy(z, src)
		if err == nil {
			err = z.Close()
		}
		w.CloseWithError(err)
	}()
	return r
}

// TestLongBulkInFlatMemory streams a bulk of 96 MB, or of 1 GB by make soak, through a real sidecar to an engine that discards
// it: in every form it arrives whole and enriched, and the sidecar's memory does not grow with it.
func TestLongBulkInFlatMemory(t *testing.T) {
	size := 96 << 20
	if soaking() {
		size = 1 << 30
	}
	const document = 8290 // bytes, nearly
	documents := size / document
	plain, err := io.Copy(io.Discard, newBulkStream(documents))
	if err != nil || plain < int64(size)*9/10 {
		t.Fatalf("%d bytes, %v", plain, err)
	}
	for _, c := range []struct {
		name          string
		gzip, chunked bool
	}{{"plain with its length", false, false}, {"gzip in chunks", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := &sink{}
			engine := httptest.NewServer(s)
			defer engine.Close()
			e := &engines.Engine{Kind: engines.Elasticsearch, URL: engine.URL}
			base, pid := process(t, config(t, e, setup{match: "soak-*", limits: "{engine_max_body: 32GB}"}))
			var body io.Reader = newBulkStream(documents)
			length := plain
			if c.gzip {
				length = expect.Value(io.Copy(io.Discard, zip(newBulkStream(documents))))(t)
				body = zip(body)
			}
			r := must(http.NewRequestWithContext(t.Context(), "POST", base+"/_bulk", body))(t)
			r.Header.Set("Content-Type", "application/x-ndjson")
			if r.ContentLength = length; c.chunked {
				r.ContentLength = -1
			}
			if c.gzip {
				r.Header.Set("Content-Encoding", "gzip")
			}
			before, began := peak(t, pid), time.Now()
			resp := must(http.DefaultClient.Do(r))(t)
			reply, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			took, after := time.Since(began), peak(t, pid)
			t.Logf("%d MB as %d MB in %v, %.0f MB/s; the sidecar's memory went from %d to %d MB", plain>>20, length>>20, took.Round(time.Millisecond), float64(plain)/1e6/took.Seconds(), before>>20, after>>20)
			if resp.StatusCode != 200 || s.whole.Load() != 1 || s.sketches.Load() != int64(documents) || s.bytes.Load() < plain+200*int64(documents) {
				t.Errorf("%d %s: of %d documents %d came with a sketch, in %d bytes of %d, whole: %d", resp.StatusCode, reply, documents, s.sketches.Load(), s.bytes.Load(), plain, s.whole.Load())
			}
			if grown := after - before; grown > 48<<20 {
				t.Errorf("the sidecar's memory grew by %d MB", grown>>20)
			}
		})
	}
}

// TestSoakMixed keeps a sidecar busy with writes, searches, multi-searches, scrolls, cursors and reads for 20 minutes by make soak, or as long
// as NEARDUP_SOAK says (such as 5m): its memory, goroutines and descriptors at the end are what they were after the first tenth.
func TestSoakMixed(t *testing.T) {
	if !soaking() {
		t.Skip("takes minutes: set NEARDUP_SOAK=1")
	}
	length, err := time.ParseDuration(os.Getenv("NEARDUP_SOAK"))
	if err != nil {
		length = 20 * time.Minute
	}
	e, index := engines.Shared(t, engines.Elasticsearch), "dsoak-1"
	w := monitor(t, config(t, e, setup{match: "dsoak-*", limits: "{deadline: 200ms}"}), nil)
	direct := api{e, e.URL}
	direct.create(t, index)
	var done, failed atomic.Int64
	client, list, stop := &http.Client{Timeout: 30 * time.Second}, documents(t), make(chan struct{})
	ask := func(method, path, body string) string {
		done.Add(1)
		r, _ := requestOf(context.Background(), e, method, w.base+path, strings.NewReader(body))
		answer, err := exchange(client, r)
		if err != nil || answer.status >= 500 { // that a document is not there is an answer
			failed.Add(1)
		}
		return string(answer.body)
	}
	search := "/" + index + "/_search"
	one := func(r *rand.Rand) {
		switch r.IntN(6) {
		case 0:
			var bulk strings.Builder
			for range 1 + r.IntN(30) {
				d := list[r.IntN(len(list))]
				fmt.Fprintf(&bulk, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n", index, r.IntN(5000))
				fmt.Fprintf(&bulk, "{\"title\":%q,\"body\":%q}\n", d.Title, d.Body)
			}
			ask("POST", "/_bulk", bulk.String())
		case 1:
			ask("GET", fmt.Sprintf("/%s/_doc/%d", index, r.IntN(5000)), "")
		case 2:
			one := fmt.Sprintf("{\"index\":%q}\n{\"size\":5,\"query\":{\"match\":{\"body\":\"the\"}}}\n", index)
			ask("POST", "/_msearch", strings.Repeat(one, 3))
		case 3:
			_, rest, _ := strings.Cut(ask("POST", search+"?scroll=5s", `{"size":50,"sort":"_doc"}`), `"_scroll_id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			ask("POST", "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, id))
			ask("DELETE", "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, id))
		case 4:
			after := fmt.Sprintf(`[%f,"%d"]`, r.Float64(), r.IntN(5000))
			ask("POST", search, `{"size":10,"sort":["_score",{"_id":"asc"}],"search_after":`+after+`,"query":{"match":{"body":"a"}}}`)
		default:
			ask("POST", search, fmt.Sprintf(`{"from":%d,"size":%d,"query":{"match":{"body":"of the"}}}`, r.IntN(300), 1+r.IntN(40)))
		}
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for r := rand.New(rand.NewPCG(uint64(i), 9)); ; one(r) {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(20+r.IntN(40)) * time.Millisecond):
				}
			}
		})
	}
	took := func() (memory, goroutines, descriptors float64) {
		_, series := scraped(t, w.admin)
		return series["process_resident_memory_bytes"], series["go_goroutines"], series["process_open_fds"]
	}
	time.Sleep(length / 10)
	memory, goroutines, descriptors := took()
	time.Sleep(length * 9 / 10)
	memory2, goroutines2, descriptors2 := took()
	close(stop)
	wg.Wait()
	t.Logf("%d requests, %d failed; from %v bytes, %v goroutines, %v descriptors to %v, %v, %v",
		done.Load(), failed.Load(), memory, goroutines, descriptors, memory2, goroutines2, descriptors2)
	if done.Load() < 100 || failed.Load() > done.Load()/100 {
		t.Error("too little was asked, or too much failed")
	}
	if memory == 0 || memory2 > memory+16<<20 || goroutines2 > goroutines+30 || descriptors2 > descriptors+30 {
		t.Error("not flat")
	}
}
