package faults

import (
	"crypto/tls"
	"net"
	"testing"
)

// Listen starts a server that talks on each connection as it is told, by TLS if there is a configuration, and returns its address. It ends with
// the test. Connections are numbered from 1 on.
func Listen(t testing.TB, config *tls.Config, talk func(conn net.Conn, number int)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for number := 1; ; number++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				talk(conn, number)
			}()
		}
	}()
	return l.Addr().String()
}
