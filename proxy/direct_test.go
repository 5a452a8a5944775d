//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	r, err := http.NewRequestWithContext(ctx, method, "http://engine:9200/a%2Fb?c", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
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

// FuzzDirect has short requests answered with whatever there is: what the engine gets and what comes back is the same as by the standard
// library's transport.
func FuzzDirect(f *testing.F) {
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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %q to %q: %s", method, body, reply, diff)
		}
	})
}

// spoken is an engine that answers each request on a connection by a function, until that returns false; then it closes.
type spoken struct {
	url         string
	dialled     atomic.Int64
	asked       atomic.Int64
	transport   *proxy.Transport
	disappeared chan struct{} // one for each connection that has come to its end
}

func speaking(t *testing.T, answer func(conn net.Conn, nth int, r *http.Request) bool) *spoken {
	t.Helper()
	s := &spoken{transport: proxy.NewTransport(), disappeared: make(chan struct{}, 100)}
	t.Cleanup(s.transport.CloseIdleConnections)
	s.url = "http://" + listen(t, func(conn net.Conn, _ int) {
		s.dialled.Add(1)
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if !answer(conn, int(s.asked.Add(1)), r) {
				break
			}
		}
		_ = conn.Close()
		s.disappeared <- struct{}{}
	})
	return s
}

func (s *spoken) send(ctx context.Context, method, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return s.transport.RoundTrip(r)
}

// whole sends a request and returns the reply's body.
func (s *spoken) whole(t *testing.T, method, body string) (string, error) {
	t.Helper()
	resp, err := s.send(t.Context(), method, body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return string(all), err
}

const okay = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestDirectConnectionsAreUsedAgain: one connection carries short requests one after the other, and no goroutine waits for it meanwhile.
func TestDirectConnectionsAreUsedAgain(t *testing.T) {
	stacks := make([]byte, 4<<20)
	carriers := func() int { return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("persistConn).readLoop(")) }
	before := carriers()
	s := speaking(t, func(conn net.Conn, _ int, r *http.Request) bool {
		if carriers() > before && r.Method != "PURGE" {
			t.Error("a short request is carried by a goroutine of its connection")
		}
		reply := okay
		switch r.Method {
		case "HEAD":
			reply = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
		case "PUT":
			reply = "HTTP/1.1 204 No Content\r\n\r\n"
		case "DELETE":
			reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
		}
		_, err := io.WriteString(conn, reply)
		return err == nil
	})
	want := map[string]string{"GET": "ok", "HEAD": "", "PUT": "", "POST": "ok", "DELETE": "ok"}
	for range 20 {
		for method, want := range want {
			if got, err := s.whole(t, method, strings.Repeat("x", 16<<10)); err != nil || got != want {
				t.Fatalf("%s: %q, %v", method, got, err)
			}
		}
	}
	if n := s.dialled.Load(); n != 1 {
		t.Errorf("dialled %d times, want 1", n)
	}
	if got, err := s.whole(t, "PURGE", strings.Repeat("x", 16<<10+1)); err != nil || got != "ok" || s.dialled.Load() != 2 {
		t.Errorf("a request that is not short, %q, %v, went out on a connection of short ones: %d", got, err, s.dialled.Load())
	}
}

// TestDirectConnectionsThatTheEngineLeaves: no request is lost to a connection that the engine has closed, or said something odd on, since
// it was used; and none is sent twice that may do something.
func TestDirectConnectionsThatTheEngineLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, behind string // what the engine says behind a reply
		closes       bool
	}{{"closed", "", true}, {"timed out", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", true}, {"something unasked", "HTTP/1.1 200 OK\r\n", false}} {
		t.Run(c.name, func(t *testing.T) {
			said := make(chan struct{}, 1)
			s := speaking(t, func(conn net.Conn, _ int, _ *http.Request) bool {
				_, _ = io.WriteString(conn, okay)
				time.Sleep(5 * time.Millisecond) // the reply is read
				_, _ = io.WriteString(conn, c.behind)
				said <- struct{}{}
				return !c.closes
			})
			for i := range 20 {
				if got, err := s.whole(t, "POST", "{}"); err != nil || got != "ok" {
					t.Fatalf("request %d: %q, %v", i, got, err)
				}
				if <-said; c.closes {
					<-s.disappeared
				}
				time.Sleep(time.Millisecond)
			}
			if s.dialled.Load() != 20 || s.asked.Load() != 20 {
				t.Errorf("dialled %d times for %d requests, want 20 for 20", s.dialled.Load(), s.asked.Load())
			}
		})
	}
	for request, want := range map[string]int64{"GET": 3, "HEAD": 3, "POST": 2, "DELETE": 2, "PUT": 2, "GET {}": 2, "POST {}": 2} {
		t.Run("taken and not answered/"+request, func(t *testing.T) {
			method, body, _ := strings.Cut(request, " ")
			s := speaking(t, func(conn net.Conn, nth int, _ *http.Request) bool {
				if nth == 2 {
					return false
				}
				_, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				return err == nil
			})
			if _, err := s.whole(t, "GET", ""); err != nil {
				t.Fatal(err)
			}
			_, err := s.whole(t, method, body)
			if again := want == 3; again != (err == nil) || s.asked.Load() != want {
				t.Errorf("%v, the engine was asked %d times, want %d", err, s.asked.Load(), want)
			}
		})
	}
}

