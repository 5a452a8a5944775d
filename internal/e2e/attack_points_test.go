package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// breakOffWhileOpening sends searches that need a point in time, and breaks each off once the engine has opened it and before its reply is with
// the sidecar. None stays open.
func breakOffWhileOpening(t *testing.T, e *engines.Engine, index, body string) {
	t.Helper()
	opened, gone := make(chan struct{}), make(chan struct{})
	relay := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(must(url.Parse(e.URL))(t)) },
		ModifyResponse: func(r *http.Response) error {
			if path := r.Request.URL.Path; r.Request.Method == "POST" && (strings.HasSuffix(path, "/_pit") || strings.HasSuffix(path, "/point_in_time")) {
				opened <- struct{}{}
				<-gone
			}
			return nil
		},
	}
	server := httptest.NewServer(relay)
	defer server.Close()
	base := serve(t, e, setup{match: index, window: 600, urls: []string{server.URL}})
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		r := must(http.NewRequestWithContext(ctx, "POST", base+"/"+index+"/_search", strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		broken, answer := make(chan struct{}), ""
		go func() {
			defer close(broken)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				answer = resp.Status + " " + resp.Header.Get("Neardup")
				resp.Body.Close()
			}
		}()
		select {
		case <-opened:
			cancel()
		case <-broken:
			cancel()
			t.Errorf("it was answered without a point in time: %s", answer)
			continue
		}
		<-broken
		gone <- struct{}{}
	}
	if !until(func() bool { return openContexts(t, e, index) == 0 }) {
		t.Errorf("%d contexts are left open by clients that broke off", openContexts(t, e, index))
	}
}

// searchNearTheLimit opens points in time until OpenSearch has room for two more shards. Any client can do that. Then it sends a search that needs
// a point in time of three shards. OpenSearch would open it for two, and a search in it would not mention the third. So none is opened, and the
// header says that the page is short.
func searchNearTheLimit(t *testing.T, e *engines.Engine, base, index, body string) {
	t.Helper()
	const granted = 300 // search.max_open_pit_context, on each node
	open := func(params string) {
		call(t, e, "POST", base+"/"+index+"/_search/point_in_time?keep_alive=1m"+params, "").want(t, 200)
	}
	defer func() { call(t, e, "DELETE", e.URL+"/_search/point_in_time/_all", "") }()
	for range granted/3 - 1 {
		open("")
	}
	open("&preference=_shards:0")
	before := openContexts(t, e, index)
	outcome := call(t, e, "POST", base+"/"+index+"/_search", body).want(t, 200).header.Get("Neardup")
	if !strings.Contains(outcome, "engine_limit") {
		t.Errorf("outcome %q of a search for whose point in time there is no room", outcome)
	}
	same(t, before, openContexts(t, e, index), "how many are open after it")
}
