package e2e

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// fleet is several sidecars behind HAProxy, which has the configuration in deploy/haproxy. Each sidecar has an address of its own on loopback, where its
// ports are those of that file.
type fleet struct {
	e        *engines.Engine
	net      string // what all addresses begin with
	rules    string // YAML
	pace     checkPace
	sidecars []*daemon
	front    string // where HAProxy listens
	stats    string // HAProxy's own socket

	asked    atomic.Int64
	mu       sync.Mutex
	failures []string
	broken   []string // failures of requests that must not be sent twice
}

// checkPace is how often HAProxy looks at a sidecar, and for how long a sidecar that ends goes on.
type checkPace struct{ inter, delay string }

// haproxy returns the program. Without it the test is skipped, and fails in CI.
func haproxy(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil && runtime.GOOS == "linux" { // elsewhere loopback has one address
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no HAProxy: install the package haproxy")
	}
	t.Skip("there is no HAProxy")
	return ""
}

// newFleet starts n sidecars behind HAProxy, which hands out requests by the algorithm.
func newFleet(t *testing.T, e *engines.Engine, n int, algorithm string, pace checkPace, rules string) *fleet {
	t.Helper()
	haproxy(t)
	f := &fleet{e: e, net: loopback(), rules: rules, pace: pace, sidecars: make([]*daemon, n)}
	for i := range f.sidecars {
		f.start(t, i)
	}
	f.balance(t, n, algorithm)
	return f
}

// loopback returns what the addresses of one test begin with.
func loopback() string { return fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256)) }

// balance starts HAProxy in front of n sidecars, and waits until it sees them.
func (f *fleet) balance(t *testing.T, n int, algorithm string) {
	t.Helper()
	program, dir := haproxy(t), must(os.MkdirTemp("", "n"))(t) // a short path: that of a socket may have 107 bytes
	t.Cleanup(func() { os.RemoveAll(dir) })
	f.front, f.stats = "http://"+f.net+"100:9200", filepath.Join(dir, "stats")
	text := string(must(os.ReadFile("../../deploy/haproxy/haproxy.cfg"))(t))
	for old, new := range map[string]string{
		"bind :9200\n": "bind " + f.net + "100:9200\n", "balance roundrobin\n": "balance " + algorithm + "\n", " inter 1s ": " inter " + f.pace.inter + " ",
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("haproxy.cfg has %q %d times", old, strings.Count(text, old))
		}
		text = strings.Replace(text, old, new, 1)
	}
	file := filepath.Join(dir, "haproxy.cfg")
	check(t, os.WriteFile(file, []byte(text+"\nglobal\n  stats socket "+f.stats+"\n"), 0o600))
	cmd := exec.CommandContext(context.Background(), program, "-db", "-f", file)
	cmd.Env = append(os.Environ(), "SIDECARS="+f.net)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if _ = cmd.Wait(); t.Failed() {
			t.Log(said.String())
		}
	})
	if !until(func() bool { _, err := os.Stat(f.stats); return err == nil }) {
		t.Fatal("HAProxy does not start")
	}
	f.settled(t, n)
}

func (f *fleet) addr(i int) string { return fmt.Sprint(f.net, i+1) }

// base is the address of one sidecar.
func (f *fleet) base(i int) string { return "http://" + f.addr(i) + ":9201" }

// text is the configuration of a sidecar. Revisions differ in one limit.
func (f *fleet) text(i, revision int) string {
	key := ""
	if f.e.Key != "" {
		key = "\n    credentials: {api_key: " + f.e.Key + "}"
	}
	return fmt.Sprintf("log: {format: json}\nadmin: %s:7610\nsketch: {seed: %q}\nengines:\n  - listen: %s:9201\n    kind: %s\n    urls: [%q]%s\n    limits: %s\n    indices:\n%s",
		f.addr(i), seed, f.addr(i), f.e.Kind, f.e.URL, key, patient(fmt.Sprintf("{max_reply: %dMB}", 32+revision)), f.rules)
}

// start starts a sidecar.
func (f *fleet) start(t *testing.T, i int) {
	t.Helper()
	f.sidecars[i] = daemonOf(t, f.text(i, 0), "--drain-delay", f.pace.delay)
	f.sidecars[i].await(t, "listening", 1)
}

