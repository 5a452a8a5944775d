//go:build !unix

package proxy

import "net"

// tellsClosed: of a connection that nobody reads from it can't be told whether the other side has closed it.
const tellsClosed = false

func quiet(net.Conn) func() bool { return func() bool { return false } }
