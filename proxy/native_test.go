package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/proxy"
)

// nativeEngine collapses by clusters where it is asked to, and counts none in buckets; aliens is how many of its documents have no id of the rule's.
func nativeEngine(t *testing.T, mark string, aliens *int) (e *engine, asked *int) {
	e, asked = newEngine("news-1", "other-1"), new(int)
	plain := searching(t)
	e.answer = func(w http.ResponseWriter, a arrival) {
		if !strings.Contains(string(a.body), `"collapse"`) {
			if strings.Contains(string(a.body), `"aggs"`) {
				rec := httptest.NewRecorder()
				plain(rec, a)
				io.WriteString(w, `{"aggregations":{},`+strings.TrimPrefix(rec.Body.String(), "{"))
				return
			}
			plain(w, a)
			return
		}
		if *asked++; strings.Contains(string(a.body), `"neardup_clusters"`) {
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"type":"circuit_breaking_exception"},"status":429}`)
			return
		}
		hit := `{"_index":"news-1","_id":"%d","_source":{},"fields":{"neardup_cluster":["%s0000000000%d"]}}`
		if *aliens < 0 {
			io.WriteString(w, `{"_shards":{"failed":0},"hits":{}}`)
			return
		}
		fmt.Fprintf(w, `{"took":1,"_shards":{"failed":0},"hits":{"total":{"value":4,"relation":"eq"},"hits":[`+hit+","+hit+
			`]},"aggregations":{"neardup_native":{"doc_count":4,"alien":{"doc_count":%d},"clusters":{"value":2}}}}`,
			0, mark, 0, 2, mark, 2, *aliens)
	}
	return e, asked
}

// TestNativeIsTriedAgain: a target whose documents lack clusters is searched at query time for half a minute, for the client that saw it;
// where it is not that, for a second.
func TestNativeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRule(t)
		r.Native, r.Clusters = true, true
		aliens := 0
		e, asked := nativeEngine(t, r.ClusterMark(), &aliens)
		f := handler(t, []string{"http://engine"}, func(p *proxy.Engine) {
			p.Transport, p.Rules[0] = inMemory{e}, r
		})
		expect := func(path string, wantIDs, wantLine string, wantAsked int, headers ...string) {
			t.Helper()
			before := *asked
			rec := f.ask("POST", path, `{}`, headers...)
			got := ids(rec.Body.String())
			line, _, _ := strings.Cut(rec.Header().Get("Neardup"), "; took=")
			if got != wantIDs || line != wantLine || *asked-before != wantAsked {
				t.Errorf("%s: %q %q, the engine asked to collapse %d times; want %q %q and %d", path, got, line, *asked-before, wantIDs, wantLine, wantAsked)
			}
		}
		const native, slow = "collapsed; raw=4; folded=2; exact=false; rounds=1; window=0; native", "collapsed; raw=4; folded=1; exact=true; rounds=1; window=100"
		fell := func(rounds int) string {
			return fmt.Sprintf("collapsed; reason=unclustered; raw=4; folded=1; exact=true; rounds=%d; window=100", rounds)
		}
		expect("/news-1/_search", "0 2", native, 1)
		aliens = 1
		expect("/news-1/_search", "0 2 3", fell(2), 1)
		aliens = 0
		for range 29 {
			expect("/news-1/_search", "0 2 3", fell(1), 0)
			time.Sleep(time.Second)
		}
		expect("/news-1/_search?neardup_threshold=0.9", "0 2 3", slow, 0)
		expect("/news-1/_search", "0 2", native, 1, "Authorization: of another client")
		time.Sleep(time.Second)
		expect("/news-1/_search", "0 2", native, 1)
		expect("/_search", "0 2 3", slow, 0)
		aliens = -1 // a reply that no one understands
		odd := strings.Replace(fell(2), "unclustered", "not_understood", 1)
		expect("/news-1/_search", "0 2 3", odd, 1)
		aliens = 0
		expect("/news-1/_search", "0 2 3", strings.Replace(odd, "rounds=2", "rounds=1", 1), 0)
		time.Sleep(time.Second)
		expect("/news-1/_search", "0 2", native, 1)

		// To count groups is more than to collapse: that it is refused says nothing of other searches.
		counts := func(wantAsked int) {
			t.Helper()
			before := *asked
			rec := f.ask("POST", "/news-1/_search?neardup_counts=groups", `{"aggs":{"h":{"terms":{"field":"host"}}}}`)
			line := rec.Header().Get("Neardup")
			if rec.Code != 200 || !strings.HasPrefix(line, "collapsed; reason=native_refused; ") || !strings.Contains(line, "; counts=exact; ") || *asked-before != wantAsked {
				t.Errorf("%d %q, the engine asked to collapse %d times, want %d", rec.Code, line, *asked-before, wantAsked)
			}
		}
		counts(1)
		for range 29 {
			counts(0)
			expect("/news-1/_search?neardup_counts=groups", "0 2", native, 1)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		counts(1)
	})
}
