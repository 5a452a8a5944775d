//go:build !unix

package proxy

import "net"

// canProbe is false where there is no read that does not wait: without it nobody knows that the engine has closed an idle connection.
const canProbe = false

func silence(net.Conn) (silent func() bool) { return func() bool { return false } }
