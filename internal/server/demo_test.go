package server

import (
	"net"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestFreeNear(t *testing.T) {
	taken := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	if at := taken.Addr().String(); FreeNear(at) == at {
		t.Errorf("%s is taken", at)
	}
	expect.Same(t, "127.0.0.1:0", FreeNear("127.0.0.1:0", "127.0.0.1:0"), "any port, for each of two")
	expect.Same(t, "x", FreeNear("x"), "no address")
}
