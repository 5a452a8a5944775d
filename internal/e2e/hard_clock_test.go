package e2e

import (
	"bytes"
	"context"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// jumpingBinary is the program, built of the same sources but for time.Now: its wall clock is ahead by the seconds that are in the file
// which NEARDUP_CLOCK names, as after somebody has set the machine's clock. The monotonic clock goes on.
var jumpingBinary = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "neardup-clock-")
	if err != nil {
		return "", err
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	begin := bytes.Index(source, []byte("func Now() Time {\n"+reads))
	if begin < 0 {
		return "", fmt.Errorf("time.Now of this Go does not begin with %q: write the overlay anew", reads)
	}
	end := begin + len("func Now() Time {\n"+reads)
	jumps := []byte(`package time

import (
	"syscall"
	"unsafe"
)

var ahead = func() *int64 {
	path, found := syscall.Getenv("NEARDUP_CLOCK")
	if !found {
		return new(int64)
	}
	file, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()
`)
	replaced := map[string]string{}
	for name, text := range map[string][]byte{
		"time.go":  append(append(bytes.Clone(source[:end]), "\tsec += *ahead\n"...), source[end:]...),
		"ahead.go": jumps,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(folder, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sidecar")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "github.com/neardup/sidecar/cmd/sidecar").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// wallClock is the one that processes with jumping go by.
type wallClock struct{ file string }

func newWallClock(t *testing.T) wallClock {
	t.Helper()
	c := wallClock{filepath.Join(t.TempDir(), "clock")}
	c.set(t, 0)
	return c
}

// set puts the clock ahead of the machine's, or back.
func (c wallClock) set(t *testing.T, ahead time.Duration) {
	t.Helper()
	file := must(os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600))(t)
	defer file.Close()
	_, err := file.WriteAt(endian.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), 0)
	check(t, err)
}

// command is a command of the sidecar that goes by the clock.
func (c wallClock) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), must(jumpingBinary())(t), args...)
	cmd.Env = append(os.Environ(), "NEARDUP_CLOCK="+c.file)
	return cmd
}

// jumps are how far a clock is ahead, one after the other: it is set forward, back by more, and right again.
var jumps = []time.Duration{3 * time.Hour, -5 * time.Hour, 26 * time.Hour, 0, -10 * time.Minute, 0}

// TestClockJumps sets the clock of a sidecar forward and back by hours, while clients walk lists by cursors, while searches are under way,
// and between writes, renewed certificates and reloads: nothing is lost, forgotten, or kept for longer than it would be otherwise.
func TestClockJumps(t *testing.T) {
	if !soaking() {
		t.Skip("compiles the standard library anew: set NEARDUP_SOAK=1")
	}
	t.Cleanup(func() {
		if path, err := jumpingBinary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	})
	t.Run("serve", serveByJumps)
	t.Run("jobs", func(t *testing.T) { besides(t, reindexByJumps) })
}

