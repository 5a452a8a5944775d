package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/proxy"
)

// overTLS is a transport that dials by TLS in a way of its own, and how often it did.
func overTLS(authority *engines.Authority) (transport *proxy.Transport, dialled *atomic.Int64) {
	dialled = new(atomic.Int64)
	transport = proxy.NewTransport()
	transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled.Add(1)
		return (&tls.Dialer{Config: &tls.Config{RootCAs: authority.Pool()}}).DialContext(ctx, network, addr)
	}
	return transport, dialled
}

// TestHeadsThatAreTooLongByTLS is TestHeadsThatAreTooLong with an engine behind TLS.
func TestHeadsThatAreTooLongByTLS(t *testing.T) {
	authority := engines.NewAuthority(t, "a")
	pair, err := tls.X509KeyPair(authority.Issue(t, engines.Certificate{}))
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, func(conn net.Conn, _ int) {
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}})
		if _, err := io.ReadFull(conn, make([]byte, 4<<10)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 8\r\n\r\ntoo long")
		}
		_ = conn.Close()
	})
	transport, dialled := overTLS(authority)
	f := serveNodes(t, []string{"https://" + addr}, func(e *proxy.Engine) { e.Transport = transport })
	for _, size := range []int{5_000, 20_000, 50_000, 100_000} {
		for range 10 {
			for _, body := range []string{"", "{}"} {
				got := do(t, "POST", f.url+"/_cat/x?"+strings.Repeat("a", size), body)
				if got.status != 400 || got.body != "too long" {
					t.Fatalf("a head of %d bytes and a body of %d: %d %s", size, len(body), got.status, got.body)
				}
			}
		}
	}
	if n := dialled.Load(); n != 80 {
		t.Errorf("dialled %d times in its own way, want 80", n)
	}
}
