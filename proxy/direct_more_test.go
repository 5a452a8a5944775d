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
	for end := time.Now().Add(60 * time.Second); s.dialled.Load() < 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	time.Sleep(100 * time.Millisecond) // the last of them is put where the next request looks
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
