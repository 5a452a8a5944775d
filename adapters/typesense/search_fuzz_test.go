package typesense

import (
	"math/rand/v2"
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
		_, _ = adaptertest.Run(search(r, plan).Exchange, func(*adapters.Request) *adapters.Reply { return &adapters.Reply{Status: 200, Body: reply} })
	})
}

func FuzzNoSearchPanics(f *testing.F) {
	f.Add(`{"searches":[{"collection":"news"}]}`, "per_page=3")
	f.Add(`{"searches":[{"collection":"news","per_page":"5","page":2,"page":1}]}`, "include_fields=%zz;&exclude_fields=id")
	rule := newRule(f, "news", "body")
	plan := planFor(adapters.Scope{}, rule)
	engine := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(5, 1)), rule, 40, 0.5)}
	f.Fuzz(func(_ *testing.T, body, query string) {
		for _, r := range []*adapters.Request{post("/multi_search?"+query, body), get("/collections/news/documents/search?" + query)} {
			if s := search(r, plan); s.Exchange != nil {
				_, _ = adaptertest.Run(s.Exchange, engine.reply)
			}
		}
	})
}