func serveByJumps(t *testing.T) {
	const index, unique = "clock-1", "clockd-1"
	e, p, clock := engines.Shared(t, engines.Elasticsearch), newPKI(t), newWallClock(t)
	p.issue(t, engines.Certificate{Name: "first", From: time.Now().Add(-48 * time.Hour)})
	everyClient(t, p.client(t, false))
	relay, direct := inject.Start(t, e.URL), api{e, e.URL}
	d := &daemon{file: config(t, e, setup{match: "clock-*", urls: []string{relay.URL()},
		engine: fmt.Sprintf("listen_tls: {cert_file: %q, key_file: %q}", p.file("tls.crt"), p.file("tls.key"))})}
	text := must(os.ReadFile(d.file))(t)
	d.write(t, string(text)+`      - {match: "clockd-*", fields: [title, body], bands: auto, on_duplicate: skip}`+"\n")
	d.cmd = clock.command(t, "serve", "--config", d.file)
	d.start(t)
	address := d.await(t, "listening", 1)[0]["addr"].(string)
	d.await(t, "admin listening", 1)
	through := api{e, "https://" + address}
	list := leaves(rand.New(rand.NewPCG(11, 4)), 200, 0.4)
	plant(t, direct, through.base, index, 2, list)
	through.create(t, unique)
	steady := walk{e: e, bases: always(through.base), index: index, query: `{"match_all":{}}`, sort: `["id"]`, size: 10}
	want := steady.run(t)
	if len(want.pages) < 4 || len(want.ids) == len(stored(t, direct, index)) {
		t.Fatalf("%d pages, %d hits: too few, or none fold", len(want.pages), len(want.ids))
	}

	next := 0
	jump := func() time.Duration {
		ahead := jumps[next%len(jumps)]
		next++
		clock.set(t, ahead)
		return ahead
	}
	jumping := steady
	jumping.each = func(int) { jump() }
	for range 2 {
		got := jumping.run(t)
		same(t, want.ids, got.ids, "a walk while the clock jumps")
		same(t, 0, got.lost(), "pages whose cursor was lost: %v", got.headers)
	}

	// A search that is with the engine when the clock jumps has the time that is left.
	for range jumps {
		relay.Script(inject.First(1, inject.Fault{At: inject.ReplyBodyBegin, Do: inject.Stall, For: 200 * time.Millisecond}))
		ended := make(chan string, 1)
		go func() { ended <- through.search(t, index, "*", 0, 10, "").outcome }()
		time.Sleep(100 * time.Millisecond)
		ahead := jump()
		if outcome := <-ended; !strings.HasPrefix(outcome, "collapsed") {
			t.Errorf("a search while the clock was set to %v: %s", ahead, outcome)
		}
	}
	relay.Script(nil)

	others := leaves(rand.New(rand.NewPCG(12, 4)), len(jumps), 0)
	for i := range jumps {
		ahead := jump()
		name := fmt.Sprintf("renewed-%d", i)
		p.issue(t, engines.Certificate{Name: name, From: time.Now().Add(-48 * time.Hour)})
		before := len(d.with("configuration"))
		d.signal(t, syscall.SIGHUP)
		loaded := d.await(t, "configuration", before+1)[before]
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(loaded["time"])); err != nil || time.Until(at.Add(-ahead)).Abs() > time.Minute {
			t.Errorf("the log says %v while the clock is ahead by %v (%v)", loaded["time"], ahead, err)
		}
		same(t, name, must(engines.NameShown(address, p.client(t, false).TLSClientConfig))(t), "the certificate while the clock is ahead by %v", ahead)
		status, page := statusAt(t, d.base(t, "")+"/readyz")
		same(t, 200, status, "/readyz while the clock is ahead by %v: %s", ahead, page)
		// The second of two equal writes is a duplicate of what was written just now, and searches do not find that yet.
		text := fmt.Sprintf(`{"title":"leaf","body":%q}`, others[i].Body)
		first := call(t, e, "PUT", fmt.Sprintf("%s/%s/_doc/t%d", through.base, unique, i), text).want(t, 201)
		second := call(t, e, "PUT", fmt.Sprintf("%s/%s/_doc/u%d", through.base, unique, i), text)
		if second.status != 200 || !strings.Contains(string(second.body), "noop") {
			t.Errorf("ahead by %v: the duplicate of %s: %d %s", ahead, first.body, second.status, second.body)
		}
	}
}

// reindexByJumps has two workers share a job, one of which goes by a clock that jumps: all documents are written, each once.
func reindexByJumps(t *testing.T, e *engines.Engine) {
	const index, documents = "clockjob-1", 400
	direct, clock := api{e, e.URL}, newWallClock(t)
	jobIndex(t, direct, index, documents)
	file := config(t, e, setup{match: index})
	args := []string{"reindex", "--config", file, "--resume", "--requests-per-second", "40", "--slices", "2"}
	worker := func(cmd *exec.Cmd) (*bytes.Buffer, func() int) {
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		check(t, cmd.Start())
		return &out, func() int { return exitCode(t, cmd.Wait()) }
	}
	jumping, wait := worker(clock.command(t, args...))
	if !until(func() bool { lacking, _ := unfit(t, direct, index); return lacking < documents }) {
		t.Fatal("the job does not begin")
	}
	clock.set(t, jumps[0])
	steady, waitToo := worker(command(t, context.Background(), args...))
	ended := make(chan int, 1)
	go func() { ended <- wait() }()
	code := -1
	for i := 1; code < 0; i++ {
		select {
		case code = <-ended:
		case <-time.After(300 * time.Millisecond):
			clock.set(t, jumps[i%len(jumps)])
		}
	}
	if other := waitToo(); code != 0 || other != 0 {
		t.Errorf("the worker with the clock that jumps ended with %d: %s\nthe other one with %d: %s", code, jumping, other, steady)
	}
	lacking, why := unfit(t, direct, index)
	if lacking > 0 || why != "" {
		t.Errorf("%d lack a sketch, %s\n%s\n%s", lacking, why, jumping, steady)
	}
	again := 0
	if !direct.typesense() {
		for _, h := range stored(t, direct, index) {
			if !strings.HasPrefix(h.version, "2/") {
				again++
			}
		}
	}
	t.Logf("%d documents were written again; %s; %s", again, summary(jumping.String()), summary(steady.String()))
	if again > documents/10 {
		t.Errorf("%d documents were written more than once", again)
	}
}
