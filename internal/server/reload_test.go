package server

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/logtest"
)

// reloading is a sidecar whose configuration a test rewrites.
type reloading struct {
	*process
	file string
	log  *logtest.Lines
}

// started serves a configuration until the test ends.
func started(t *testing.T, text string) *reloading {
	t.Helper()
	r := &reloading{process: &process{Options: Options{Drain: time.Second}}, file: configFile(t, text), log: new(logtest.Lines)}
	c := expect.Value(config.Load(r.file, os.LookupEnv))(t)
	r.setUp(c, r.log)
	t.Cleanup(func() {
		close(r.hurry)
		r.leaving.Wait()
		r.close()
	})
	expect.OK(t, r.start(c))
	return r
}

// become rewrites the configuration and reloads it.
func (r *reloading) become(t *testing.T, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(r.file, []byte(text), 0o600))
	r.reload("test")
}

// base returns the URL of an engine, or of the admin listener.
func (r *reloading) base(t *testing.T, name string) string {
	t.Helper()
	for key, d := range r.endpoints {
		if strings.HasPrefix(key, name+" ") {
			return "http://" + d.addr().String()
		}
	}
	t.Fatalf("nothing listens for %s", name)
	return ""
}

// statusOf answers a GET with its status, or 0 where nobody listens.
func statusOf(base string) int {
	response, err := http.Get(base + "/")
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// freePort returns an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func embeddedConfig(rule string) string {
	return `
admin: 127.0.0.1:0
engines:
  - {kind: embedded, name: one, listen: "127.0.0.1:0", indices: [{match: news, fields: [title], ` + rule + `}]}
`
}

// TestReloadTakesEffect changes a threshold over documents that stay, on a connection that stays.
func TestReloadTakesEffect(t *testing.T) {
	r := started(t, embeddedConfig("threshold: 0.7"))
	base := r.base(t, "one")
	fill(t, base)
	expect.Must(t, 2, len(strings.Fields(ids(t, base))), "hits, of which 2 are alike")
	r.become(t, embeddedConfig("threshold: 0.7, dry_run: true"))
	expect.Same(t, 3, len(strings.Fields(ids(t, base))), "hits after the change\n%s", r.log)
	r.become(t, embeddedConfig("threshold: 0.7"))
	expect.Same(t, 2, len(strings.Fields(ids(t, base))), "hits after the way back\n%s", r.log)
	expect.Same(t, 2, strings.Count(r.log.String(), `msg="configuration reloaded"`), "lines about it\n%s", r.log)
}

// TestReloadOfABadConfigurationChangesNothing breaks it in every way that can be found out, each with one line of the log. Engines that
// could have been served leave no metrics.
func TestReloadOfABadConfigurationChangesNothing(t *testing.T) {
	taken := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	good := embeddedConfig("threshold: 0.7")
	r := started(t, good)
	base, admin := r.base(t, "one"), r.base(t, "admin")
	fill(t, base)
	const entry = "  - {kind: embedded, name: %s, listen: %q, indices: [{match: a, fields: [t]}]}\n"
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":     {"engines: [", "is not valid YAML"},
		"empty":       {"", "engines: must have at least one engine"},
		"unknown key": {strings.Replace(good, "threshold", "treshold", 1), "engines[0].indices[0].treshold: unknown key, did you mean threshold?"},
		"a value":     {embeddedConfig("threshold: 7"), "engines[0].indices[0].threshold: 7 is out of range"},
		"two values":  {"log: {level: loud}\n" + embeddedConfig("threshold: 7"), "; "},
		"a variable":  {strings.Replace(good, "news", `"${NEARDUP_NOT_SET}"`, 1), "NEARDUP_NOT_SET is not set"},
		"an address":  {strings.Replace(good, "127.0.0.1:0", taken.Addr().String(), 1), "admin: listen tcp " + taken.Addr().String()},
		"a new engine, and one at a port that is taken": {
			good + fmt.Sprintf(entry, "two", "127.0.0.1:0") + fmt.Sprintf(entry, "three", taken.Addr()), "listen tcp " + taken.Addr().String(),
		},
		"a new engine at our own port": {
			good + fmt.Sprintf(entry, "two", "0.0.0.0:"+base[strings.LastIndexByte(base, ':')+1:]),
			"this sidecar uses the port at " + strings.TrimPrefix(base, "http://"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := len(r.log.String())
			unit := r.backends["one"]
			r.become(t, c.text)
			lines := strings.Split(strings.TrimSpace(r.log.String()[seen:]), "\n")
			if len(lines) != 1 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(strings.ReplaceAll(lines[0], `\"`, `"`), c.want) {
				t.Errorf("the log says:\n%s", strings.Join(lines, "\n"))
			}
			if r.backends["one"] != unit || len(strings.Fields(ids(t, base))) != 2 || statusOf(admin+"/livez") == 0 {
				t.Error("what served before does not any more")
			}
			_, page := call(t, "GET", admin+"/metrics", "")
			if strings.Contains(page, `engine="two"`) || !strings.Contains(page, `engine="one"`) || !strings.Contains(page, "neardup_config_stale 1") {
				t.Error(page)
			}
		})
	}
	r.become(t, embeddedConfig("threshold: 0.8"))
	if len(r.backends) != 1 || r.config.Engines[0].Indices[0].Threshold != 0.8 {
		t.Errorf("a good one does not help any more\n%s", r.log)
	}
}

