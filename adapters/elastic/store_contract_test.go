package elastic

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/rule"
)

// TestRealStore holds the store to the contract on real engines.
func TestRealStore(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		subject, jobs := l.subject()
		adaptertest.TestStore(t, subject)
		adaptertest.TestStoreJobs(t, subject, jobs)
	})
}

func (l *larder) subject() (adaptertest.StoreSubject, adaptertest.StoreJobs) {
	must := func(t *testing.T, method, path, body string) string {
		t.Helper()
		of := *l
		of.t = t
		return of.must(method, path, body)
	}
	path := func(endpoint, index, id string) string {
		return "/" + index + "/" + endpoint + "/" + url.PathEscape(id)
	}
	making := func(shards int) func(t *testing.T, name string) {
		return func(t *testing.T, name string) {
			l.drop(name)
			must(t, "PUT", "/"+name, fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0},"mappings":{"properties":{`+
				`"title":{"type":"text"},"body":{"type":"text"},"n":{"type":"integer"}}}}`, shards))
		}
	}
	open := func(_ *testing.T, rules rule.Rules) adapters.JobStore {
		s := l.store(http.DefaultTransport)
		s.rules = rules
		return s
	}
	jobs := adaptertest.StoreJobs{
		Open: open, Wide: making(3), Query: `{"range":{"n":{"lt":5}}}`,
	}
	return adaptertest.StoreSubject{
		Open:   func(t *testing.T) adapters.Store { return open(t, nil) },
		Prefix: l.name,
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
