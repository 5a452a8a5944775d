package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/proxy"
)

// standard is the standard library's reverse proxy, told to leave requests as they are.
func standard(t *testing.T, engine string) (addr string) {
	t.Helper()
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	transport := proxy.NewTransport().Transport
	t.Cleanup(transport.CloseIdleConnections)
	pass := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Trailer = p.In.Trailer
			for _, key := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Named"} {
				if values, ok := p.In.Header[key]; ok {
					p.Out.Header[key] = values
				}
			}
			p.Out.Header.Del("Upgrade")
			p.Out.Header.Del("Connection")
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // or else a reply that comes before the body's end was seen ends both
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// some returns those of the lines that fall to it.
func some(random *rand.Rand, lines ...string) (picked string) {
	for _, line := range lines {
		if random.IntN(3) == 0 {
			picked += line + "\r\n"
		}
	}
	return picked
}

// framed returns how a body of the size goes over the wire, with its headers, and trailers if it is sent in chunks.
func framed(random *rand.Rand, size int, head string) string {
	body := strings.Repeat("x", size)
	if random.IntN(2) == 0 {
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, size, body)
	}
	trailer := ""
	if random.IntN(3) == 0 {
		head, trailer = head+"Trailer: X-After\r\n", "X-After: a\r\n"
		if random.IntN(2) == 0 {
			trailer += "X-Unsaid: b\r\n"
		}
	}
	text := head + "Transfer-Encoding: chunked\r\n\r\n"
	for len(body) > 0 {
		n := min(len(body), 1+random.IntN(9_000))
		text, body = text+fmt.Sprintf("%x\r\n%s\r\n", n, body[:n]), body[n:]
	}
	return text + "0\r\n" + trailer + "\r\n"
}

// requested and replied return a request and a reply at random.
func requested(random *rand.Rand) (text string, head bool) {
	method := []string{"GET", "HEAD", "POST", "DELETE", "PURGE"}[random.IntN(5)]
	text = method + " /_whatever/%2F<x>?a=1;b&%zz HTTP/1.1\r\nHost: here\r\n" + some(random, "User-Agent: me", "Connection: keep-alive, X-Named", "X-Named: n",
		"Connection: Upgrade", "Upgrade: websocket", "Te: trailers, deflate", "Te: deflate", "Keep-Alive: 5", "Proxy-Authorization: x", "Proxy-Connection: close",
		"Forwarded: for=x", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "Accept-Encoding: gzip", "Cookie: a=b", "Cookie: c=d", "Idempotency-Key: k")
	if method == "POST" || method == "PURGE" {
		return framed(random, []int{0, 1, 3_000, 100_000}[random.IntN(4)], text), false
	}
	return text + "\r\n", method == "HEAD"
}

func replied(random *rand.Rand, head bool) string {
	status := []string{"200 OK", "201 Created", "204 No Content", "304 Not Modified", "404 Not Found", "503 Service Unavailable"}[random.IntN(6)]
	text := ""
	if random.IntN(4) == 0 {
		text = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nLink: </y>\r\n\r\n"
	}
	text += "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nDate: today\r\n" + some(random, "Set-Cookie: a=b", "Set-Cookie: c=d",
		"Connection: X-Own", "X-Own: 1", "Keep-Alive: timeout=5", "Upgrade: h2c", "Warning: 299 x", "X-Elastic-Product: Elasticsearch", "Proxy-Authenticate: y")
	switch {
	case head:
		return text + some(random, "Content-Length: 77") + "\r\n"
	case strings.HasPrefix(status, "204"), strings.HasPrefix(status, "304"):
		return text + "\r\n"
	}
	return framed(random, []int{0, 1, 1_000, 5_000, 70_000}[random.IntN(5)], text)
}

// talked is one exchange as it stood on both wires.
type talked struct{ asked, early, answered message }

// sorted returns a message without what depends on which side was quicker: whether the connection is used again, and how an empty body goes
// over the wire.
func (m message) sorted() message {
	m.header = slices.DeleteFunc(m.header, func(line string) bool {
		name, value, _ := strings.Cut(line, ": ")
		return line == "connection: close" || m.body == "" && (name == "transfer-encoding" || name == "content-length" && value == "0")
	})
	slices.Sort(m.header)
	slices.Sort(m.trailer)
	m.trailer = append([]string{}, m.trailer...)
	return m
}