// TestReloadMovesWhatMoved adds, moves, renames and removes engines; what did not change keeps its backend, with what it learned.
func TestReloadMovesWhatMoved(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer backend.Close()
	entry := func(name, listen, more string) string {
		return fmt.Sprintf("  - {kind: elasticsearch, name: %s, listen: %q, urls: [%q], indices: [{match: a, fields: [t]}]%s}\n", name, listen, backend.URL, more)
	}
	a, b, c, admin := freePort(t), freePort(t), freePort(t), freePort(t)
	head := "admin: " + admin + "\nengines:\n"
	r := started(t, head+entry("one", a, "")+entry("two", b, ""))
	one, two := r.backends["one"], r.backends["two"]
	check := func(what string, listens map[string]bool) {
		t.Helper()
		for at, want := range listens {
			// A connection of its own: one that is open may be answered for a while.
			conn, err := net.Dial("tcp", at)
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != want || want && at != admin && statusOf("http://"+at) != http.StatusOK {
				t.Errorf("%s: %s listens: %v, want %v\n%s", what, at, err == nil, want, r.log)
			}
		}
	}
	check("start", map[string]bool{a: true, b: true, c: false, admin: true})

	r.become(t, head+entry("one", c, "")+entry("two", b, ""))
	check("moved", map[string]bool{a: false, b: true, c: true})
	if r.backends["one"] != one || r.backends["two"] != two {
		t.Error("moved: what an engine learned is lost")
	}
	r.become(t, head+entry("one", b, "")+entry("two", c, ", credentials: {api_key: new}"))
	check("changed places", map[string]bool{a: false, b: true, c: true})
	if r.backends["one"] != one || r.backends["two"] != two || *r.endpoints[b].handler.Load() != http.Handler(one) {
		t.Error("changed places: they answer at the wrong address, or forgot")
	}
	r.become(t, head+entry("one", b, ", on_failure: error")+entry("two", c, ""))
	if r.backends["one"] == one || r.backends["two"] != two || !one.retired.Load() {
		t.Error("changed: the wrong unit is new")
	}
	r.become(t, head+entry("uno", b, ""))
	check("renamed and removed", map[string]bool{b: true, c: false})
	if len(r.backends) != 1 || !two.retired.Load() {
		t.Error("removed: it is still there")
	}
	r.become(t, "admin: \"\"\nlog: {level: debug, format: json}\nengines:\n"+entry("uno", b, "")+entry("three", a, ""))
	check("added, without admin", map[string]bool{a: true, b: true, admin: false})
	if text := r.log.String(); !strings.Contains(text, `{"time"`) || strings.Contains(text, "level=ERROR") {
		t.Errorf("the log:\n%s", text)
	}
}

