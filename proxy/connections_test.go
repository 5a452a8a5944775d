package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// spoken is an engine that answers each request on a connection by a function, until that returns false; then it closes.
type spoken struct {
	front
	got    chan string   // each request, but those of our own making
	closed chan struct{} // one for each connection that has come to its end
}

func speaking(t *testing.T, answer func(conn net.Conn, request string) bool) *spoken {
	t.Helper()
	s := &spoken{got: make(chan string, 100), closed: make(chan struct{}, 100)}
	addr := listen(t, func(conn net.Conn, _ int) {
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

// TestIdleConnectionsThatTheEngineCloses: no request is lost to a connection that the engine has closed, or said something odd on, since it
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
				if a := do(t, "POST", s.url+"/_whatever", "{}"); a.status != 200 || a.body != "ok" {
					t.Fatalf("request %d: %d %q", i, a.status, a.body)
				}
				if <-said; closes {
					<-s.closed
				}
				time.Sleep(5 * time.Millisecond)
			}
			if len(s.got) != 20 {
				t.Errorf("%d requests came, want 20", len(s.got))
			}
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
			if a := do(t, "GET", s.url+"/_first", ""); a.status != 200 {
				t.Fatal(a)
			}
			a, times := do(t, c.method, s.url+c.path, c.body, c.headers...), len(s.got)-1
			if a.status != c.status || times != c.times {
				t.Errorf("the client got %d, the engine was asked %d times: want %d, %d", a.status, times, c.status, c.times)
			}
		})
	}
}
