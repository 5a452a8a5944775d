package e2e

import (
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/differ"
)

// wired is what the cases below ask an engine for.
type wired struct {
	setup         []differ.Case
	targets       [][2]string
	other         *strings.Replacer   // from what the tables of headers and request lines ask for, if that is not it
	raw           func(string) string // changes every request, if not nil
	count, search string              // request lines without a protocol: something short, and a search
	body, more    string              // of the search, for one hit and for two
	write         string              // a request line for writes
	one, none     string              // request lines for a document that is there, and for one that is not
	nothing       string              // for a search of an index that is not there
	mixed, writes []string            // requests on one connection
	waiting       []differ.Case
	drop          string
}

// wireCases are exchanges whose bytes count: what stands in the tables goes over the wire as it is.
func wireCases(w wired) []differ.Case {
	list := w.setup
	add := func(name string, requests ...string) {
		c := differ.Case{Name: name}
		for _, r := range requests {
			if w.other != nil {
				r = w.other.Replace(r)
			}
			if w.raw != nil {
				r = w.raw(r)
			}
			c.Requests = append(c.Requests, differ.Request{Raw: []byte(ownNames(r))})
		}
		list = append(list, c)
	}
	for _, group := range [][][2]string{w.targets, headerCases, lineCases, bodyCases(w)} {
		for _, c := range group {
			add(c[0], c[1])
		}
	}
	sizeOne, count := with(w.search, w.body), get(w.count)
	add("keep-alive", w.mixed...)
	add("keep-alive after errors", get(w.nothing), with(w.search, w.body[:len(w.body)-1]), with(w.write, "{}\n"), count)
	head := func(line string) string { return get(strings.Replace(line, "GET", "HEAD", 1)) }
	add("keep-alive after HEAD and 404", head(w.none), head(w.one), count)
	add("keep-alive of HTTP/1.0", w.count+" HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", count)
	add("keep-alive with chunks", chunked(w.search, w.body), chunked(w.search, w.more))
	add("close", get(w.count+"\nConnection: close"), count)
	add("CRLF between requests", count, "\r\n"+count)
	add("CRLF behind a body", sizeOne, "\r\n"+count)
	add("pipelined", count, get(w.one), sizeOne, get(w.nothing), get(w.none), get(w.one))
	list[len(list)-1].Pipelined = true
	add("pipelined writes", w.writes...)
	list[len(list)-1].Pipelined = true
	list = append(list, w.waiting...)
	add("teardown", get(w.drop))
	return list
}

