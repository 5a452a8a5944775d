package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/expect"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "-bare" || os.Args[1] == "-stub") { // as the program itself does
		fmt.Fprintln(os.Stderr, run())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// answering is a server that says the same to everybody.
func answering(t *testing.T, status int, said string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if said != "" {
			w.Header().Set("Neardup", said)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer to "+r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAttack(t *testing.T) {
	itself := &process{name: "test", pid: os.Getpid()}
	c := &contender{name: "c", base: answering(t, 200, ""), watch: []*process{itself}}
	c.requests = []request{{method: "GET", path: "/a"}, {method: "GET", path: "/b"}}
	s := expect.Value(c.attack(t.Context(), 200, 500*time.Millisecond))(t)
	if s.p50 <= 0 || s.p95 < s.p50 || s.p99 < s.p95 || s.rate <= 0 || s.requests == 0 || s.requests > 110 || s.kilobytes <= 0 || s.proxy <= 0 ||
		s.cpu["test"] != s.proxy {
		t.Errorf("%+v", s)
	}
	if s, err := c.closed(t.Context(), 4, 200*time.Millisecond); err != nil || s.p50 <= 0 || s.p99 < s.p50 || s.rate <= 0 || s.proxy <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// The stub asks the engine once for each request, and the crowd takes whole replies, with and without a length.
func TestCrowd(t *testing.T) {
	var asked atomic.Int64
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		for range 1 + len(r.URL.Path)%2*9 { // a longer one is in chunks
			_, _ = io.WriteString(w, strings.Repeat("x", 3000))
		}
	}))
	defer engine.Close()
	core := expect.Value(allowedCores())(t)[0]
	b := &bench{ctx: t.Context(), core: strconv.Itoa(core)}
	stub := expect.Value(b.itself("stub", "-stub", engine.URL))(t)
	defer stub.stop()
	c := &contender{name: "c", base: stub.base, watch: []*process{stub}, requests: []request{{method: "GET", path: "/a"}, {"POST", "/bc", nil, []byte("body")}}}
	s, err := c.crowd(core, 20*time.Millisecond)
	if err != nil || s.requests < crowd || s.rate <= 0 || s.proxy <= 0 || s.kilobytes < 9 || asked.Load() != 2 {
		t.Errorf("%+v, %v; the engine was asked %d times", s, err, asked.Load())
	}
	c.collapsed = true
	if _, err := c.crowd(core, time.Millisecond); err == nil {
		t.Error("the replies are not collapsed, and nobody minds")
	}
}

// However little time there is, each request is asked, and none more often than another.
func TestWholePasses(t *testing.T) {
	var asked [3]atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked[r.URL.Path[1]-'0'].Add(1) }))
	defer s.Close()
	c := &contender{name: "c", base: s.URL, requests: []request{{method: "GET", path: "/0"}, {method: "GET", path: "/1"}, {method: "GET", path: "/2"}}}
	for _, length := range []time.Duration{0, 50 * time.Millisecond} {
		expect.Value(c.closed(t.Context(), 1, length))(t)
		if n := asked[0].Load(); n == 0 || asked[1].Load() != n || asked[2].Load() != n {
			t.Errorf("asked %d, %d and %d times", n, asked[1].Load(), asked[2].Load())
		}
	}
}

