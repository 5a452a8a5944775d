package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/differ"
)

// What the cases below ask for, as request lines without a protocol. A body must not hold an index's name, of which the length is
// not known here.
const (
	wireCount  = "GET /differ-h/_count"
	wireSearch = "POST /differ-h/_search?sort=n"
	wireBody   = `{"size":1}` // of the search
	wireWrite  = "PUT /differ-h/_doc/zz"
	wireOne    = "GET /differ-h/_doc/1"
	wireNone   = "GET /differ-h/_doc/nope"
)

// wireCases are exchanges whose bytes count: what stands in the tables goes over the wire as it is. Elasticsearch and OpenSearch
// have them; nothing in them depends on the engine.
func wireCases() []differ.Case {
	var list []differ.Case
	add := func(name string, requests ...string) {
		c := differ.Case{Name: name, Pipelined: strings.HasPrefix(name, "pipelined")}
		for _, r := range requests {
			c.Requests = append(c.Requests, differ.Request{Raw: []byte(ownNames(r))})
		}
		list = append(list, c)
	}
	add("setup: drop", get("DELETE /differ-h?ignore_unavailable=true"))
	add("setup: index", with("PUT /differ-h", `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1}}`))
	add("setup: document", with("PUT /differ-h/_doc/1?refresh=true",
		`{"title":"Harbour wall gives way","body":"A stretch of the old harbour wall fell into the water.","n":1}`))
	add("setup: slash", with("PUT /differ-h/_doc/a%2Fb?refresh=true",
		`{"title":"Bakers win a race","body":"Nine bakers from the upper town rowed a borrowed boat.","n":2}`))
	for _, c := range slices.Concat(targetCases, headerCases, bodyCases()) {
		add(c[0], c[1])
	}
	one, count, nothing := with(wireSearch, wireBody), get(wireCount), get("GET /differ-hnope/_search")
	add("keep-alive", get("GET /"), get(wireOne), one, get("HEAD /differ-h/_doc/nope"), get("GET /differ-h/_source/1"))
	add("keep-alive after errors", nothing, with(wireSearch, wireBody[:len(wireBody)-1]), with(wireWrite, "{}\n"), count)
	add("keep-alive after HEAD and 404", get("HEAD /differ-h/_doc/nope"), get("HEAD /differ-h/_doc/1"), count)
	add("keep-alive of HTTP/1.0", wireCount+" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", count)
	add("keep-alive with chunks", chunked(wireSearch, wireBody), chunked(wireSearch, `{"size":2}`))
	add("close", get(wireCount+"\nConnection: close"), count)
	add("CRLF behind a body", one, "\r\n"+count)
	add("pipelined", count, get(wireOne), one, nothing, get(wireNone), get(wireOne))
	add("pipelined writes", // the engine may work on them at once
		with("PUT /differ-h/_doc/p1?filter_path=_id,result", `{"n":1}`),
		with("PUT /differ-h/_doc/p2?filter_path=_id,result", `{"n":2}`),
		with("POST /differ-h/_bulk?filter_path=items.*.result", "{\"index\":{\"_id\":\"p3\"}}\n{\"n\":3}\n"),
		get(wireOne), get("DELETE /differ-h/_doc/nope?filter_path=result"))
	list = append(list, waitCases()...)
	add("teardown", get("DELETE /differ-h"))
	return list
}

// get returns a request without a body. The line may have more lines of the header behind it.
func get(line string) string {
	first, rest, _ := strings.Cut(line, "\n")
	if rest != "" {
		rest = strings.ReplaceAll(rest, "\n", "\r\n") + "\r\n"
	}
	return first + " HTTP/1.1\r\nHost: engine.example\r\n" + rest + "\r\n"
}

// with returns a request with a JSON body.
func with(line, body string) string {
	head := get(line + "\nContent-Type: application/json\nContent-Length: " + fmt.Sprint(len(body)))
	return head + body
}

