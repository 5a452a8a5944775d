package typesense

import (
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

func FuzzNoReplyPanics(f *testing.F) {
	for _, s := range []string{
		`{"results":[{"found":1,"hits":[{"document":{"id":"1"}}],"page":1,"request_params":{"per_page":17,"collection_name":"news"}}]}`,
		`{"results":[{"found":1,"hits":[{"document":{"id":1}}],"page":1,"request_params":null}]}`, `{"results":[{"error":"x","code":"y"}]}`, `{"results":{}}`, `[]`, ``,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	plan := planFor(adapters.Scope{}, newRule(f, "news", "body"))
	f.Fuzz(func(_ *testing.T, reply []byte, multi bool) {
		r := get("/collections/news/documents/search?q=x")
		if multi {
			r = post("/multi_search", `{"searches":[{"collection":"news"}]}`)
		}
		_, _ = adaptertest.Run(search(r, plan), func(*adapters.Request) *adapters.Reply { return &adapters.Reply{Status: 200, Body: reply} })
	})
}
