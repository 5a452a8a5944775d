package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/differ"
)

// TestSameLargeAnswers does the same with bodies and replies of more than what is ever looked at whole.
func TestSameLargeAnswers(t *testing.T) {
	eachFamily(t, func(f *family) []known { return f.ofLarge }, func(t *testing.T, d *diffing) {
		d.timeout = 60 * time.Second
		cases := d.family.large()
		first := d.play(t, sideDirect, cases)
		for _, side := range []string{sidePlain, sideRuled} {
			d.compare(t, side, first, d.play(t, side, cases))
		}
	})
}

// words returns about so many bytes of words, other ones for each seed.
func words(seed, size int) string {
	var b strings.Builder
	b.Grow(size + 16)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "w%x ", uint32(seed*7919+i)*2654435761)
	}
	return b.String()
}

// largeCases are 30 documents of 100 kB, and eleven of 4.5 MB, written and read in ways that reach 1 MB and 50 MB.
func largeCases() []differ.Case {
	var list []differ.Case
	const zipped = "\nAccept-Encoding: gzip"
	add := func(name, head, body string, change ...func(*differ.Request)) {
		if strings.HasSuffix(head, zipped) {
			name += ", compressed"
		}
		r := differ.Request{Head: ownNames(head), Body: []byte(body)}
		for _, f := range change {
			f(&r)
		}
		list = append(list, differ.Case{Name: name, Requests: []differ.Request{r}})
	}
	inGzip := func(r *differ.Request) { r.Gzip = true }
	inChunks := func(r *differ.Request) { r.Chunk = 64 << 10 }
	const json = "\nContent-Type: application/json"
	document := func(i, size int) string {
		return fmt.Sprintf("{\"n\":%d,\"title\":%q,\"body\":%q,\"blob\":%q}\n", i, words(i, 60), words(100+i, 300), words(1000+i, size))
	}
	bulk := func(from, to, size int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "{\"index\":{\"_id\":\"%d\"}}\n%s", i, document(i, size))
		}
		return b.String()
	}
	for _, index := range []string{"differ-l", "differ-xl"} {
		add("setup: drop", "DELETE /"+index+"?ignore_unavailable=true", "")
		add("setup: index", "PUT /"+index+json, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1},`+
			`"mappings":{"dynamic":false,"properties":{"n":{"type":"integer"},"title":{"type":"text"},"body":{"type":"text"}}}}`)
	}
	add("bulk of 1 MB", "POST /differ-l/_bulk"+json, bulk(0, 10, 100<<10))
	add("bulk of 1 MB in gzip", "POST /differ-l/_bulk"+json, bulk(10, 20, 100<<10), inGzip)
	add("bulk of 1 MB in chunks", "POST /differ-l/_bulk?refresh=true"+json, bulk(20, 30, 100<<10), inChunks)
	add("document of 2 MB", "PUT /differ-l/_doc/big?refresh=true"+json, document(99, 2<<20))
	add("document of 2 MB of text", "PUT /differ-l/_doc/text"+json, fmt.Sprintf(`{"title":"long","body":%q}`, words(5, 2<<20)))
	add("bulk of 3 MB with errors", "POST /differ-l/_bulk"+json, bulk(20, 50, 100<<10)+
		`{"create":{"_id":"1"}}`+"\n"+`{"n":1}`+"\n"+`{"index":{"_id":"bad"}}`+"\n"+`{"n":"word"}`+"\n"+`{"delete":{"_id":"nope"}}`+"\n")
	add("bulk of 3 MB, malformed at its end", "POST /differ-l/_bulk"+json, bulk(0, 30, 100<<10)+"{\"index\":{\"_id\":\n")
	add("refresh", "POST /differ-l/_refresh", "")
	for _, encoding := range []string{"", zipped} {
		add("get of 2 MB", "GET /differ-l/_doc/big"+encoding, "")
		add("source of 2 MB", "GET /differ-l/_source/big"+encoding, "")
		add("mget of 1 MB", "POST /differ-l/_mget"+json+encoding, `{"ids":["0","1","2","3","4","5","6","7","8","9","nope","10","11"]}`)
		add("search of 3 MB", "GET /differ-l/_search?size=30&sort=n"+encoding, "")
		add("search of 3 MB, left alone", "GET /differ-l/_search?size=30&sort=_doc"+encoding, "")
		add("multi-search of 3 MB", "POST /differ-l/_msearch"+json+encoding,
			"{}\n"+`{"size":15,"sort":"n"}`+"\n{}\n"+`{"size":20,"sort":"n","from":10}`+"\n")
		add("search of 3 MB by filter_path", "GET /differ-l/_search?size=30&sort=n&filter_path=hits.hits._source"+encoding, "")
	}
	add("get of a long text", "GET /differ-l/_doc/text", "")
	add("update of 2 MB with its source", "POST /differ-l/_update/big?_source=true"+json, `{"doc":{"n":100}}`)
	add("search body of 1 MB", "POST /differ-l/_search"+json,
		`{"sort":"n","size":1,"query":{"terms":{"n":[0`+strings.Repeat(",       0", 60000)+`]}}}`)
	wide := `{"sort":"n","size":1,` + strings.Repeat(" ", 9<<20) + `"_source":["n"]}`
	add("search body of 9 MB", "POST /differ-l/_search"+json, wide)
	add("search body of 9 MB in gzip", "POST /differ-l/_search"+json, wide, inGzip)
	for i := range 3 {
		add("bulk of 18 MB", "POST /differ-xl/_bulk?refresh=true"+json, bulk(4*i, min(4*i+4, 11), 4608<<10))
	}
	add("search of 50 MB", "GET /differ-xl/_search?size=11&sort=n", "")
	add("search of 9 MB", "GET /differ-xl/_search?size=2&sort=n"+zipped, "")
	add("teardown", "DELETE /differ-l,differ-xl", "")
	return list
}
