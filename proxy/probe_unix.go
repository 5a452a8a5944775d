//go:build unix

package proxy

import (
	"net"
	"syscall"
)

// canProbe says whether silence works here.
const canProbe = true

// silence returns a function that reports whether a connection is silent: it is open, and nothing has come that was not read. Only one goroutine at a time
// may call it.
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
