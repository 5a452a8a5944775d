//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// canProbe says whether silence works here.
const canProbe = true

// silence returns what reports, by one goroutine at a time, whether nothing has come on a connection, its end included. All that came before must
// have been read.
func silence(conn net.Conn) (silent func() bool) {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return noSilence
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return noSilence
	}
	var one [1]byte
	nothing := false
	look := func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), one[:]) // which does not wait: Go's sockets never do
		nothing = err == syscall.EAGAIN
		return true
	}
	return func() bool {
		nothing = false
		err := raw.Read(look)
		return err == nil && nothing
	}
}

func noSilence() bool { return false }