// elasticWire are those for Elasticsearch and OpenSearch.
func elasticWire() []differ.Case {
	raw := func(name, request string) differ.Case {
		return differ.Case{Name: name, Requests: []differ.Request{{Raw: []byte(ownNames(request))}}}
	}
	w := wired{
		// A body must not hold an index's name, of which the length is not known here.
		setup: []differ.Case{
			raw("setup: drop", get("DELETE /differ-h?ignore_unavailable=true")),
			raw("setup: index",
				with("PUT /differ-h", `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1}}`)),
			raw("setup: document", with("PUT /differ-h/_doc/1?refresh=true",
				`{"title":"Harbour wall gives way","body":"A stretch of the old harbour wall fell into the water.","n":1}`)),
			raw("setup: slash", with("PUT /differ-h/_doc/a%2Fb?refresh=true",
				`{"title":"Bakers win a race","body":"Nine bakers from the upper town rowed a borrowed boat.","n":2}`)),
		},
		targets: targetCases,
		count:   "GET /differ-h/_count", search: "POST /differ-h/_search?sort=n", body: `{"size":1}`, more: `{"size":2}`,
		write: "PUT /differ-h/_doc/zz", one: "GET /differ-h/_doc/1", none: "GET /differ-h/_doc/nope",
		nothing: "GET /differ-hnope/_search", drop: "DELETE /differ-h", waiting: waitCases(),
	}
	w.mixed = []string{
		get("GET /"), get(w.one), with(w.search, w.body), get("HEAD /differ-h/_doc/nope"), get("GET /differ-h/_source/1"),
	}
	w.writes = []string{ // the engine may work on them at once
		with("PUT /differ-h/_doc/p1?filter_path=_id,result", `{"n":1}`),
		with("PUT /differ-h/_doc/p2?filter_path=_id,result", `{"n":2}`),
		with("POST /differ-h/_bulk?filter_path=items.*.result", "{\"index\":{\"_id\":\"p3\"}}\n{\"n\":3}\n"),
		get(w.one), get("DELETE /differ-h/_doc/nope?filter_path=result"),
	}
	return wireCases(w)
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
	{"broken escape in the path", get("GET /differ-h/_doc/%zz")},
	{"cut off escape in the path", get("GET /differ-h/_doc/%2")},
	{"percent at the end of the path", get("GET /differ-h/_doc/1%")},
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
	{"a target with its host", "GET http://engine.example/differ-h/_count HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{
		"a search's target with its host",
		"GET http://engine.example/differ-h/_search?size=1&sort=n HTTP/1.1\r\nHost: engine.example\r\n\r\n",
	},
	{"a target with another host", "GET http://other.example:1/differ-h/_doc/a%2Fb HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{"a target without a slash", "GET differ-h/_count HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
	{"a target that is a star", "GET *?filter_path=differ-h.aliases HTTP/1.1\r\nHost: engine.example\r\n\r\n"},
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
	{"method CONNECT", "CONNECT engine.example:80 HTTP/1.1\r\nHost: engine.example:80\r\n\r\n"},
	{"method with odd signs", get("G!T /differ-h/_count")},
	{"method HEAD of a search", get("HEAD /differ-h/_search")},
	{"method PUT of a search", with("PUT /differ-h/_search", "{}")},
}

// headerCases are headers as they may come.
var headerCases = [][2]string{
	{
		"no space behind the colon",
		"GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHost:x\r\nAccept:application/json\r\nX-Opaque-Id:o\r\n\r\n",
	},
	{"much space behind the colon", "GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: \t  o p \t \r\n\r\n"},
	{"space in front of the colon", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id : o\r\n\r\n"},
	{"header without a colon", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n"},
	{"header without a name", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\n: o\r\n\r\n"},
	{"header without a value", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id:\r\n\r\n"},
	{"header folded", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: a\r\n b\r\n\r\n"},
	{"header in bytes beyond ASCII", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: \xc3\xbc\xe9\r\n\r\n"},
	{"header with a NUL", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: a\x00b\r\n\r\n"},
	{"header with a control byte", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: a\x01b\r\n\r\n"},
	{"header name with odd signs", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX(O)paque: a\r\n\r\n"},
	{
		"header names in capitals",
		"GET /differ-h/_search?size=1&sort=n HTTP/1.1\r\nHOST: x\r\nACCEPT: application/json\r\nX-OPAQUE-ID: o\r\n\r\n",
	},
	{"lines that end in LF alone", "GET /differ-h/_count HTTP/1.1\nHost: x\n\n"},
	{"a CR within a header", "GET /differ-h/_count HTTP/1.1\r\nHost: x\r\nX-Opaque-Id: a\rb\r\n\r\n"},
	{"no Host", "GET /differ-h/_count HTTP/1.1\r\n\r\n"},
	{"two Hosts", "GET /differ-h/_count HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
	{"empty Host", "GET /differ-h/_count HTTP/1.1\r\nHost:\r\n\r\n"},
	{"a Host that can't be", "GET /differ-h/_count HTTP/1.1\r\nHost: a b/c\r\n\r\n"},
	{"a header of 7 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 7000))},
	{"a header of 9 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 9000))},
	{"another client's request after a header of 9 kB", get("GET /differ-h/_count")},
	{"a header of 20 kB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 20_000))},
	{"another client's request after a header of 20 kB", get("GET /differ-h/_count")},
	{"a header of 2 MB", get("GET /differ-h/_count\nX-Long: " + strings.Repeat("a", 2_000_000))},
	{"another client's request after a header of 2 MB", get("GET /differ-h/_count")},
	{"many headers", get("GET /differ-h/_count" + strings.Repeat("\nX-A: b", 300))},
	{
		"forwarding headers",
		get("GET /differ-h/_count\nX-Forwarded-For: 10.1.1.1\nForwarded: for=x\nX-Forwarded-Proto: https\nVia: 1.1 x"),
	},
	{"cookies", get("GET /differ-h/_count\nCookie: a=b\nCookie: c=d")},
	{
		"conditions and ranges",
		get("GET /differ-h/_doc/1\nIf-None-Match: \"x\"\nIf-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\nRange: bytes=0-1"),
	},
	{
		"a connection header that names another",
		get("GET /differ-h/_search?size=1&sort=n\nConnection: keep-alive, X-Opaque-Id\nX-Opaque-Id: o"),
	},
	{
		"upgrade to a web socket",
		get("GET /differ-h/_count\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
	},
	{
		"upgrade to HTTP/2",
		get("GET /differ-h/_count\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__"),
	},
	{"TE and Trailer", get("GET /differ-h/_count\nTE: trailers\nTrailer: X-Sum")},
	{"Keep-Alive", get("GET /differ-h/_count\nKeep-Alive: timeout=5\nProxy-Connection: keep-alive")},
	{"Max-Forwards", get("OPTIONS /differ-h\nMax-Forwards: 0")},
	{"Expect of something else", get("GET /differ-h/_count\nExpect: nonsense")},
	{"Origin of elsewhere", get("GET /differ-h/_count\nOrigin: http://example.org")},
	{
		"preflight",
		get("OPTIONS /differ-h/_search\nOrigin: http://example.org\nAccess-Control-Request-Method: POST\nAccess-Control-Request-Headers: content-type"),
	},
	{"compressed on HTTP/1.0", "GET /differ-h/_source/a%2Fb?_source=n HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"},
}

// lineCases are request lines and protocols.
var lineCases = [][2]string{
	{"HTTP/1.0", "GET /differ-h/_count HTTP/1.0\r\n\r\n"},
	{"HTTP/1.0, a search", "GET /differ-h/_search?size=1&sort=n HTTP/1.0\r\nHost: x\r\n\r\n"},
	{"HTTP/1.0, HEAD", "HEAD /differ-h/_doc/nope HTTP/1.0\r\n\r\n"},
	{"HTTP/0.9", "GET /differ-h/_count\r\n\r\n"},
	{"HTTP/1.2", "GET /differ-h/_count HTTP/1.2\r\nHost: x\r\n\r\n"},
	{"HTTP/2.0", "GET /differ-h/_count HTTP/2.0\r\nHost: x\r\n\r\n"},
	{"HTTP/3", "GET /differ-h/_count HTTP/3\r\nHost: x\r\n\r\n"},
	{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	{"protocol in small letters", "GET /differ-h/_count http/1.1\r\nHost: x\r\n\r\n"},
	{"protocol of another kind", "GET /differ-h/_count FTP/1.1\r\nHost: x\r\n\r\n"},
	{"spaces in the line", "GET  /differ-h/_count  HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"space in the target", "GET /differ-h/_doc/a b HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"tab in the line", "GET\t/differ-h/_count\tHTTP/1.1\r\nHost: x\r\n\r\n"},
	{"space in front of the line", " GET /differ-h/_count HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"empty line in front", "\r\n" + get("GET /differ-h/_count")},
	{"empty lines in front", "\r\n\r\n\r\n" + get("GET /differ-h/_count")},
	{"a control byte in the target", "GET /differ-h/_doc/a\x01b HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a NUL in the target", "GET /differ-h/_doc/a\x00b HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a byte beyond ASCII in the target", "GET /differ-h/_doc/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"nonsense", "nonsense\r\n\r\n"},
	{"a TLS greeting", "\x16\x03\x01\x00\x05hello\r\n\r\n"},
	{"something behind a request without a body", get("GET /differ-h/_count") + "more\r\n\r\n"},
}

// bodyCases are bodies and how their end is told.
func bodyCases(w wired) [][2]string {
	one := func(header, body string) string {
		return get(w.search+"\nContent-Type: application/json\n"+header) + body
	}
	size := len(w.body)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", size, w.body)
	inChunks := "Transfer-Encoding: chunked"
	line, found := w.search+" HTTP/1.0\r\nContent-Type: application/json\r\n", strings.Replace(w.search, "POST", "GET", 1)
	return [][2]string{
		{"HTTP/1.0, a body", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", line, size, w.body)},
		{"HTTP/1.0, chunks", line + inChunks + "\r\n\r\n" + chunk + "0\r\n\r\n"},
		{"body on GET", with(w.count, `{"query":{"term":{"n":1}}}`)},
		{"body on GET in chunks", chunked(w.count, `{"query":{"term":{"n":1}}}`)},
		{"body on GET of a search in chunks", chunked(found, w.body)},
		{"body on GET of a document", with(w.one, `{"a":1}`)},
		{"body on DELETE", with(strings.Replace(w.none, "GET", "DELETE", 1), `{"a":1}`)},
		{"body on HEAD", with(strings.Replace(w.count, "GET", "HEAD", 1), `{"a":1}`)},
		{"body on OPTIONS", with(strings.Replace(w.one, "GET", "OPTIONS", 1), `{"a":1}`)},
		{"length of nothing on GET", get(w.count + "\nContent-Length: 0")},
		{"length of nothing on GET with a type", get(found + "\nContent-Length: 0\nContent-Type: application/json")},
		{"POST without a length", get(w.search)},
		{"POST of a length of nothing", get(w.search + "\nContent-Length: 0")},
		{"write without a length", get(w.write)},
		{"write of a length of nothing", get(w.write + "\nContent-Length: 0")},
		{"chunks: none", one(inChunks, "0\r\n\r\n")},
		{"chunks: extensions", one(inChunks, fmt.Sprintf("%x;x=y;z\r\n%s\r\n0;q\r\n\r\n", size, w.body))},
		{"chunks: trailer", one(inChunks+"\nTrailer: X-Sum", chunk+"0\r\nX-Sum: 1\r\n\r\n")},
		{
			"chunks: leading zeros and capitals",
			one("Transfer-Encoding: Chunked", fmt.Sprintf("00%X\r\n%s\r\n0\r\n\r\n", size, w.body)),
		},
		{"chunks: bad size", one(inChunks, "zz\r\n"+w.body+"\r\n0\r\n\r\n")},
		{
			"chunks: bad size of a write",
			get(w.write+"\nContent-Type: application/json\n"+inChunks) + "zz\r\n" + w.body + "\r\n0\r\n\r\n",
		},
		{"chunks and a length", one("Content-Length: 3\n"+inChunks, chunk+"0\r\n\r\n")},
		{"transfer encoding unknown", one("Transfer-Encoding: nonsense", "{}")},
		{"transfer encoding of two", one("Transfer-Encoding: gzip, chunked", "0\r\n\r\n")},
		{"length given twice, the same", one(fmt.Sprintf("Content-Length: %d\nContent-Length: %d", size, size), w.body)},
		{"length given twice, another", one(fmt.Sprintf("Content-Length: %d\nContent-Length: %d", size, size+1), w.body+" ")},
		{"length of a list", one(fmt.Sprintf("Content-Length: %d, %d", size, size), w.body)},
		{"length that is negative", get(w.search + "\nContent-Length: -1")},
		{"length with a plus", one("Content-Length: +2", "{}")},
		{"length that is no number", get(w.search + "\nContent-Length: ten")},
		{"length that is empty", get(w.search + "\nContent-Length: ")},
		{"length beyond 64 bits", get(w.search + "\nContent-Length: 99999999999999999999")},
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
