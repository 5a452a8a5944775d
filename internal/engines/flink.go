package engines

import (
	"fmt"
	"net/url"
	"strconv"
	"testing"
)

// flinkSpec is no search engine, so it is none of [Kinds].
var flinkSpec = spec{name: "flink", kind: "flink", health: "/v1/info", companion: 1, heap: "512m"}

// Flink is a running Apache Flink of one jobmanager, two taskmanagers of one slot each and a SQL gateway, all on loopback. It
// shares the file system with the tests.
type Flink struct {
	Gateway string // address of the SQL gateway
	Web     string // address of the jobmanager's REST interface
}

// StartFlink returns a Flink for t alone and stops it when t ends.
func StartFlink(t testing.TB) *Flink {
	t.Helper()
	skipIfOff(t)
	e, err := acquire(flinkSpec)
	if err != nil {
		Unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	f := &Flink{Gateway: e.URL}
	address, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	f.Web = fmt.Sprintf("http://127.0.0.1:%d", port+flinkSpec.companion)
	return f
}