// exchange sends a request to a proxy and returns what the engine saw of it and what came back.
func exchange(t *testing.T, addr, request string, head bool, seen <-chan message) (x talked) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	go func() { _, _ = io.WriteString(conn, request) }()
	in := bufio.NewReader(conn)
	read := func() message {
		line, err := in.Peek(len("HTTP/1.1 200"))
		if err != nil {
			t.Fatalf("%v after %.300q", err, request)
		}
		status := string(line[len("HTTP/1.1 "):])
		m, err := readMessage(in, head || status == "204" || status == "304" || status[0] == '1', true)
		if err != nil {
			t.Fatal(err)
		}
		return m.sorted()
	}
	x.answered = read()
	if strings.HasPrefix(x.answered.first, "HTTP/1.1 103") {
		x.early, x.answered = x.answered, read()
	}
	x.asked = <-seen
	return x
}

// TestRelaysAsTheStandardLibrary sends requests at random through a sidecar and through httputil.ReverseProxy: the engine sees the same of
// both, and their clients the same of its replies, whichever the headers, lengths, chunks, trailers and early hints.
func TestRelaysAsTheStandardLibrary(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var reply atomic.Pointer[string]
	seen := make(chan message, 1)
	engine := "http://" + listen(t, func(conn net.Conn, _ int) {
		for in := bufio.NewReader(conn); ; {
			m, err := readMessage(in, false, false)
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, *reply.Load())
			seen <- m.sorted()
		}
	})
	ours, theirs := strings.TrimPrefix(serveNodes(t, []string{engine}, nil).url, "http://"), standard(t, engine)
	for range effort.Rounds(500) {
		request, head := requested(random)
		text := replied(random, head)
		reply.Store(&text)
		want := exchange(t, theirs, request, head, seen)
		got := exchange(t, ours, request, head, seen)
		want.asked.first = got.asked.first // the standard library cleans paths up; TestTransparent holds ours
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(talked{}, message{})); diff != "" {
			t.Fatalf("%s\nrequest %.600q\nreply %.600q", diff, request, text)
		}
	}
}

// TestHeadsComeAtOnce has an engine say that it answers, or give the beginning of its answer, and no more until the client knows.
func TestHeadsComeAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ length, begun string }{
		"of unknown length": {}, "begun": {begun: "{"}, "of known length": {length: "2"}, "of known length, begun": {"2", "{"},
	} {
		t.Run(name, func(t *testing.T) {
			known := make(chan struct{})
			f := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.length != "" {
					w.Header().Set("Content-Length", c.length)
				}
				_, _ = io.WriteString(w, c.begun)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-known:
				case <-time.After(30 * time.Second):
					t.Error("the client was not told")
				}
				_, _ = io.WriteString(w, "{}"[len(c.begun):])
			}), nil)
			resp, err := client.Get(f.url + "/_whatever")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			begun := make([]byte, len(c.begun))
			if _, err := io.ReadFull(resp.Body, begun); err != nil || string(begun) != c.begun {
				t.Errorf("%q, %v", begun, err)
			}
			close(known)
			if body, err := io.ReadAll(resp.Body); string(begun)+string(body) != "{}" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
}

// counted is a listener that counts the writes to its connections.
type counted struct {
	net.Listener
	writes *atomic.Int64
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return countedConn{conn, c.writes}, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestRepliesInOnePiece: head and body of a short reply whose length is known go out in one write.
func TestRepliesInOnePiece(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1500)) }))
	defer behind.Close()
	f := handler(t, []string{behind.URL}, nil)
	server := httptest.NewUnstartedServer(f.Handler)
	var writes atomic.Int64
	server.Listener = counted{server.Listener, &writes}
	server.Start()
	defer server.Close()
	for range 50 {
		if got := do(t, "GET", server.URL+"/_whatever", ""); len(got.body) != 1500 {
			t.Fatal(got)
		}
	}
	if n := writes.Load(); n != 50 {
		t.Errorf("50 replies went out in %d writes", n)
	}
}

// TestPassingAllocatesLittle holds what a request costs that passes.
func TestPassingAllocatesLittle(t *testing.T) {
	e := newEngine("news-1")
	f := handler(t, []string{"http://engine:9200"}, func(p *proxy.Engine) { p.Transport = canned{e, map[string]*taped{}}; p.Log = nil })
	n := testing.AllocsPerRun(200, func() {
		r := &http.Request{
			Method: "GET", URL: &url.URL{Path: "/_cat/health"}, RequestURI: "/_cat/health", Host: "here", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"User-Agent": {"x"}}, Body: http.NoBody,
		}
		f.ServeHTTP(unread{http.Header{}}, r)
	})
	if n > 30 { // 45 by httputil.ReverseProxy
		t.Errorf("%v allocations, want 30 at most", n)
	}
}
