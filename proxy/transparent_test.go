package proxy_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

const okReply = "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"took\" : 1 }"

// transparent are exchanges that are none of our business: no body, reply or header of them may change.
var transparent = []struct{ name, head, body, reply string }{
	{name: "root", head: "GET / HTTP/1.1"},
	{name: "double slash", head: "GET //_cat//indices HTTP/1.1"},
	{name: "escaped slash", head: "GET /logs/_doc/a%2Fb HTTP/1.1"},
	{name: "escapes in lower case", head: "GET /logs/_doc/a%2fb%c3%a9 HTTP/1.1"},
	{name: "semicolon", head: "GET /a;b=c/_stats;x HTTP/1.1"},
	{name: "dots", head: "GET /a/../b/./_stats HTTP/1.1"},
	{name: "date math as curl sends it", head: "GET /<logs-{now%2Fd}>/_stats HTTP/1.1"},
	{name: "bytes that should be escaped", head: "GET /a|b^c\"d`/_stats HTTP/1.1"},
	{name: "bytes beyond ASCII", head: "GET /d\xc3\xa9j\xe0/_stats HTTP/1.1"},
	{name: "repeated parameters", head: "GET /_stats?a=1&a=2&&b&=c&a= HTTP/1.1"},
	{name: "bad percent in query", head: "GET /_stats?a=%zz&b=%&c=100% HTTP/1.1"},
	{name: "plus and escapes in query", head: "GET /logs/_search?q=a+b%20c%2Bd&x=%C3%A9\xc3\xa9 HTTP/1.1"},
	{name: "client's own user agent and encodings", head: "GET / HTTP/1.1\r\nUser-Agent: curl/8\r\nAccept-Encoding: br;q=0.5, deflate\r\nAccept: */*\r\nCookie: a=b\r\nCookie: c=d"},
	{name: "conditions and ranges", head: "GET / HTTP/1.1\r\nIf-None-Match: \"x\"\r\nRange: bytes=0-1\r\nAuthorization: Basic Zm9vOmJhcg==\r\nX-Empty:"},
	{name: "body on GET", head: "GET /_render/template HTTP/1.1\r\nContent-Type: application/json", body: `{"a": 1}`},
	{name: "body on GET in chunks", head: "GET /_analyze HTTP/1.1\r\nTransfer-Encoding: chunked", body: "4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n"},
	{name: "trailer of a request", head: "POST /_analyze HTTP/1.1\r\nTrailer: X-T\r\nTE: trailers\r\nTransfer-Encoding: chunked", body: "3\r\n{ }\r\n0\r\nX-T: t\r\n\r\n"},
	{name: "forwarding headers", head: "GET / HTTP/1.1\r\nForwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: https"},
	{name: "upgrade to an odd protocol", head: "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: \xc3\xa9"},
	{name: "body on DELETE", head: "DELETE /_search/scroll HTTP/1.1", body: `{"scroll_id":"x"}`},
	{name: "POST without a body", head: "POST /logs/_refresh HTTP/1.1\r\nContent-Length: 0"},
	{name: "own method", head: "PROPFIND /x HTTP/1.1"},
	{name: "options", head: "OPTIONS /logs HTTP/1.1"},
	{name: "options of the server", head: "OPTIONS * HTTP/1.1"},
	{name: "unconfigured bulk", head: "POST /logs/_bulk HTTP/1.1\r\nContent-Type: application/x-ndjson", body: "{\"index\":{}}\n{ \"title\" : \"a b c d e\", \"neardup_sketch\":\"mine\" }\n"},
	{name: "unconfigured bulk in gzip", head: "POST /_bulk HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Type: application/json", body: zipped("{\"index\":{\"_index\":\"logs\"}}\n{\"title\":\"a b\"}\n")},
	{name: "unconfigured search in gzip", head: "POST /logs/_search HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Type: application/json", body: zipped(`{"query": {"match_all": {} } }`)},
	{name: "unconfigured search left alone", head: "POST /logs/_search HTTP/1.1\r\nContent-Type: application/json", body: `{"collapse":{"field":"x"},"size": 3}`},
	{name: "HEAD", head: "HEAD /logs HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4711\r\n\r\n"},
	{name: "reply without a type", head: "GET / HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>hi</html>"},
	{name: "compressed reply", head: "GET / HTTP/1.1\r\nAccept-Encoding: gzip", reply: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"},
	{name: "status of its own", head: "GET / HTTP/1.1", reply: "HTTP/1.1 299 Odd\r\nContent-Length: 1\r\n\r\nx"},
	{name: "early hints", head: "GET / HTTP/1.1", reply: "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okReply},
	{name: "trailer", head: "GET / HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-B\r\n\r\n1\r\nx\r\n0\r\nX-B: b\r\n\r\n"},
	{name: "trailer that was not announced", head: "GET / HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-B: b\r\n\r\n"},
	{name: "empty reply of unknown length", head: "GET / HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{name: "read in which there is nothing of ours", head: "GET /logs/_doc/1 HTTP/1.1", reply: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\n\r\n{ \"_source\": {\"a\": 1 } }"},
	{name: "compressed read in which there is nothing of ours", head: "GET /logs/_doc/1 HTTP/1.1\r\nAccept-Encoding: gzip", reply: inChunks("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n", zipped("{\"_source\":{}}\n"))},
}

// TestTransparent sends the same bytes to an engine directly and through the sidecar, and compares what each end sees.
func TestTransparent(t *testing.T) {
	rec := record(t)
	f := serveNodes(t, []string{"http://" + rec.addr}, nil)
	through := strings.TrimPrefix(f.url, "http://")
	for _, c := range transparent {
		t.Run(c.name, func(t *testing.T) {
			if c.reply == "" {
				c.reply = okReply
			}
			rec.mu.Lock()
			rec.reply = c.reply
			rec.mu.Unlock()
			request := c.head + "\r\nHost: engine.example\r\n"
			if c.body != "" && !strings.Contains(c.head, "chunked") {
				request += "Content-Length: " + strconv.Itoa(len(c.body)) + "\r\n"
			}
			request += "\r\n" + c.body

			wantReply, want := send(t, rec.addr, request), rec.take()
			gotReply, got := send(t, through, request), rec.take()
			if len(want) != 1 || len(got) != 1 || len(gotReply) != len(wantReply) {
				t.Fatalf("the engine got %d requests directly and %d through us; the client %d and %d replies", len(want), len(got), len(wantReply), len(gotReply))
			}
			expect.Same(t, essence(want[0]), essence(got[0]), "request: directly (-), through us (+)")
			if gotReply[len(gotReply)-1].get("connection") == "close" {
				t.Error("the client's connection is closed for no reason")
			}
			for i := range wantReply {
				expect.Same(t, essence(wantReply[i]), essence(gotReply[i]), "reply: directly (-), through us (+)")
			}
		})
	}
}
