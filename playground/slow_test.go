package playground

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// once is a listener with one connection.
type once chan net.Conn

func (l once) Accept() (net.Conn, error) {
	conn, open := <-l
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l once) Close() error   { return nil }
func (l once) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBody sends the beginning of a body and nothing more: it is refused after a while, and a request whose body came may take longer.
func TestSlowBody(t *testing.T) {
	for body, want := range map[string]int{"{": 400, "{}": 200} {
		synctest.Test(t, func(t *testing.T) {
			l := make(once, 1)
			served, conn := net.Pipe()
			l <- served
			server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := read(w, r, 1000); err != nil {
					w.WriteHeader(err.(*failure).status)
					return
				}
				select {
				case <-time.After(2 * bodyTime):
				case <-r.Context().Done():
					w.WriteHeader(http.StatusGatewayTimeout)
				}
			})}
			go func() { _ = server.Serve(l) }()
			began := time.Now()
			_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"+body)
			if err != nil {
				t.Error(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != want || (want == 400) != (time.Since(began) == bodyTime) {
				t.Errorf("%q: %v %v after %v", body, resp, err, time.Since(began))
			}
			_ = conn.Close()
			close(l)
			_ = server.Close()
		})
	}
}
