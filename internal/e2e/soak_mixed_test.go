package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// state is what a process holds.
type state struct{ memory, goroutines, descriptors int64 }

// stateOf reads a process's state, its goroutines from its admin address.
func stateOf(t *testing.T, pid int, admin string) (s state) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("only Linux tells the memory of a process: ", err)
	}
	number := func(text, name string) int64 {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, name); ok {
				n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				return int64(n)
			}
		}
		t.Fatalf("no %s", name)
		return 0
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return state{number(string(status), "VmRSS:") << 10, number(string(text), "go_goroutines "), int64(len(open))}
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin := listener.Addr().String()
	_ = listener.Close()
	file := config(t, e, setup{match: "dsoak-*", limits: "{deadline: 200ms}"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "admin: 127.0.0.1:0", "admin: "+admin, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	base, pid := process(t, file)
	direct := api{e, e.URL}
	direct.drop(t, index)
	direct.create(t, index)
	t.Cleanup(func() {
		r, _ := http.NewRequest("DELETE", e.URL+"/"+index, nil)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	})
	m := mixed{base: base, index: index, documents: documents(t), client: &http.Client{Timeout: 30 * time.Second}, stop: make(chan struct{})}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { m.run(rand.New(rand.NewPCG(uint64(i), 9))) })
	}
	var first, last state
	began, steps := time.Now(), 40
	for step := 1; step <= steps; step++ {
		time.Sleep(time.Until(began.Add(length * time.Duration(step) / time.Duration(steps))))
		last = stateOf(t, pid, admin)
		if step == steps/10 {
			first = last
		}
		t.Logf("%v: %d MB, %d goroutines, %d descriptors, %d requests, %d failed", time.Since(began).Round(time.Second), last.memory>>20, last.goroutines,
			last.descriptors, m.done.Load(), m.failed.Load())
	}
	close(m.stop)
	wg.Wait()
	if failed, done := m.failed.Load(), m.done.Load(); done < 100 || failed > done/100 {
		t.Errorf("%d of %d requests failed", failed, done)
	}
	if last.memory > first.memory+16<<20 || last.goroutines > first.goroutines+30 || last.descriptors > first.descriptors+30 {
		t.Errorf("not flat: from %+v to %+v", first, last)
	}
}

// mixed is a load of all kinds of requests at a low rate.
type mixed struct {
	base, index  string
	documents    []corpus.Document
	client       *http.Client
	stop         chan struct{}
	done, failed atomic.Int64
}

func (m *mixed) run(r *rand.Rand) {
	for {
		select {
		case <-m.stop:
			return
		case <-time.After(time.Duration(20+r.IntN(40)) * time.Millisecond):
		}
		m.one(r)
	}
}

func (m *mixed) one(r *rand.Rand) {
	at := "/" + m.index
	switch r.IntN(8) {
	case 0:
		var bulk strings.Builder
		for range 1 + r.IntN(30) {
			d := m.documents[r.IntN(len(m.documents))]
			fmt.Fprintf(&bulk, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"title\":%q,\"body\":%q}\n", m.index, r.IntN(5000), d.Title, d.Body)
		}
		m.ask("POST", "/_bulk", bulk.String())
	case 1:
		m.ask("GET", at+"/_doc/"+strconv.Itoa(r.IntN(5000)), "")
	case 2:
		m.ask("POST", "/_msearch", strings.Repeat(fmt.Sprintf("{\"index\":%q}\n{\"size\":5,\"query\":{\"match\":{\"body\":\"the\"}}}\n", m.index), 3))
	case 3:
		m.ask("POST", at+"/_search", fmt.Sprintf(`{"from":%d,"size":10,"query":{"match":{"body":"the of"}}}`, r.IntN(300)))
	case 4:
		body := m.ask("POST", at+"/_search?scroll=5s&neardup=on", `{"size":50,"sort":"_doc"}`)
		if _, rest, ok := strings.Cut(body, `"_scroll_id":"`); ok {
			id, _, _ := strings.Cut(rest, `"`)
			m.ask("POST", "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, id))
			m.ask("DELETE", "/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, id))
		}
	case 5:
		m.ask("POST", at+"/_search", fmt.Sprintf(`{"size":10,"sort":["_score",{"_id":"asc"}],"search_after":[%f,"%d"],"query":{"match":{"body":"a"}}}`, r.Float64(), r.IntN(5000)))
	default:
		m.ask("POST", at+"/_search", fmt.Sprintf(`{"size":%d,"query":{"match":{"body":"of"}}}`, 1+r.IntN(40)))
	}
}

// ask sends a request and returns its answer. A document that is not there is an answer too, and so is a cursor that the engine won't have.
func (m *mixed) ask(method, path, body string) string {
	m.done.Add(1)
	r, _ := http.NewRequest(method, m.base+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	resp, err := m.client.Do(r)
	if err != nil {
		m.failed.Add(1)
		return ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 500 {
		m.failed.Add(1)
	}
	return string(answer)
}
