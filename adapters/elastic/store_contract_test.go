package elastic

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/engines"
)

// TestRealStore holds the store to the contract on real engines.
func TestRealStore(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			u, err := url.Parse(engines.Shared(t, kind).URL)
			if err != nil {
				t.Fatal(err)
			}
			subject, jobs := onEngine(u)
			adaptertest.TestStore(t, subject)
			adaptertest.TestStoreJobs(t, subject, jobs)
		})
	}
}

func onEngine(u *url.URL) (adaptertest.StoreSubject, adaptertest.StoreJobs) {
	send := func(method, path, body string) (int, string) {
		r, err := http.NewRequest(method, u.String()+path, strings.NewReader(body)) // a clean-up's test is over
		if err != nil {
			return 0, err.Error()
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(reply)
	}
	must := func(t *testing.T, method, path, body string) string {
		t.Helper()
		status, reply := send(method, path, body)
		if status < 200 || status > 299 {
			t.Fatalf("%s %s: %d %s", method, path, status, reply)
		}
		return reply
	}
	path := func(endpoint, index, id string) string {
		return "/" + index + "/" + endpoint + "/" + url.PathEscape(id)
	}
	making := func(shards int) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			must(t, "PUT", "/"+name, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0},"mappings":{"properties":{`+
				`"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"}}}}`, shards))
			t.Cleanup(func() { send("DELETE", "/"+name, "") })
		}
	}
	open := func(_ *testing.T, rules adapters.Rules) adapters.Store {
		return Open(http.DefaultTransport, []*url.URL{u}, rules)(nil, "")
	}
	jobs := adaptertest.StoreJobs{
		Open: open, Wide: making(3), Query: `{"range":{"n":{"lt":5}}}`, Split: Split, Journal: JournalOf, Remove: Remove,
	}
	return adaptertest.StoreSubject{
		Open:   func(t *testing.T) adapters.Store { return open(t, nil) },
		Prefix: fmt.Sprintf("neardup_test_store_%d_", os.Getpid()),
		Make:   making(1),
		Alias:  func(t *testing.T, alias, name string) { must(t, "PUT", "/"+name+"/_alias/"+alias, "") },
		Put: func(t *testing.T, index, id, document string) {
			must(t, "PUT", path("_doc", index, id), document)
		},
		Get:    func(t *testing.T, index, id string) string { return must(t, "GET", path("_source", index, id), "") },
		Drop:   func(t *testing.T, index, id string) { must(t, "DELETE", path("_doc", index, id), "") },
		Settle: func(t *testing.T, index string) { must(t, "POST", "/"+index+"/_refresh", "") },
		IDs:    []string{"a`b", " lead", "a,b", "a]b", "a/b", "é", `a"b`, `a\b`, "a&&b", "a b?c#d%41", "a+b", ":", "*", "-1", "_x"},
	}, jobs
}
