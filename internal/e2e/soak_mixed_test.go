package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

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
		r, _ := http.NewRequest(method, w.base+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			failed.Add(1)
			return ""
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 500 { // that a document is not there is an answer
			failed.Add(1)
		}
		return string(answer)
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
