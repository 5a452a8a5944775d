//go:build unix

package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/proxy"
)

// TestShortRequestsTryAnotherNode: a node that can't be dialled takes nothing of a request with it.
func TestShortRequestsTryAnotherNode(t *testing.T) {
	behind := httptest.NewServer(searchEngine(t))
	defer behind.Close()
	for _, path := range []string{"/_whatever", "/plain-1/_search", "/news-1/_search"} {
		f := serveNodes(t, []string{behind.URL, nobody(t)}, nil) // the second is asked first
		if a := do(t, "POST", f.url+path, `{"size":3}`); a.status != 200 {
			t.Errorf("%s: %d %.200s", path, a.status, a.body)
		}
	}
}

// TestDirectDialsOutlastRequests: a request that gives up while it is connected for says so, and no more; the connection is there for others.
func TestDirectDialsOutlastRequests(t *testing.T) {
	s := speaking(t, func(conn net.Conn, _ int, _ *http.Request) bool {
		_, err := io.WriteString(conn, okay)
		return err == nil
	})
	connect, on := s.transport.DialContext, make(chan struct{})
	s.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case <-on:
		case <-ctx.Done():
			t.Error("the dial ends with the request")
		}
		return connect(ctx, network, addr)
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := s.send(ctx, "GET", "")
		_, dial := errors.AsType[*net.OpError](err)
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil || dial {
			t.Errorf("%v", err)
		}
		cancel()
	}
	close(on)
	for end := time.Now().Add(10 * time.Second); s.dialled.Load() < 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	time.Sleep(20 * time.Millisecond) // the last of them is put where the next request looks
	if got, err := s.whole(t, "GET", ""); err != nil || got != "ok" || s.dialled.Load() != 5 {
		t.Errorf("%q, %v, dialled %d times, want 5", got, err, s.dialled.Load())
	}
}

// TestDirectConnectionsInUseAreClosedToo: after CloseIdleConnections no request goes out on a connection that was made before.
func TestDirectConnectionsInUseAreClosedToo(t *testing.T) {
	s := speaking(t, func(conn net.Conn, _ int, _ *http.Request) bool {
		_, err := io.WriteString(conn, okay)
		return err == nil
	})
	for range 3 {
		resp, err := s.send(t.Context(), "POST", "{}")
		if err != nil {
			t.Fatal(err)
		}
		s.transport.CloseIdleConnections()
		if all, err := io.ReadAll(resp.Body); err != nil || string(all) != "ok" {
			t.Errorf("%q, %v", all, err)
		}
	}
	if n := s.dialled.Load(); n != 3 {
		t.Errorf("dialled %d times, want 3", n)
	}
}

// TestEarlyAnswers: an engine that answers a request by its head alone is heard, though the client still has the body.
func TestEarlyAnswers(t *testing.T) {
	addr := listen(t, func(conn net.Conn, _ int) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
		}
		_, _ = io.Copy(io.Discard, conn)
	})
	f := serveNodes(t, []string{"http://" + addr}, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /_whatever HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", resp, err)
	}
}

// glued is a connection whose writes go out together.
type glued struct {
	net.Conn
	held *bytes.Buffer // nil where they go out at once
}

func (g *glued) Write(p []byte) (int, error) {
	if g.held == nil {
		return g.Conn.Write(p)
	}
	return g.held.Write(p)
}

// TestRepliesNobodyAskedForByTLS: what an engine says behind a reply, in one segment with it, is no answer to the next request.
func TestRepliesNobodyAskedForByTLS(t *testing.T) {
	pattern := httptest.NewTLSServer(nil) // for its certificate
	defer pattern.Close()
	addr := listen(t, func(raw net.Conn, _ int) {
		under := &glued{Conn: raw}
		conn := tls.Server(under, pattern.TLS)
		in := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			under.held = new(bytes.Buffer)
			_, _ = io.WriteString(conn, okay)
			_, _ = io.WriteString(conn, strings.ReplaceAll(okay, "ok", "no"))
			_, _ = raw.Write(under.held.Bytes())
			under.held = nil
		}
	})
	transport := proxy.NewTransport()
	defer transport.CloseIdleConnections()
	transport.DialTLSContext = (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext
	for range 5 {
		resp, err := transport.RoundTrip(httptest.NewRequest("GET", "https://"+addr, nil))
		if err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(resp.Body); err != nil || string(all) != "ok" {
			t.Errorf("%q, %v", all, err)
		}
		_ = resp.Body.Close()
		time.Sleep(10 * time.Millisecond)
	}
}
