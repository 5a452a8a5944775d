package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestLargeReads reads some forty megabytes in one reply, and as a page of a scroll. What makes them large is not sketched: it is the
// reading that counts here.
func TestLargeReads(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "reads-large"
	const documents = 640
	var ids []string
	for i := range documents {
		ids = append(ids, fmt.Sprintf(`"%d"`, i))
	}
	pad := strings.Repeat(text(newWriter(41).words(1000))+" ", 10)
	twins(t, e, index, func(t *testing.T, a api) {
		call(t, e, "PUT", a.base+"/"+index, `{"mappings":{"dynamic":false}}`).want(t, 200)
		for from := 0; from < documents; from += 80 {
			var bulk strings.Builder
			for i := from; i < from+80; i++ {
				fmt.Fprintf(&bulk, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"title\":\"number %d of these\",\"pad\":%q}\n", index, i, i, pad)
			}
			a.loadLines(t, index, bulk.String())
		}
	}, func(t *testing.T, a api) map[string]answered {
		got := map[string]answered{}
		for _, encoding := range []string{"", "gzip"} {
			r := a.fetch(t, "POST", "/"+index+"/_mget", `{"ids":[`+strings.Join(ids, ",")+`]}`, false, "Accept-Encoding", encoding)
			delete(r.Header, "Content-Length") // which a reply loses that is too long to be held
			if len(r.Body) < 40<<20 {
				t.Errorf("the reply has %d bytes", len(r.Body))
			}
			got["documents "+encoding] = r
			r = a.fetch(t, "POST", "/"+index+"/_search?scroll=1m", fmt.Sprintf(`{"size":%d,"sort":["_doc"]}`, documents), false, "Accept-Encoding", encoding)
			delete(r.Header, "Content-Length")
			got["page "+encoding] = r
		}
		return got
	})
}

// TestLargeReadsOfOthers: of an index that no rule matches, a large reply comes as the engine sent it, compressed or not.
func TestLargeReadsOfOthers(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "reads-large-other"
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "reads-large"})}
	direct.drop(t, index)
	call(t, e, "DELETE", e.URL+"/"+index, "")
	call(t, e, "PUT", e.URL+"/"+index, `{"mappings":{"enabled":false}}`).want(t, 200)
	noise := make([]byte, 16<<20)
	source := rand.NewChaCha8([32]byte{1})
	source.Read(noise)
	for i, b := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[b%64]
	}
	call(t, e, "PUT", e.URL+"/"+index+"/_doc/1", `{"text":"`+string(noise)+`"}`).want(t, 201)
	for _, encoding := range []string{"", "gzip", "deflate"} {
		want := call(t, e, "GET", direct.base+"/"+index+"/_doc/1", "", "Accept-Encoding", encoding).want(t, 200)
		got := call(t, e, "GET", through.base+"/"+index+"/_doc/1", "", "Accept-Encoding", encoding).want(t, 200)
		if !bytes.Equal(got.body, want.body) {
			t.Errorf("%q: not the same bytes", encoding)
		}
		for _, key := range []string{"Content-Encoding", "Content-Type", "Content-Length"} {
			if got.header.Get(key) != want.header.Get(key) {
				t.Errorf("%q: %s is %q, want %q", encoding, key, got.header.Get(key), want.header.Get(key))
			}
		}
	}
}
