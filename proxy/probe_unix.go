//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// canProbe says whether silent works here.
const canProbe = true

// silent reports whether nothing has come on a connection, its end included. All that came before must have been read.
func silent(conn net.Conn) bool {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:]) // which does not wait: Go's sockets never do
		nothing = err == syscall.EAGAIN
		return true
	})
	return err == nil && nothing
}
