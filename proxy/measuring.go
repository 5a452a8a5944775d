package proxy

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// measuring returns a way to connect whose connections count what is read from them.
func measuring(connect dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := connect(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			return &measuredConn{TCPConn: tcp}, nil
		}
		return conn, err
	}
}

// measuredConn counts the bytes that are read from it.
type measuredConn struct {
	*net.TCPConn
	read atomic.Int64
}

// Read implements net.Conn.
func (c *measuredConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// arriving is what a connection has brought of a reply.
type arriving struct {
	conn *measuredConn // nil where that is not counted
	from int64         // what it had brought before
}

// looseHead is by how many bytes a reply's head may be longer than what net/http shows of it: white space that it leaves out.
const looseHead = 256

// begun reports whether something of a reply's body is there, as far as that can be told.
func (a *arriving) begun(resp *http.Response) bool {
	if a.conn == nil || resp.ContentLength < looseHead {
		return false
	}
	head := len(resp.Proto) + len(resp.Status) + len(" \r\n\r\n") + lines(resp.Header)
	return a.conn.read.Load()-a.from > int64(head+looseHead)
}