// chunked returns the same in two chunks.
func chunked(line, body string) string {
	head := get(line + "\nContent-Type: application/json\nTransfer-Encoding: chunked")
	return fmt.Sprintf("%s1\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, body[:1], len(body)-1, body[1:])
}

// targetCases are ways to write a request target, and methods.
var targetCases = [][2]string{
	{"root", get("GET /")},
	{"root, pretty is the default here", get("GET /?pretty=false")},
	{"double slash in front", get("GET //differ-h/_doc/1")},
	{"double slash in front of a search", get("GET //differ-h/_search?sort=n&size=1")},
	{"double slash within", get("GET /differ-h//_doc/1")},
	{"double slash within a search", get("GET /differ-h//_search?size=1")},
	{"three slashes", get("GET ///differ-h/_count")},
	{"slash at the end", get("GET /differ-h/_doc/1/")},
	{"two slashes at the end", get("GET /differ-h/_search//?size=1&sort=n")},
	{"escaped slash in an id", get("GET /differ-h/_doc/a%2Fb")},
	{"escaped slash in small letters", get("GET /differ-h/_source/a%2fb")},
	{"escaped slash in place of one", get("GET /differ-h%2F_doc%2F1")},
	{"needless escapes", get("GET /%64iffer-h/%5Fdoc/%31")},
	{"needless escapes of a search", get("GET /differ-h/%5Fsearch?size=1&sort=n")},
	{"escape of a percent", get("GET /differ-h/_doc/100%25")},
	{"broken escape in the query", get("GET /differ-h/_search?q=%zz")},
	{"cut off escape in the query", get("GET /differ-h/_search?q=a%2")},
	{"invalid UTF-8 escaped", get("GET /differ-h/_doc/%ff")},
	{"invalid UTF-8 escaped in the query", get("GET /differ-h/_search?q=%ff&size=1")},
	{"raw bytes in the query", get("GET /differ-h/_search?q=\xc3\xbc&size=1")},
	{"semicolon in the path", get("GET /differ-h/_doc/1;x=y")},
	{"semicolon in the query", get("GET /differ-h/_search?size=1;from=0")},
	{"semicolons between parameters", get("GET /differ-h/_search?size=1;sort=n")},
	{"plus in the path", get("GET /differ-h/_doc/a+b")},
	{"plus in the query", get("GET /differ-h/_search?q=harbour+wall&size=1")},
	{"dots", get("GET /differ-hnope/../differ-h/_count")},
	{"single dot", get("GET /./differ-h/_count")},
	{"escaped dots", get("GET /differ-h/%2e%2e/_count")},
	{"hash", get("GET /differ-h/_count#x?y")},
	{"pipe, caret, quote, braces", get("GET /differ-h/_doc/a|b^c\"d{e}`")},
	{"angle brackets: date math", get("GET /<differ-h-{now/d}>/_count?ignore_unavailable=true")},
	{"backslash", get("GET /differ-h\\_doc\\1")},
	{"at sign and colon", get("GET /differ-h/_doc/a@b:c")},
	{"star and dollar", get("GET /differ-h/_doc/*$!'()")},
	{"remote index", get("GET /remote:differ-h/_search")},
	{"empty query", get("GET /differ-h/_count?")},
	{"empty parameters", get("GET /differ-h/_count?&&q=n:1&")},
	{"repeated parameters", get("GET /differ-h/_search?size=1&size=2&sort=n")},
	{"parameter without a value", get("GET /differ-h/_search?pretty&size=1&sort=n")},
	{"parameter with an empty value", get("GET /differ-h/_search?pretty=&size=1&sort=n")},
	{"parameter without a name", get("GET /differ-h/_search?=1&size=1")},
	{"two question marks", get("GET /differ-h/_count?q=n:1?pretty")},
	{"equals in a value", get("GET /differ-h/_search?q=n:1=2&size=1")},
	{"escaped name of a parameter", get("GET /differ-h/_search?%73ize=1&sort=n")},
	{"boolean that is none", get("GET /differ-h/_search?pretty=maybe")},
	{"a long target", get("GET /differ-h/_search?size=1&sort=n&q=n:1" + strings.Repeat("+n:1", 900))},
	{"a target beyond the limit", get("GET /differ-h/_search?q=" + strings.Repeat("a", 4200))},
	{"a target far beyond the limit", get("GET /differ-h/_search?q=" + strings.Repeat("a", 100_000))},
	{"another client's request after a target beyond the limit", get("GET /differ-h/_count")},
	{"OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"OPTIONS of the root", get("OPTIONS /")},
	{"OPTIONS of an index", get("OPTIONS /differ-h")},
	{"OPTIONS of a search", get("OPTIONS /differ-h/_search")},
	{"OPTIONS of a document", get("OPTIONS /differ-h/_doc/1")},
	{"method TRACE", get("TRACE /differ-h/_count")},
	{"method PATCH", get("PATCH /differ-h/_doc/1")},
	{"method PROPFIND", get("PROPFIND /differ-h")},
	{"method BREW", get("BREW /differ-h/_search")},
	{"method in small letters", get("get /differ-h/_count")},
	{"method with odd signs", get("G!T /differ-h/_count")},
	{"method HEAD of a search", get("HEAD /differ-h/_search")},
	{"method PUT of a search", with("PUT /differ-h/_search", "{}")},
}

// headerCases are headers as they may come, and HTTP/1.0.
var headerCases = [][2]string{
	{"no space behind the colon", "GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHost:x\r\nAccept:application/json\r\nX-Opaque-Id:o\r\n\r\n"},
	{"much space behind the colon", "GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: \t  o p \t \r\n\r\n"},
	{"header folded", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: a\r\n b\r\n\r\n"},
	{"header in bytes beyond ASCII", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: \xc3\xbc\xe9\r\n\r\n"},
	{"header names in capitals", "GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHOST: x\r\nACCEPT: application/json\r\nX-OPAQUE-ID: o\r\n\r\n"},
	{"empty Host", "GET /differ-h/_count HTTP/1.1\r\nHost:\r\n\r\n"},
	{"a header of 7 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 7000))},
	{"a header of 9 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 9000))},
	{"another client's request after a header of 9 kB", get("GET /differ-h/_count")},
	{"a header of 20 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 20_000))},
	{"another client's request after a header of 20 kB", get("GET /differ-h/_count")},
	{"many headers", get("GET /differ-h/_count" + strings.Repeat("\nX-A: b", 300))},
	{"forwarding headers", get("GET /differ-h/_count\nX-Forwarded-For: 10.1.1.1\nForwarded: for=x\nX-Forwarded-Proto: https\nVia: 1.1 x")},
	{"cookies", get("GET /differ-h/_count\nCookie: a=b\nCookie: c=d")},
	{"conditions and ranges", get("GET /differ-h/_doc/1\nIf-None-Match: \"x\"\nIf-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\nRange: bytes=0-1")},
	{"a connection header that names another", get("GET /differ-h/_search?size=1&sort=n\nConnection: keep-alive, X-Opaque-Id\nX-Opaque-Id: o")},
	{
		"upgrade to a web socket",
		get("GET /differ-h/_count\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
	},
	{"upgrade to HTTP/2", get("GET /differ-h/_count\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__")},
	{"TE and Trailer", get("GET /differ-h/_count\nTE: trailers\nTrailer: X-Sum")},
	{"Keep-Alive", get("GET /differ-h/_count\nKeep-Alive: timeout=5\nProxy-Connection: keep-alive")},
	{"Max-Forwards", get("OPTIONS /differ-h\nMax-Forwards: 0")},
	{"Origin of elsewhere", get("GET /differ-h/_count\nOrigin: http://example.org")},
	{
		"preflight",
		get("OPTIONS /differ-h/_search\nOrigin: http://example.org\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type"),
	},
	{"compressed on HTTP/1.0", "GET /differ-h/_source/a%2Fb?_source=n HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"},
	{"HTTP/1.0", "GET /differ-h/_count HTTP/1.0\r\n\r\n"},
	{"HTTP/1.0, a search", "GET /differ-h/_search?size=1&sort=n HTTP/1.0\r\nHost: x\r\n\r\n"},
	{"HTTP/1.0, HEAD", "HEAD /differ-h/_doc/nope HTTP/1.0\r\n\r\n"},
	{"a byte beyond ASCII in the target", "GET /differ-h/_doc/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n"},
}

// bodyCases are bodies and how their end is told.
func bodyCases() [][2]string {
	one := func(header, body string) string {
		return get(wireSearch+"\nContent-Type: application/json\n"+header) + body
	}
	size := len(wireBody)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", size, wireBody)
	inChunks := "Transfer-Encoding: chunked"
	line, found := wireSearch+" HTTP/1.0\r\nContent-Type: application/json\r\n", strings.Replace(wireSearch, "POST", "GET", 1)
	return [][2]string{
		{"HTTP/1.0, a body", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", line, size, wireBody)},
		{"body on GET", with(wireCount, `{"query":{"term":{"n":1}}}`)},
		{"body on GET in chunks", chunked(wireCount, `{"query":{"term":{"n":1}}}`)},
		{"body on GET of a search in chunks", chunked(found, wireBody)},
		{"body on GET of a document", with(wireOne, `{"a":1}`)},
		{"body on DELETE", with(strings.Replace(wireNone, "GET", "DELETE", 1), `{"a":1}`)},
		{"body on HEAD", with(strings.Replace(wireCount, "GET", "HEAD", 1), `{"a":1}`)},
		{"body on OPTIONS", with(strings.Replace(wireOne, "GET", "OPTIONS", 1), `{"a":1}`)},
		{"length of nothing on GET", get(wireCount + "\nContent-Length: 0")},
		{"length of nothing on GET with a type", get(found + "\nContent-Length: 0\nContent-Type: application/json")},
		{"POST without a length", get(wireSearch)},
		{"POST of a length of nothing", get(wireSearch + "\nContent-Length: 0")},
		{"write without a length", get(wireWrite)},
		{"write of a length of nothing", get(wireWrite + "\nContent-Length: 0")},
		{"chunks: none", one(inChunks, "0\r\n\r\n")},
		{"chunks: extensions", one(inChunks, fmt.Sprintf("%x;x=y;z\r\n%s\r\n0;q\r\n\r\n", size, wireBody))},
		{"chunks: trailer", one(inChunks+"\nTrailer: X-Sum", chunk+"0\r\nX-Sum: 1\r\n\r\n")},
		{"chunks: leading zeros and capitals", one("Transfer-Encoding: Chunked", fmt.Sprintf("00%X\r\n%s\r\n0\r\n\r\n", size, wireBody))},
		{"chunks and a length", one("Content-Length: 3\n"+inChunks, chunk+"0\r\n\r\n")},
	}
}

// waitCases are requests whose body waits for the server's leave.
func waitCases() []differ.Case {
	wait := func(name, head, body string) differ.Case {
		return differ.Case{Name: name, Requests: []differ.Request{{Head: ownNames(head), Body: []byte(body), Wait: true}}}
	}
	const json = "\nContent-Type: application/json"
	return []differ.Case{
		wait("leave: a search", "POST /differ-h/_search?sort=n"+json, `{"size":1}`),
		wait("leave: a count", "POST /differ-h/_count"+json, `{"query":{"match_all":{}}}`),
		wait("leave: a bulk", "POST /differ-h/_bulk"+json, "{\"index\":{\"_id\":\"w\"}}\n{\"n\":3}\n"),
		wait("leave: no path", "POST /differ-h/_nonsense"+json, `{}`),
		wait("leave: wrong type", "POST /differ-h/_bulk\nContent-Type: text/plain", "x\n"),
		wait("leave: a body beyond the limit", "POST /differ-h/_bulk"+json+"\nContent-Length: 200000000", ""),
		wait("leave: a search beyond the limit", "POST /differ-h/_search"+json+"\nContent-Length: 200000000", ""),
		wait("leave: a count beyond the limit", "POST /differ-h/_count"+json+"\nContent-Length: 200000000", ""),
	}
}

// TestSamePages pages through more documents than a page holds, sorted by what all of them share, by scores and by a field.
func TestSamePages(t *testing.T) {
	eachFamily(t, func(f *family) []known { return f.known }, func(t *testing.T, d *diffing) { d.diff(t, d.family.pages()) })
}

// pageCases are 160 documents on three shards, some of them written twice, and the pages of several lists of them.
func pageCases() []differ.Case {
	var list cases
	add := func(name, head, body string) {
		if body != "" {
			head += "\nContent-Type: application/json"
		}
		list.add(name, head, body)
	}
	var lines strings.Builder
	for i := range 200 {
		id := i % 160 // what is written again leaves a deleted document behind, which scores may count
		fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"n\":%d,\"even\":%t,\"title\":%q,\"body\":%q}\n", id, i, i%2 == 0,
			"common "+words(i, 40), strings.Repeat("common ", 1+i%3)+words(500+i, 200))
	}
	add("setup: drop", "DELETE /differ-p?ignore_unavailable=true", "")
	add("setup: index", "PUT /differ-p", `{"settings":{"number_of_shards":3,"number_of_replicas":0,"refresh_interval":-1}}`)
	add("setup: documents", "POST /differ-p/_bulk?refresh=true", lines.String())
	for _, size := range []int{7, 50} {
		for from := 0; from <= 170; from += 17 {
			page := fmt.Sprintf(`"from":%d,"size":%d,"_source":["n"]`, from, size)
			add("ties", "POST /differ-p/_search", "{"+page+"}")
			add("scores", "POST /differ-p/_search", `{"query":{"match":{"body":"common"}},`+page+"}")
			add("a field", "POST /differ-p/_search", `{"sort":[{"even":"desc"},{"n":"asc"}],`+page+"}")
			add("two in one", "POST /differ-p/_msearch", "{}\n{"+page+"}\n{}\n{\"sort\":[{\"n\":\"desc\"}],"+page+"}\n")
			add("a few, counted up to ten", "POST /differ-p/_search",
				`{"track_total_hits":10,"query":{"term":{"even":true}},"aggs":{"n":{"max":{"field":"n"}}},`+page+"}")
		}
	}
	add("all", "GET /differ-p/_search?size=200", "")
	add("all, by score", "GET /differ-p/_search?size=200&q=common", "")
	add("beyond", "GET /differ-p/_search?from=160&size=10&q=common", "")
	add("teardown", "DELETE /differ-p", "")
	return list
}

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
	var list cases
	const zipped = "\nAccept-Encoding: gzip"
	add := func(name, head, body string, change ...func(*differ.Request)) {
		if strings.HasSuffix(head, zipped) {
			name += ", compressed"
		}
		list.add(name, head, body, change...)
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
