package typesense

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// TestRealStore holds the store to the contract on a real server.
func TestRealStore(t *testing.T) {
	b := &bench{t: t, engine: engines.Shared(t, engines.Typesense)}
	b.key = b.engine.Key
	must := func(t *testing.T, method, path, body string) string {
		t.Helper()
		status, reply := b.direct(method, path, body)
		if status >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, status, reply)
		}
		return reply
	}
	document := func(index, id string) string {
		return "/collections/" + index + "/documents/" + strings.ReplaceAll(url.PathEscape(id), "+", "%2B")
	}
	subject := adaptertest.StoreSubject{
		Open: func(*testing.T) adapters.Store {
			return Dialect{}.Open(nil, b.urls(), nil)(adapters.Header{keyHeader: {b.key}}, "")
		},
		Prefix: fmt.Sprintf("neardup_test_store_%d_", os.Getpid()),
		Make: func(t *testing.T, name string) {
			must(t, "POST", "/collections", strings.ReplaceAll(articles, "NAME", name))
			t.Cleanup(func() { b.direct("DELETE", "/collections/"+name, "") })
		},
		Alias: func(t *testing.T, alias, name string) {
			must(t, "PUT", "/aliases/"+alias, `{"collection_name":"`+name+`"}`)
			t.Cleanup(func() { b.direct("DELETE", "/aliases/"+alias, "") })
		},
		Put: func(t *testing.T, index, id, document string) {
			line := `{"id":` + string(jsonedit.AppendString(nil, id)) + "," + strings.TrimPrefix(document, "{")
			must(t, "POST", "/collections/"+index+"/documents?action=upsert", line)
		},
		Get:  func(t *testing.T, index, id string) string { return must(t, "GET", document(index, id), "") },
		Drop: func(t *testing.T, index, id string) { must(t, "DELETE", document(index, id), "") },
		IDs:  oddIDs,
	}
	t.Run("store", func(t *testing.T) { adaptertest.TestStore(t, subject) })
	t.Run("jobs", func(t *testing.T) {
		adaptertest.TestStoreJobs(t, subject, adaptertest.StoreJobs{
			Open: func(_ *testing.T, rules rule.Rules) adapters.JobStore {
				return Dialect{}.Open(nil, b.urls(), rules)(adapters.Header{keyHeader: {b.key}}, "")
			},
			Wide: subject.Make, Query: "n:<5", NoAfter: true,
		})
	})
}

var oddIDs = []string{"a`b", " lead", "a,b", "a]b", "a/b", "é", `a"b`, `a\b`, "a&&b", "a b?c#d%41", "a+b", "a`+b", ":", "*"}