// TestDirectConnectionsAreCut: a request that is given up, or a reply that is not read to its end, ends its connection.
func TestDirectConnectionsAreCut(t *testing.T) {
	const half = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok"
	for _, c := range []struct {
		name, reply string
		close       bool // and not given up
		waits       bool // somebody waits for more of it meanwhile
	}{
		{"before the reply", "", false, false}, {"in the reply", half, false, false}, {"in the reply, while waiting", half, false, true},
		{"closed early", half, true, false}, {"closed while waiting", half, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := speaking(t, func(conn net.Conn, _ int, _ *http.Request) bool {
				_, err := io.WriteString(conn, c.reply)
				if c.reply == "" {
					cancel()
				}
				return err == nil
			})
			resp, err := s.send(ctx, "POST", "{}")
			if err == nil {
				if _, err = io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
					t.Fatal(err)
				}
				end := cancel
				if c.close {
					end = func() { _ = resp.Body.Close() }
				}
				waited := make(chan error, 1)
				if c.waits {
					go func() {
						_, err := io.ReadAll(resp.Body)
						waited <- err
					}()
					time.Sleep(10 * time.Millisecond)
				} else {
					waited <- io.ErrUnexpectedEOF
				}
				end()
				if <-waited == nil {
					t.Error("half a reply counts as whole")
				}
				_, err = io.ReadAll(resp.Body)
			}
			want := map[bool]error{true: http.ErrBodyReadAfterClose, false: context.Canceled}[c.close]
			if c.close && c.waits {
				want = net.ErrClosed
			}
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			select {
			case <-s.disappeared:
			case <-time.After(30 * time.Second):
				t.Error("the connection stays")
			}
			cancel()
		})
	}
}

// TestDirectConnectionsExpire: connections that nobody uses are closed behind their time, where there are too many at once, and when all are.
func TestDirectConnectionsExpire(t *testing.T) {
	const atOnce = 5
	for _, c := range []struct {
		name string
		set  func(*proxy.Transport)
		gone int
	}{
		{"after a while", func(t *proxy.Transport) { t.IdleConnTimeout = 50 * time.Millisecond }, atOnce},
		{"too many of a host", func(t *proxy.Transport) { t.MaxIdleConnsPerHost = 2 }, atOnce - 2},
		{"too many in all", func(t *proxy.Transport) { t.MaxIdleConns = 1 }, atOnce - 1},
		{"all at once", func(*proxy.Transport) {}, atOnce},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := make(chan struct{})
			s := speaking(t, func(conn net.Conn, nth int, _ *http.Request) bool {
				if nth == atOnce {
					close(all)
				}
				<-all
				_, err := io.WriteString(conn, okay)
				return err == nil
			})
			c.set(s.transport)
			done := make(chan error, atOnce)
			for range atOnce {
				go func() {
					_, err := s.whole(t, "GET", "")
					done <- err
				}()
			}
			for range atOnce {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			if c.name == "all at once" {
				s.transport.CloseIdleConnections()
			}
			for i := range c.gone {
				select {
				case <-s.disappeared:
				case <-time.After(30 * time.Second):
					t.Fatalf("%d connections were closed, want %d", i, c.gone)
				}
			}
			if c.gone == atOnce {
				return
			}
			if _, err := s.whole(t, "GET", ""); err != nil || s.dialled.Load() != atOnce || len(s.disappeared) > 0 {
				t.Errorf("what may stay does not: %v, dialled %d times, %d more are closed", err, s.dialled.Load(), len(s.disappeared))
			}
		})
	}
}
