//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// tellsClosed: of a connection that nobody reads from it can be told whether the other side has closed it.
const tellsClosed = true

// quiet returns a function that reports whether nothing has come on a connection, its end included. Who asks must not have left
// anything unread.
func quiet(conn net.Conn) func() bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return func() bool { return false }
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	var nothing bool
	var one [1]byte
	look := func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), one[:]) // which does not wait: Go's sockets never do
		nothing = err == syscall.EAGAIN
		return true
	}
	return func() bool {
		nothing = false
		return raw.Read(look) == nil && nothing
	}
}