// A reply that is not as it should be ends each way of asking.
func TestWrongReplies(t *testing.T) {
	for _, tc := range []struct {
		status     int
		said, want string
	}{{503, "collapsed; raw=1", "status 503"}, {200, "bypassed; reason=busy", "reason=busy"}, {200, "", `says ""`}} {
		c := &contender{name: "c", base: answering(t, tc.status, tc.said), collapsed: true, requests: []request{{method: "GET", path: "/"}}}
		_, attacked := c.attack(t.Context(), 100, 100*time.Millisecond)
		_, closed := c.closed(t.Context(), 2, 50*time.Millisecond)
		for _, err := range []error{attacked, closed, c.checkAll(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		}
	}
	c := &contender{name: "c", base: "http://127.0.0.1:1", requests: []request{{method: "GET", path: "/"}}}
	if _, err := c.attack(t.Context(), 100, 100*time.Millisecond); err == nil {
		t.Error("nobody answered, and nobody minds")
	}
}

func TestClocks(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `# HELP neardup_hits_total hits
neardup_hits_total{engine="e",sketch="stored"} 20
neardup_hits_total{engine="e",sketch="missing"} 2
neardup_engine_seconds_sum{engine="e",kind="pass"} 9
neardup_engine_seconds_sum{engine="e",kind="search"} 1.5e-1
neardup_added_seconds_bucket{engine="e",kind="search",le="0.1"} 4
neardup_added_seconds_sum{engine="e",kind="search"} 0.25
neardup_added_seconds_count{engine="e",kind="search"} 4
`)
	}))
	defer s.Close()
	got, err := readClocks(t.Context(), s.URL)
	if want := (clocks{searches: 4, hits: 22, stored: 20, engine: .15, own: .25}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestVerdicts(t *testing.T) {
	c := &comparison{
		contenders: []*contender{{name: ours}, {name: direct}},
		samples:    [][]sample{{{p50: 2}, {p50: 6}, {p50: 3}}, {{p50: 1}, {p50: 2}, {p50: 2}}},
	}
	v := within(c.ratio("p50", ours, direct, p50), 1.9)
	if v.Value != 2 || v.Low != 1.5 || v.High != 3 || v.Reached() {
		t.Errorf("%+v", v)
	}
	if judged(v, "why").Limit != "why" || judged(reaching(v, 2), "why").Limit != "" {
		t.Error("only what is missed has a limit")
	}
	if absent := c.ratio("p50", ours, nginx, p50); absent.Absent == "" || judged(within(absent, 1), "why").Limit != "" {
		t.Errorf("%+v", absent)
	}
	if v := c.tailRatio(ours, direct); !strings.Contains(v.Absent, "too few") {
		t.Errorf("a p99 of no requests: %+v", v)
	}
	if got := c.figure(direct, p50); got != 2 {
		t.Errorf("median %v", got)
	}
}

func TestProcesses(t *testing.T) {
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if pid, err := listener(port); err != nil || pid != os.Getpid() {
		t.Errorf("process %d, %v; want %d", pid, err, os.Getpid())
	}
	b := &bench{ctx: t.Context(), folder: t.TempDir()}
	p := expect.Value(b.bare(answering(t, 200, ""), true))(t)
	r, err := send(t.Context(), p.base, request{method: "GET", path: "/x"})
	if err != nil || string(r.body) != "answer to /x" {
		t.Errorf("%q, %v", r.body, err)
	}
	spent, err := p.cpu()
	if err != nil || spent <= 0 {
		t.Errorf("processor time %v, %v", spent, err)
	}
	if size, err := p.rss(); err != nil || size < 1<<20 {
		t.Errorf("memory %d, %v", size, err)
	}
	expect.OK(t, p.stop())
	if _, err := send(t.Context(), p.base, request{method: "GET", path: "/x"}); err == nil {
		t.Error("it answers after its end")
	}
	if _, err := start(t.Context(), "false", "", func(string) bool { return false }, "false"); err == nil {
		t.Error("a program that ended was started")
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(parts)-len(apart) {
		t.Errorf("%d of %d parts, %v", len(all), len(parts), err)
	}
	if some, err := choose("own,growth"); err != nil || len(some) != 7 || some[1].name != "window" || some[6].name != "sidecars" {
		t.Errorf("%v, %v", some, err)
	}
	if one, err := choose("size,passed"); err != nil || len(one) != 2 || one[1].name != "passed" {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := choose("sise"); err == nil {
		t.Error("an unknown part is chosen")
	}
}
