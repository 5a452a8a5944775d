//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/proxy"
)

// tape is an engine's connection on which a reply stands, whatever the request. The request is kept.
type tape struct {
	net.Conn
	reply io.Reader
	asked bytes.Buffer
	began chan struct{} // closed with the first byte of the request: nobody reads before, or it were a reply to nothing
}

func (c *tape) Write(p []byte) (int, error) {
	if c.asked.Len() == 0 {
		defer close(c.began)
	}
	return c.asked.Write(p)
}

func (c *tape) Read(p []byte) (int, error) {
	<-c.began
	return c.reply.Read(p)
}

func (c *tape) Close() error { return nil }

// found is what came of a request.
type found struct {
	Asked, Status, Body string
	Length              int64
	Header, Trailer     http.Header
	Early               []string
	Failed, BrokeOff    bool
}

// over sends a request by a transport to an engine that replies so.
func over(t *testing.T, transport *proxy.Transport, direct bool, method, body, reply string) (f found) {
	t.Helper()
	c := &tape{reply: strings.NewReader(reply), began: make(chan struct{})}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return c, nil }
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		f.Early = append(f.Early, fmt.Sprint(status, header))
		return nil
	}})
	r := expect.Value(http.NewRequestWithContext(ctx, method, "http://engine:9200/a%2Fb?c", strings.NewReader(body)))(t)
	r.Header = http.Header{"X-A": {"1", "2"}, "User-Agent": {""}}
	via := http.RoundTripper(transport)
	if !direct {
		via = transport.Transport
	}
	resp, err := via.RoundTrip(r)
	if f.Asked = c.asked.String(); err != nil {
		f.Failed = true
		return f
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // which is not asked for
		return found{Asked: f.Asked, Status: resp.Status, Early: f.Early}
	}
	all, err := io.ReadAll(resp.Body)
	f.Status, f.Body, f.Length, f.BrokeOff, f.Header, f.Trailer = resp.Status, string(all), resp.ContentLength, err != nil, resp.Header, resp.Trailer
	return f
}

// FuzzTransport has short requests answered with whatever there is: what the engine gets and what comes back is the same as by the standard
// library's transport.
func FuzzTransport(f *testing.F) {
	for _, reply := range []string{
		"", "x", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\nuntil the end", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nPragma: no-cache\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok",
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-B\r\n\r\n2\r\nok\r\n0\r\nX-B: b\r\nX-C: c\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\nmore", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokay", "HTTP/1.1 99 Odd\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nA b\r\n\r\n", "HTTP/1.1 103 E\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 000 None\r\n\r\n",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			f.Add(method, "", reply)
			f.Add(method, `{"query":{}}`, reply)
		}
	}
	f.Fuzz(func(t *testing.T, method, body, reply string) {
		if _, err := http.NewRequest(method, "http://a/", nil); err != nil || method == "CONNECT" || len(body) > 4<<10 {
			return
		}
		want := over(t, proxy.NewTransport(), false, method, body, reply)
		got := over(t, proxy.NewTransport(), true, method, body, reply)
		if want.Failed || want.BrokeOff { // then nobody looks at the rest
			want.Asked, want.Trailer, got.Asked, got.Trailer = "", nil, "", nil
		}
		expect.Same(t, want, got, "%s %q to %q", method, body, reply)
	})
}

// spoken is an engine that answers each request on a connection by a function, until that returns false; then it closes.
type spoken struct {
	front
	got    chan string   // each request, but those of our own making
	closed chan struct{} // one for each connection that has come to its end
}

func speaking(t *testing.T, answer func(conn net.Conn, request string) bool) *spoken {
	t.Helper()
	s := &spoken{got: make(chan string, 100), closed: make(chan struct{}, 100)}
	addr := faults.Listen(t, nil, func(conn net.Conn, _ int) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if (arrival{method: r.Method, uri: r.RequestURI}).ours() {
				_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
				continue
			}
			request := r.Method + " " + r.RequestURI
			s.got <- request
			if !answer(conn, request) {
				break
			}
		}
		_ = conn.Close()
		s.closed <- struct{}{}
	})
	s.front = serveNodes(t, []string{"http://" + addr}, nil)
	return s
}

const okay = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestIdleConnectionsThatTheEngineCloses: no search is lost to a connection that the engine has closed, or said something odd on, since it
// was used, and what it said is no answer to the next request.
func TestIdleConnectionsThatTheEngineCloses(t *testing.T) {
	t.Parallel()
	for behind, closes := range map[string]bool{"": true, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n": true, "HTTP/1.1 200 OK\r\n": false} {
		t.Run(behind, func(t *testing.T) {
			said := make(chan struct{}, 1)
			s := speaking(t, func(conn net.Conn, _ string) bool {
				_, _ = io.WriteString(conn, okay)
				time.Sleep(5 * time.Millisecond) // the reply is read
				_, _ = io.WriteString(conn, behind)
				said <- struct{}{}
				return !closes
			})
			for i := range 20 {
				if a := do(t, "POST", s.url+"/news-1/_search", `{"size":0}`); a.status != 200 || a.body != "ok" {
					t.Fatalf("request %d: %d %q", i, a.status, a.body)
				}
				if <-said; closes {
					<-s.closed
				}
				time.Sleep(time.Millisecond)
			}
			expect.Same(t, 20, len(s.got), "requests that came")
		})
	}
}

// TestNothingIsSentTwice has an engine take a request on a connection that was used before, and close it without an answer. Only what can do
// no harm is sent again. A scroll's next page is asked for by GET too.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status, times      int
	}{
		{"GET", "/_whatever", "", nil, 200, 2},
		{"GET", "/_whatever", "{}", nil, 502, 1},
		{"POST", "/_whatever", "", nil, 502, 1},
		{"POST", "/_whatever", "{}", []string{"Idempotency-Key: a"}, 502, 1},
		{"POST", "/news-1/_doc", `{"title":"a"}`, nil, 502, 1},
		{"PUT", "/news-1/_doc/1", `{"title":"a"}`, []string{"X-Idempotency-Key: a"}, 502, 1},
		{"POST", "/_bulk", one, nil, 502, 1},
		{"GET", "/_search/scroll", `{"scroll_id":"x"}`, nil, 502, 1},
		{"POST", "/_search/scroll", `{"scroll_id":"x"}`, nil, 502, 1},
	} {
		t.Run(c.method+" "+c.path+" "+c.body, func(t *testing.T) {
			var taken atomic.Bool
			s := speaking(t, func(conn net.Conn, request string) bool {
				if request == c.method+" "+c.path && !taken.Swap(true) {
					return false
				}
				_, err := io.WriteString(conn, okay)
				return err == nil
			})
			expect.Must(t, 200, do(t, "GET", s.url+"/_first", "").status, "the first request")
			a, times := do(t, c.method, s.url+c.path, c.body, c.headers...), len(s.got)-1
			expect.Same(t, [2]int{c.status, c.times}, [2]int{a.status, times}, "what the client got, and how often the engine was asked")
		})
	}
}
