package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// BenchmarkPage counts the allocations of a page of 50 hits of 2 kB with all of HTTP: collapsed, passed, and the same request and reply through
// what Go has for it alone. Client and engine are plain connections, which allocate nothing.
//
//	go test -run '^$' -bench '^BenchmarkPage$' -benchmem -cpu 1 ./proxy
func BenchmarkPage(b *testing.B) {
	r := newRule(b)
	r.Fields = []string{"title", "body"}
	documents := adaptertest.Articles(b, r, 50, 1500, 0)
	for _, c := range []struct {
		name, search, passing string
		dialect               interface {
			adapters.Dialect
			open
		}
		lookUp func(uri string) string
		page   func(request string) string
	}{
		{
			"elasticsearch", "POST /news-1/_search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"size\":50}",
			"POST /news-1/_search?neardup=off HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"size\":50}",
			elastic.Dialect{}, func(uri string) string {
				e, w := newEngine("news-1"), httptest.NewRecorder()
				e.set("news-1", true)
				e.ServeHTTP(w, httptest.NewRequest("GET", uri, nil))
				return w.Body.String()
			}, func(string) string { return elasticPage(documents) },
		},
		{
			"typesense", "GET /collections/news-1/documents/search?q=report&query_by=title,body&per_page=50 HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /collections/news-1/documents/search?q=report&query_by=title,body&per_page=50&neardup=off HTTP/1.1\r\nHost: x\r\n\r\n",
			typesense.Dialect{}, func(string) string {
				return `{"name":"news-1","fields":[{"name":"neardup_sketch","type":"string","index":false,"optional":true}],"num_documents":50}`
			}, func(request string) string { return typesensePage(documents, request) },
		},
	} {
		node := rawEngine(b, c.lookUp, c.page)
		front := handler(b, []string{node}, func(e *proxy.Engine) {
			e.Dialect, e.Rules, e.Log = c.dialect, rule.Rules{r}, nil
			open := c.dialect.Open(e.Transport, e.URLs, e.Rules)
			e.Open = func(h adapters.Header, query string) adapters.Store { return open(h, query) }
		})
		target := expect.Value(url.Parse(node))(b)
		transport := proxy.NewTransport().Transport
		for _, way := range []struct {
			name, request string
			handler       http.Handler
		}{
			{"collapsed", c.search, front},
			{"passed", c.passing, front},
			{"ReverseProxy", c.search, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}},
			{"transport", c.search, bare(target, transport)},
			{"net/http", c.search, fixed(c.page(c.search))},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				server := httptest.NewServer(way.handler)
				defer server.Close()
				client := expect.Value(net.Dial("tcp", server.Listener.Addr().String()))(b)
				defer client.Close()
				request, room := []byte(way.request), make([]byte, 256<<10)
				for range 3 { // what is looked up once
					ask(b, client, request, room)
				}
				if head := ask(b, client, request, room); way.name == "collapsed" && !bytes.Contains(head, []byte("Neardup: collapsed")) {
					b.Fatalf("%s", head)
				}
				b.ReportAllocs()
				for b.Loop() {
					ask(b, client, request, room)
				}
			})
		}
	}
}

// open is a dialect's store.
type open interface {
	Open(transport http.RoundTripper, urls []*url.URL, rules rule.Rules) func(header adapters.Header, query string) adapters.EngineStore
}

// ask sends a request, reads the reply into the room and returns its head.
func ask(b *testing.B, client net.Conn, request, room []byte) (head []byte) {
	if _, err := client.Write(request); err != nil {
		b.Fatal(err)
	}
	for n := 0; ; {
		got, err := client.Read(room[n:])
		if n += got; err != nil {
			b.Fatal(err)
		}
		if end := bytes.Index(room[:n], []byte("\r\n\r\n")); end >= 0 && n >= end+4+length(room[:end]) {
			return room[:end]
		}
	}
}

// length is the Content-Length in a head, 0 without one.
func length(head []byte) (n int) {
	const name = "Content-Length: "
	if at := bytes.Index(head, []byte(name)); at >= 0 {
		for _, c := range head[at+len(name):] {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
	}
	return n
}

// rawEngine answers searches with a page, the same one to the same request, and all else with what is looked up.
func rawEngine(b *testing.B, lookUp func(uri string) string, page func(request string) string) (node string) {
	listener := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(b)
	b.Cleanup(func() { listener.Close() })
	answers := func(conn net.Conn) {
		defer conn.Close()
		known, room, n := map[string][]byte{}, make([]byte, 64<<10), 0
		for {
			got, err := conn.Read(room[n:])
			if n += got; err != nil {
				return
			}
			end := bytes.Index(room[:n], []byte("\r\n\r\n"))
			if end < 0 || n < end+4+length(room[:end]) {
				continue
			}
			reply := known[string(room[:n])]
			if reply == nil {
				uri := strings.Fields(string(room[:end]))[1]
				body := ""
				if strings.Contains(uri, "search") {
					body = page(string(room[:n]))
				} else {
					body = lookUp(uri)
				}
				reply = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Elastic-Product: Elasticsearch\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				known[string(room[:n])] = reply
			}
			n = 0
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answers(conn)
		}
	}()
	return "http://" + listener.Addr().String()
}

// bare hands a request on and the reply back with an http.Transport and nothing else.
func bare(target *url.URL, transport *http.Transport) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, target.String()+r.RequestURI, r.Body)
		if err != nil {
			panic(err)
		}
		out.ContentLength, out.Header = r.ContentLength, r.Header
		resp, err := transport.RoundTrip(out)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		for key, values := range resp.Header {
			w.Header()[key] = values
		}
		_, _ = io.Copy(w, resp.Body)
	}
}

// fixed answers with a page.
func fixed(page string) http.HandlerFunc {
	body := []byte(page)
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
		_, _ = w.Write(body)
	}
}

func elasticPage(documents []adaptertest.Document) string {
	var hits []string
	for _, d := range documents {
		hits = append(hits, fmt.Sprintf(`{"_index":"news-1","_id":%q,"_score":1.0,"_source":%s,"fields":{"neardup_sketch":[%s]}}`,
			d.ID, d.Source, jsonedit.Lookup(d.Source, rule.SketchField)))
	}
	return `{"took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":50,"relation":"eq"},"max_score":1.0,"hits":[` +
		strings.Join(hits, ",") + `]}}`
}

func typesensePage(documents []adaptertest.Document, request string) string {
	var hits []string
	for _, d := range documents {
		hits = append(hits, fmt.Sprintf(`{"document":%s,"highlights":[],"text_match":578730123365187706}`, d.Source))
	}
	_, rest, _ := strings.Cut(request, "per_page=")
	size := rest[:strings.IndexAny(rest+" ", "& ")]
	return `{"facet_counts":[],"found":50,"hits":[` + strings.Join(hits, ",") + `],"out_of":50,"page":1,"request_params":{"collection_name":"news-1","per_page":` + size +
		`,"q":"report"},"search_cutoff":false,"search_time_ms":3}`
}