// read sends what a request is answered, and the error that the answer ends with.
func read(url string, got chan<- string) {
	response, err := http.Get(url)
	if err != nil {
		got <- err.Error()
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	got <- fmt.Sprint(string(body), err)
}

// TestReloadLetsRequestsEnd replaces and removes an engine under requests that have begun.
func TestReloadLetsRequestsEnd(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = io.WriteString(w, "first ")
			_ = http.NewResponseController(w).Flush()
			arrived <- struct{}{}
			<-answer
			_, _ = io.WriteString(w, "last")
		}
	}))
	defer backend.Close()
	text := "admin: \"\"\nengines:\n"
	for _, name := range []string{"stays", "goes"} {
		text += fmt.Sprintf("  - {kind: elasticsearch, name: %s, listen: %q, urls: [%q], indices: [{match: a, fields: [t]}]}\n", name, "127.0.0.1:0", backend.URL)
	}
	r := started(t, text)
	bodies := make(chan string, 2)
	var bases []string
	for _, name := range []string{"stays", "goes"} {
		base := r.base(t, name)
		bases = append(bases, base)
		go read(base+"/slow", bodies)
		<-arrived
	}
	one, _, _ := strings.Cut(strings.TrimPrefix(text, "admin: \"\"\nengines:\n"), "\n")
	r.become(t, "admin: \"\"\nengines:\n"+strings.Replace(one, "fields: [t]", "fields: [u]", 1)+"\n")
	if statusOf(bases[0]) != http.StatusOK || len(r.backends) != 1 {
		t.Fatalf("the one that stays does not answer\n%s", r.log)
	}
	close(answer)
	for range 2 {
		expect.Same(t, "first last<nil>", <-bodies, "a request under way")
	}
}

// TestReloadLeaksNothing reloads a thousand times under requests, with what changes chosen at random, and counts goroutines, open files
// and connections to the engine before and after.
func TestReloadLeaksNothing(t *testing.T) {
	conns := map[net.Conn]bool{}
	var mu sync.Mutex
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	backend.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if conns[c] = true; state == http.StateClosed {
			delete(conns, c)
		}
	}
	backend.Start()
	defer backend.Close()
	stays, moves, admin := freePort(t), []string{freePort(t), freePort(t)}, freePort(t)
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		s := fmt.Sprintf("log: {level: warn}\nadmin: %s\nengines:\n  - {kind: elasticsearch, name: stays, listen: %q, urls: [%q], indices: [{match: a, fields: [t], threshold: 0.%d}]}\n",
			admin, stays, backend.URL, 5+random.IntN(4))
		if random.IntN(3) > 0 {
			s += fmt.Sprintf("  - {kind: elasticsearch, name: moves, listen: %q, urls: [%q], indices: [{match: a, fields: [t]}]}\n", moves[random.IntN(2)], backend.URL)
		}
		return s
	}
	r := started(t, text())
	client := &http.Client{Transport: &http.Transport{}}
	ask := func() {
		response := expect.Value(client.Get("http://" + stays + "/"))(t)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	// Doors that are given up linger: let it be short here.
	close(r.hurry)
	defer func() { r.hurry = make(chan struct{}) }()
	count := func() (goroutines, files, connections int) {
		client.CloseIdleConnections()
		r.leaving.Wait()
		list, _ := os.ReadDir("/proc/self/fd")
		mu.Lock()
		defer mu.Unlock()
		return runtime.NumGoroutine(), len(list), len(conns)
	}
	rounds := max(100, effort.Rounds(1000))
	var goroutines, files int
	for i := range rounds {
		r.become(t, text())
		ask()
		if i == 50 {
			time.Sleep(50 * time.Millisecond)
			goroutines, files, _ = count()
		}
	}
	var nowGoroutines, nowFiles, connections int
	for range 1500 {
		if nowGoroutines, nowFiles, connections = count(); nowGoroutines <= goroutines+5 && nowFiles <= files+5 && connections <= 4 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("after 50 reloads %d goroutines and %d files, after %d %d and %d; %d connections to the engine",
		goroutines, files, rounds, nowGoroutines, nowFiles, connections)
}

// TestLogbook changes level and form under a logger that was made before.
func TestLogbook(t *testing.T) {
	var out logtest.Lines
	b := newReloadableLog(&out, config.Log{Level: "info", Format: "text"})
	log := slog.New(b).With("engine", "one")
	log.Debug("not shown")
	b.set(config.Log{Level: "debug", Format: "json"})
	log.WithGroup("g").Debug("shown", "k", 1)
	b.set(config.Log{Level: "error", Format: "text"})
	log.Warn("not shown")
	if got := out.String(); strings.Contains(got, "not shown") || !strings.Contains(got, `"engine":"one","g":{"k":1}}`) {
		t.Error(got)
	}
}