// states returns how many sidecars HAProxy sends requests to, and how often it sent one again or to another sidecar than it had chosen.
func (f *fleet) states(t *testing.T) (up, retries, redispatches int) {
	t.Helper()
	conn := must(net.Dial("unix", f.stats))(t)
	defer conn.Close()
	must(io.WriteString(conn, "show stat\n"))(t)
	rows := csv.NewReader(conn)
	rows.FieldsPerRecord = -1
	list := must(rows.ReadAll())(t)
	number := func(s string) (n int) { _, _ = fmt.Sscan(s, &n); return n }
	for _, row := range list {
		switch {
		case len(row) < 18 || row[0] != "ready":
		case row[1] == "BACKEND":
			retries, redispatches = number(row[15]), number(row[16])
		case strings.HasPrefix(row[17], "UP"):
			up++
		}
	}
	return up, retries, redispatches
}

// settled waits until HAProxy sends requests to n sidecars.
func (f *fleet) settled(t *testing.T, n int) {
	t.Helper()
	up := 0
	if !until(func() bool { up, _, _ = f.states(t); return up == n }) {
		t.Fatalf("HAProxy sends requests to %d sidecars, not to %d", up, n)
	}
}

// restart ends a sidecar in an orderly way and starts it anew.
func (f *fleet) restart(t *testing.T, i int) {
	t.Helper()
	f.sidecars[i].signal(t, syscall.SIGTERM)
	same(t, 0, f.sidecars[i].ended(t), "exit code of sidecar %d", i)
	f.start(t, i)
	f.settled(t, len(f.sidecars))
}

// reload has all sidecars load another configuration at once.
func (f *fleet) reload(t *testing.T, revision int) {
	t.Helper()
	var before []int
	for i, d := range f.sidecars {
		before = append(before, len(d.with("configuration reloaded")))
		d.write(t, f.text(i, revision))
		d.signal(t, syscall.SIGHUP)
	}
	for i, d := range f.sidecars {
		d.await(t, "configuration reloaded", before[i]+1)
	}
}

// kill ends a sidecar with what it does, and starts it anew once HAProxy has seen that.
func (f *fleet) kill(t *testing.T, i int) {
	t.Helper()
	f.sidecars[i].signal(t, syscall.SIGKILL)
	same(t, -int(syscall.SIGKILL), f.sidecars[i].ended(t), "exit code of sidecar %d", i)
	f.settled(t, len(f.sidecars)-1)
	f.start(t, i)
	f.settled(t, len(f.sidecars))
}

func (f *fleet) fail(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// failed returns what failed since it was last asked, and which requests failed that must not be sent twice.
func (f *fleet) failed() (failures, broken []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failures, broken, f.failures, f.broken = f.failures, f.broken, nil, nil
	return failures, broken
}

// visitor is a client of a fleet, with an address of its own. It keeps its connections and never sends anything again.
type visitor struct {
	*fleet
	*rand.Rand
	http *http.Client
}

// visitor returns the i-th client. Each fourth speaks HTTP/2.
func (f *fleet) visitor(i int) *visitor {
	from := &net.TCPAddr{IP: net.ParseIP(fmt.Sprint(f.net, 110+i))}
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: from}).DialContext, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(i%4 == 3)
	transport.Protocols.SetHTTP1(i%4 != 3)
	return &visitor{f, rand.New(rand.NewPCG(uint64(i), 26)), &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// ask sends a request once, and reports whether it is answered with a status below 300. once says that nobody may send it a second time.
func (v *visitor) ask(once bool, method, path, body string) (reply, bool) {
	r, err := requestOf(context.Background(), v.e, method, v.front+path, nil)
	if err == nil && body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body)) // no GetBody: the transport can't repeat it
	}
	got := reply{}
	if err == nil {
		v.asked.Add(1)
		got, err = exchange(v.http, r)
	}
	if err == nil && got.status < 300 {
		return got, true
	}
	failure := fmt.Sprintf("%s %.100s: %d %v %.200s", method, path, got.status, err, got.body)
	v.mu.Lock()
	defer v.mu.Unlock()
	if once {
		v.broken = append(v.broken, failure)
	} else {
		v.failures = append(v.failures, failure)
	}
	return got, false
}
